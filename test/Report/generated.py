"""Writes run directories as fp8-run does, with any number of steps, without a run: the
example's tensors (six layers, scaling_fp8) with random numbers.

    generated.py DIR [STEPS]
"""

import json
import pathlib
import random
import struct
import sys

WEIGHTS = ["wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down"]
# Text that a page must show unchanged: it must not act as markup or end a string.
NASTY = "w</script><script>window.harmed=1</script>\"'<b>&amp;"


def trace_names(layers, nasty):
    names = []
    for i in range(layers):
        for weight in [*WEIGHTS, *([NASTY] if nasty and i == 0 else [])]:
            path = f"params['layers'][{i}]['{weight}']"
            moments = [f"opt_state[1].{moment}['layers'][{i}]['{weight}']" for moment in ("mu", "nu")]
            names += [path, *moments, *(path + part for part in (".activation", ".activation.wgrad", ".weight", ".weight.dgrad", ".gradient"))]
    return names


def tensor(random, name):
    amax = random.lognormvariate(0, 1)
    values = {"amax": amax, "scale": amax / 448, "scale_min": amax / 448, "underflow": random.random() ** 8, "saturation": random.choice([0, 0, 0.001 * random.random()]),
              "snr": random.uniform(15, 35), "kurtosis": random.uniform(2, 9)}  # fmt: skip
    if name.startswith("params") and name.endswith("]"):
        values["update_rms"] = random.uniform(0.5, 2)
    if name.endswith("['w_gate']"):
        values.update(alignment_max=random.random(), alignment_mean=0.2 * random.random())
    return values


