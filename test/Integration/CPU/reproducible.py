"""Training is bit-exact from run to run, with 1 and 2 threads, and across a resume,
including the position in the data. Every tensor of the checkpoint is compared.

    python reproducible.py FP8_RUN FOLDER
"""

import pathlib
import sys

import fp8_testing as t
import numpy as np
from safetensors.numpy import load_file


def same(name, a, b):
    x, y = (load_file(out / "checkpoint-12.safetensors") for out in (a, b))
    assert x.keys() == y.keys(), f"{name}: expected the tensors {sorted(x)} but got {sorted(y)}"
    for path in x:
        assert x[path].tobytes() == y[path].tobytes(), f"{name}: {path} differs"
    assert t.losses(t.read_log(a)) == t.losses(t.read_log(b)), f"{name}: losses differ"


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    # Large enough that work is split into many tasks.
    t.export_model(folder, **{**t.TINY, "width": 128, "ffn": 344, "batch": 4, "sequence": 64})
    text = t.write_text(folder / "text.txt")

    def train(name, *args, recipe="tensorwise", out=None):
        out = folder / (out or name)
        t.train(fp8_run, folder, out, "--init", folder / "init.mlir", "--data", text, "--recipe", recipe, *args)
        return out

    for recipe in ("none", "tensorwise"):
        two = train(f"{recipe}-two", "--steps", 12, "--threads", 2, recipe=recipe)
        again = train(f"{recipe}-again", "--steps", 12, "--threads", 2, "--no-cache", recipe=recipe)
        same("compiled anew", two, again)
        same("1 and 2 threads", two, train(f"{recipe}-one", "--steps", 12, "--threads", 1, recipe=recipe))
        train(f"{recipe}-resumed", "--steps", 5, recipe=recipe)
        resumed = train(f"{recipe}-resumed", "--steps", 12, "--resume", recipe=recipe)
        same("resumed", two, resumed)
    other = train("seed", "--steps", 12, "--seed", 1)
    assert t.losses(t.read_log(other)) != t.losses(t.read_log(folder / "tensorwise-two")), "the seed has no effect"
    # FP8 changes the losses, but only slightly.
    a, b = (np.array(t.losses(t.read_log(folder / f"{recipe}-two"))) for recipe in ("none", "tensorwise"))
    assert (a != b).any() and np.abs(a - b).max() < 0.1, f"none {a}\ntensorwise {b}"


main()
