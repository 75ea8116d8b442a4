"""Shared by the tests of the page."""

import base64
import json
import pathlib
import re
import subprocess
import sys
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "Integration" / "CPU"))
sys.path.insert(0, str(ROOT / "python_bindings" / "fp8"))
SCRIPT = ROOT / "python_bindings" / "fp8" / "report_page.py"


def make_page(*args, check=True):
    result = subprocess.run([sys.executable, SCRIPT, *args, "--source", ROOT / "examples"], capture_output=True, text=True, timeout=300)
    if check:
        assert result.returncode == 0, result.stderr
    return result


def page_data(path):
    """Returns the data that the page contains."""
    text = path.read_text()
    (encoded,) = re.findall(r'id="data">([^<]*)</script>', text)
    return json.loads(zlib.decompress(base64.b64decode(encoded)))


def same(got, expected, what):
    """Compares numbers; those of a page have 5 digits."""
    assert (got is None) == (expected is None), f"{what}: expected {expected} but got {got}"
    if got is not None:
        assert abs(got - expected) <= 1e-4 * abs(expected), f"{what}: expected {expected} but got {got}"


def values(series, count):
    """Returns a series with `count` values: the page stores a constant series as one value."""
    return series if isinstance(series, list) else [series] * count
