"""The memory report says what the process does: of the arena that was planned,
every page is touched and none beyond it.

    python memory.py FP8_RUN FOLDER
"""

import json
import pathlib
import sys

import fp8_testing as t


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    cfg = t.export_model(folder, **{**t.TINY, "width": 128, "ffn": 344, "batch": 4, "sequence": 64})
    text = t.write_text(folder / "text.txt")
    losses = t.losses(t.train(fp8_run, folder, folder / "out", "--init", folder / "init.mlir", "--data", text,
                                  "--recipe", "tensorwise", "--steps", 2))  # fmt: skip
    assert len(losses) == 2
    step = json.loads((folder / "out" / "memory.json").read_text())["step"]
    planned, reserved, touched = (step[f"arena_{what}"] for what in ("planned", "reserved", "touched"))
    assert planned > 0 and planned <= reserved <= planned + 2**21, step
    page = 4096
    assert touched <= (planned + page - 1) // page * page, step
    assert touched >= 0.98 * planned, step
    # Parameters, two moments, two counters, and the batch.
    count = 2 * cfg.vocab * cfg.width + cfg.width
    count += cfg.layers * (4 * cfg.width**2 + 3 * cfg.width * cfg.ffn + 2 * cfg.width)
    batch = 4 * cfg.batch * (cfg.sequence + 1)
    least = 3 * 4 * count + batch + 8
    assert least <= step["arguments"] <= least + 64 * 3 * 64, (least, step)


main()
