"""Gradients stored in FP8: the sums over micro-batches equal those of an independent
reference bit for bit, in loops, unrolled and for stacked layers, and their error is
compared with that of sums in bf16.

    gradients.py fp8-run FOLDER [CASE...]
"""

import pathlib
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
from safetensors.numpy import load_file, save_file

import fp8_testing as t

RATE = 2.0**-12  # a power of two, so that the update is exact
MICRO, ROWS, IN, OUT, LAYERS = 4, 8, 64, 96, 3
FORMATS = {"f8E4M3FN": (ml_dtypes.float8_e4m3fn, 448.0), "f8E5M2": (ml_dtypes.float8_e5m2, 57344.0)}


def quantized(x, fmt, layered):
    """Returns x quantized with a power-of-two scale of its amax and dequantized, in f32."""
    dtype, largest = FORMATS[fmt]
    axes = tuple(range(1 if layered else 0, x.ndim))
    amax = np.abs(x).max(axis=axes, keepdims=True).astype(np.float64)
    exponent = np.ceil(np.log2(np.where(amax > 0, amax, largest) / largest))
    scale = np.exp2(exponent).astype(np.float32)
    return (x / scale).astype(dtype).astype(np.float32) * scale


def stored(gradients, fmt, layered=False):
    """Returns the sum of the micro-batches' gradients as FP8-LM accumulates them."""
    if fmt == "bf16":
        total = np.zeros_like(gradients[0])
        for gradient in gradients:
            narrow = gradient.astype(ml_dtypes.bfloat16).astype(np.float32)
            total = (total + narrow).astype(ml_dtypes.bfloat16).astype(np.float32)
        return total
    total = np.zeros_like(gradients[0])
    for gradient in gradients:
        total = quantized(total + quantized(gradient, fmt, layered), fmt, layered)
    return total


# Whole numbers small enough that every dot is exact, so that the order of a sum does not matter.
def whole(random, shape, largest=3):
    return random.integers(-largest, largest + 1, shape).astype(np.float32)


def linear_loss(params, x, y):
    # A scale factor makes the micro-batches differ.
    out = x @ params["w"]
    return 0.5 * jnp.sum((out - y) ** 2)


def stacked_loss(params, x, y):
    """Layers in parallel, not in sequence, so that whole numbers stay small."""

    def layer(total, w):
        out = x @ w
        return total + 0.5 * jnp.sum((out - y) ** 2), None

    return jax.lax.scan(layer, 0.0, params["w"])[0]


def scanned(loss):
    def step(params, xs, ys):
        def micro(total, batch):
            value, gradient = jax.value_and_grad(loss)(params, *batch)
            return jax.tree.map(jnp.add, total, gradient), value

        total, values = jax.lax.scan(micro, jax.tree.map(jnp.zeros_like, params), (xs, ys))
        return jax.tree.map(lambda p, g: p - RATE * g, params, total), jnp.mean(values)

    return step


def unrolled(loss):
    def step(params, xs, ys):
        values, gradients = zip(*(jax.value_and_grad(loss)(params, x, y) for x, y in zip(xs, ys)))
        total = gradients[0]
        for gradient in gradients[1:]:
            total = jax.tree.map(jnp.add, total, gradient)
        return jax.tree.map(lambda p, g: p - RATE * g, params, total), sum(values) / len(values)

    return step


def updates(fixture, name, step, shape, fmt):
    """Returns the step's update of w for one format, and the exact gradients."""
    fp8_run, folder = fixture
    folder = folder / f"{name}-{fmt}"
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(7)
    params = {"w": whole(random, shape)}
    # Each micro-batch is larger than the previous one.
    xs = np.stack([whole(random, (ROWS, IN)) * (i + 1) for i in range(MICRO)])
    ys = whole(random, (MICRO, ROWS, OUT), 9)
    text = jax.jit(step, donate_argnums=0).lower(params, xs, ys).as_text(debug_info=True)
    (folder / "step.mlir").write_text(text)
    save_file({"params['w']": params["w"]}, str(folder / "init.safetensors"))
    save_file({"xs": xs[None], "ys": ys[None]}, str(folder / "data.safetensors"))
    setting = f"gradients={{format: {fmt}{'' if fmt in ('f32', 'bf16') else ', scale: pow2'}}}"
    t.run([
        fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", "--recipe", "none", "--set", setting,
        "--batch", f"xs={folder}/data.safetensors:xs", "--batch", f"ys={folder}/data.safetensors:ys",
        "--steps", 1, "--out", folder / "out", "--overwrite", "--quiet",
    ], timeout=120)  # fmt: skip
    after = load_file(folder / "out" / "checkpoint-1.safetensors")["params['w']"]
    residual = np.einsum("mri,...io->m...ro", xs, params["w"]) - (ys if len(shape) == 2 else ys[:, None])
    exact = np.einsum("mri,m...ro->m...io", xs, residual)
    return params["w"], after, exact.astype(np.float32)


