"""Models: an input layer, several equal layers, and heads."""

import dataclasses
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from . import attention, layers, repeat
from .choices import number
from .layers import WIDTH, linear, linear_params, norm, norm_params, normal, residual

STEPS, BATCH, LENGTH, VOCAB, FEATURES, CLASSES = 6, 8, 6, 32, 12, 8


@dataclasses.dataclass
class Model:
    params: Any
    # Data with a leading dimension for the step.
    batches: dict
    # outputs(params, batch, drop) of the heads, the first (..., classes).
    outputs: Callable
    # Targets of a batch, as integers with the shape of the outputs without classes.
    targets: Callable
    # A second view of the inputs of a batch.
    view: Callable
    # A vector for each example of a batch.
    features: Callable


# ------------------------------------------------------------------------ data


def walks(random):
    """Returns noisy walks over a ring."""
    moves = random.choice([1, 1, 1, 5], (STEPS, BATCH, LENGTH + 1))
    return (np.cumsum(moves, -1) % VOCAB).astype(np.int32)


def clusters(random, *shape):
    """Returns points around centres, with the index of each centre."""
    label = random.integers(0, CLASSES, (STEPS, BATCH)).astype(np.int32)
    centres = random.normal(0, 1, (CLASSES, *shape))
    return (centres[label] + random.normal(0, 0.3, (STEPS, BATCH, *shape))).astype(np.float32), label


# ---------------------------------------------------------------------- layers


def dense_layer(c, random):
    return {"norm": norm_params(c, WIDTH), "ffn": layers.ffn_params(c, random)}


def dense_block(c, p, x):
    return residual(c, x, layers.ffn(c, p["ffn"], norm(c, p["norm"], x)))


def attention_layer(c, random, cross=False):
    p = {"norm_1": norm_params(c, WIDTH), "attention": attention.params(c, random), **dense_layer(c, random)}
    if cross:
        p["norm_2"], p["cross"] = norm_params(c, WIDTH), attention.params(c, random)
    return p


def attention_block(c, p, x, memory=None, causal=True):
    x = residual(c, x, attention.attend(c, p["attention"], norm(c, p["norm_1"], x), causal=causal))
    if memory is not None:
        x = residual(c, x, attention.attend(c, p["cross"], norm(c, p["norm_2"], x), memory, causal=False))
    return dense_block(c, p, x)


def conv_layer(c, random):
    p = {"norm": norm_params(c, WIDTH), "kernel": normal(random, 3, 3, WIDTH, WIDTH, scale=(9 * WIDTH) ** -0.5)}
    return p | {"bias": jnp.zeros(WIDTH)} if c.bias == "yes" else p


def convolve(x, kernel, stride=1):
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def conv_block(c, p, x):
    h = convolve(layers.activation(c)(norm(c, p["norm"], x)), p["kernel"])
    return residual(c, x, h + p["bias"] if "bias" in p else h)


def rnn_layer(c, random):
    n = {"vanilla": 1, "gru": 3, "lstm": 4}[c.cell]
    return {"x": linear_params(c, random, WIDTH, n * WIDTH), "h": linear_params(c, random, WIDTH, n * WIDTH)}


def rnn_block(c, p, x):
    """x is (batch, time, width)."""

    def cell(carry, x):
        h, s = carry
        if c.cell == "vanilla":
            h = jnp.tanh(linear(c, p["x"], x) + linear(c, p["h"], h))
        elif c.cell == "gru":
            a, b, n = jnp.split(linear(c, p["x"], x), 3, -1)
            ha, hb, hn = jnp.split(linear(c, p["h"], h), 3, -1)
            z = jax.nn.sigmoid(a + ha)
            h = (1 - z) * jnp.tanh(n + jax.nn.sigmoid(b + hb) * hn) + z * h
        else:
            i, f, g, o = jnp.split(linear(c, p["x"], x) + linear(c, p["h"], h), 4, -1)
            s = jax.nn.sigmoid(f + 1) * s + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(s)
        return (h, s), h

    start = jnp.zeros_like(x[:, 0])
    return jnp.swapaxes(jax.lax.scan(cell, (start, start), jnp.swapaxes(x, 0, 1))[1], 0, 1)


def ssm_layer(c, random):
    p = {**dense_layer(c, random), "in": linear_params(c, random, WIDTH, WIDTH), "out": linear_params(c, random, WIDTH, WIDTH)}
    p["decay"] = normal(random, 1, WIDTH, scale=1.0)[0]
    if c.ssm == "gated":
        p["rate"] = linear_params(c, random, WIDTH, WIDTH)
    return p


