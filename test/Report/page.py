"""The page of a short real run has the numbers of the run's files.

    page.py fp8-run FOLDER [CASE...]
"""

import json
import os
import pathlib
import sys

import numpy as np
import page_testing as p

import fp8_testing as t
import report_page as report

STEPS = 6


class Runs:
    """Two runs of the example with two layers, one with trace and profile."""

    def __init__(self, fp8_run, folder):
        folder.mkdir(parents=True)
        t.export_model(folder, **t.TINY)
        text = t.write_text(folder / "text.txt")
        common = ["--init", folder / "init.mlir", "--eval", folder / "eval.mlir", "--data", text, "--steps", STEPS, "--threads", 1]
        self.fp8_run, self.model, self.common = pathlib.Path(fp8_run).resolve(), folder, common
        self.full, self.bare, self.page = folder / "full", folder / "bare", folder / "page.html"
        # Lets small tensors be stored in FP8 too, because this model has only small ones.
        t.train(fp8_run, folder, self.full, *common, "--recipe", "scaling_fp8", "--set", "optimizer.min_elements=256", "--trace", "--profile", "--eval-every", 3, "--report")
        t.train(fp8_run, folder, self.bare, *common, "--recipe", "tensorwise", "--set", "forward.activation.scale=pow2", "--alarm", "loss > 0 : skip")
        p.make_page(self.full, self.bare, "--out", self.page)
        self.data = p.page_data(self.page)
        self.first, self.second = self.data["runs"]


def test_log(runs):
    for data, directory in ((runs.first, runs.full), (runs.second, runs.bare)):
        log, rows = data["log"], t.read_log(directory)
        assert log["step"] == [row["step"] for row in rows] == list(range(1, STEPS + 1))
        for i, row in enumerate(rows):
            p.same(log["loss"][i], row["loss"], "loss")
            p.same(log["seconds"][i], row["seconds"], "seconds")
            for name, value in row["metrics"].items():
                p.same(log["metrics"][name][i], value, name)
        evaluated = [row for row in rows if "heldout_loss" in row]
        assert log["heldout_step"] == [row["step"] for row in evaluated]
        # The evaluation has one scalar: results that delayed scaling adds are not metrics.
        assert not any("heldout_metrics" in row for row in rows)
        for got, row in zip(log["heldout_loss"], evaluated, strict=True):
            p.same(got, row["heldout_loss"], "held-out loss")
        assert data["steps"] == STEPS
    alarms = runs.second["log"]["alarms"]
    assert alarms and alarms[0][0] == 1 and alarms[0][1].endswith("[loss > 0 : skip]") and runs.second["log"]["alarm_count"] == len(alarms) and not runs.first["log"]["alarms"]
    assert runs.first["log"]["skipped"] == [] and runs.second["log"]["skipped"] == list(range(1, STEPS + 1))


def test_verdicts(runs):
    verdicts, got = json.loads((runs.full / "verdicts.json").read_text()), runs.first["verdicts"]
    assert [got[key] for key in ("recipe", "total", "fp8", "high_precision", "fallback")] == [verdicts[key] for key in ("recipe", "total", "fp8", "high_precision", "fallback")]
    for (row, label, placed, fields, sizes, _), dot in zip(got["dots"], verdicts["dots"], strict=True):
        assert {field: got["texts"][i] for field, i in zip(got["fields"], fields)} == {field: dot.get(field, "") for field in got["fields"]}
        assert sizes == [dot["batch"], dot["m"], dot["n"], dot["k"]] and placed == (not dot["layer"])
        if dot["layer"].startswith("params['layers']["):
            assert got["texts"][row] == f"layer {dot['layer'].split('[')[2][0]}" and got["texts"][label] == dot["layer"].split("'")[3], dot
    # Attention has no parameter: its dots belong to the layer of the dots around them.
    assert {got["texts"][row] for row, label, *_ in got["dots"] if got["texts"][label] == "attention"} == {"layer 0", "layer 1"}
    assert len(got["gated_units"]) == 2 and got["state"]
    assert got["softmaxes"] == [[s[key] for key in ("scores", "pass", "batch", "queries", "keys", "reason", "location")] for s in verdicts["softmaxes"]] and len(got["softmaxes"]) == 4
    assert [row[0] for row in got["collectives"]] == [c["what"] for c in verdicts["collectives"]] and all(row[4:6] == ["f8E4M3FN", 128] for row in got["collectives"])


