"""The recipe key `compute.attention`: what the dots of an attention read, and how exact the result is.

    attention_formats.py fp8-opt fp8-run FOLDER

The output and the gradients of q, k and v of a causal attention are compared with the same in
f64, as a signal-to-noise ratio. With `f8` they are also compared with an emulation in f64 that
rounds what the compiler says it rounds: q, k, v and dO in blocks of 64 tokens of a head, weights
by row, and the gradient of the scores to bf16. The model runs in f32 and in bf16.
"""

import pathlib
import re
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from safetensors.numpy import save_file

import fp8_testing as t

BATCH, TOKENS, HEADS, DEPTH = 2, 480, 2, 32
WIDTH = HEADS * DEPTH
LOSS = "result[1]"
# The least signal-to-noise ratio beside f64, in decibels.
BOUNDS = {"f32": 100, "bf16": 40, "f8": 20}
# The same beside the emulation, where a value may round the other way. The emulation does not round scores to bf16 as the bf16
# model does.
EMULATED = {"float32": 70, "bfloat16": 28}


def attend(q, k, v):
    split = lambda x: x.reshape(*x.shape[:2], HEADS, DEPTH)
    scores = jnp.einsum("bqhd,bkhd->bhqk", split(q), split(k)) * jnp.asarray(DEPTH**-0.5, q.dtype)
    mask = jnp.tril(jnp.ones((q.shape[1], q.shape[1]), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores.astype(jnp.float32), -1e30), axis=-1).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, split(v)).reshape(q.shape)


def step(params, batch):
    """q, k and v are the data times identity weights, plus a parameter of zeros whose gradient is
    that of q, k or v. The output is subtracted from state of zeros, as gradients are from parameters."""

    def loss(p):
        out = attend(*(batch[name] @ p["w" + name] + p["b" + name] for name in "qkv"))
        return jnp.sum((out * batch["g"]).astype(jnp.float32)), out

    (value, out), gradients = jax.value_and_grad(loss, has_aux=True)(params)
    return jax.tree.map(lambda p, d: p - d, params, {**gradients, "bo": out}), value


def blocks(x):
    """Rounds [batch, tokens, heads, depth] to E4M3, with a scale for each 64 tokens of a head."""
    x, out = x.astype(ml_dtypes.bfloat16).astype(np.float64), np.zeros(x.shape)
    for begin in range(0, x.shape[1], 64):
        part = x[:, begin : begin + 64]
        quantizer = 2.0 ** np.floor(np.log2(448 / np.abs(part).max(axis=(1, 3), keepdims=True)))
        out[:, begin : begin + 64] = (part * quantizer).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) / quantizer
    return out


def rows(p):
    """Rounds weights to E4M3, with a scale that maps the power of two nearest to a row's amax to
    256."""
    amax = np.maximum(p.max(axis=-1, keepdims=True), 2.0**-100)
    power = amax.astype(np.float32).astype(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    return (p * (256 / power)).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * (power / 256)


def reference(x, g, emulate):
    """Returns output and gradients in f64, with rows of `WIDTH`."""
    round_blocks, round_rows = (blocks, rows) if emulate else (lambda y: y, lambda y: y)
    round_bf16 = lambda y: y.astype(ml_dtypes.bfloat16).astype(np.float64) if emulate else y
    q, k, v, d = (round_blocks(y.astype(np.float64).reshape(BATCH, TOKENS, HEADS, DEPTH)) for y in (x["q"], x["k"], x["v"], g))
    scale = DEPTH**-0.5
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * scale
    scores = np.where(np.tril(np.ones((TOKENS, TOKENS), bool)), scores, -np.inf)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    rounded = round_rows(p)
    dp = np.einsum("bqhd,bkhd->bhqk", d, v)
    ds = round_bf16(p * (dp - (p * dp).sum(axis=-1, keepdims=True)) * scale)
    found = {"o": np.einsum("bhqk,bkhd->bqhd", rounded, v), "q": np.einsum("bhqk,bkhd->bqhd", ds, k),
             "k": np.einsum("bhqk,bqhd->bkhd", ds, q), "v": np.einsum("bhqk,bqhd->bkhd", rounded, d)}  # fmt: skip
    return {name: y.reshape(BATCH, TOKENS, WIDTH) for name, y in found.items()}


def snr(got, want):
    return 10 * np.log10(np.sum(want**2) / max(np.sum((got - want) ** 2), 1e-300))


def assert_keys_left_out(fp8_opt, path):
    """Checks that the plans skip keys that the causal mask hides, forward and backward."""
    text = t.run([fp8_opt, f"--fp8-import=loss={LOSS}", "--fp8-quantize=recipe=none set=compute.attention=f8", "--fp8-structure", "--fp8-kernels",
                  "--fp8-target=cpu=x86-64-v3", "--fp8-plan-tiles", path]).stdout  # fmt: skip
    plans = re.findall(r"cpu_plan<tile = [^>]*, keys = ([0-9]+)>", text)
    assert len(plans) == 2, f"expected two attentions with keys left out but got {plans}"


def main():
    fp8_opt, fp8_run, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(5)
    draw = lambda: random.standard_normal((BATCH, TOKENS, WIDTH)).astype(ml_dtypes.bfloat16).astype(np.float32)
    # Tokens differ in magnitude, so that each block has its own scale.
    x = {name: draw() * 2.0 ** random.integers(-3, 2, (BATCH, TOKENS, 1)).astype(np.float32) for name in "qkv"}
    g = draw()
    for dtype in ("float32", "bfloat16"):
        cast = lambda y: jnp.asarray(y, dtype)
        params = {"w" + name: cast(np.eye(WIDTH)) for name in "qkv"} | {"b" + name: cast(np.zeros((BATCH, TOKENS, WIDTH))) for name in "qkvo"}
        batch = {name: cast(y) for name, y in (x | {"g": g}).items()}
        (folder / "step.mlir").write_text(jax.jit(step).lower(params, batch).as_text(debug_info=True))
        t.save_tree(folder / "init.safetensors", params=params)
        save_file({name: np.asarray(y)[None] for name, y in batch.items()}, folder / "batch.safetensors")
        feeds = [part for name in batch for part in ("--batch", f"batch['{name}']={folder / 'batch.safetensors'}:{name}")]
        assert_keys_left_out(fp8_opt, folder / "step.mlir")
        for form, bound in BOUNDS.items():
            if dtype == "bfloat16" and form != "f8":
                continue
            t.run([fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", *feeds, "--recipe", "none",
                   "--loss", LOSS, "--set", f"compute.attention={form}", "--steps", 1, "--out", folder / "out", "--overwrite", "--quiet"])  # fmt: skip
            after = t.load_tensors(folder / "out" / "checkpoint-1.safetensors")
            got = {name: -after[f"params['b{name}']"].astype(np.float64) for name in "qkvo"}
            exact, emulated = reference(x, g, False), reference(x, g, form == "f8")
            for name, want in exact.items():
                decibels, beside = snr(got[name], want), snr(got[name], emulated[name])
                print(f"  {dtype} {form} {'output' if name == 'o' else 'd' + name}: {decibels:.1f} dB" + (f", {beside:.1f} dB beside the emulation" if form == "f8" else ""))
                assert decibels >= bound, f"expected {bound} dB beside f64 but got {decibels:.1f}"
                assert form != "f8" or beside >= EMULATED[dtype], f"expected {EMULATED[dtype]} dB beside the emulation but got {beside:.1f}"


main()
