"""Gradients of an attention whose scores have a bias, with recipes that save activations in bf16: the bias is not rounded.

    biases.py fp8-run FOLDER

The weights move by their gradients, which are compared with JAX's in f32. Recipes round weights and activations, by which
gradients differ as far as those without a bias do.
"""

import pathlib
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np

t.compile_quickly()
BATCH, HEADS, TOKENS, DEPTH = 2, 2, 24, 8
WIDTH = HEADS * DEPTH
LOW = jnp.finfo(jnp.float32).min


def masks(random):
    """A causal mask with padding on the left, so that some rows have no key."""
    return np.tril(np.ones((TOKENS, TOKENS), bool)) & (np.arange(TOKENS) >= np.array([0, 5])[:, None, None, None])


def biases(offset):
    return lambda random: (offset + random.standard_normal((BATCH, 1, TOKENS, TOKENS))).astype(np.float32)


# What the step is given, and the bias that it makes of it.
CASES = {
    "none": (biases(0), lambda bias: 0 * bias),
    "mask": (masks, lambda mask: jnp.where(mask, 0.0, LOW)),
    "bias": (biases(0), lambda bias: bias),
    "large bias": (biases(1000), lambda bias: bias),
    "computed bias": (biases(0), lambda bias: 300 + jnp.cumsum(bias, axis=-1)),
}
# The most that a gradient may differ, relative to its norm.
BOUNDS = {"bf16": 0.02, "tensorwise": 0.25, "fp8": 0.25}


def step_of(bias_of):
    def step(w, x, given):
        def loss(w):
            q, k, v = (jnp.reshape(x @ w[name], (BATCH, TOKENS, HEADS, DEPTH)) for name in "qkv")
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * DEPTH**-0.5 + bias_of(given)
            out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)
            return jnp.sum(jnp.square(out.reshape(x.shape) @ w["o"] - x))

        value, gradients = jax.value_and_grad(loss)(w)
        return jax.tree.map(jnp.subtract, w, gradients), value

    return step


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for number, (name, (make, bias_of)) in enumerate(CASES.items()):
        random = np.random.default_rng(number)
        w = {key: (random.standard_normal((WIDTH, WIDTH)) / WIDTH**0.5).astype(np.float32) for key in "qkvo"}
        x, given = random.standard_normal((BATCH, TOKENS, WIDTH)).astype(np.float32), make(random)
        place = folder / name.replace(" ", "-")
        place.mkdir(parents=True)
        step = jax.jit(step_of(bias_of))
        (place / "step.mlir").write_text(step.lower(w, x, given).as_text(debug_info=True))
        t.save_tree(place / "init.safetensors", w=w)
        np.save(place / "x.npy", x)
        np.save(place / "given.npy", given)
        want = {key: w[key] - value for key, value in step(w, x, given)[0].items()}
        for recipe, bound in BOUNDS.items():
            out = place / recipe
            t.run([fp8_run, place / "step.mlir", "--init", place / "init.safetensors", "--batch", f"x={place}/x.npy", "--batch", f"given={place}/given.npy",
                   "--recipe", recipe, "--set", "compute.saved=bf16", "--steps", 1, "--out", out, "--quiet"])  # fmt: skip
            state = t.load_tensors(out / "checkpoint-1.safetensors")
            for key in "qkvo":
                got = w[key] - state[f"w['{key}']"]
                off = np.linalg.norm(got - want[key]) / np.linalg.norm(want[key])
                assert off <= bound, f"{name}, {recipe}: expected the gradient of {key} within {bound} of its norm but got {off:.3f}"


main()