def dots(layers, nasty):
    rows = []

    def add(layer, role, category, verdict, reason, line):
        fp8 = verdict == "fp8"
        rows.append({"function": "main", "layer": layer, "role": role, "category": category, "batch": 1, "m": 1024, "n": 256, "k": 256, "lhs": "f8E4M3" if fp8 else "bf16", "rhs": "f8E5M2" if fp8 else "bf16",
                     **({"lhs_tile": "tensor", "rhs_tile": "tensor"} if fp8 else {}), "loops": [], "in_branch": False, "recomputed": False, "verdict": verdict, "reason": reason,
                     "location": f"llama/export.py:{line}:16 (dot_general)", "notes": ["a note"] if role == "wgrad" else []})  # fmt: skip

    for role in ("forward", "dgrad", "wgrad"):
        for i in range(layers) if role == "forward" else reversed(range(layers)):
            for k, weight in enumerate([*WEIGHTS, *([NASTY] if nasty and i == 0 else [])]):
                fallback = i == 1 and weight == "wo" and role == "wgrad"
                add(f"params['layers'][{i}]['{weight}']", role, "linear", "fallback" if fallback else "fp8", "no type for it" if fallback else "linear layer", 74 + k)
                if weight == "wv" and role == "forward":
                    add("", "attention", "attention", "high_precision", "attention", 77)
        add("params['head']", role, "head", "high_precision", "head", 108)
    return rows


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write(directory, steps, layers=6, seed=0, nasty=False, preset="tensorwise"):
    directory.mkdir(parents=True, exist_ok=True)
    rng = random.Random(seed)
    with (directory / "log.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            row = {"step": step, "loss": 2 + 4 / (1 + step / 30) + rng.gauss(0, 0.05), "tokens_per_second": rng.randint(5000, 6000), "seconds": round(0.2 * step, 3)}
            row["metrics"] = {"result[2]['grad_norm']": rng.lognormvariate(0, 0.3), "result[2]['learning_rate']": 6e-5 * step}
            if step % 50 == 0 or step == steps:
                row.update(heldout_loss=row["loss"] + 0.01, heldout_metrics={"result['accuracy']": 0.5, "fp8.state.quantizer": 64})
            if step == steps // 3:
                row.update(skipped=True, alarms=[f"step {step}: loss is 9, above 5 [loss > 5 : skip]"])
            file.write(json.dumps(row) + "\n")
    names = trace_names(layers, nasty)
    with (directory / "trace.jsonl").open("w") as file:
        for step in range(1, steps + 1):
            file.write(json.dumps({"step": step, "tensors": {name: tensor(rng, name) for name in names}}) + "\n")
    rows = dots(layers, nasty)
    counts = {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("fp8", "high_precision", "fallback")}
    state = [{"function": "main", "path": "params['embed']", "kind": "parameter", "elements": 65536, "from": "f32", "to": "f16", "tile": "tensor", "bytes": 131076, "changed": True, "reason": "", "notes": []}]
    gated = [{"function": "main", "layer": f"params['layers'][{i}]['w_down']", "location": "llama/export.py:89:11 (dot_general)", "activation": "silu", "granularity": "channel"} for i in range(layers)]
    softmaxes = [{"function": "main", "scores": scores, "pass": step, "batch": 32, "queries": 128, "keys": 128, "loops": [], "in_branch": False, "recomputed": False, "reason": "computed tile by tile", "location": "llama/export.py:82:10 (dot_general)"} for scores in ("tiled", "stored") for step in ("forward", "backward")]
    collectives = [{"function": "main", "what": f"gradient params['layers'][{i}]['w_down']", "operation": "mean", "shape": [64, 32], "from": "f32", "wire": "f8E4M3FN", "block": 128, "bytes": 4224, "loops": [], "in_branch": False, "reason": "a gradient, as all_reduce of the recipe says", "location": "llama/export.py:89:11 (dot_general)"} for i in range(layers)]
    summary = f"{counts['fp8']} of {len(rows)} dots in FP8"
    (directory / "verdicts.json").write_text(json.dumps({"recipe": preset, "summary": summary, "total": len(rows), **counts, "dots": rows, "gated_units": gated, "softmaxes": softmaxes, "collectives": collectives, "state": state}))
    (directory / "recipe.yaml").write_text(f"name: {preset}\nforward:\n  activation: {{format: f8E{4 + seed}M3FN, tile: tensor, scale: exact}}\n  accumulator: {{bits: 32, promote: 0}}\nrules:\n  - keep: {{part: head}}\n  - keep: {{layers: [0, 1]}}\noptimizer:\n  keep: []\nseed: 0\n")
    (directory / "preset.yaml").write_text(f"name: {preset}\nforward:\n  activation: {{format: f8E4M3FN, tile: tensor, scale: pow2}}\n  accumulator: {{bits: 32, promote: 0}}\nrules:\n  - keep: {{part: head}}\noptimizer:\n  keep: []\nseed: 0\n")
    buffers = []
    for i in range(7600):
        begin = i if i < 3800 else rng.randint(0, 13000)
        buffers.append({"begin": begin, "end": min(13000, begin + (6000 if i % 9 == 0 else 20)), "bytes": rng.randint(1, 40) * 4096, "category": rng.choice(["saved_activations", "temporaries", "gradients", "attention_matrix", "fp8_weight_copies"]),
                        "type": "8x128x256xf32", "location": "llama/export.py:88:9 (mul)", "at_peak": i % 100 == 0})  # fmt: skip
    sizes = dict.fromkeys(("arena_planned", "arena_reserved", "arena_touched", "arguments", "results", "constants", "scratch"), 1 << 24)
    (directory / "memory.json").write_text(json.dumps({"step": sizes, "threads": 2, "peak_rss": 1 << 29, "rest_of_process": 1 << 28, "plan": {"arena_bytes": 1 << 24, "state_bytes": {"master": 1 << 23}, "buffers": buffers}}))
    kinds = ["dot", "elementwise", "norm_amax", "quantize", "copy"]
    launches = [{"launch": i, "name": f"{rng.choice(kinds)} llama/export.py:{rng.randint(50, 110)}:9 (mul)", "tasks": 16, "runs": steps, "microseconds": round(rng.expovariate(0.01), 1)} for i in range(2000)]
    launches += [{"launch": 2000 + i, "name": f"dot llama/export.py:74:16 (forward params['layers'][{i}]['wq'])", "tasks": 16, "runs": steps, "microseconds": 1000} for i in range(layers)]
    (directory / "profile.json").write_text(json.dumps(launches))
    costs = [{"launch": each["launch"], "name": each["name"], "runs": 1, "flops": (1 + each["launch"] % 7) * 10**6, "dot_flops": 10**6 * (each["name"][:3] == "dot"), "bytes": 10**5} for each in launches]
    limits = {"threads": 2, "f32_flops_per_second": 2e11, "bf16_flops_per_second": 4e11, "bytes_per_second": 2e10}
    (directory / "cost.json").write_text(json.dumps({"flops": 1, "dot_flops": 1, "bytes": 1, "exact": True, "launches": costs, "limits": limits}))
    pool = struct.pack("<4096f", *(rng.gauss(0, 0.02) for _ in range(4096)))
    moments = bytes(rng.randrange(256) for _ in range(4096))
    for step in sorted({max(1, steps // 2), steps}):
        tensors = []
        for name in [*(n for n in names if n.endswith("]")), "params['embed']"]:
            moment = name.startswith("opt_state")
            tensors.append((name, "F8_E4M3" if moment else "F32", [64, 64], moments if moment else pool))
            if moment:
                tensors.append((name + ".scale", "F32", [], struct.pack("<f", 0.25)))
        write_safetensors(directory / f"checkpoint-{step}.safetensors", tensors)
    return directory


if __name__ == "__main__":
    write(pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000)
