"""Every op and pass has a summary, a description and an example, and every
example compiles.

    python3 ods_examples.py FP8_OPT LLVM_TBLGEN INCLUDE_DIR

An example is a ```mlir block in a description, as TableGen prints it. It must be a
module that parses and verifies on its own, with every value defined (an op is shown
in a func.func). A snippet that is not meant to be compiled uses another fence
(```text).
"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import textwrap

FENCE = re.compile(r"^[ \t]*```mlir[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.M | re.S)
UPSTREAM = pathlib.Path("/usr/lib/llvm-22/include")


def definitions(tblgen, folder, path):
    """Returns (where, definition) for every def of the file that has a description."""
    command = [tblgen, "-dump-json", f"-I{folder.parent}", f"-I{UPSTREAM}", path]
    records = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    for name, record in records.items():
        if not isinstance(record, dict) or "description" not in record or record.get("!anonymous"):
            continue
        place = next((loc for loc in record["!locs"] if loc.startswith(f"{path.name}:")), None)
        if place:
            yield f"{path.parent / place} {name}", record


def check(where, record):
    """Returns what a definition lacks, and its examples."""
    description = record["description"] or ""
    examples = [textwrap.dedent(match.group(1)) for match in FENCE.finditer(description)]
    missing = []
    if {"Op", "PassBase"} & set(record["!superclasses"]):
        if not record.get("summary"):
            missing.append(f"{where}: expected a summary")
        if not examples:
            missing.append(f"{where}: expected an example (```mlir) in the description")
    return missing, [(where, example) for example in examples]


def compile_example(fp8_opt, where, text):
    run = subprocess.run([fp8_opt, "-o", "/dev/null", "-"], input=text, capture_output=True, text=True, timeout=60)
    if run.returncode == 0:
        return None
    # The list of dialects after an unknown one is of no use here.
    errors = re.sub(r"Available dialects: .*", "", run.stderr.strip())
    return f"{where}: example does not compile\n{textwrap.indent(errors, '    ')}"


def main():
    fp8_opt, tblgen, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    failures, examples = [], []
    for path in sorted(folder.rglob("*.td")):
        for where, record in definitions(tblgen, folder, path):
            missing, found = check(where, record)
            failures += missing
            examples += found
    with concurrent.futures.ThreadPoolExecutor() as pool:
        results = pool.map(lambda example: compile_example(fp8_opt, *example), examples)
        failures += [failure for failure in results if failure]
    for failure in failures:
        print(failure, file=sys.stderr)
    print(f"{len(examples)} examples, {len(failures)} failures")
    return 1 if failures or not examples else 0


if __name__ == "__main__":
    sys.exit(main())
