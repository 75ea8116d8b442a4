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
        rows = report if isinstance(report, list) else next(v for v in report.values() if isinstance(v, list))
        assert len(rows) == dots, f"expected {dots} rows but got {len(rows)}"
        verdicts = Counter(str(row.get("verdict", row.get("fp8"))).lower() for row in rows)
        got = sum(n for verdict, n in verdicts.items() if verdict in ("fp8", "true"))
        assert got == quantized, f"{recipe}: expected {quantized} FP8 dots but got {verdicts}"
        for row in rows:
            if str(row.get("verdict", row.get("fp8"))).lower() not in ("fp8", "true"):
                assert row.get("reason"), f"expected a reason in {row}"


main()
