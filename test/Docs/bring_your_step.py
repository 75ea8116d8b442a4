"""Follows docs/BringYourStep.md as a new user does: writes the files that it shows,
runs its commands in order, and compares their output with the page.

    python bring_your_step.py FP8_RUN ROOT FOLDER

A `python` block is a file, named in its first line. An `sh` block is run. Every
line of a `text` block (`...` matches any text) must be in the commands' output.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import ml_dtypes
import numpy as np

WIDTH, LAYERS, HEADS, FFN, LENGTH, BATCH = 64, 2, 4, 96, 16, 2


def pretrained(path, root):
    """Writes and returns a small Llama with Hugging Face's names and layout."""
    sys.path.insert(0, str(root / "examples"))
    import bridge

    random = np.random.default_rng(0)
    weights = {"model.embed_tokens.weight": random.normal(size=(256, WIDTH)), "model.norm.weight": random.uniform(0.5, 1.5, WIDTH),
               "lm_head.weight": random.normal(size=(256, WIDTH)) / 8}  # fmt: skip
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        for name in ("input_layernorm", "post_attention_layernorm"):
            weights[f"{at}{name}.weight"] = random.uniform(0.5, 1.5, WIDTH)
        for name in "qkvo":
            weights[f"{at}self_attn.{name}_proj.weight"] = random.normal(size=(WIDTH, WIDTH)) / 8
        for name, shape in (("gate", (FFN, WIDTH)), ("up", (FFN, WIDTH)), ("down", (WIDTH, FFN))):
            weights[f"{at}mlp.{name}_proj.weight"] = random.normal(size=shape) / 8
    weights = {name: value.astype(ml_dtypes.bfloat16) for name, value in weights.items()}
    bridge.write(path, weights)
    return {name: value.astype(np.float64) for name, value in weights.items()}


def llama_loss(w, tokens):
    """Returns the loss of a batch for Hugging Face's Llama, in NumPy."""

    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"]

    def linear(x, name):
        return x @ w[f"{name}.weight"].T

    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    depth = WIDTH // HEADS
    angle = np.arange(LENGTH)[:, None] / 10000.0 ** (np.arange(0, depth, 2) / depth)
    cos, sin = (np.concatenate([f(angle)] * 2, -1) for f in (np.cos, np.sin))

    def rotate(x):
        return x * cos + np.concatenate([-x[..., depth // 2 :], x[..., : depth // 2]], -1) * sin

    x = w["model.embed_tokens.weight"][tokens[:, :-1]]
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        h = norm(x, at + "input_layernorm")
        q, k, v = (linear(h, f"{at}self_attn.{name}_proj").reshape(BATCH, LENGTH, HEADS, depth).swapaxes(1, 2) for name in "qkv")
        scores = rotate(q) @ rotate(k).swapaxes(2, 3) / np.sqrt(depth)
        scores = np.where(np.tri(LENGTH, dtype=bool), scores, -1e30)
        x = x + linear((softmax(scores) @ v).swapaxes(1, 2).reshape(BATCH, LENGTH, WIDTH), at + "self_attn.o_proj")
        h = norm(x, at + "post_attention_layernorm")
        gate = linear(h, at + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(h, at + "mlp.up_proj"), at + "mlp.down_proj")
    probability = softmax(linear(norm(x, "model.norm"), "lm_head"))
    return -np.log(np.take_along_axis(probability, tokens[:, 1:, None], -1)).mean()


def check_pretrained(fp8_run, folder, weights, env):
    """The mapped weights are the same model: the first loss equals its loss."""
    tokens = np.random.default_rng(1).integers(0, 256, (1, BATCH, LENGTH + 1)).astype(np.int32)
    np.save(folder / "tokens.npy", tokens)
    command = f"{fp8_run} llama/step.mlir --init pretrained.safetensors --batch tokens=tokens.npy --recipe none --steps 1 --out check"
    subprocess.run(command.split(), cwd=folder, env=env, check=True, stdout=subprocess.DEVNULL)
    loss = json.loads((folder / "check" / "log.jsonl").read_text())["loss"]
    np.testing.assert_allclose(loss, llama_loss(weights, tokens[0]), rtol=1e-5)


def main():
    fp8_run, root, folder = shutil.which(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True)
    weights = pretrained(folder / "model.safetensors", root)
    path = f"{pathlib.Path(fp8_run).parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "FP8": str(root), "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (root / "docs" / "BringYourStep.md").read_text(), re.M | re.S)
    assert len(blocks) > 10, f"expected the page's blocks but got {len(blocks)}"
    printed = ""
    for kind, text in blocks:
        if kind == "python":
            name = re.match(r"# (\w+\.py)\n", text)
            assert name, f"expected a file name but got {text[:50]!r}"
            (folder / name[1]).write_text(text)
        elif kind == "sh":
            result = subprocess.run(["bash", "-euc", text], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
            printed = result.stdout + result.stderr
            assert result.returncode == 0, f"{text}\n{printed}"
            assert "warning" not in printed, f"{text}\n{printed}"
        else:
            assert kind == "text", f"expected python, sh or text but got {kind}"
            for line in text.splitlines():
                words = [".*" if word == "..." else re.escape(word) for word in line.split()]
                assert re.search(r"\s+".join(words), printed), f"expected {line!r} in\n{printed[-3000:]}"
    check_pretrained(fp8_run, folder, weights, env)


main()
