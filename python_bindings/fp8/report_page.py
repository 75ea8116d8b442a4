#!/usr/bin/env python3
"""Writes a self-contained HTML page about training runs.

    python3 report_page.py RUN_DIR [RUN_DIR ...] [--out FILE] [--source DIR]

Needs only the standard library. docs/Report.md says what the page shows.
"""

import argparse
import array
import base64
import collections
import contextlib
import json
import math
import mmap
import pathlib
import re
import struct
import sys
import zlib

ASSETS = pathlib.Path(__file__).resolve().parent / "report_data"

# The most bytes of JSON for each part of a page, all runs together. Compressed and in base64 they take about 0.6 of that: 3 MB including
# the script.
LOG_BUDGET, TRACE_BUDGET, HISTOGRAM_BUDGET, SOURCE_BUDGET = 500_000, 4_600_000, 300_000, 100_000
MAX_COLUMNS = 250  # of a heat map; screens show no more
MAX_POINTS = 400  # of the memory's timeline
MAX_ALARMS = 200
MAX_SAMPLES = 1 << 20  # elements that a tensor's histogram counts
BINS_PER_OCTAVE, MAX_BINS = 4, 200


class ReportError(Exception):
    """The error of a run directory, as "expected X but got Y"."""


def rounded(value):
    """Returns a number with 5 digits, in JSON's shortest form; None if it is not a finite number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    if isinstance(value, int):
        return value
    value = float(f"{value:.5g}")
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def load_json(path):
    """Returns the contents of an optional file: (value, None), or (None, the reason)."""
    try:
        return json.loads(path.read_text("utf-8")), None
    except FileNotFoundError:
        return None, None
    except (OSError, ValueError) as error:
        return None, f"expected JSON in {path.name} but got {error}: left out"


# ----------------------------------------------------------------------
# Names
# ----------------------------------------------------------------------

KEY = re.compile(r"\[(?:'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"|(\d+))\]|[./]?([^.\[/]+)")
PART = re.compile(r"^(.*)\.((?:activation|weight|gradient)(?:\.(?:wgrad|dgrad|\d+))*)$")


def split_path(path):
    """Splits params['layers'][0]['wq'] into ('params', 'layers', 0, 'wq')."""
    keys = []
    for single, double, index, name in KEY.findall(path):
        key = index or name or single or double
        keys.append(int(key) if key.isdigit() else key)
    return tuple(keys)


class Names:
    """Maps tensors to their place in the model: a layer and a label within it."""

    def __init__(self, parameters):
        self.parameters = {split_path(path)[1:]: path for path in parameters if path}

    @staticmethod
    def place(keys):
        """Returns (layer, label) for a parameter's keys without their root. The layer is the first
        number, or the number at the end of the first key like layers_3."""
        for i, key in enumerate(keys):
            if isinstance(key, int):
                return key, ".".join(str(k) for k in keys[i + 1 :]) or str(keys[i - 1] if i else key)
            numbered = re.fullmatch(r"([A-Za-z_]*?)_?(\d+)", key)
            if numbered and i + 1 < len(keys):
                # Dense_0 and Conv_0 are different layers of index 0; layers_0 and block_0 are containers that only number layers.
                kind = [] if re.search("layer|block|^h?$", numbered[1], re.IGNORECASE) and "norm" not in numbered[1].lower() else [numbered[1]]
                return int(numbered[2]), ".".join([*kind, *(str(k) for k in keys[i + 1 :])])
        return None, ".".join(str(key) for key in keys)

    def of_tensor(self, name):
        """Returns (part, layer, label) for a tensor of the trace or a checkpoint."""
        found = PART.match(name)
        path, part = (found[1], found[2]) if found else (name, "parameter")
        keys = split_path(path)
        for begin in range(1, len(keys)):
            if keys[begin:] in self.parameters:
                part = part if begin == 1 else str(next(k for k in reversed(keys[:begin]) if isinstance(k, str)))
                return (part, *self.place(keys[begin:]))
        return (part if keys[:1] and len(keys) > 1 else "other", *self.place(keys[1:] or keys))


# ----------------------------------------------------------------------
# log.jsonl
# ----------------------------------------------------------------------


def is_step(row):
    """Returns whether a line of the log is a step with its loss, and what else it has is of its type."""
    kinds = {"step": int, "metrics": dict, "heldout_metrics": dict, "alarms": list}
    return isinstance(row, dict) and {"step", "loss"} <= row.keys() and all(isinstance(row[key], kind) for key, kind in kinds.items() if key in row)


def read_log(path, notes):
    """Returns the rows of log.jsonl, which every run has. The end of the last line may be missing: a run is writing it, or was killed."""
    try:
        data = path.read_bytes()
        end = data.rfind(b"\n") + 1 or len(data)
        if end < len(data):
            notes.append(f"expected the end of the last line of {path.name} but got a part of it: left out")
        lines = data[:end].decode().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ReportError(f"expected a run directory with log.jsonl but got {path.parent}: {error}") from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not is_step(row):
            raise ReportError(f"expected a step and its loss in line {number} of {path} but got {line[:60]!r}")
        rows.append(row)
    if not rows:
        raise ReportError(f"expected at least one step in {path} but got an empty file")
    return rows


def log_data(rows, budget):
    """Returns the log by columns. For very many steps it keeps every n-th, all evaluations and the last."""
    stride = math.ceil(len(rows) * (40 + 12 * len(rows[0].get("metrics", {}))) / budget)
    kept = [row for i, row in enumerate(rows) if i % stride == 0 or "heldout_loss" in row or i + 1 == len(rows)]
    evaluated = [row for row in rows if "heldout_loss" in row]

    def columns(rows, key):
        # Metrics of the step's own state (scales, histories) are not about the model.
        names = dict.fromkeys(name for row in rows for name in row.get(key, {}) if not name.startswith("fp8."))
        return {name: [rounded(row.get(key, {}).get(name)) for row in rows] for name in names}

    return {
        "stride": stride,
        "step": [row["step"] for row in kept],
        "loss": [rounded(row["loss"]) for row in kept],
        "seconds": [rounded(row.get("seconds")) for row in kept],
        "tokens_per_second": [rounded(row.get("tokens_per_second")) for row in kept],
        "metrics": columns(kept, "metrics"),
        "heldout_step": [row["step"] for row in evaluated],
        "heldout_loss": [rounded(row["heldout_loss"]) for row in evaluated],
        "heldout_metrics": columns(evaluated, "heldout_metrics"),
        "skipped": [row["step"] for row in rows if row.get("skipped")],
        "alarms": [[row["step"], str(alarm)] for row in rows for alarm in row.get("alarms", [])][:MAX_ALARMS],
        "alarm_count": sum(len(row.get("alarms", [])) for row in rows),
    }


# ----------------------------------------------------------------------
# verdicts.json
# ----------------------------------------------------------------------

DOT_FIELDS = ["layer", "role", "category", "lhs", "rhs", "lhs_tile", "rhs_tile", "verdict", "reason", "location", "function"]


def verdict_data(verdicts, names):
    """Returns every dot with its layer; repeated text is stored once."""
    texts = {}

    def text(value):
        return texts.setdefault(str(value or ""), len(texts))

    dots, current = [], (None, "other")
    for dot in verdicts["dots"]:
        keys = split_path(dot["layer"])[1:]
        if keys:
            layer, label = names.place(keys)
            # The layers of a loop are merged under the name of the container of their weights.
            holder, _, last = label.rpartition(".")
            if layer is None and holder:
                label = last
            row = f"layer {layer}" if layer is not None else holder or label
            current = layer, row
        else:
            # A dot without a parameter, of attention for example, is shown between those of its layer.
            label, (layer, row) = dot["category"], current
        fields = [text(dot.get(field)) for field in DOT_FIELDS]
        flags = [flag for flag in ("in_branch", "recomputed") if dot.get(flag)] + [f"{n or '?'} times in a loop" for n in dot["loops"]]
        dots.append([text(row), text(label), int(not keys), fields, [dot[size] for size in "bmnk" if size in dot] and [dot["batch"], dot["m"], dot["n"], dot["k"]],
                     [text(note) for note in dot["notes"] + flags]])  # fmt: skip
    state = collections.Counter()
    for entry in verdicts.get("state", []):
        state[entry["kind"], entry["from"], entry["to"], entry.get("tile", "")] += entry["bytes"]
    return {
        "recipe": verdicts["recipe"],
        **{key: verdicts[key] for key in ("total", "fp8", "high_precision", "fallback", "summary")},
        "fields": DOT_FIELDS,
        "texts": list(texts),
        "dots": dots,
        "state": [[*key, size] for key, size in state.most_common()],
        "softmaxes": [[s["scores"], s["pass"], s["batch"], s["queries"], s["keys"], s["reason"], s["location"]] for s in verdicts.get("softmaxes", [])],
        "collectives": [[c["what"], c["operation"], c["shape"], c["from"], c["wire"], c.get("block", 0), c["bytes"], c["reason"]] for c in verdicts.get("collectives", [])],
        "gated_units": [[u["layer"], u.get("activation", ""), u.get("granularity", ""), u.get("reason", ""), u["location"]] for u in verdicts["gated_units"]],
    }


# ----------------------------------------------------------------------
# trace.jsonl
# ----------------------------------------------------------------------

WORST_IS_LEAST = {"snr", "scale_min"}


def flatten(name, metrics):
    """Yields (name, index, metric, value) for every value of a tensor, with one index for each layer of a loop."""
    for metric, value in metrics.items():
        stack = [((), value)]
        while stack:
            index, value = stack.pop()
            if isinstance(value, list):
                stack.extend(((*index, i), part) for i, part in enumerate(value))
            else:
                yield name, index, metric, rounded(value)


def read_trace(path):
    """Yields the lines of trace.jsonl; None for an incomplete one, and for one that is no step with its tensors."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
                is_whole = isinstance(row["step"], int) and all(isinstance(metrics, dict) for metrics in row["tensors"].values())
            except (ValueError, KeyError, TypeError, AttributeError):
                is_whole = False
            yield row if is_whole else None


