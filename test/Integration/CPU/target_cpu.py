"""Code for other CPUs than this one: if this machine can run it, it trains as `native` does, with the same
bits where the arithmetic is the same (docs/Runtime.md); otherwise it is refused, with a message that names
what the machine lacks. A run that resumes with other arithmetic says so.

    python target_cpu.py FP8_RUN FOLDER
"""

import json
import pathlib
import platform
import re
import subprocess
import sys

import fp8_testing as t
import numpy as np

CPUS = {"x86_64": ["x86-64-v2", "x86-64-v3", "x86-64-v4", "znver4"], "aarch64": ["generic", "neoverse-v2"]}
OTHER = {"x86_64": "neoverse-v2", "aarch64": "x86-64-v3"}
# Sums of other arithmetic, over three steps of a small model. In FP8 a last bit may round to another value.
TOLERANCE = {"none": 1e-5, "fp8": 1e-2}
# Only dots of values that are exact in bf16 use its instructions. Products of FP8 values are exact in f32, so that
# it does not matter whether they are added by an FMA, and all other dots of this recipe have operands in bf16.
SAME = {"none": {"with dots of bf16": "with FMA", "with tiles of bf16": "with FMA"}, "fp8": {"without FMA": "with FMA"}}


def read_checkpoint(file):
    """Returns the kind of arithmetic, and the description and bytes of the tensors."""
    content = file.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    arithmetic = re.search(", arithmetic (.*)", header.pop("__metadata__")["module"])[1]
    return arithmetic, (header, content[8 + size :])


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    t.export_model(folder, **t.TINY)
    text = t.write_text(folder / "text.txt")
    machine = platform.machine()

    def train(cpu, recipe="none", steps=3, out=None, *options):
        out = out or folder / f"{cpu}-{recipe}"
        command = [fp8_run, folder / "step.mlir", "--init", folder / "init.mlir", "--data", text, "--steps", steps]
        command += ["--recipe", recipe, "--target-cpu", cpu, "--out", out, *options]
        return out, subprocess.run([str(word) for word in command], capture_output=True, text=True)

    ran = {}
    for recipe in ("none", "fp8"):
        losses, states = {}, {}
        for cpu in ["native", *CPUS[machine]]:
            out, done = train(cpu, recipe)
            if done.returncode == 0:
                losses[cpu] = np.array(t.losses(t.read_log(out)))
                ran[cpu], state = read_checkpoint(out / "checkpoint-3.safetensors")
                same = SAME[recipe].get(ran[cpu], ran[cpu])
                assert states.setdefault(same, state) == state, f"{recipe}, {cpu}: expected the bits of others '{same}'"
                error = np.abs(losses[cpu] / losses["native"] - 1).max()
                assert error < TOLERANCE[recipe], f"{recipe}, {cpu}: expected {losses['native']} but got {losses[cpu]}"
            else:
                assert f"this machine cannot run code for {cpu}: it lacks " in done.stderr, f"{cpu}: {done.stderr}"
    print(ran)
    first = CPUS[machine][0]
    assert first in ran, f"expected every machine to run {first}"
    out, done = train(first, "none", 4, folder / "native-none", "--resume")
    assert done.returncode == 0, done.stderr
    warning = f"('arithmetic {ran['native']}', this is 'arithmetic {ran[first]}'): the run may not continue exactly"
    assert (warning in done.stderr) == (ran["native"] != ran[first]) and done.stderr.count("warning") <= 1, done.stderr
    for cpu, text in ((OTHER[machine], f"cannot run code for {OTHER[machine]}: it is "), ("i860", "but got 'i860'")):
        _, done = train(cpu)
        assert done.returncode != 0 and text in done.stderr, f"{cpu}: {done.stderr}"
    if machine == "x86_64":
        refuse_packages(fp8_run, folder)
    print(f"ran {', '.join(ran)}")


def refuse_packages(fp8_run, folder):
    """A package for another CPU is refused: none has the instructions of both of these."""
    refused = []
    for cpu in ("bdver4", "sapphirerapids"):
        package = folder / f"{cpu}.fp8pkg"
        t.run([fp8_run, folder / "step.mlir", "--init", folder / "init.mlir", "--recipe", "none", "--target-cpu", cpu, "--emit-package", package])
        command = [pathlib.Path(fp8_run).parent / "fp8-train", package, "--data", folder / "text.txt", "--steps", 1, "--out", folder / f"package-{cpu}"]
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        if done.returncode != 0:
            assert re.search(rf"expected a CPU with .*, which the code was compiled for \({cpu}\), but this one has none", done.stderr), done.stderr
            refused.append(cpu)
    assert refused, "expected a package to be refused but got none"


main()
