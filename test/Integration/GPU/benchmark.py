"""benchmarks/gpu from the bundle to its results, on the emulated driver.

benchmark.py FOLDER DRIVER_DIR
"""

import importlib.machinery
import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
folder, driver = pathlib.Path(sys.argv[1]), sys.argv[2]
folder.mkdir(parents=True)
bundle = folder / "bundle"
subprocess.run([sys.executable, ROOT / "benchmarks/gpu/make-bundle", bundle, "--tiny", "--target", "nvptx:sm_90a", "--gpu-image", "bitcode"], check=True)


def run(parts, code, *arguments, driver=driver):
    """Runs some parts with the bundle's copy of the script, and returns the results."""
    command = [sys.executable, bundle / "run", "--out", folder / "results.json", "--work", folder / "runs", "--parts", parts, *arguments]
    done = subprocess.run(list(map(str, command)), env={**os.environ, "LD_LIBRARY_PATH": driver, "FP8_EMULATOR_CAPABILITY": "90"}, capture_output=True, text=True)
    print(done.stdout, done.stderr)
    assert done.returncode == code, f"expected exit code {code} but got {done.returncode}"
    return json.loads((folder / "results.json").read_text())


results = run("device,probes,copy,cublas,kernels,example,models", 0, driver=f"{driver}:{driver}/cublaslt")
dots = {(dot["type"], dot["m"], dot["n"], dot["k"]) for dot in results["cublas"]["dots"] if "failure" not in dot}
assert {(kind, *shape) for kind in ("bf16", "e4m3", "e4m3_fast") for shape in ((64, 128, 96), (64, 64, 4096), (64, 96, 128), (128, 96, 64))} == dots, results["cublas"]
assert results["device"]["name"] == "GPU emulator", results["device"]
kernels = results["kernels"]["kernels"]
sets = {kernel["set"] for kernel in kernels}
assert sets == {"example-tensorwise", "dot-64-128-96", "dot-64-64-4096", "dot-64-96-128_dgrad", "dot-128-96-64_wgrad", "dot-128-96-64_wgrad_rows",
                "dot-64-128-96_bf16", "dot-64-96-128_bf16_dgrad", "dot-128-96-64_bf16_wgrad"}, sets  # fmt: skip
entries = [entry for folder in (bundle / "kernels").iterdir() for entry in json.loads((folder / "kernels.json").read_text())["kernels"]]
assert sum(len(entry["maps"]) == 2 for entry in entries) >= 2, "expected dots with TMA"
probes = {probe["name"]: probe for probe in results["probes"]["probes"]}
assert len(probes) == 48 and all(probe["agrees"] and probe["differing"] == 0 for probe in probes.values()), probes
assert probes["sums-e4m3-e5m2"]["elements"] == 2048 and probes["to-e4m3"]["elements"] == 4096, probes
assert {probes[f"accumulate-{kind}-{form}-{k}"]["sums"] for form, ks in (("e4m3", (128, 2048)), ("bf16", (64, 1024))) for k in ks for kind in ("mma", "wgmma")} == {"f32"}, probes
assert {kernel["kind"] for kernel in kernels} == {"dot", "dot_along_rows", "quantize", "attention", "update", "other", "bf16_dot"}, kernels
assert len(kernels) > 20 and all(kernel["samples"] > 0 and kernel["wrong"] == 0 for kernel in kernels), kernels
dots = {kernel["set"]: kernel for kernel in kernels if kernel["set"].startswith("dot-")}
assert all(dot["sums"] == "f32" and dot["beyond_f32"] == 0 for dot in dots.values()), dots
assert any(kernel["label"].startswith("attention ") for kernel in kernels)
assert results["example"]["tensorwise"]["agrees"] and results["example"]["tensorwise"]["bit_equal"]
assert {"bf16", "tensorwise"} <= set(results["models"]["tiny"]) and results["models"]["tiny"]["bf16"]["tokens_per_second"] > 0
assert "not compared" in results["models"]["tiny"]["void"] and results["models"]["tiny"]["faster_than_bf16"]["tensorwise"] > 0, results["models"]
assert not list((folder / "runs").glob("tiny-*")), "expected no files of measured runs"