def trace_data(path, names, budget, notes):
    """Returns every metric of every tensor over the steps. If they do not fit, a column stands for several steps
    and has the worst value of each: no bad value of a single step is lost."""
    if not path.exists():
        return None
    with path.open("rb") as file:
        lines = sum(1 for _ in file)
    size = 0
    for i, line in enumerate(read_trace(path)):
        if line and i >= min(lines - 1, 3):
            size = sum(len(json.dumps(value)) + 1 for name, metrics in line["tensors"].items() for *_, value in flatten(name, metrics))
            break
    if not size:
        notes.append(f"expected a line for each traced step in {path.name} but got {lines} unreadable: left out")
        return None
    bucket = math.ceil(lines / min(MAX_COLUMNS, max(10, budget // size)))

    first, last, series = [], [], {}
    for i, line in enumerate(read_trace(path)):
        if not line:
            notes.append(f"expected a step in line {i + 1} of {path.name} but got something else: left out")
            continue
        if not first or len(first) * bucket <= i:
            first.append(line["step"])
            last.append(line["step"])
        last[-1] = line["step"]
        for name, metrics in line["tensors"].items():
            for name, index, metric, value in flatten(name, metrics):
                values = series.setdefault((name, index), {}).setdefault(metric, [])
                values.extend([None] * (len(first) - len(values)))
                if value is not None:
                    old = values[-1]
                    values[-1] = value if old is None else min(old, value) if metric in WORST_IS_LEAST else max(old, value)

    tensors = []
    for (name, index), metrics in series.items():
        part, layer, label = names.of_tensor(name)
        if index and layer is None:
            layer, label = index[-1], label.rpartition(".")[2]
        compact = {}
        for metric, values in metrics.items():
            values.extend([None] * (len(first) - len(values)))
            if metric == "scale_min" and values == metrics["scale"]:
                continue
            compact[metric] = values[0] if len(set(values)) == 1 else values
        tensors.append([name + "".join(f"[{i}]" for i in index), part, layer, label, compact])
    return {"first": first, "last": last, "bucket": bucket, "tensors": tensors}


# ----------------------------------------------------------------------
# Checkpoints
# ----------------------------------------------------------------------

# type -> (bytes, type code of the counted words, exponent bits, mantissa bits, has infinity).
# For f32 and f64 only the upper 16 bits are counted, which is more than a bin resolves.
FORMATS = {"F64": (8, "H", 11, 4, True), "F32": (4, "H", 8, 7, True), "BF16": (2, "H", 8, 7, True), "F16": (2, "H", 5, 10, True),
           "F8_E4M3": (1, "B", 4, 3, False), "F8_E5M2": (1, "B", 5, 2, True), "float8_e4m3": (1, "B", 4, 3, True)}  # fmt: skip


def decode(code, exponent_bits, mantissa_bits, infinity):
    """Returns the absolute value of a code without its sign bit; None if it is not finite."""
    exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    bias, top = (1 << exponent_bits - 1) - 1, (1 << exponent_bits) - 1
    if exponent == top and (infinity or mantissa == (1 << mantissa_bits) - 1):
        return None
    if exponent == 0:
        return math.ldexp(mantissa, 1 - bias - mantissa_bits)
    return math.ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits)


def histogram(data, dtype, scale=1.0):
    """Counts elements by size: bins of log2|x|, four an octave."""
    size, code, exponent_bits, mantissa_bits, infinity = FORMATS[dtype]
    codes = array.array(code)
    codes.frombytes(data)
    per_element = size // codes.itemsize
    count = len(codes) // per_element
    step = math.ceil(count / MAX_SAMPLES)
    bins, zero, negative, nonfinite = collections.Counter(), 0, 0, 0
    for value, number in collections.Counter(codes[per_element - 1 :: per_element * step]).items():
        sign = value >> (exponent_bits + mantissa_bits)
        real = decode(value & ~(sign << (exponent_bits + mantissa_bits)), exponent_bits, mantissa_bits, infinity)
        if real is None:
            nonfinite += number
        elif real * scale == 0:
            zero += number
        else:
            negative += number * sign
            bins[math.floor(BINS_PER_OCTAVE * math.log2(real * abs(scale)))] += number
    low = max(min(bins), max(bins) - MAX_BINS + 1) if bins else 0
    counts = [bins[i] for i in range(low, max(bins) + 1)] if bins else []
    below = sum(bins.values()) - sum(counts)
    return [low, counts, zero, below, negative, nonfinite, step]


def header_of(path):
    """Returns the header of a safetensors file, and where its tensors begin. Raises ValueError if it is damaged."""
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > path.stat().st_size:
            raise ValueError(f"expected a header within {path.stat().st_size} bytes but got one of {length}")
        return json.loads(file.read(length)), 8 + length


def stored_tensors(path, stack):
    """Returns type, shape and bytes of each tensor of a safetensors file, or of a set of files
    by its index. The files stay mapped while the stack is open."""
    if path.name.endswith(".index.json"):
        files = sorted(set(json.loads(path.read_text("utf-8"))["weight_map"].values()))
        return {name: tensor for file in files for name, tensor in stored_tensors(path.parent / file, stack).items()}
    file = stack.enter_context(path.open("rb"))
    data = stack.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    header, begin_of_data = header_of(path)
    special = json.loads(header.pop("__metadata__", {}).get("fp8.dtypes", "{}"))
    end = begin_of_data + max((entry["data_offsets"][1] for entry in header.values()), default=0)
    if len(data) < end:
        raise ValueError(f"{len(data)} bytes of {end} in {path.name}")

    def content(begin, end):
        return lambda: data[begin_of_data + begin : begin_of_data + end]

    return {name: (special.get(name, entry["dtype"]), entry["shape"], content(*entry["data_offsets"])) for name, entry in header.items()}


def checkpoint_data(path, names):
    """Returns histograms of the larger tensors of a checkpoint."""
    tensors = []
    with contextlib.ExitStack() as stack:
        stored = stored_tensors(path, stack)
        for name, (dtype, shape, content) in stored.items():
            if dtype not in FORMATS or math.prod(shape) < 256 or name.startswith("fp8."):
                continue
            scale, scaled = 1.0, ""
            scale_dtype, scale_shape, scale_content = stored.get(name + ".scale", (None, None, None))
            if scale_dtype == "F32" and math.prod(scale_shape) == 1:
                (scale,) = struct.unpack("<f", scale_content())
                scaled = "times its scale"
            elif scale_dtype:
                scaled = "payload, without its scales"
            part, layer, label = names.of_tensor(name)
            tensors.append([name, part, layer, label, dtype, shape, scaled, histogram(content(), dtype, scale)])
    return tensors


def histogram_data(directory, names, budget, notes):
    """Returns the histograms of as many checkpoints as fit: the last, the first, and some between."""
    files = {}
    for path in directory.glob("checkpoint-*"):
        number = re.fullmatch(r"checkpoint-(\d+)\.safetensors(\.index\.json)?", path.name)
        if number:
            files[int(number[1])] = path
    steps = sorted(files)
    kept, size = {}, 0
    order = dict.fromkeys([*steps[-1:], *steps[:1], *steps[len(steps) // 2 :][:1], *steps[len(steps) // 4 :][:1]])
    for step in order:
        try:
            tensors = checkpoint_data(files[step], names)
        except (OSError, ValueError, KeyError, TypeError, IndexError, struct.error) as error:
            notes.append(f"expected safetensors in {files[step].name} but got {error}: left out")
            continue
        # If not all fit, keep the largest.
        tensors.sort(key=lambda tensor: -math.prod(tensor[5]))
        while tensors and len(json.dumps(tensors)) > budget - size and not kept:
            tensors = tensors[: len(tensors) * 3 // 4]
        size += len(json.dumps(tensors))
        if size > budget and kept:
            notes.append(f"histograms of {len(kept)} of {len(steps)} checkpoints: more would not fit")
            break
        kept[step] = tensors
    return [[step, kept[step]] for step in sorted(kept)]


# ----------------------------------------------------------------------
# memory.json, profile.json, recipe.yaml
# ----------------------------------------------------------------------


def memory_data(memory):
    """Returns the planned and the used memory, and the contents of the arena over the schedule."""
    plan = memory.get("plan") or {}
    keys = ("arena_bytes", "bytes_at_peak", "state_bytes", "constant_bytes", "scratch_bytes_per_thread", "parameters", "total_bytes")
    data = {key: value for key, value in memory.items() if key != "plan"}
    data["plan"] = {key: plan[key] for key in keys if key in plan}
    buffers = plan.get("buffers")
    if not buffers:
        return data
    events = collections.defaultdict(collections.Counter)
    for buffer in buffers:
        events[buffer["begin"]][buffer["category"]] += buffer["bytes"]
        events[buffer["end"] + 1][buffer["category"]] -= buffer["bytes"]  # both are inclusive
    categories = sorted({buffer["category"] for buffer in buffers})
    alive, points, end = collections.Counter(), [], max(events)
    for position in sorted(events):
        alive.update(events[position])
        points.append((sum(alive.values()), position, [alive[c] for c in categories]))
    # Of points that are left out, the fullest one stays.
    stride = math.ceil(len(points) / MAX_POINTS)
    points = [max(points[i : i + stride]) for i in range(0, len(points), stride)]
    peak = sorted((b for b in buffers if b["at_peak"]), key=lambda b: -b["bytes"])
    data["timeline"] = {
        "end": end,
        "position": [position for _, position, _ in points],
        "categories": {c: [values[i] for *_, values in points] for i, c in enumerate(categories)},
        "largest": [[b["bytes"], b["category"], b["type"], b["location"], b["begin"], b["end"]] for b in peak[:12]],
    }
    return data


LAUNCH = re.compile(r"^(?P<kind>\S+)\s*(?P<place>.*)$")
DOT_SCOPE = re.compile(r"\((forward|dgrad|wgrad) (.*)\)$")


def limits_of(cost):
    """Returns for each launch of cost.json the flops of its dots, and the least microseconds that its arithmetic
    and its operands need at the limits of the machine on which it was measured."""
    if cost is None:
        return {}
    limits = cost["limits"]
    rate = limits["f32_flops_per_second"]

    def times(each):
        # Dots of narrow operands may use the faster bf16 instructions; anything else is f32.
        narrow = each["dot_flops"] - each.get("dot_flops_f32", 0)
        arithmetic = narrow / max(rate, limits["bf16_flops_per_second"]) + (each["flops"] - narrow) / rate
        return each["dot_flops"], 1e6 * arithmetic, 1e6 * each["bytes"] / limits["bytes_per_second"]

    return {each["launch"]: times(each) for each in cost["launches"]}


def profile_data(profile, verdicts, cost=None):
    """Returns time by kernel and place; equal launches of several layers are merged. With cost.json the rate is that of dots,
    and there are limits; otherwise only launches of a single dot of the report have a rate."""
    flops, known = collections.Counter(), limits_of(cost)
    for dot in (verdicts or {}).get("dots", []):
        if not dot["loops"] and not dot["recomputed"]:
            flops[dot["role"], dot["layer"]] += 2 * dot["batch"] * dot["m"] * dot["n"] * dot["k"]
    groups, kinds = {}, collections.Counter()
    for launch in profile:
        found = LAUNCH.match(launch["name"]) or LAUNCH.match("unknown")
        scope = DOT_SCOPE.search(found["place"])
        place = re.sub(r"\[\d+\]", "[*]", found["place"])
        group = groups.setdefault((found["kind"], place), {"microseconds": 0, "launches": 0, "tasks": 0, "flops": 0, "most": 0, "arithmetic": 0, "memory": 0})
        group["microseconds"] += launch["microseconds"]
        group["launches"] += 1
        group["tasks"] += launch["tasks"]
        group["most"] = max(group["most"], launch["microseconds"])
        dot_flops, arithmetic, memory = known.get(launch["launch"], (flops.get(scope.groups(), 0) if scope else 0, 0, 0))
        group["flops"] += dot_flops
        group["arithmetic"] += arithmetic
        group["memory"] += memory
        kinds[found["kind"]] += launch["microseconds"]
    ranked = sorted(groups.items(), key=lambda item: -item[1]["microseconds"])
    return {
        "launches": len(profile),
        "microseconds": rounded(sum(kinds.values())),
        "groups": [[*key, *(rounded(g[k]) for k in ("microseconds", "launches", "tasks", "most", "flops", "arithmetic", "memory"))] for key, g in ranked[:40]],
        "rest": [max(0, len(ranked) - 40), rounded(sum(g["microseconds"] for _, g in ranked[40:]))],
        "kinds": [[kind, rounded(time)] for kind, time in kinds.most_common()],
        **({"limits": {key: rounded(value) for key, value in cost["limits"].items()}} if cost else {}),
    }


def parse_recipe(text):
    """Returns the keys of an effective recipe as printed by fp8: forward.activation.format and so on."""
    keys, stack = {}, []

    def add(path, value):
        inner = value[1:-1] if value.startswith("{") and value.endswith("}") else None
        if inner is None:
            keys[".".join(path)] = value
            return
        for item in re.findall(r"(?:[^,{\[]|\{[^}]*\}|\[[^\]]*\])+", inner):
            key, _, value = item.strip().partition(":")
            add((*path, key.strip()), value.strip())

    rules = collections.Counter()
    for line in text.splitlines():
        content = line.split(" #")[0].strip()
        if not content or content.startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        path = tuple(stack[:depth])
        if content.startswith("- "):
            rules[path] += 1
            keys[".".join((*path, str(rules[path])))] = content[2:]
            continue
        key, _, value = content.partition(":")
        stack[depth:] = [key]
        if value.strip():
            add((*path, key), value.strip())
    return keys


def recipe_data(directory, verdicts, notes):
    """Returns the effective recipe and, if the run wrote it, the preset of its name."""
    data = {"name": (verdicts or {}).get("recipe", "")}
    try:
        data["text"] = (directory / "recipe.yaml").read_text("utf-8")
        data["keys"] = parse_recipe(data["text"])
        data["name"] = data["keys"].get("name", data["name"])
        preset = directory / "preset.yaml"
        if preset.exists():
            data["preset"] = parse_recipe(preset.read_text("utf-8"))
    except FileNotFoundError:
        pass
    except (OSError, UnicodeDecodeError) as error:
        notes.append(f"expected a recipe in recipe.yaml but got {error}: left out")
    return data


# ----------------------------------------------------------------------
# The page
# ----------------------------------------------------------------------

OPTIONAL = {
    "verdicts.json": "the picture of the model",
    "trace.jsonl": "heat maps (fp8-run --trace)",
    "memory.json": "memory",
    "profile.json": "profile (fp8-run --profile)",
    "recipe.yaml": "the recipe's keys; its name is in verdicts.json",
}


def run_data(directory, name, share):
    """Returns what the page shows of one run."""
    if not directory.is_dir():
        raise ReportError(f"expected a run directory but got {directory}, which is {'a file' if directory.exists() else 'not there'}")
    notes = [f"no {file}: without {what}" for file, what in OPTIONAL.items() if not (directory / file).exists()]
    rows = read_log(directory / "log.jsonl", notes)

    def optional(file, make):
        value, problem = load_json(directory / file)
        if problem:
            notes.append(problem)
        if value is None:
            return None, None
        try:
            return value, make(value)
        except (KeyError, TypeError, AttributeError, ValueError, IndexError, ZeroDivisionError) as error:
            notes.append(f"expected {file} as fp8-run writes it but got none ({type(error).__name__}: {error}): left out")
            return None, None

    verdicts, _ = optional("verdicts.json", lambda v: [dot["layer"] for dot in v["dots"]])
    parameters = [dot["layer"] for dot in verdicts["dots"]] if verdicts else []
    parameters += [entry["path"] for entry in verdicts.get("state", []) if entry["kind"] == "parameter"] if verdicts else []
    names = Names(parameters)
    cost = optional("cost.json", limits_of)[0] if (directory / "profile.json").exists() else None
    data = {
        "name": name,
        "directory": str(directory),
        "log": log_data(rows, LOG_BUDGET // share),
        "verdicts": verdict_data(verdicts, names) if verdicts else None,
        "trace": trace_data(directory / "trace.jsonl", names, TRACE_BUDGET // share, notes),
        "histograms": histogram_data(directory, names, HISTOGRAM_BUDGET // share, notes),
        "memory": optional("memory.json", memory_data)[1],
        "profile": optional("profile.json", lambda profile: profile_data(profile, verdicts, cost))[1],
        "recipe": recipe_data(directory, verdicts, notes),
        "notes": notes,
    }
    seconds = [row["seconds"] for row in rows if row.get("seconds") is not None]
    data["steps"] = rows[-1]["step"]
    data["loss"] = [rounded(rows[0]["loss"]), rounded(rows[-1]["loss"])]
    finite = [row["loss"] for row in rows[-20:] if rounded(row["loss"]) is not None]
    data["mean_loss_20"] = rounded(sum(finite) / len(finite)) if finite else None
    data["seconds"] = rounded(seconds[-1]) if seconds else None
    return data


LOCATION = re.compile(r"^([^\s:]+):(\d+)(?::\d+)?(?: |$)")


def source_data(runs, folders):
    """Returns the lines of source to which the page refers, if their files are found."""
    wanted = collections.defaultdict(set)

    def want(location):
        found = LOCATION.match(location)
        if found:
            wanted[found[1]].add(int(found[2]))

    for run in runs:
        for text in (run["verdicts"] or {}).get("texts", []):
            want(text)
        for group in (run["profile"] or {}).get("groups", []):
            want(group[1])
        for buffer in ((run["memory"] or {}).get("timeline") or {}).get("largest", []):
            want(buffer[3])
    sources, size = {}, 0
    for name, numbers in sorted(wanted.items()):
        candidates = [path for folder in folders for path in (folder / name, *sorted(folder.glob(f"*/{name}")))]
        path = next((path for path in candidates if path.is_file()), None)
        if not path:
            continue
        lines = path.read_text("utf-8", errors="replace").splitlines()
        shown = sorted({i for n in numbers for i in range(n - 2, n + 3) if 1 <= i <= len(lines)})
        text = [[i, lines[i - 1][:200]] for i in shown]
        size += sum(len(line) + 10 for _, line in text)
        if size > SOURCE_BUDGET:
            break
        sources[name] = {"path": str(path), "lines": text}
    return sources


def page(data):
    """Returns the page: template, style, library, script and data in one text."""
    text = (ASSETS / "page.html").read_text("utf-8")
    # Base64 contains nothing that could end the element, whatever the data.
    encoded = base64.b64encode(zlib.compress(json.dumps(data, separators=(",", ":"), allow_nan=False).encode(), 9)).decode()
    parts = {"style": (ASSETS / "page.css").read_text("utf-8"), "library": (ASSETS / "chart.min.js").read_text("utf-8"),
             "data": encoded, "program": (ASSETS / "page.js").read_text("utf-8")}  # fmt: skip
    return re.sub(r"@(style|library|data|program)@", lambda match: parts[match[1]], text)


def report(run_dirs, out=None, source=(".",)):
    """Writes the page of one or several run directories; returns its path, by default `report.html` in the first
    one. `source` are folders in which to look for the step's source."""
    directories = [pathlib.Path(d) for d in ([run_dirs] if isinstance(run_dirs, (str, pathlib.Path)) else run_dirs)]
    if not directories:
        raise ReportError("expected a run directory but got none")
    names = [d.resolve().name for d in directories]
    if len(set(names)) < len(names):
        names = [str(d) for d in directories]
    runs = [run_data(d, name, len(directories)) for d, name in zip(directories, names)]
    data = {"version": 1, "runs": runs, "sources": source_data(runs, [pathlib.Path(folder) for folder in source])}
    out = pathlib.Path(out) if out else directories[0] / "report.html"
    text = page(data)
    temporary = out.with_name(out.name + ".tmp")
    try:
        temporary.write_text(text, "utf-8")
        temporary.replace(out)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise ReportError(f"cannot write '{out}': {error.strerror}") from None
    return out


def main():
    parser = argparse.ArgumentParser(description="Write one page that shows training runs.")
    parser.add_argument("run", nargs="+", type=pathlib.Path, help="directory that fp8-run --out wrote")
    parser.add_argument("--out", type=pathlib.Path, help="the page (default: report.html in the first run)")
    parser.add_argument("--source", action="append", default=[], help="folder in which to look for the step's source (default: .)")
    args = parser.parse_args()
    try:
        out = report(args.run, args.out, args.source or ["."])
    except (ReportError, OSError) as error:
        sys.exit(f"error: {error}")
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
