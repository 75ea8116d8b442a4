"""Whole steps of a tiny model on the GPU emulator, compared with the CPU: the losses of
each recipe, a run that resumes on the other device, and what the host reads.

    python3 steps.py FP8_RUN WORK_DIR DRIVER_DIR [all]

DRIVER_DIR has the emulator's libcuda.so.1. `all` runs 20 steps of every recipe.
"""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Integration/CPU"))
import fp8_testing as t  # noqa: E402

fp8_run, folder, driver = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
everything = sys.argv[4:] == ["all"]
folder.mkdir(parents=True, exist_ok=True)
t.export_model(folder, **t.TINY)
text = folder / "text.txt"
text.write_bytes(b"".join(f.read_bytes() for f in t.fortunes())[:20000])


def run(out, target, recipe, steps, *options, landing="random", model=folder):
    command = [fp8_run, model / "step.mlir", "--init", model / "init.mlir", "--data", text, "--recipe", recipe, "--steps", steps,
               "--out", folder / out, *options]  # fmt: skip
    if target != "cpu":
        command += ["--target", target, "--gpu-image", "bitcode"]
    # TMA needs the card that the code is for.
    capability = "90" if "sm_90a" in target else "89"
    environment = {**os.environ, "LD_LIBRARY_PATH": driver, "FP8_EMULATOR_LANDING": landing, "FP8_EMULATOR_CAPABILITY": capability}
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    rows = (folder / out / "log.csv").read_text().split("\n")[1:-1]
    return [float(row.split(",")[1]) for row in rows]


def compare(what, expected, got):
    # Dots sum in another order; everything else has the same bits. Sooner or later a value is so near to the midpoint of two codes
    # that it is rounded to the other one, and the difference grows from there.
    differences = [abs(a - b) / abs(a) for a, b in zip(expected, got, strict=True)]
    print(f"{what}: largest relative differences of {len(got)} losses {max(differences[:5]):.1e}, {max(differences):.1e}")
    assert max(differences[:5]) <= 1e-5 and max(differences) <= 1e-2, f"{what}: expected {expected} but got {got}"


recipes = ["none", "tensorwise", "delayed", "rowwise", "blockwise", "mxfp8", "scaling_fp8", "fp8_lm", "coat"]
for recipe in recipes if everything else ["tensorwise", "blockwise", "scaling_fp8"]:
    steps = 20 if everything or recipe == "tensorwise" else 2
    compare(recipe, run(f"cpu-{recipe}", "cpu", recipe, steps), run(f"gpu-{recipe}", "nvptx:sm_89", recipe, steps))

# A run resumes on the other device, with state in its buffers and other landings.
expected = run("whole", "cpu", "delayed", 3)
run("both", "nvptx:sm_89", "delayed", 1, landing="early")
run("both", "cpu", "delayed", 2, "--resume")
compare("resumed", expected, run("both", "nvptx:sm_90a", "delayed", 3, "--resume", landing="late"))

# Each update is undone on the GPU: the state stays that of the first step.
skipping = ["--alarm", "loss > 0 : skip"]
compare("skipped", run("cpu-skipped", "cpu", "delayed", 4, *skipping), run("gpu-skipped", "nvptx:sm_89", "delayed", 4, *skipping))

# TMA brings the operands of the dgrads of 64 tokens: in a loop over the layers their tensor maps differ from one iteration to the next.
layers = folder / "layers"
layers.mkdir(exist_ok=True)
t.export_model(layers, **{**t.TINY, "batch": 4, "loop": "scan"})
planned = subprocess.run([pathlib.Path(fp8_run).with_name("fp8-opt"), layers / "step.mlir", "--fp8-import", "--fp8-quantize=recipe=tensorwise",
                          "--fp8-structure", "--fp8-kernels", "--fp8-target=nvptx=sm_90a", "--fp8-plan-blocks"], capture_output=True, text=True)  # fmt: skip
print(f"{planned.stdout.count('tma = true')} kernels with TMA")
assert planned.stdout.count("tma = true") > 0, planned.stderr
compare("layers", run("cpu-layers", "cpu", "tensorwise", 2, model=layers), run("gpu-layers", "nvptx:sm_90a", "tensorwise", 2, model=layers))

# A package holds the kernels' images and needs no compiler to run them.
package = folder / "package"
environment = {**os.environ, "LD_LIBRARY_PATH": driver}
for command in (
    [fp8_run, folder / "step.mlir", "--init", folder / "init.mlir", "--recipe", "tensorwise", "--emit-package", package, "--target", "nvptx:sm_89", "--gpu-image", "bitcode"],
    [pathlib.Path(fp8_run).with_name("fp8-train"), package, "--data", text, "--steps", 2, "--out", folder / "packaged"],
):  # fmt: skip
    done = subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
rows = (folder / "packaged" / "log.csv").read_text().split("\n")[1:-1]
expected = (folder / "cpu-tensorwise" / "log.csv").read_text().split("\n")[1:3]
compare("packaged", [float(row.split(",")[1]) for row in expected], [float(row.split(",")[1]) for row in rows])
