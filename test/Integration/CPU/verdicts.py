"""The verdict report has one row for every dot of the example's step.

    python verdicts.py FP8_RUN FOLDER
"""

import json
import pathlib
import sys
from collections import Counter

import fp8_testing as t


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    cfg = t.export_model(folder, **t.TINY)
    text = t.write_text(folder / "text.txt")
    dots = (folder / "step.mlir").read_text().count("stablehlo.dot_general")
    linear = 7 * 3 * cfg.layers  # wq wk wv wo gate up down, forward dgrad wgrad
    for recipe, quantized in (("tensorwise", linear), ("none", 0)):
        out = folder / recipe
        t.train(fp8_run, folder, out, "--init", folder / "init.mlir", "--data", text,
                "--recipe", recipe, "--steps", 1)  # fmt: skip
        report = json.loads((out / "verdicts.json").read_text())
        rows = report["dots"]
        assert len(rows) == dots, f"{recipe}: expected {dots} rows but got {len(rows)}"
        got = Counter(row["verdict"] for row in rows)
        assert got["fp8"] == quantized, f"{recipe}: expected {quantized} dots in FP8 but got {got}"
        for row in rows:
            assert row["verdict"] == "fp8" or row["reason"], f"expected a reason in {row}"
            assert row["m"] and row["n"] and row["k"] and row["role"], f"expected shape and role in {row}"
        if quantized:
            roles = Counter(row["role"] for row in rows if row["verdict"] == "fp8")
            assert set(roles.values()) == {linear // 3} and len(roles) == 3, f"{recipe}: {roles}"


main()
