"""Compares the man pages with --help."""

import pathlib
import re
import shutil
import subprocess
import sys

for name, least in (("fp8-opt", 60), ("fp8-run", 40), ("fp8-train", 20), ("fp8-reduce", 5), ("fp8-lsp-server", 2)):
    page = pathlib.Path(sys.argv[1]) / f"{name}.1"
    text = page.read_text()
    help = subprocess.run([name, "--help"], check=True, capture_output=True, text=True).stdout
    listed = [line.replace("\\-", "-").split("=")[0].split(" ")[0] for line in re.findall(r"^\.TP\n\.B (.*)$", text, re.MULTILINE)]
    options = set(re.findall(r"^(?:  |      )(--?[\w.-]+)", help, re.MULTILINE))
    if name in ("fp8-opt", "fp8-lsp-server"):  # LLVM's own options are left out
        options = {option for option in options if re.match(r"--(fp8-|help$|version$)", option)} if name == "fp8-opt" else {"--help", "--version"}
    missing = sorted(options - set(listed))
    assert not missing, f"{page}: expected {', '.join(missing)}"
    assert len(listed) >= least, f"{page}: expected at least {least} options but got {len(listed)}"
    sections = re.findall(r"^\.SH (.*)$", text, re.MULTILINE)
    assert sections == ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO"], f"{page}: {sections}"
    requests = set(re.findall(r"^\.(\w+)", text, re.MULTILINE))
    assert requests <= {"TH", "SH", "TP", "B", "BR", "PP", "RS", "RE"}, f"{page}: {requests}"
    if groff := shutil.which("groff"):
        shown = subprocess.run([groff, "-man", "-ww", "-Tutf8", page], check=True, capture_output=True, text=True)
        assert not shown.stderr, shown.stderr
        assert name in shown.stdout
