"""Code for other CPUs than this one: if this machine can run it, it trains as `native`
does; otherwise it is refused, with a message that names what the machine lacks.

    python target_cpu.py FP8_RUN FOLDER
"""

import pathlib
import platform
import subprocess
import sys

import fp8_testing as t
import numpy as np

CPUS = {"x86_64": ["x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4"], "aarch64": ["generic", "neoverse-v2"]}
OTHER = {"x86_64": "neoverse-v2", "aarch64": "x86-64-v3"}
# Sums in f32 have another order, over three steps of a small model.
TOLERANCE = 1e-5


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    t.export_model(folder, **t.TINY)
    text = t.write_text(folder / "text.txt")
    machine = platform.machine()

    def train(cpu):
        out = folder / cpu
        command = [fp8_run, folder / "step.mlir", "--init", folder / "init.mlir", "--data", text, "--steps", 3]
        command += ["--recipe", "none", "--target-cpu", cpu, "--out", out]
        return out, subprocess.run([str(word) for word in command], capture_output=True, text=True)

    out, done = train("native")
    assert done.returncode == 0, done.stderr
    native = np.array(t.losses(t.read_log(out)))
    losses = {}
    for cpu in CPUS[machine]:
        out, done = train(cpu)
        if done.returncode == 0:
            losses[cpu] = np.array(t.losses(t.read_log(out)))
            error = np.abs(losses[cpu] / native - 1).max()
            assert error < TOLERANCE, f"{cpu}: expected {native} but got {losses[cpu]}"
        else:
            assert f"this machine cannot run code for {cpu}: it lacks " in done.stderr, f"{cpu}: {done.stderr}"
    assert CPUS[machine][0] in losses, f"expected every machine to run {CPUS[machine][0]}"
    for cpu, text in ((OTHER[machine], f"cannot run code for {OTHER[machine]}: it is "), ("i860", "but got 'i860'")):
        _, done = train(cpu)
        assert done.returncode != 0 and text in done.stderr, f"{cpu}: {done.stderr}"
    print(f"ran {', '.join(losses)}")


main()