def test_trace(runs):
    lines = [json.loads(line) for line in (runs.full / "trace.jsonl").read_text().splitlines()]
    trace = runs.first["trace"]
    assert trace["first"] == trace["last"] == list(range(1, STEPS + 1)) and trace["bucket"] == 1
    assert {tensor[0] for tensor in trace["tensors"]} == set(lines[0]["tensors"])
    parts = {}
    for name, part, layer, label, metrics in trace["tensors"]:
        parts.setdefault(part, []).append((layer, label))
        for i, line in enumerate(lines):
            for metric, value in line["tensors"][name].items():
                series = metrics[metric if metric in metrics or metric != "scale_min" else "scale"]
                p.same(p.values(series, STEPS)[i], value, f"{name} {metric}")
    assert (0, "w_down") in parts["activation"] and (1, "wq") in parts["mu"] and (None, "embed") in parts["parameter"], parts
    assert runs.second["trace"] is None and any("trace.jsonl" in note for note in runs.second["notes"])


def test_histograms(runs):
    """Compares every bin with NumPy's count of the checkpoint's values."""
    step, tensors = runs.first["histograms"][-1]
    assert step == STEPS and any(tensor[4] == "F8_E4M3" for tensor in tensors) and any(tensor[4] == "F16" for tensor in tensors)
    for data, directory in ((runs.first, runs.full), (runs.second, runs.bare)):
        stored = t.load_tensors(directory / f"checkpoint-{STEPS}.safetensors")
        for name, _, _, _, dtype, shape, scaled, (low, counts, zero, below, negative, nonfinite, every) in data["histograms"][-1][1]:
            x = stored[name].astype(np.float32)
            assert list(x.shape) == shape and every == 1 and below == 0 and nonfinite == 0, name
            if scaled == "times its scale":
                x = x.astype(np.float64) * stored[name + ".scale"].astype(np.float64)
            elif dtype == "F32":
                # Only the upper 16 bits are counted.
                x = (x.view(np.uint32) & 0xFFFF0000).view(np.float32)
            size = np.abs(x[x != 0].astype(np.float64))
            bins = np.floor(4 * np.log2(size)).astype(int)
            assert zero == int((x == 0).sum()) and negative == int((x < 0).sum()), name
            assert counts == [int((bins == low + i).sum()) for i in range(len(counts))] and sum(counts) == len(size), name


def test_memory(runs):
    memory, got = json.loads((runs.full / "memory.json").read_text()), runs.first["memory"]
    line, plan = got["timeline"], memory["plan"]
    totals = [sum(values) for values in zip(*line["categories"].values())]
    peak = sum(size for name, size in plan["bytes_at_peak"].items() if name != "between_buffers")
    assert max(totals) == peak, f"expected {peak} bytes at the peak but got {max(totals)}"
    assert got["step"] == memory["step"] and got["peak_rss"] == memory["peak_rss"] and got["plan"]["state_bytes"] == plan["state_bytes"]