def check(fixture, name, step, shape):
    errors = {}
    for fmt in ("f32", "bf16", "f8E4M3FN", "f8E5M2"):
        before, after, exact = updates(fixture, name, step, shape, fmt)
        total = exact.sum(axis=0) if fmt == "f32" else stored(exact, fmt, layered=len(shape) == 3)
        expected = before - np.float32(RATE) * total
        differ = np.count_nonzero(after != expected)
        assert differ == 0, f"{name} {fmt}: {differ} of {after.size} values differ from the reference"
        true = exact.sum(axis=0).astype(np.float64)
        errors[fmt] = np.sqrt(np.mean((total - true) ** 2) / np.mean(true**2))
    print(f"  {name}: relative RMS error of the sum of {MICRO}: " + ", ".join(f"{k} {v:.2e}" for k, v in errors.items()))
    assert errors["f32"] == 0 and errors["bf16"] < 5e-3 < errors["f8E4M3FN"] < 5e-2 < errors["f8E5M2"] < 1e-1


def check_calls(fixture):
    """With optax.MultiSteps micro-batches are calls: the sum is state that is stored between them.
    """
    fp8_run, folder = fixture
    folder = folder / "calls"
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(11)
    params = {"w": whole(random, (IN, OUT))}
    xs = np.stack([whole(random, (ROWS, IN)) * (i + 1) for i in range(2)])
    ys = whole(random, (2, ROWS, OUT), 9)
    rate = 0.01
    optimizer = optax.MultiSteps(optax.adam(rate), every_k_schedule=2)

    def step(params, state, x, y):
        value, gradient = jax.value_and_grad(linear_loss)(params, x, y)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    state = optimizer.init(params)
    text = jax.jit(step, donate_argnums=(0, 1)).lower(params, state, xs[0], ys[0]).as_text(debug_info=True)
    (folder / "step.mlir").write_text(text)
    t.save_tree(folder / "init.safetensors", params=params, state=state)
    save_file({"xs": xs, "ys": ys}, str(folder / "data.safetensors"))
    fmt = "f8E4M3FN"
    t.run([
        fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", "--recipe", "none",
        "--set", f"gradients={{format: {fmt}, scale: pow2}}", "--checkpoint-every", 1,
        "--batch", f"x={folder}/data.safetensors:xs", "--batch", f"y={folder}/data.safetensors:ys",
        "--steps", 2, "--out", folder / "out", "--overwrite", "--quiet",
    ], timeout=120)  # fmt: skip
    first, second = (t.load_tensors(folder / "out" / f"checkpoint-{i}.safetensors") for i in (1, 2))
    exact = [x.T @ (x @ params["w"] - y) for x, y in zip(xs, ys)]
    narrow = [quantized(g, fmt, False) for g in exact]
    total = quantized(narrow[0], fmt, False)
    name = next(name for name in first if "acc_grads" in name and not name.endswith(".scale"))
    held = first[name].astype(np.float32) * first[name + ".scale"]
    assert np.array_equal(held, total), "the sum is not what the reference stores"
    assert np.array_equal(first["params['w']"], params["w"]), "a call that takes no update changed the weights"
    # Adam's first update is approximately the sign of the mean.
    mean = total + (narrow[1] - total) / np.float32(2)
    expected = params["w"] - rate * mean / (np.abs(mean) + 1e-8)
    assert np.abs(second["params['w']"] - expected).max() < 1e-6, "another update than the reference's"
    assert not second[name].astype(np.float32).any(), "expected the sum to begin anew"


CASES = {
    "calls": check_calls,
    "loop": lambda f: check(f, "loop", scanned(linear_loss), (IN, OUT)),
    "unrolled": lambda f: check(f, "unrolled", unrolled(linear_loss), (IN, OUT)),
    "stacked": lambda f: check(f, "stacked", scanned(stacked_loss), (LAYERS, IN, OUT)),
}


if __name__ == "__main__":
    fp8_run, folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    t.run_cases(CASES, names, (fp8_run, folder))
