"""What the Python-driven tests and the benchmarks share: exporting the example
model in any size, running fp8-run, reading what it wrote."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples" / "llama"))

# A model of a few thousand parameters; everything the example's graph has.
TINY = dict(width=32, layers=2, heads=2, ffn=48, batch=2, sequence=16, warmup_steps=5, schedule_steps=40)

FORTUNES = pathlib.Path("/usr/share/games/fortunes")


def fortunes():
    """The text files of Debian's fortunes package."""
    files = sorted(f for f in FORTUNES.iterdir() if f.suffix not in (".dat", ".u8"))
    assert files, "expected the text of Debian's package fortunes"
    return files


def export_model(folder, **config):
    """Writes step.mlir, init.mlir and eval.mlir into folder; returns the Config."""
    import export

    cfg = export.Config(**config)
    export.write(cfg, pathlib.Path(folder))
    return cfg


def save_tree(path, **trees):
    """Saves arrays as safetensors, named by tree path as JAX names arguments:
    save_tree(file, params=params) has a tensor params['layers'][0]['wq']."""
    import jax
    import numpy as np
    from safetensors.numpy import save_file

    arrays = {}
    for root, tree in trees.items():
        for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            arrays[root + jax.tree_util.keystr(keys)] = np.ascontiguousarray(leaf)
    save_file(arrays, str(path))


def write_text(path, size=20000):
    """Some deterministic English-like text without any other file."""
    words = "the model predicts each byte of a text from those before it and learns with every step".split()
    state, out = 1, []
    while sum(map(len, out)) + len(out) < size:
        state = (state * 1103515245 + 12345) % 2**31
        out.append(words[state // 65536 % len(words)])
    pathlib.Path(path).write_text(" ".join(out)[:size])
    return path


def run(command, check=True, timeout=600, **kwargs):
    """Runs a command; without `check`, failures are the caller's to judge."""
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **kwargs)
    if check and result.returncode != 0:
        print(" ".join(command), result.stdout[-3000:], result.stderr[-3000:], sep="\n", file=sys.stderr)
        raise SystemExit(f"expected exit code 0 but got {result.returncode}")
    return result


def train(fp8_run, model, out, *args, **kwargs):
    """fp8-run on an exported model; returns its log as a list of dicts."""
    run([fp8_run, pathlib.Path(model) / "step.mlir", *args, "--out", out], **kwargs)
    return read_log(out)


def read_log(out):
    """The steps' rows of log.jsonl."""
    rows = [json.loads(line) for line in (pathlib.Path(out) / "log.jsonl").read_text().splitlines()]
    return [row for row in rows if "step" in row]


def losses(log):
    return [row["loss"] for row in log if "loss" in row]


def metric(log, name):
    """A metric's values, whatever root its path has: loss is also
    result[2]['loss']."""
    values = []
    for row in log:
        keys = [key for key in row if key == name or key.endswith(f"['{name}']") or key.endswith(f".{name}")]
        assert len(keys) == 1, f"expected one column for {name} but got {keys} of {sorted(row)}"
        values.append(row[keys[0]])
    return values