def test_profile(runs):
    profile, got = json.loads((runs.full / "profile.json").read_text()), runs.first["profile"]
    p.same(got["microseconds"], sum(launch["microseconds"] for launch in profile), "time of a step")
    p.same(sum(group[2] for group in got["groups"]) + got["rest"][1], got["microseconds"], "time of all groups")
    assert got["launches"] == len(profile) and runs.second["profile"] is None
    cost = json.loads((runs.full / "cost.json").read_text())
    limits = cost["limits"]
    assert limits["f32_flops_per_second"] > 1e8 and limits["bytes_per_second"] > 1e8
    # Each launch of the profile has its cost; their sum is that of a step.
    assert [launch["launch"] for launch in cost["launches"]] == [launch["launch"] for launch in profile]
    assert [launch["name"] for launch in cost["launches"]] == [launch["name"] for launch in profile]
    dots = json.loads((runs.full / "verdicts.json").read_text())["dots"]
    operations = lambda some: sum(2 * dot["batch"] * dot["m"] * dot["n"] * dot["k"] for dot in some)
    # The backward pass recomputes the scores of each layer, which has six dots of attention.
    attention = [dot for dot in dots if dot["category"] == "attention"]
    p.same(cost["dot_flops"], operations(dots) + operations(attention[:1]) * len(attention) // 6, "operations of dots")
    if not got["rest"][0]:
        p.same(sum(group[6] for group in got["groups"]), cost["dot_flops"], "operations of the groups")
        p.same(sum(group[8] for group in got["groups"]), 1e6 * cost["bytes"] / limits["bytes_per_second"], "time of memory at its limit")
    assert all(group[7] > 0 for group in got["groups"] if group[6]), "dots without arithmetic"


def test_source(runs):
    (file,) = [name for name in runs.data["sources"] if name.endswith("llama/export.py")]
    text = (p.ROOT / "examples" / "llama" / "export.py").read_text().splitlines()
    lines = dict(runs.data["sources"][file]["lines"])
    for dot in json.loads((runs.full / "verdicts.json").read_text())["dots"]:
        number = int(dot["location"].split(":")[1])
        assert lines[number] == text[number - 1], dot["location"]


def test_python(runs):
    out = report.report(runs.full)
    assert out == runs.full / "report.html"
    assert p.page_data(out)["runs"][0]["log"] == runs.first["log"]


def test_flag(runs):
    """fp8-run --report writes the same page, of a stopped run too; without Python it prints an error."""
    assert p.page_data(runs.full / "report.html")["runs"] == [runs.first]
    assert f"report    {runs.full}/report.html" in (runs.full / "stdout.txt").read_text()
    command = [runs.fp8_run, runs.model / "step.mlir", *runs.common, "--recipe", "none", "--report", "--overwrite", "--out=-flag"]
    result = t.run([*command, "--alarm", "loss > 0 : stop"], check=False, cwd=runs.model)
    assert result.returncode == 4 and not result.stderr.count("error: cannot write"), result.stderr
    assert p.page_data(runs.model / "-flag" / "report.html")["runs"][0]["steps"] == 1
    result = t.run(command, check=False, cwd=runs.model, env={**os.environ, "PATH": "/nowhere"})
    assert result.returncode == 1 and "error: cannot write the report: expected python3 on PATH but got: No such file" in result.stderr, result.stderr
    assert len(t.read_log(runs.model / "-flag")) == STEPS


def test_recipes(runs):
    """The run stores its recipe and its preset; the page shows their differences."""
    for data, preset, changes in ((runs.first, "scaling_fp8", {"optimizer.min_elements": ("256", "4096")}), (runs.second, "tensorwise", {"forward.activation.scale": ("pow2", "exact")})):
        printed = t.run([runs.fp8_run, "--print-recipe", "--recipe", preset]).stdout
        assert data["recipe"]["preset"] == report.parse_recipe(printed) and data["recipe"]["name"] == preset
        keys = data["recipe"]["keys"]
        assert {key: (value, data["recipe"]["preset"][key]) for key, value in keys.items() if value != data["recipe"]["preset"][key]} == changes
        # Every key is in the printed recipe, and no value is lost.
        assert all(f"{key.split('.')[-1]}: {value}" in data["recipe"]["text"] or key.split(".")[-1].isdigit() for key, value in keys.items()), keys


CASES = {name[5:]: case for name, case in globals().items() if name.startswith("test_")}

if __name__ == "__main__":
    t.run_cases(CASES, sys.argv[3:], Runs(sys.argv[1], pathlib.Path(sys.argv[2])))
