"""Runs fp8-opt on every example in the TableGen files.

    python3 ods_examples.py FP8_OPT INCLUDE_DIR

An example is a ```mlir block in a description. The rule is the simplest there
is: it is a module that parses and verifies on its own, every value defined (an
op is shown inside a func.func). A snippet that is not meant to be compiled uses
another fence (```text).
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import textwrap

FENCE = re.compile(r"^[ \t]*```mlir[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.M | re.S)


def examples(folder):
    """(file, line of the first line, text) of every example."""
    for path in sorted(folder.rglob("*.td")):
        text = path.read_text()
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start(1)) + 1
            yield path, line, textwrap.dedent(match.group(1))


def compile_example(fp8_opt, example):
    path, line, text = example
    run = subprocess.run([fp8_opt, "-o", "/dev/null", "-"], input=text, capture_output=True, text=True, timeout=60)
    if run.returncode == 0:
        return None
    # Errors name lines of the example; point into the file instead.
    errors = re.sub(r"<stdin>:(\d+)", lambda m: f"{path}:{int(m.group(1)) + line - 1}", run.stderr)
    return f"{path}:{line}: example does not compile\n{textwrap.indent(errors.strip(), '    ')}"


def main():
    fp8_opt, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    found = list(examples(folder))
    with concurrent.futures.ThreadPoolExecutor() as pool:
        failures = [failure for failure in pool.map(lambda e: compile_example(fp8_opt, e), found) if failure]
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(found)} examples, {len(failures)} failures")
    return 1 if failures or not found else 0


if __name__ == "__main__":
    sys.exit(main())
