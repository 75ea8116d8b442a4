"""Pages of run directories that no run wrote: large, with hostile names, damaged.

    generated_page.py FOLDER [CASE...]
"""

import json
import pathlib
import shutil
import sys

import generated
import page_testing as p

import fp8_testing as t
import report_page as report


class Folder:
    def __init__(self, path):
        self.path = path
        self.good = generated.write(path / "good", 8, layers=2, nasty=True)

    def copy(self, name):
        return pathlib.Path(shutil.copytree(self.good, self.path / name, ignore=shutil.ignore_patterns("report.html")))


def test_size(folder):
    """The page of a thousand steps with a trace of each stays below 3 MB."""
    long = generated.write(folder.path / "long", 1000)
    p.make_page(long)
    page = long / "report.html"
    size = page.stat().st_size
    print(f"page of 1000 steps: {size} bytes")
    assert size < 3_000_000, f"expected less than 3 MB but got {size}"
    data = p.page_data(page)["runs"][0]
    assert len(data["log"]["loss"]) == 1000 and len(data["trace"]["first"]) >= 100
    # A column shows the worst value of its steps.
    wanted, series = {}, next(t for t in data["trace"]["tensors"] if t[0] == "params['layers'][3]['wo'].gradient")[4]
    for line in (long / "trace.jsonl").read_text().splitlines():
        line = json.loads(line)
        column = next(i for i, last in enumerate(data["trace"]["last"]) if line["step"] <= last)
        for metric, value in line["tensors"]["params['layers'][3]['wo'].gradient"].items():
            wanted.setdefault((metric, column), []).append(value)
    for (metric, column), values in wanted.items():
        if metric != "scale_min":
            p.same(p.values(series[metric], column + 1)[column], (min if metric == "snr" else max)(values), f"{metric} in column {column}")


def test_names(folder):
    """Markup in a path is shown as text: the page has three scripts and no other."""
    p.make_page(folder.good)
    text = (folder.good / "report.html").read_text()
    assert text.count("</script") == text.count("<script") == 3, "expected three scripts"
    assert generated.NASTY in json.dumps(p.page_data(folder.good / "report.html"), ensure_ascii=False).encode().decode("unicode_escape")
    named = report.Names(["params['layers'][3]['attn']['wq']", "p.layers_2.mlp.kernel"])
    for name, place in {
        "params['layers'][3]['attn']['wq']": ("parameter", 3, "attn.wq"),
        "params['layers'][3]['attn']['wq'].activation.wgrad": ("activation.wgrad", 3, "attn.wq"),
        "opt_state[1].mu['layers'][3]['attn']['wq']": ("mu", 3, "attn.wq"),
        "p.layers_2.mlp.kernel.gradient": ("gradient", 2, "mlp.kernel"),
        "params['params']['Dense_0']['kernel']": ("parameter", 0, "Dense.kernel"),
        "params['params']['LayerNorm_1']['scale']": ("parameter", 1, "LayerNorm.scale"),
        "params['params']['Block_2']['Attention_0']['kernel']": ("parameter", 2, "Attention_0.kernel"),
        "params['transformer']['h']['4']['mlp']['kernel']": ("parameter", 4, "mlp.kernel"),
        "params['layers']['wq']": ("parameter", None, "layers.wq"),
        "p/layers/7/wq": ("parameter", 7, "wq"),
        "params['it\\'s'][\"x\"]": ("parameter", None, "it\\'s.x"),
        "params[1]": ("parameter", 1, "1"),
        "embed": ("other", None, "embed"),
    }.items():
        assert named.of_tensor(name) == place, f"{name}: expected {place} but got {named.of_tensor(name)}"


def test_errors(folder):
    def fails(path, *expected):
        result = p.make_page(path, check=False)
        assert result.returncode == 1 and result.stderr.startswith("error: expected ") and "Traceback" not in result.stderr, result.stderr
        for text in expected:
            assert text in result.stderr, f"expected '{text}' but got {result.stderr}"
        assert not (path / "report.html").exists()

    fails(folder.path / "nowhere", "a run directory", "not there")
    fails(p.SCRIPT, "a run directory", "a file")
    empty = folder.path / "empty"
    empty.mkdir()
    fails(empty, "log.jsonl")
    (empty / "log.jsonl").write_text("")
    fails(empty, "at least one step", "empty file")
    cut = folder.copy("cut")
    text = (cut / "log.jsonl").read_text()
    (cut / "log.jsonl").write_text(text[: len(text) - 30] + "\n")
    fails(cut, "a step and its loss in line 8 of", "but got '{")
    (cut / "log.jsonl").write_text(text.replace('"loss"', '"lots"', 1))
    fails(cut, "in line 1 of")