def operands(kernel, m, n, k):
    """Returns the operands of a dot in float64, and its result as the manifest describes it."""
    described = json.loads((kernel / "kernels.json").read_text())
    entry, period = described["kernels"][0], described["period"]
    data = np.frombuffer((kernel / f"{entry['name']}.in").read_bytes(), ml_dtypes.float8_e4m3fn).astype(np.float64)
    first = min(period, m * k)
    return np.resize(data[:first], (m, k)), np.resize(data[first : first + min(period, n * k)], (n, k)).T, entry["arguments"][2]


def add_like_hopper(a, b, bits=13):
    """Adds 32 products and the sum so far, each truncated to the fraction bits that the largest of them leaves."""
    total = np.zeros((a.shape[0], b.shape[1]))
    for at in range(0, a.shape[1], 32):
        terms = np.concatenate([a[:, at : at + 32, None] * b[None, at : at + 32, :], total[:, None, :]], 1)
        unit = 2.0 ** (np.floor(np.log2(np.abs(terms).max(1))) - bits)
        total = np.trunc(terms / unit[:, None]).sum(1) * unit
    return total


# The operands of wgmma lie where the probes say: its sums are those of the rows and columns, in its fragments.
sys.path.insert(0, str(ROOT / "benchmarks/gpu"))
import probes as made  # noqa: E402

TYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def matrices(data, forms, bits, span):
    """Returns the operands that a stage of a probe holds."""
    width, each = made.width_of(span), bits // 8
    for form, offset, rows in ((forms[0], 0, made.ROWS), (forms[1], made.ROWS * width, made.COLUMNS)):
        at = [offset + made.place_of(rows, row, byte, span) for row in range(rows) for byte in range(0, width, each)]
        own = b"".join(data[place : place + each] for place in at)
        yield np.frombuffer(own, TYPES[form]).astype(np.float32).reshape(rows, width // each)


thread, i = np.meshgrid(np.arange(made.WARPGROUP), np.arange(made.COLUMNS // 2), indexing="ij")
lane = thread % 32
rows, columns = thread // 32 * 16 + lane // 4 + i // 2 % 2 * 8, i // 4 * 8 + lane % 4 * 2 + i % 2
described = {probe["name"]: probe for probe in json.loads((bundle / "probes/probes.json").read_text())}
for name, layout in ((name, probe["layout"]) for name, probe in described.items() if "layout" in probe):
    a, b = matrices((bundle / f"probes/{name}.in").read_bytes(), *layout)
    sums = np.frombuffer((bundle / f"probes/{name}.out").read_bytes(), np.float32)[: thread.size].reshape(thread.shape)
    assert (sums == (a @ b.T)[rows, columns]).all() and np.abs(sums).max() > 100, name

# The bound of a tensor core holds for sums that are truncated as Hopper truncates them, which that of f32 does not; exchanged rows exceed it.
for m, n, k in ((64, 128, 96), (64, 64, 4096)):
    a, b, result = operands(bundle / "kernels" / f"dot-{m}-{n}-{k}", m, n, k)
    exact, bound = a @ b, result["core_bound"]
    for at, code in result["samples"]:
        assert abs(struct.unpack("<f", bytes.fromhex(code))[0] - exact.flat[at]) <= result["bound"], (k, at)
    error = np.abs(add_like_hopper(a, b) - exact).max()
    assert result["bound"] < error < bound / 2 < 20 * error, (k, error, bound)
    exchanged = np.abs(exact[0] - exact[1])
    assert (exchanged > bound).mean() > 0.75, (k, (exchanged > bound).mean())

# Sums with fewer bits, a wrong sample and a wrong loss are reported.
path = bundle / "kernels" / "dot-64-64-4096" / "kernels.json"
manifest = json.loads(path.read_text())
result = next(argument for argument in manifest["kernels"][0]["arguments"] if "samples" in argument)
value = struct.unpack("<f", bytes.fromhex(result["samples"][9][1]))[0]
result["samples"][9][1] = struct.pack("<f", value + result["core_bound"] / 2).hex()
path.write_text(json.dumps(manifest))
path = bundle / "kernels" / "dot-64-128-96" / "kernels.json"
manifest = json.loads(path.read_text())
result = next(argument for argument in manifest["kernels"][0]["arguments"] if "samples" in argument)
result["samples"][17][1] = "00409c45"  # 5000 in f32
path.write_text(json.dumps(manifest))
description = json.loads((bundle / "bundle.json").read_text())
description["example"]["tensorwise"][1] += 0.02
(bundle / "bundle.json").write_text(json.dumps(description))
changes = {
    "fragments-bf16": lambda data: data[4:8] + data[:4] + data[8:],  # exchanges two sums
    "sums-e4m3-e4m3": lambda data: struct.pack("<f", 1e6) + data[4:],
    "fragments-wgmma-e4m3-e4m3-64": lambda data: data[4:8] + data[:4] + data[8:],
    "accumulate-wgmma-e4m3-2048": lambda data: struct.pack("<f", struct.unpack("<f", data[:4])[0] + 1e5) + data[4:],
    "to-e5m2": lambda data: data[:77] + bytes((data[77] ^ 1,)) + data[78:],
}
# So many bits as Hopper keeps are no mistake.
few = bundle / "probes/accumulate-wgmma-e4m3-8192.out"
sums = np.frombuffer(few.read_bytes(), np.float32)
few.write_bytes((sums + 1e-3 * np.abs(sums).max()).astype(np.float32).tobytes())
for name, change in changes.items():
    out = bundle / "probes" / f"{name}.out"
    out.write_bytes(change(out.read_bytes()))
results = run("probes", 1)
assert sorted(results["probes"]["bad"]) == sorted(changes), results["probes"]["bad"]
probes = {probe["name"]: probe for probe in results["probes"]["probes"]}
assert probes["accumulate-wgmma-e4m3-8192"]["sums"] == "14 bits" and probes["accumulate-wgmma-e4m3-2048"]["sums"] is None, probes
# A kernel that fails does not affect the others.
described = json.loads((bundle / "kernels/example-tensorwise/kernels.json").read_text())["kernels"]
broken = bundle / f"kernels/example-tensorwise/{described[1]['name']}.image"
image = broken.read_bytes()
broken.write_bytes(b"no image")
results = run("kernels,example", 1)
broken.write_bytes(image)
failed = [kernel for kernel in results["kernels"]["kernels"] if "failure" in kernel]
assert [kernel["name"] for kernel in failed] == [described[1]["name"]] and "cuModuleLoadDataEx" in failed[0]["failure"], failed
assert len(results["kernels"]["kernels"]) == len(kernels), results["kernels"]
results["kernels"]["bad"].remove(failed[0]["name"])
assert results["kernels"]["bad"] == ["dot_64x128x96"], results["kernels"]["bad"]
few = next(kernel for kernel in results["kernels"]["kernels"] if kernel["set"] == "dot-64-64-4096")
assert few["sums"] == "14 bits" and few["beyond_f32"] == 1 and few["wrong"] == 0, few
assert results["example"]["tensorwise"]["agrees"] is False

# Parts that an earlier run measured stay, and what a part has found before its limit. What it has started ends with it: here a run
# of fp8-train whose own child keeps its output open.
train, real = bundle / "bin/fp8-train", bundle / "bin/fp8-train-real"
train.rename(real)
train.write_text(f"""#!/bin/sh
case $1 in
*tensorwise) sleep 600 & echo $! > {folder}/child; wait;;
*) exec {real} "$@";;
esac
""")
train.chmod(0o755)
results = run("models", 1, "--limit", 24)
assert "limit of time" in results["models"]["failure"] and results["models"]["tiny"]["bf16"]["seconds"] > 0, results["models"]
assert "dot_64x128x96" in results["kernels"]["bad"], "expected the results of the earlier run"
child = pathlib.Path("/proc") / (folder / "child").read_text().strip() / "stat"
assert not child.exists() or child.read_text().split()[2] == "Z", "expected the end of what the part has started"
real.rename(train)

# Without a driver every part reports it.
results = run("device,copy,models", 1, driver="")
assert "expected an NVIDIA driver" in results["device"]["failure"] and "expected an NVIDIA driver" in results["copy"]["failure"], results

# Tests how a card's figures are computed (in the emulator no time passes): an FP8 dot of 1e12 flops and a quantization of 1e9
# bytes, on an H100.
loader = importlib.machinery.SourceFileLoader("gpu_run", str(ROOT / "benchmarks/gpu/run"))
gpu_run = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_run", loader))
loader.exec_module(gpu_run)
# A log has the time since the run began; the first steps take longer.
assert gpu_run.step_seconds([{"seconds": end} for end in (5, 6, 7.5, 8.5, 9.5, 10.5)]) == 1
card = {"device": {"name": "NVIDIA H100 80GB HBM3"}, "cublas": {"dots": [{"type": "e4m3", "m": 8, "n": 4, "k": 2, "result": "f32", "seconds": 0.7e-3}]}}
dot = {"label": "dot 8x4x2", "arguments": [{"type": "f8E4M3FN"}, {"type": "f8E5M2"}, {"type": "f32"}], "bytes": 1e6, "dot_flops": 1e12}
quantize = {"label": "quantize x", "arguments": [{"type": "f32"}, {"type": "f32"}], "bytes": 1e9, "dot_flops": 0}
limits = [gpu_run.limit_of(entry, 2e12, gpu_run.peak_of(card)) for entry in (dot, quantize)]
assert abs(limits[0] - 1 / 1978) < 1e-9 and limits[1] == 0.5e-3, limits
assert gpu_run.cublas_seconds(dot, card) == 0.7e-3 and gpu_run.cublas_seconds({**dot, "label": "dot 8x4x2 dgrad"}, card) == 0.7e-3
rows = [{"kind": gpu_run.kind_of(dot), "seconds": 1e-3, "limit": limits[0], "of_cublas": 0.7}, {"kind": gpu_run.kind_of(quantize), "seconds": 1e-3, "limit": limits[1]}]
summary = gpu_run.summary_of(rows)
bf16 = {**dot, "label": "dot 8x4x2 bf16", "arguments": [{"type": "bf16"}, {"type": "bf16"}, {"type": "f32"}]}
assert gpu_run.cublas_seconds({**dot, "arguments": [*dot["arguments"][:2], {"type": "bf16"}]}, card) is None
assert gpu_run.kind_of(bf16) == "bf16_dot" and gpu_run.cublas_seconds(bf16, card) is None
assert gpu_run.cublas_seconds(bf16, {"cublas": {"dots": [{**card["cublas"]["dots"][0], "type": "bf16", "seconds": 1e-3}]}}) == 1e-3
# FP8 counts as faster than bf16 only beside fast bf16 dots.
for share, counts in ((0.89, False), (0.9, True)):
    rows.append({"kind": "bf16_dot", "seconds": 1e-3, "limit": None, "of_cublas": share})
    ratio = gpu_run.ratio_of({"bf16": 3.0, "tensorwise": 2.0}, {"kernels": {"summary": gpu_run.summary_of(rows)}})
    rows.pop()
    assert ratio["faster_than_bf16"] == {"tensorwise": 1.5} and ratio["bf16_dots_of_cublas"] == share and ("void" not in ratio) == counts, ratio
assert abs(summary["dot"]["of_cublas"] - 0.7) < 1e-9 and summary["quantize"]["of_limit"] == 0.5 and summary["quantize"]["of_cublas"] is None, summary
