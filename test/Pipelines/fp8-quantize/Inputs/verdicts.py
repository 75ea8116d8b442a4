"""Checks details of the variants' verdicts, the reports against their schema, and how
often tensors are quantized.
Usage: verdicts.py FP8_OPT SCHEMA DIRECTORY"""

import json
import pathlib
import re
import subprocess
import sys

OPT, SCHEMA, DIRECTORY = sys.argv[1], json.loads(pathlib.Path(sys.argv[2]).read_text()), pathlib.Path(sys.argv[3])
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def check(value, schema, where="report"):
    """Checks a value against the subset of JSON Schema that our schema uses."""
    if "$ref" in schema:
        return check(value, SCHEMA["$defs"][schema["$ref"].removeprefix("#/$defs/")], where)
    assert not (schema.keys() - {"$schema", "$defs", "title", "description", "type", "additionalProperties", "required",
                                 "properties", "items", "enum", "minimum"}), f"unknown keys in the schema of {where}"
    if "enum" in schema:
        assert value in schema["enum"], f"{where}: {value!r} is none of {schema['enum']}"
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    # In Python a bool is an int.
    assert not types or any(type(value) is TYPES[t] for t in types), f"{where}: expected {types} but got {value!r}"
    if "minimum" in schema and value is not None:
        assert value >= schema["minimum"], f"{where}: {value} is below {schema['minimum']}"
    if isinstance(value, dict):
        missing, extra = set(schema["required"]) - value.keys(), value.keys() - schema["properties"].keys()
        assert not missing and not extra, f"{where}: missing {missing}, unknown {extra}"
        for key, item in value.items():
            check(item, schema["properties"][key], f"{where}.{key}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            check(item, schema["items"], f"{where}[{i}]")


def check_softmaxes(name, verdicts):
    """Each softmax has a forward and a backward pass, whose scores are a dot's result."""
    softmaxes = verdicts["softmaxes"]
    assert softmaxes and all(s["scores"] == "tiled" for s in softmaxes), f"{name}: {softmaxes}"
    passes = [s["pass"] for s in softmaxes]
    # Rematerialization repeats the forward pass.
    assert passes.count("forward") == passes.count("backward") * (2 if "remat" in name else 1), f"{name}: {softmaxes}"
    sizes = {(d["batch"], d["m"], d["n"]) for d in verdicts["dots"] if d["category"] == "attention"}
    for s in softmaxes:
        assert (s["batch"], s["queries"], s["keys"]) in sizes or (s["batch"], s["keys"], s["queries"]) in sizes, f"{name}: {s}"


def quantize(name, recipe="tensorwise", setting=""):
    """Returns the report of a variant, and its IR."""
    report = DIRECTORY / f"{name}.{recipe}.json"
    result = subprocess.run(
        [OPT, DIRECTORY / f"{name}.mlir", "--fp8-import",
         f"--fp8-quantize=recipe={recipe} {setting} report={report} fail-on-fallback emit-remarks"],
        capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    verdicts = json.loads(report.read_text())
    check(verdicts, SCHEMA)
    check_softmaxes(name, verdicts)
    # The remarks agree with the report, at the dots' locations.
    remarks = [line for line in result.stderr.splitlines() if ": remark: " in line and "gated unit" not in line]
    assert len(remarks) == verdicts["total"] == len(verdicts["dots"])
    for dot, remark in zip(verdicts["dots"], remarks):
        for fact in [dot["verdict"] + ": " + dot["role"], dot["layer"], f"M {dot['m']}, N {dot['n']}, K {dot['k']}",
                     f"{dot['lhs']} x {dot['rhs']}", dot["reason"], *dot["notes"]]:
            assert fact in remark, f"{name}: {fact!r} is not in {remark!r}"
        place = re.match(r"(.*:\d+:\d+)", dot["location"])
        assert place and remark.startswith(place[1]), f"{name}: {dot['location']!r} is not where {remark!r} is"
    return verdicts["dots"], result.stdout


def linear(dots, layer, **facts):
    return [d for d in dots if d["layer"].endswith(layer) and all(d[k] == v for k, v in facts.items())]


def roles(dots):
    return sorted(d["role"] for d in dots)


THREE = ["dgrad", "forward", "wgrad"]

# Smoothing does not change which dots become FP8; a smoothed dot has a note.
for variant in ("plain", "fused"):
    plain, _ = quantize(variant)
    for granularity in ("channel", "token"):
        dots, _ = quantize(variant, setting=f"set=smooth_swiglu.granularity={granularity}")
        assert [d["verdict"] for d in dots] == [d["verdict"] for d in plain]
        note = f"smoothed per {granularity}, pow2, current"
        assert roles([d for d in dots if note in d["notes"]]) == sorted(2 * THREE), f"{variant}: expected two smoothed layers"

# One fused weight is one layer with one dot of each role.
dots, _ = quantize("fused")
assert roles(linear(dots, "[0]['wqkv']", verdict="fp8")) == roles(linear(dots, "[1]['w13']", verdict="fp8")) == THREE
# There are fewer keys and values than queries.
dots, _ = quantize("plain")
assert roles(linear(dots, "[0]['wk']", verdict="fp8")) == THREE and linear(dots, "['wk']", role="forward")[0]["n"] == 32
# Weights that are the left operand, or transposed.
dots, _ = quantize("swapped")
for weight in ("wq", "wk", "wv"):
    assert roles(linear(dots, f"[1]['{weight}']", verdict="fp8")) == THREE, weight
# Weights of three dimensions.
dots, _ = quantize("heads")
for weight in ("wq", "wv", "wo"):
    assert roles(linear(dots, f"[0]['{weight}']", verdict="fp8")) == THREE, weight
# A head that reads the embedding still counts as the head.
dots, _ = quantize("tied")
assert roles(linear(dots, "['emb']", category="head", verdict="high_precision", rule=1)) == THREE
# bf16 activations with f32 parameters: the analysis looks through a conversion.
dots, _ = quantize("bf16")
assert roles(linear(dots, "[1]['w2']", verdict="fp8")) == THREE
assert linear(dots, "['head']", role="forward")[0]["lhs"] == "bf16"
# A bias is not a layer.
dots, _ = quantize("bias")
assert roles(linear(dots, "[0]['wq']", verdict="fp8")) == THREE and not linear(dots, "['bq']")

# A loop has one dot for all iterations, and the report has their number.
dots, _ = quantize("scan")
assert roles(linear(dots, "['layers']['wq']", loops=[2], verdict="fp8")) == THREE
assert all("in a loop of 2 iterations" in d["notes"] for d in linear(dots, "['layers']['wq']"))
assert linear(dots, "['head']", role="forward")[0]["loops"] == []
dots, _ = quantize("micro-scan")
assert roles(linear(dots, "['layers']['w2']", loops=[2, 3], verdict="fp8")) == THREE
assert roles(linear(dots, "['head']", loops=[3], category="head")) == THREE
dots, _ = quantize("scan-remat")
assert roles(linear(dots, "['layers']['wq']", recomputed=True)) == ["forward"]
dots, _ = quantize("if")
assert roles(linear(dots, "[0]['w3']", in_branch=True, verdict="fp8")) == THREE

# No target has a native dot for E5M2 x E5M2, and the report says so.
dots, _ = quantize("plain", setting="set=wgrad.activation.format=f8E5M2")
assert "f8E5M2 x f8E5M2 has no native dot in cuBLASLt (NVIDIA GPUs)" in linear(dots, "[0]['wq']", role="wgrad")[0]["notes"]


def count(text):
    """Returns the numbers of quantizations outside of loops and in them."""
    lines = [line for line in text.splitlines() if " = fp8.quantize " in line]
    outside = [line for line in lines if re.match(r"    %", line)]
    return len(outside), len(lines) - len(outside)


# A layer has 7 weights, 4 inputs of dots (q, k and v share one; gate and up
# another) and 7 output gradients. In a loop over layers the weights are
# quantized before the loop, for the forward and the backward loop alike; the
# backward loop reads the payloads of the forward loop.
assert count(quantize("plain")[1]) == (2 * 18, 0)
assert count(quantize("scan")[1]) == (7, 4 + 7)
# With micro-batches around them too: once a step, not once a micro-batch.
assert count(quantize("micro-scan")[1]) == (7, 4 + 7)
assert count(quantize("micro")[1]) == (14, 2 * 11)
# Weights with one scale a row are quantized once for each direction.
assert count(quantize("scan", "rowwise_gw_hp")[1]) == (14, 4 + 7)
# The forward loop saves the inputs with the other tiling, for the weight gradients, or the backward
# loop computes them.
saved, recomputed = (quantize("scan", "rowwise", f"set=wgrad.copy={copy}")[1] for copy in ("saved", "recomputed"))
assert count(saved) == count(recomputed) == (14, 2 * 4 + 2 * 7)
stacks = lambda text: len(re.findall(r"dynamic_update_slice .* : \(tensor<2x2x32x\d+xf8E4M3FN>", text))
assert (stacks(saved), stacks(recomputed)) == (4, 0)
