"""benchmarks/gpu from the bundle to its results, on the emulated driver.

benchmark.py FOLDER DRIVER_DIR
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
folder, driver = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True)
bundle = folder / "bundle"
subprocess.run([sys.executable, ROOT / "benchmarks/gpu/make-bundle", bundle, "--tiny", "--target", "nvptx:sm_89", "--gpu-image", "bitcode"], check=True)


def run(parts, code, driver=driver):
    """The results of some parts; the copy in the bundle is what runs."""
    command = [sys.executable, bundle / "run", "--out", folder / "results.json", "--work", folder / "runs", "--parts", parts]
    done = subprocess.run(command, env={**os.environ, "LD_LIBRARY_PATH": driver}, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == code, f"expected exit code {code} but got {done.returncode}"
    return json.loads((folder / "results.json").read_text())


results = run("device,copy,kernels,example,models", 0)
assert results["device"]["name"] == "GPU emulator", results["device"]
kernels = results["kernels"]["kernels"]
sets = {kernel["set"] for kernel in kernels}
assert sets == {"example-tensorwise", "dot-64-128-96"}, sets
assert len(kernels) > 20 and all(kernel["samples"] > 0 and kernel["wrong"] == 0 for kernel in kernels), kernels
assert any(kernel["label"].startswith("attention ") for kernel in kernels)
assert results["example"]["tensorwise"]["agrees"] and results["example"]["tensorwise"]["bit_equal"]
assert {"bf16", "tensorwise"} <= set(results["models"]["tiny"]) and results["models"]["tiny"]["bf16"]["tokens_per_second"] > 0

# What is wrong is told: a sample, a loss.
path = bundle / "kernels" / "dot-64-128-96" / "kernels.json"
manifest = json.loads(path.read_text())
result = next(argument for argument in manifest["kernels"][0]["arguments"] if "samples" in argument)
result["samples"][17][1] = "0000c842"  # 100 in f32
path.write_text(json.dumps(manifest))
description = json.loads((bundle / "bundle.json").read_text())
description["example"]["tensorwise"][1] += 0.02
(bundle / "bundle.json").write_text(json.dumps(description))
results = run("kernels,example", 1)
assert results["kernels"]["bad"] == ["dot_64x128x96"], results["kernels"]["bad"]
assert results["example"]["tensorwise"]["agrees"] is False

# Without a driver every part says so.
results = run("device,copy,models", 1, driver="")
assert "expected an NVIDIA driver" in results["device"]["failure"] and "expected an NVIDIA driver" in results["copy"]["failure"], results
