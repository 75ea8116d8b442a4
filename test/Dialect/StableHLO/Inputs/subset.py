"""docs/StableHLOSubset.md agrees with the dialects and the compiler.

    python3 subset.py FP8_OPT LLVM_TBLGEN SOURCE_ROOT

Every op of the TableGen files has one row and every row an op, and "Compiled"
says what happens to the op's own example on its way to structured form.
"""

import concurrent.futures
import importlib.util
import pathlib
import re
import subprocess
import sys

# The imported file is in the source tree, which gets no cache.
sys.dont_write_bytecode = True
fp8_opt, tblgen, root = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
spec = importlib.util.spec_from_file_location("ods_examples", root / "test/Docs/ods_examples.py")
ods = importlib.util.module_from_spec(spec)
spec.loader.exec_module(ods)

PASSES = ["--stablehlo-drop-sharding", "--stablehlo-inline-calls", "--stablehlo-simplify", "--fp8-structure"]


def examples():
    """Returns (op, its example) for every op of the three dialects."""
    include = root / "include/fp8"
    for path in sorted((include / "Dialect/StableHLO/IR").glob("*.td")):
        for where, record in ods.definitions(tblgen, include, path):
            if "Op" in record["!superclasses"]:
                dialect = record["opDialect"]["def"].split("_")[0].lower()
                yield f"{dialect}.{record['opName']}", ods.check(where, record)[1][0][1]


def is_gone(op, text, passes):
    run = subprocess.run([fp8_opt, "-", *passes], input=text, capture_output=True, text=True, timeout=60)
    return run.returncode == 0 and not re.search(re.escape(op) + r"\b", run.stdout)


def compiled_as(example):
    """Returns the entries that the page may have for an op, or None if its example has nothing to
    compile."""
    op, text = example
    if "func.func" not in text:
        return op, None
    if is_gone(op, text, PASSES):
        return op, ("yes", "inlined", "dropped")
    on_two = "module attributes {mhlo.num_partitions = 2 : i32} {\n" + text + "\n}"
    return op, ("on ranks",) if is_gone(op, on_two, ["--stablehlo-lower-collectives", *PASSES]) else ("not yet",)


def main():
    page = (root / "docs/StableHLOSubset.md").read_text()
    rows = re.findall(r"^\| `([\w.]+)` \| [^|]* \| ([^|]*) \|", page, re.M)
    status = dict(rows)
    errors = [f"{op}: expected one row but got two" for op in status if [name for name, _ in rows].count(op) > 1]
    found = dict(examples())
    errors += [f"{op}: expected a row in docs/StableHLOSubset.md" for op in found if op not in status]
    errors += [f"{op}: expected no row for an op that the dialects do not have" for op in status if op not in found]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for op, compiled in pool.map(compiled_as, found.items()):
            says = status.get(op)
            if says not in ("yes", "inlined", "dropped", "with its op", "on ranks", "not yet"):
                errors.append(f"{op}: unknown state {says!r}")
            elif says != "with its op" and compiled is not None and says not in compiled:
                errors.append(f"{op}: expected the page to say {' or '.join(compiled)} but got {says!r}")
    print("\n".join(errors), file=sys.stderr)
    print(f"{len(found)} ops, {len(errors)} errors")
    return 1 if errors or len(found) < 90 else 0


if __name__ == "__main__":
    sys.exit(main())