def ssm_block(c, p, x):
    """A gated diagonal state-space model over time, with decays that may depend on the input."""
    h = norm(c, p["norm"], x)
    u = linear(c, p["in"], h)
    decay = jax.nn.sigmoid(p["decay"] + (linear(c, p["rate"], h) if c.ssm == "gated" else jnp.zeros_like(u)))
    if c.ssm == "associative":
        states = jax.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (decay, u), axis=1)[1]
    else:
        step = lambda s, au: (au[0] * s + au[1],) * 2
        over_time = lambda a: jnp.swapaxes(a, 0, 1)
        states = over_time(jax.lax.scan(step, jnp.zeros_like(u[:, 0]), (over_time(decay), over_time(u)))[1])
    x = residual(c, x, linear(c, p["out"], states))
    return residual(c, x, layers.ffn(c, p["ffn"], x))


LAYERS = {"dense": dense_layer, "transformer": attention_layer, "conv": conv_layer, "rnn": rnn_layer, "ssm": ssm_layer}
BLOCKS = {"dense": dense_block, "transformer": attention_block, "conv": conv_block, "rnn": rnn_block, "ssm": ssm_block}


# ---------------------------------------------------------------------- models


def of_tokens(c, random):
    """Makes decoders, and encoders with decoders, over tokens."""
    both = c.model == "encdec"
    params = {"embed": normal(random, VOCAB, WIDTH, scale=0.5), "norm": norm_params(c, WIDTH)}
    if c.position == "learned":
        params["position"] = normal(random, LENGTH, WIDTH, scale=0.1)
    params["layers"] = repeat.store(c, [attention_layer(c, random, cross=both) for _ in range(c.depth)])
    if both:
        params["encoder"] = repeat.store(c, [attention_layer(c, random) for _ in range(c.depth)])
    if c.tied == "no":
        params["head"] = normal(random, WIDTH, VOCAB)
    if c.heads == "two":
        params["head_2"] = linear_params(c, random, WIDTH, CLASSES)
    batches = {"tokens": walks(random)}
    if both:
        batches["source"] = walks(random)[..., :-1]

    def embed(params, ids):
        x = params["embed"][ids]
        return x + params["position"] if c.position == "learned" else x

    def outputs(params, batch, drop):
        x = drop(embed(params, batch["tokens"][:, :-1]))
        memory = None
        if both:
            memory = repeat.run(c, params["encoder"], lambda p, x: attention_block(c, p, x, causal=False), embed(params, batch["source"]))
        x = repeat.run(c, params["layers"], lambda p, x: attention_block(c, p, x, memory), x)
        x = norm(c, params["norm"], x)
        logits = x @ params["embed"].T if c.tied == "yes" else x @ params["head"]
        return [logits] + ([linear(c, params["head_2"], x)] if c.heads == "two" else [])

    one_hot = lambda ids: jax.nn.one_hot(ids, VOCAB)
    return Model(
        params, batches, outputs, lambda batch: batch["tokens"][:, 1:],
        lambda batch: batch | {"tokens": jnp.roll(batch["tokens"], 1, 1)}, lambda batch: jnp.mean(one_hot(batch["tokens"]), 1),
    )  # fmt: skip


def of_points(c, random):
    """Makes models of points, pictures and sequences of points."""
    shape = {"dense": (FEATURES,), "conv": (4, 4, 3)}.get(c.model, (LENGTH, FEATURES))
    x, label = clusters(random, *shape)
    params = {"input": normal(random, 3, 3, 3, WIDTH, scale=0.2) if c.model == "conv" else linear_params(c, random, FEATURES, WIDTH)}
    params |= {"layers": repeat.store(c, [LAYERS[c.model](c, random) for _ in range(c.depth)]), "head": linear_params(c, random, WIDTH, CLASSES)}
    if c.heads == "two":
        params["head_2"] = linear_params(c, random, WIDTH, CLASSES)

    def outputs(params, batch, drop):
        x = batch["x"].astype(jax.tree.leaves(params["head"])[0].dtype)
        x = convolve(x, params["input"]) if c.model == "conv" else linear(c, params["input"], x)
        x = repeat.run(c, params["layers"], lambda p, x: BLOCKS[c.model](c, p, x), drop(x))
        x = x.mean(tuple(range(1, x.ndim - 1)))
        return [linear(c, params[head], x) for head in ("head", "head_2") if head in params]

    return Model(
        params, {"x": x, "label": label}, outputs, lambda batch: batch["label"],
        lambda batch: batch | {"x": jnp.flip(batch["x"], -1) * 0.9}, lambda batch: batch["x"].reshape(batch["x"].shape[0], -1),
    )  # fmt: skip


def make(c, seed):
    random = np.random.default_rng(number(seed, "values"))
    made = (of_tokens if c.model in ("transformer", "encdec") else of_points)(c, random)
    if c.transform_at == "layer":
        return made
    inner = made.outputs
    # Transform all weights before the model reads the first.
    made.outputs = lambda params, batch, drop: inner(layers.transform_all(c, params), batch, drop)
    return made