def test_damaged(folder):
    """If an optional file is damaged, the page has a note that says what is wrong."""
    for name, cut in {"verdicts.json": 500, "memory.json": 1000, "profile.json": 40, "cost.json": 40, "checkpoint-8.safetensors": 3000, "checkpoint-4.safetensors": 5}.items():
        damaged = folder.copy(f"damaged-{name}")
        content = (damaged / name).read_bytes()
        (damaged / name).write_bytes(content[:-cut] if cut > 5 else content[:cut])
        p.make_page(damaged)
        notes = p.page_data(damaged / "report.html")["runs"][0]["notes"]
        assert [note for note in notes if note.startswith("expected ") and name in note], f"{name}: expected a note but got {notes}"
    other = folder.copy("other")
    (other / "verdicts.json").write_text('{"dots": [{}]}')
    (other / "memory.json").write_text("[]")
    trace = (other / "trace.jsonl").read_text()
    (other / "trace.jsonl").write_text(trace[:-100])
    p.make_page(other)
    run = p.page_data(other / "report.html")["runs"][0]
    assert run["verdicts"] is None and run["memory"] is None and len(run["trace"]["first"]) == 7 and len(run["notes"]) == 3, run["notes"]
    # A run that is on, or was killed, may have written a part of a line.
    killed = folder.copy("killed")
    (killed / "log.jsonl").write_text((killed / "log.jsonl").read_text()[:-30])
    p.make_page(killed)
    run = p.page_data(killed / "report.html")["runs"][0]
    assert run["steps"] == 7 and [note for note in run["notes"] if "log.jsonl" in note], run["notes"]
    bare = folder.path / "bare"
    bare.mkdir()
    shutil.copy(folder.good / "log.jsonl", bare)
    p.make_page(bare)
    assert len(p.page_data(bare / "report.html")["runs"][0]["notes"]) == 5


def test_values(folder):
    """A loop over layers gives a row for each layer; a value that is not finite has no colour."""
    looped = folder.copy("looped")
    lines = [{"step": step, "tensors": {"params['stack']['w'].activation": {"snr": [10.0 + step, None, 12.0], "amax": [None] * 3}}} for step in (2, 4)]
    (looped / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    p.make_page(looped)
    trace = p.page_data(looped / "report.html")["runs"][0]["trace"]
    rows = {name: (layer, label, metrics) for name, _, layer, label, metrics in trace["tensors"]}
    assert trace["last"] == [2, 4]
    assert rows["params['stack']['w'].activation[0]"] == (0, "w", {"snr": [12, 14], "amax": None})
    assert rows["params['stack']['w'].activation[1]"][2] == {"snr": None, "amax": None} and rows["params['stack']['w'].activation[2]"][2]["snr"] == 12


def test_recipes(folder):
    p.make_page(folder.good)
    recipe = p.page_data(folder.good / "report.html")["runs"][0]["recipe"]
    keys = {"name": "tensorwise", "forward.activation.format": "f8E4M3FN", "forward.activation.tile": "tensor", "forward.activation.scale": "exact", "forward.accumulator.bits": "32",
            "forward.accumulator.promote": "0", "rules.1": "keep: {part: head}", "rules.2": "keep: {layers: [0, 1]}", "optimizer.keep": "[]", "seed": "0"}  # fmt: skip
    assert recipe["keys"] == keys, recipe["keys"]
    assert recipe["preset"]["forward.activation.scale"] == "pow2"


CASES = {name[5:]: case for name, case in globals().items() if name.startswith("test_")}

if __name__ == "__main__":
    t.run_cases(CASES, sys.argv[2:], Folder(pathlib.Path(sys.argv[1])))
