"""Runs every pass and pipeline of fp8-opt on files, one at a time:

    python every_pass.py FP8_OPT FILE...

Each must succeed, or print an error and exit with 1.
"""

import re
import subprocess
import sys


def names(fp8_opt):
    text = subprocess.run([fp8_opt, "--help"], capture_output=True, text=True, check=True).stdout
    # Options of passes are indented further than the passes.
    return re.findall(r"^ {6}--(fp8-[a-z0-9-]+) ", text, re.M)


def mistake(fp8_opt, name, file):
    done = subprocess.run([fp8_opt, file, f"--{name}"], capture_output=True, text=True, timeout=60)
    if done.returncode not in (0, 1):
        return f"exit {done.returncode}: {done.stderr[-500:]}"
    if done.returncode == 1 and " error: " not in done.stderr:
        return f"no error: {done.stderr[-500:]}"
    return ""


fp8_opt, *files = sys.argv[1:]
passes = names(fp8_opt)
assert len(passes) > 70, f"expected the passes but got {passes}"
wrong = [f"{name} on {file}: {found}" for name in passes for file in files if (found := mistake(fp8_opt, name, file))]
sys.exit("\n".join(wrong) or 0)
