"""Steps of a tiny model whose dots cuBLASLt computes, compared with the CPU: losses, a
package, the table of choices, and the message if the library is missing.

    python3 cublaslt.py FP8_RUN WORK_DIR DRIVER_DIR

DRIVER_DIR has the emulator's libcuda.so.1, and in cublaslt/ its libcublasLt.so.13.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Integration/CPU"))
import fp8_testing as t  # noqa: E402

fp8_run, folder, driver = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
folder.mkdir(parents=True, exist_ok=True)
t.export_model(folder, **t.TINY)
text = folder / "text.txt"
text.write_bytes(b"".join(f.read_bytes() for f in t.fortunes())[:20000])
with_library, without = f"{driver}/cublaslt:{driver}", f"{folder}/none:{driver}"
(folder / "none").mkdir(exist_ok=True)
for name in ("libcublasLt.so.12", "libcublasLt.so.13"):
    (folder / "none" / name).write_bytes(b"")  # hides a real one


def call(*command, libraries=with_library):
    environment = {**os.environ, "LD_LIBRARY_PATH": libraries, "FP8_EMULATOR_CAPABILITY": "90"}
    return subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True)


def losses(out):
    return [float(row.split(",")[1]) for row in (folder / out / "log.csv").read_text().split("\n")[1:-1]]


def run(out, target, recipe, steps, *options):
    command = [fp8_run, folder / "step.mlir", "--init", folder / "init.mlir", "--data", text, "--recipe", recipe, "--steps", steps,
               "--out", folder / out, "--target", target, *options]  # fmt: skip
    done = call(*command, *([] if target == "cpu" else ["--gpu-image", "bitcode"]))
    assert done.returncode == 0, f"{command}:\n{done.stdout}\n{done.stderr}"
    return losses(out)


def compare(what, expected, got):
    # Sums have another order, and some results are rounded to bf16 between a dot and the op that follows.
    differences = [abs(a - b) / abs(a) for a, b in zip(expected, got, strict=True)]
    print(f"{what}: largest relative difference {max(differences):.1e}")
    assert max(differences) <= 1e-5, f"{what}: expected {expected} but got {got}"


target = "nvptx:sm_90a,cublaslt=all"
# Copies of weights that are state have one order, so another kernel transposes them for the library.
for recipe, steps, *options in (("tensorwise", 2), ("bf16", 1), ("delayed", 1, "--set", "weight_copies=state")):
    compare(recipe, run(f"cpu-{recipe}", "cpu", recipe, steps, *options), run(f"gpu-{recipe}", target, recipe, steps, *options))
# Other rounding shows in the state, which proves that the library has computed something.
state = [(folder / out / "checkpoint-2.safetensors").read_bytes() for out in ("cpu-tensorwise", "gpu-tensorwise")]
assert state[0] != state[1]

# A package has the table; the runtime loads the library.
package = folder / "package"
done = call(fp8_run, folder / "step.mlir", "--init", folder / "init.mlir", "--recipe", "tensorwise", "--emit-package", package, "--target", target,
            "--gpu-image", "bitcode", libraries=without)  # fmt: skip
assert done.returncode == 0, done.stderr
dots = json.loads((package / "dots-step.json").read_text())
by_library = [dot for dot in dots if dot["by"] == "cublaslt"]
print(f"{len(by_library)} of {len(dots)} kernels with dots are cuBLASLt's")
assert len(by_library) >= 8 and all(dot["algorithm"] and len(dot["sizes"]) == 3 for dot in by_library), dots
assert any(dot.get("reason") == "it is part of an attention" for dot in dots), dots
train = [pathlib.Path(fp8_run).with_name("fp8-train"), package, "--data", text, "--steps", 2, "--out", folder / "packaged"]
done = call(*train, libraries=without)
assert done.returncode != 0 and "leaves dots to cuBLASLt" in done.stderr, done.stderr
done = call(*train)
assert done.returncode == 0, done.stderr
compare("packaged", losses("gpu-tensorwise"), losses("packaged"))
