"""Attention in the spellings that people use: which softmaxes become one op in the
forward pass and one in the backward pass, and that the step computes what JAX does.

    attention.py fp8-opt fp8-run FOLDER [--unfused | CASE...]

Each case is a training step of plain gradient descent whose rate is so large that the
update consists of the gradient. It is compared with JAX in f64: the norm of the error
is at most 2.5 times that of JAX in the step's own types, or 1e-6 of the gradient's norm.
(The ops compute what the step does, but sum in another order.) For some cases the
gradients are also compared with finite differences of the loss, in f64. With --unfused,
the errors of some cases are compared with those of the same steps without the ops.
"""

import dataclasses
import json
import pathlib
import re
import sys
from dataclasses import dataclass
from typing import Callable

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

import fp8_testing as t

t.compile_jax_quickly()

BATCH, QUERIES, KEYS, WIDTH, HEADS = 2, 24, 24, 16, 2
RATE = 2.0**16
# The number of layers in loops of each kind.
STACKS = {"scan": 2, "remat": 2, "dropped": 2, "pairs": 4, "left over": 3, "nested": 4}
# How many of them an iteration has.
UNROLL = {"pairs": 2, "left over": 2}


@dataclass
class Case:
    """`attend(q, k, v, extra)` takes arrays of [batch, length, heads, depth], with
    `heads` of queries and `kv_heads` of keys and values. `extra` makes other inputs of the step and
    `parameters` other parameters; both are in its argument `extra`.
    `forward` and `backward` are the numbers of attention ops expected in each pass.
    `layers` says how several layers follow one another; the step has one layer without it.
    `saves` is the policy of `jax.checkpoint` that says what a layer saves; in nested loops, what an inner loop does."""

    attend: Callable
    heads: int = HEADS
    kv_heads: int = HEADS
    queries: int = QUERIES
    keys: int = KEYS
    extra: Callable = lambda random: {}
    forward: int = 1
    backward: int = 1
    dtype: str = "float32"
    layers: str = ""
    saves: Callable | None = None
    batch: int = BATCH
    parameters: Callable = lambda random: {}
    wide: bool = True
    width: int = WIDTH
    # The number of softmaxes whose scores are stored.
    stored: int = 0
    # The numbers of keys that tiles run over at the most, in the plans of kernels whose mask hides keys.
    most_keys: tuple = ()


def softmax_attention(q, k, v, bias=None, mask=None, cap=None, scale_before=False, low=-1e30):
    scale = q.shape[-1] ** -0.5
    if scale_before:
        q, scale = q * scale, 1.0
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * jnp.asarray(scale, q.dtype)
    if cap is not None:
        scores = cap * jnp.tanh(scores / cap)
    if bias is not None:
        scores = scores + bias.astype(scores.dtype)
    if mask is not None:
        scores = jnp.where(mask, scores, jnp.asarray(low, scores.dtype))
    weights = materialized(jax.nn.softmax(scores, axis=-1))
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


UNFUSED = False


@jax.custom_vjp
def apart(weights):
    """Returns the same weights, and their gradient, by an op that attention cannot take in."""
    return weights + 0 * jnp.cumsum(weights, axis=2)


apart.defvjp(lambda weights: (apart(weights), None), lambda _, gradient: (apart(gradient),))


def materialized(weights):
    """Returns weights of which attention makes no op, if UNFUSED."""
    return apart(weights) if UNFUSED else weights


def positions(q, k):
    return jnp.arange(q.shape[1])[:, None], jnp.arange(k.shape[1])[None, :]


def causal(q, k, v, extra, **options):
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, mask=rows >= columns, **options)


def tril(q, k, v, extra):
    return softmax_attention(q, k, v, mask=jnp.tril(jnp.ones((q.shape[1], k.shape[1]), bool)), low=-jnp.inf)


def shared_key(q, k, v, extra):
    """Half of the depth has keys that all heads share, as DeepSeek's latent attention has."""
    rows, columns = positions(q, k)
    half = q.shape[-1] // 2
    scores = jnp.einsum("bqhd,bkhd->bhqk", q[..., :half], k[..., :half]) + jnp.einsum("bqhd,bkd->bhqk", q[..., half:], k[:, :, 0, half:])
    weights = jax.nn.softmax(jnp.where(rows >= columns, scores / 3, -1e30), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def shifted_windows(q, k, v, extra):
    """The mask of each window is added to scores that are reshaped for it, as in Swin."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 3
    mask = jnp.asarray(np.where(np.random.default_rng(1).random((2, q.shape[1], k.shape[1])) < 0.3, -100.0, 0.0), jnp.float32)
    scores = (scores.reshape(-1, 2, *scores.shape[1:]) + mask[None, :, None]).reshape(scores.shape)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def narrow_positions(q, k, v, extra):
    """Positions that wrap around, so that no band is hidden."""
    rows, columns = (x.astype(jnp.int8) for x in positions(q, k))
    return softmax_attention(q, k, v, mask=rows >= columns)


def causal_off_by_one(q, k, v, extra):
    """A softmax with an additional score of 0."""
    rows, columns = positions(q, k)
    scores = jnp.where(rows >= columns, jnp.einsum("bqhd,bkhd->bhqk", q, k) / 3, -1e9)
    top = jax.lax.stop_gradient(jnp.maximum(scores.max(-1, keepdims=True), 0))
    weights = jnp.exp(scores - top)
    return jnp.einsum("bhqk,bkhd->bqhd", weights / (weights.sum(-1, keepdims=True) + jnp.exp(-top)), v)


def selected_dropout(q, k, v, extra):
    rows, columns = positions(q, k)
    scores = jnp.where(rows >= columns, jnp.einsum("bqhd,bkhd->bhqk", q, k) / 3, jnp.einsum("bqhd,bkhd->bhqk", q, k) / 3 - 1e9)
    keep = jax.random.bernoulli(jax.random.key(3), 0.8, scores.shape)
    return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(keep, jax.nn.softmax(scores, axis=-1) / 0.8, 0), v)


def mask_of_numpy(q, k, v, extra):
    """A mask that the program holds as a constant."""
    return softmax_attention(q, k, v, mask=np.tril(np.ones((q.shape[1], k.shape[1]), bool)))


def added_mask(q, k, v, extra):
    """A mask that is added to the scores, as MaxText makes it."""
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, bias=jnp.where(rows >= columns, 0.0, -0.7 * float(jnp.finfo(jnp.float32).max)))


def float_mask(q, k, v, extra):
    """A mask of floats, as Flax makes it."""
    mask = nn.make_causal_mask(jnp.ones((q.shape[0], q.shape[1])))
    return softmax_attention(q, k, v, mask=mask > 0, low=jnp.finfo(jnp.float32).min)


def later(q, k, v, extra):
    """The queries are the last positions of the keys."""
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, mask=columns < rows + (k.shape[1] - q.shape[1] + 1))


def causal_and_padded(q, k, v, extra):
    """Rows of padding have no key; their result is the mean of all values."""
    rows, columns = positions(q, k)
    valid = columns >= extra["padding"][:, None, None, None]
    return softmax_attention(q, k, v, mask=(rows >= columns) & valid)


def paddings(random):
    return {"padding": np.array([0, 290], np.int32)}


def window(q, k, v, extra, size=5):
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, mask=(rows >= columns) & (rows - columns < size))


def window_and_padded(q, k, v, extra, size):
    """Rows of padding have no key, others only some of their window."""
    rows, columns = positions(q, k)
    valid = columns >= extra["padding"][:, None, None, None]
    return softmax_attention(q, k, v, mask=(rows >= columns) & (rows - columns < size) & valid)


def both_sides(q, k, v, extra):
    """Each query sees as many keys before it as after it."""
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, mask=abs(columns - rows) <= 40, low=-jnp.inf)


def later_window(q, k, v, extra):
    """The queries are the last positions of the keys, and see the last 50."""
    rows, columns = positions(q, k)
    rows = rows + (k.shape[1] - q.shape[1])
    return softmax_attention(q, k, v, mask=(columns <= rows) & (columns > rows - 50))


def window_without_keys(q, k, v, extra):
    """The last queries see no key, since there are more of them than keys."""
    return window(q, k, v, extra, size=40)


def alibi(q, k, v, extra):
    rows, columns = positions(q, k)
    slopes = 2.0 ** -jnp.arange(1, q.shape[2] + 1, dtype=jnp.float32)
    bias = slopes[:, None, None] * jnp.minimum(columns - rows, 0).astype(jnp.float32)
    return softmax_attention(q, k, v, bias=bias, mask=rows >= columns)


def grouped(q, k, v, extra):
    """The einsum in which groups of queries share keys and values."""
    batch, length, heads, depth = q.shape
    q = q.reshape(batch, length, k.shape[2], heads // k.shape[2], depth)
    scores = jnp.einsum("bqkgd,bskd->bkgqs", q, k) * depth**-0.5
    weights = jax.nn.softmax(scores, axis=-1)
    return jnp.einsum("bkgqs,bskd->bqkgd", weights, v).reshape(batch, length, heads, depth)


def grouped_in_heads(q, k, v, extra):
    """Gemma's: scores of groups, with a cap and a mask of heads in between."""
    (batch, length, heads, depth), (rows, columns) = q.shape, positions(q, k)
    q = q.reshape(batch, length, k.shape[2], heads // k.shape[2], depth)
    scores = jnp.einsum("btkgh,bskh->btkgs", q, k).reshape(batch, length, heads, -1) * depth**-0.5
    scores = jnp.where((rows >= columns)[None, :, None], 5 * jnp.tanh(scores / 5), -2e38)
    weights = jax.nn.softmax(scores, axis=-1).astype(q.dtype)
    weights = weights.reshape(batch, length, k.shape[2], heads // k.shape[2], -1)
    return jnp.einsum("btkgs,bskh->btkgh", weights, v).reshape(batch, length, heads, depth)


def alibi_of_groups(q, k, v, extra):
    """Scores of groups get a bias of heads, and back."""
    (batch, length, heads, depth), (rows, columns) = q.shape, positions(q, k)
    q = q.reshape(batch, length, k.shape[2], heads // k.shape[2], depth)
    scores = jnp.einsum("bqkgd,bskd->bkgqs", q, k)
    slopes = 2.0 ** -jnp.arange(1, heads + 1, dtype=scores.dtype)
    bias = slopes[:, None, None] * jnp.minimum(columns - rows, 0)
    grouped_shape = scores.shape
    scores = (scores.reshape(batch, heads, length, -1) * depth**-0.5 + bias).reshape(grouped_shape)
    return jnp.einsum("bkgqs,bskd->bqkgd", jax.nn.softmax(scores, axis=-1), v).reshape(batch, length, heads, depth)


def flat_heads(q, k, v, extra):
    """Products of batches and heads as one dimension, masks and softmax of two, as in ports of PyTorch code."""
    batch, length, heads, depth = q.shape
    flat = lambda x: jnp.moveaxis(x, 2, 1).reshape(batch * heads, x.shape[1], depth)
    scores = jnp.einsum("nqd,nkd->nqk", flat(q) * depth**-0.5, flat(k)).reshape(batch, heads, length, -1)
    scores = jnp.where(extra["mask"], scores, -1e30)
    weights = jax.nn.softmax(scores, axis=-1).reshape(batch * heads, length, -1)
    return jnp.moveaxis(jnp.einsum("nqk,nkd->nqd", weights, flat(v)).reshape(batch, heads, length, depth), 1, 2)


def repeated(q, k, v, extra):
    groups = q.shape[2] // k.shape[2]
    return causal(q, jnp.repeat(k, groups, axis=2), jnp.repeat(v, groups, axis=2), extra)


def one_kv_head(q, k, v, extra):
    scores = jnp.einsum("bqhd,bkd->bhqk", q, k[:, :, 0]) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bkd->bqhd", jax.nn.softmax(scores, axis=-1), v[:, :, 0])


def f32_softmax(q, k, v, extra):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * q.shape[-1] ** -0.5
    weights = jax.nn.softmax(scores, axis=-1).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def jax_nn(**options):
    return lambda q, k, v, extra: jax.nn.dot_product_attention(q, k, v, **options)


def divided_after(q, k, v, extra):
    """Computes exp, then the product, and divides at the end."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    e = jnp.exp(scores - jax.lax.stop_gradient(scores.max(-1, keepdims=True)))
    total = e.sum(-1)
    return jnp.einsum("bhqk,bkhd->bqhd", e, v) / jnp.moveaxis(total, 1, 2)[..., None]


def off_by_one(q, k, v, extra):
    """A softmax with one more score, 0, whose maximum has a gradient."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    largest = jnp.maximum(scores.max(-1, keepdims=True), 0.0)
    e = jnp.exp(scores - largest)
    return jnp.einsum("bhqk,bkhd->bqhd", e / (e.sum(-1, keepdims=True) + jnp.exp(-largest)), v)


def sink(q, k, v, extra):
    """Each row has one more score, which no key has."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    sinks = jnp.ones((*scores.shape[:-1], 1), scores.dtype)
    weights = jax.nn.softmax(jnp.concatenate([scores, sinks], axis=-1), axis=-1)[..., :-1]
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def learned_sinks(q, k, v, extra):
    rows, columns = positions(q, k)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(rows >= columns, scores, -1e30)
    sinks = jnp.broadcast_to(extra["bias"][:, None, None], (*scores.shape[:-1], 1)).astype(scores.dtype)
    weights = jax.nn.softmax(jnp.concatenate([sinks, scores], axis=-1), axis=-1)[..., 1:]
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def sinks_of_groups(q, k, v, extra):
    """gpt-oss: sinks of heads beside scores of groups, whose maximum is subtracted twice."""
    (batch, length, heads, depth), (rows, columns) = q.shape, positions(q, k)
    q = q.reshape(batch, length, k.shape[2], heads // k.shape[2], depth)
    scores = jnp.einsum("bqkgd,bskd->bkgqs", q, k).reshape(batch, heads, length, -1) * depth**-0.5
    scores = scores + jnp.where(rows >= columns, 0.0, -1e9)
    sinks = jnp.broadcast_to(extra["bias"].reshape(1, -1, 1, 1), (*scores.shape[:-1], 1))
    scores = jnp.concatenate([scores, sinks], axis=-1)
    weights = jax.nn.softmax(scores - scores.max(-1, keepdims=True), axis=-1)[..., :-1]
    weights = weights.reshape(batch, k.shape[2], heads // k.shape[2], length, -1)
    return jnp.einsum("bkgqs,bskd->bqkgd", weights, v).reshape(batch, length, heads, depth)


def talking_heads(q, k, v, extra):
    """A dot mixes the scores of heads."""
    scores = jnp.einsum("bqhd,bkhd,hg->bgqk", q, k, extra["bias"])
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def lengths(random):
    return {"lengths": random.integers(1, KEYS, BATCH).astype(np.int32)}


def padded(q, k, v, extra):
    mask = jnp.arange(k.shape[1])[None, :] < extra["lengths"][:, None]
    return softmax_attention(q, k, v, mask=mask[:, None, None, :])


def segments(random):
    return {"segments": np.sort(random.integers(0, 3, (BATCH, KEYS)), axis=1).astype(np.int32)}


def long_segments(random):
    return {"segments": np.sort(random.integers(0, 3, (BATCH, 300)), axis=1).astype(np.int32)}


def packed(q, k, v, extra):
    ids = extra["segments"]
    rows, columns = positions(q, k)
    mask = (ids[:, :, None] == ids[:, None, :]) & (rows >= columns)
    return softmax_attention(q, k, v, mask=mask[:, None])


def packed_without_padding(q, k, v, extra):
    """Segment 0 is padding, whose queries see no key."""
    ids = extra["segments"]
    rows, columns = positions(q, k)
    mask = (ids[:, :, None] == ids[:, None, :]) & (rows >= columns) & (ids[:, None, :] > 0)
    return softmax_attention(q, k, v, mask=mask[:, None])


def masks(random):
    mask = random.random((BATCH, 1, QUERIES, KEYS)) < 0.5
    mask[:, :, 3] = False  # a row without any key: the mean of all values
    mask[:, :, 5] = False
    mask[:, :, 5, 7] = True  # a row with one key
    return {"mask": mask}


def given_mask(q, k, v, extra):
    return softmax_attention(q, k, v, mask=extra["mask"])


def zero_rows(q, k, v, extra):
    """Rows without any key give zeros, as some libraries define it."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    weights = jax.nn.softmax(jnp.where(extra["mask"], scores, -1e30), axis=-1)
    return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(extra["mask"], weights, 0.0), v)


def masked_softmax(q, k, v, extra):
    """The sum of a row without any key is zero, and its weights are chosen to be."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1, where=extra["mask"]), v)


def normalized(q, k, v, extra):
    """A norm along each head of the output, as differential attention has it: its sums are of no softmax."""
    out = causal(q, k, v, extra)
    return out * jax.lax.rsqrt(jnp.mean(jnp.square(out), axis=-1, keepdims=True) + 1e-2)


def biases(random):
    return {"bias": random.standard_normal((HEADS, QUERIES, KEYS)).astype(np.float32)}


def given_bias(q, k, v, extra):
    return softmax_attention(q, k, v, bias=extra["bias"])


def learned(shape, size=0.5):
    return lambda random: {"bias": (size * random.standard_normal(shape)).astype(np.float32)}


def causal_with_bias(q, k, v, extra):
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, bias=extra["bias"], mask=rows >= columns)


def relative(q, k, v, extra):
    """T5's bias: an entry of a table for each distance and head."""
    rows, columns = positions(q, k)
    distances = jnp.clip(columns - rows + 8, 0, 15)
    return softmax_attention(q, k, v, bias=jnp.moveaxis(extra["bias"][distances], -1, 0)[None])


def learned_slopes(q, k, v, extra):
    rows, columns = positions(q, k)
    bias = extra["bias"][:, None, None] * jnp.minimum(columns - rows, 0).astype(jnp.float32)
    return softmax_attention(q, k, v, bias=bias, mask=rows >= columns)


def symmetric(q, k, v, extra):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores + jnp.swapaxes(scores, 2, 3), axis=-1), v)


def learned_temperature(q, k, v, extra):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * jnp.exp(extra["bias"])
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def temperature_of_queries(q, k, v, extra):
    """The gradient of a temperature is a sum over a row of scores."""
    temperatures = jnp.moveaxis(jax.nn.softplus(q.sum(-1)), 1, 2)[..., None]
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * temperatures
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def with_entropy(q, k, v, extra):
    """Adds a function of each row's entropy."""
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5, axis=-1)
    entropy = -(weights * jnp.log(weights + 1e-9)).sum(-1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v) + 0.1 * jnp.moveaxis(entropy, 1, 2)[..., None]


def keys_for_dropout(random):
    return {"key": np.array(jax.random.key_data(jax.random.key(7)))}


def dropout(q, k, v, extra):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    weights = jax.nn.softmax(scores, axis=-1)
    keep = jax.random.bernoulli(jax.random.wrap_key_data(extra["key"]), 0.8, weights.shape)
    return jnp.einsum("bhqk,bkhd->bqhd", jnp.where(keep, weights / 0.8, 0.0), v)


def in_chunks(attend, size=6, remat=False):
    """Attends to all keys with a few queries at a time, as people write it who want to save memory."""

    def attend_to_chunks(q, k, v, extra):
        chunks = jnp.moveaxis(q.reshape(q.shape[0], -1, size, *q.shape[2:]), 1, 0)
        one = lambda i_and_chunk: attend(i_and_chunk[1], k, v, extra, i_and_chunk[0] * size)
        out = jax.lax.map(jax.checkpoint(one) if remat else one, (jnp.arange(chunks.shape[0]), chunks))
        return jnp.moveaxis(out, 0, 1).reshape(q.shape)

    return attend_to_chunks


def full_from(q, k, v, extra, first):
    return softmax_attention(q, k, v)


def causal_from(q, k, v, extra, first):
    """The queries begin at the position `first`."""
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, mask=first + rows >= columns)


def updated_in_chunks(q, k, v, extra):
    """Chunks are sliced from the queries and written into the result."""

    def body(out, begin):
        chunk = softmax_attention(jax.lax.dynamic_slice_in_dim(q, begin, 6, axis=1), k, v)
        return jax.lax.dynamic_update_slice_in_dim(out, chunk, begin, axis=1), None

    return jax.lax.scan(body, jnp.zeros_like(q), jnp.arange(0, q.shape[1], 6))[0]


def one_by_one(axis):
    """Attends in a loop over examples or heads."""

    def attend(q, k, v, extra):
        first = lambda y: jnp.moveaxis(y, axis, 0)
        one = lambda parts: jnp.squeeze(softmax_attention(*(jnp.expand_dims(y, axis) for y in parts)), axis)
        return jnp.moveaxis(jax.lax.map(one, (first(q), first(k), first(v))), 0, axis)

    return attend


def of_one_sequence(q, k, v, mask):
    """Attends with dots of two matrices: [length, depth] each."""
    weights = materialized(jax.nn.softmax(jnp.where(mask, q @ k.T * q.shape[-1] ** -0.5, -1e30), axis=-1))
    return weights @ v


def matrices(q, k, v, extra):
    """Attends with dots without batching dimensions, for each example and head."""
    rows, columns = positions(q, k)
    heads = lambda b: jnp.stack([of_one_sequence(q[b, :, h], k[b, :, h], v[b, :, h], rows >= columns) for h in range(q.shape[2])], axis=1)
    return jnp.stack([heads(b) for b in range(q.shape[0])])


def matrices_one_by_one(q, k, v, extra):
    rows, columns = positions(q, k)
    merge = lambda y: jnp.moveaxis(y, 2, 1).reshape(-1, y.shape[1], y.shape[3])
    out = jax.lax.map(lambda parts: of_one_sequence(*parts, rows >= columns), (merge(q), merge(k), merge(v)))
    return jnp.moveaxis(out.reshape(q.shape[0], q.shape[2], *out.shape[1:]), 1, 2)


def captured(q, k, v, extra):
    """Two branches read the weights."""
    weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5, axis=-1)
    read = lambda factor: lambda: factor * jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return jax.lax.cond(extra["on"][0] > 0, read(1.0), read(0.5))


def switched_on(random):
    return {"on": np.array([1, 0], np.int32)}


def if_on(q, k, v, extra):
    return jax.lax.cond(extra["on"][0] > 0, lambda q, k, v: causal(q, k, v, extra), lambda q, k, v: v, q, k, v)


def local_or_global(q, k, v, extra):
    return jax.lax.switch(extra["on"][0] + 1, [lambda q, k, v: v] + [lambda q, k, v, f=f: f(q, k, v, extra) for f in (causal, window)], q, k, v)


def steep(q, k, v, extra):
    return causal(q * 300, k * 300, v, extra)


def ties(q, k, v, extra):
    """Each key occurs twice, so that the largest score of a row is not unique."""
    twice = lambda x: jnp.concatenate([x[:, : x.shape[1] // 2]] * 2, axis=1)
    return softmax_attention(q, twice(k), twice(v))


def subnormal(q, k, v, extra):
    """The weights of every other key are subnormal or zero."""
    _, columns = positions(q, k)
    return softmax_attention(q, k, v, bias=jnp.where(columns % 2 == 0, 0.0, -95.0))


def flax_linen(q, k, v, extra):
    mask = nn.make_causal_mask(jnp.ones(q.shape[:2]))
    return nn.dot_product_attention(q, k, v, mask=mask)


def forgetting(q, k, v, extra):
    """A bias that one vector makes for queries and keys (arXiv 2503.02130): their gradients meet in that of the vector."""
    decay = jnp.cumsum(jax.nn.log_sigmoid(extra["bias"]), axis=-1)
    rows, columns = positions(q, k)
    return softmax_attention(q, k, v, bias=decay[..., :, None] - decay[..., None, :], mask=rows >= columns)


@jax.custom_vjp
def saved_sums(q, k, v):
    return saved_sums_forward(q, k, v)[0]


def saved_sums_scores(q, k):
    rows, columns = positions(q, k)
    return jnp.where(rows >= columns, jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5, -1e30)


def saved_sums_forward(q, k, v):
    scores = saved_sums_scores(q, k)
    log_sums = jax.nn.logsumexp(scores, axis=-1)
    out = jnp.einsum("bhqk,bkhd->bqhd", jnp.exp(scores - log_sums[..., None]), v)
    return out, (q, k, v, out, log_sums)


def saved_sums_backward(saved, gradient):
    q, k, v, out, log_sums = saved
    weights = jnp.exp(saved_sums_scores(q, k) - log_sums[..., None])
    delta = jnp.einsum("bqhd,bqhd->bhq", gradient, out)
    gradients = weights * (jnp.einsum("bqhd,bkhd->bhqk", gradient, v) - delta[..., None]) * q.shape[-1] ** -0.5
    return (jnp.einsum("bhqk,bkhd->bqhd", gradients, k), jnp.einsum("bhqk,bqhd->bkhd", gradients, q), jnp.einsum("bhqk,bqhd->bkhd", weights, gradient))  # fmt: skip


saved_sums.defvjp(saved_sums_forward, saved_sums_backward)


def with_saved_sums(q, k, v, extra):
    """A flash attention with a backward pass of its own, which reads the sums of rows that the forward pass saves."""
    return saved_sums(q, k, v)


def no_softmax(q, k, v, extra):
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.relu(jnp.einsum("bqhd,bkhd->bhqk", q, k)) / 24, v)


def returned(q, k, v, extra):
    """Weights that another op reads must be materialized."""
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    weights = jax.nn.softmax(scores, axis=-1)
    out = jnp.einsum("bhqk,bkhd->bqhd", weights, v)
    return out + jax.lax.stop_gradient(jnp.cumsum(weights, axis=2).sum())


CASES = {
    "causal": Case(causal),
    "full": Case(lambda q, k, v, extra: softmax_attention(q, k, v)),
    "window": Case(window),
    "scaled before": Case(lambda *a: causal(*a, scale_before=True)),
    "soft cap": Case(lambda *a: causal(*a, cap=5.0)),
    "alibi": Case(alibi),
    "padded": Case(padded, extra=lengths),
    "packed": Case(packed, extra=segments),
    "mask": Case(given_mask, extra=masks),
    "zero rows": Case(zero_rows, extra=masks),
    "masked softmax": Case(masked_softmax, extra=masks),
    "normalized heads": Case(normalized),
    "bias": Case(given_bias, extra=biases),
    # A bias with a gradient: its sum over the batch is an op of its own. Sums over queries or keys are not.
    "learned bias": Case(given_bias, parameters=learned((HEADS, QUERIES, KEYS)), backward=2),
    "learned bias of all heads": Case(given_bias, parameters=learned((QUERIES, KEYS)), backward=2),
    "learned bias of a batch": Case(given_bias, parameters=learned((BATCH, 1, QUERIES, KEYS)), backward=2),
    "learned bias of bf16": Case(given_bias, parameters=learned((HEADS, QUERIES, KEYS)), backward=2, dtype="bfloat16"),
    "saved sums": Case(with_saved_sums),
    "saved sums in a scan": Case(with_saved_sums, layers="scan"),
    "saved sums in a scan with remat": Case(with_saved_sums, layers="remat", forward=2),
    "saved sums unrolled": Case(with_saved_sums, layers="unrolled", forward=2, backward=2),
    "forgetting": Case(forgetting, parameters=learned((HEADS, QUERIES)), backward=2),
    "forgetting in a scan with remat": Case(forgetting, parameters=learned((HEADS, QUERIES)), backward=2, layers="remat"),
    "learned bias of layers": Case(causal_with_bias, parameters=learned((HEADS, QUERIES, KEYS)), backward=2, layers="remat"),
    "long learned bias": Case(causal_with_bias, parameters=learned((HEADS, 300, 300)), backward=2, queries=300, keys=300, batch=5, most_keys=(300,)),
    "relative bias": Case(relative, parameters=learned((16, HEADS)), backward=2),
    "learned bias of keys": Case(given_bias, parameters=learned((KEYS,))),
    "learned bias of queries": Case(given_bias, parameters=learned((BATCH, 1, QUERIES, 1))),
    "learned slopes": Case(learned_slopes, parameters=learned((HEADS,)), backward=2),
    "learned temperature": Case(learned_temperature, parameters=learned((), 0.1)),
    # Rows of scores that no dot needs.
    "temperature of queries": Case(temperature_of_queries),
    "entropy": Case(with_entropy),
    # In f64 JAX draws other random numbers.
    "dropout": Case(dropout, extra=keys_for_dropout, wide=False),
    "grouped": Case(grouped, kv_heads=1),
    "repeated": Case(repeated, kv_heads=1),
    # Reshapes of scores that merge or split heads.
    "grouped in heads": Case(grouped_in_heads, kv_heads=2, heads=4),
    "grouped in heads of bf16": Case(grouped_in_heads, kv_heads=2, heads=4, dtype="bfloat16", layers="remat"),
    "alibi of groups": Case(alibi_of_groups, kv_heads=2, heads=4),
    "flat heads": Case(flat_heads, extra=masks),
    "one kv head": Case(one_kv_head, kv_heads=1),
    "cross": Case(lambda q, k, v, extra: softmax_attention(q, k, v), keys=40),
    "divided after": Case(divided_after),
    "off by one": Case(off_by_one),
    "sink": Case(sink),
    "learned sinks": Case(learned_sinks, parameters=learned((HEADS,))),
    "learned sinks of bf16": Case(learned_sinks, parameters=learned((HEADS,)), dtype="bfloat16"),
    "learned sinks in a scan": Case(learned_sinks, parameters=learned((HEADS,)), layers="scan"),
    "sinks of groups": Case(sinks_of_groups, kv_heads=2, heads=4, parameters=learned((4,))),
    "jax.nn": Case(jax_nn(is_causal=True)),
    "jax.nn grouped": Case(jax_nn(is_causal=True), kv_heads=1),
    "jax.nn window": Case(jax_nn(local_window_size=(4, 0))),
    "flax": Case(flax_linen),
    "bf16": Case(causal, dtype="bfloat16"),
    "f32 softmax of bf16": Case(f32_softmax, dtype="bfloat16"),
    "scan": Case(causal, layers="scan"),
    "scan with remat": Case(causal, layers="remat"),
    "unrolled": Case(causal, layers="unrolled", forward=2, backward=2),
    "unrolled that saves dots": Case(causal, layers="unrolled", saves=jax.checkpoint_policies.dots_saveable, forward=2, backward=2),
    "unrolled that saves everything": Case(causal, layers="unrolled", saves=jax.checkpoint_policies.everything_saveable, forward=2, backward=2),
    "scan that saves dots": Case(causal, layers="scan", saves=jax.checkpoint_policies.dots_saveable),
    "scan that saves everything": Case(causal, layers="scan", saves=jax.checkpoint_policies.everything_saveable),
    "nested scans that save dots": Case(causal, layers="nested", saves=jax.checkpoint_policies.dots_saveable),
    # Scores that loops and branches would save for the backward pass.
    "scan of pairs": Case(causal, layers="pairs", forward=2, backward=2),
    "scan of pairs of bf16": Case(f32_softmax, layers="pairs", forward=2, backward=2, dtype="bfloat16"),
    # JAX makes no loop of a single iteration.
    "scan of a pair and one": Case(causal, layers="left over", forward=3, backward=3),
    "scan with learned bias": Case(causal_with_bias, parameters=learned((HEADS, QUERIES, KEYS)), backward=2, layers="scan"),
    "scan with relative bias": Case(relative, parameters=learned((16, HEADS)), backward=2, layers="scan"),
    "chunks": Case(in_chunks(full_from)),
    "causal chunks": Case(in_chunks(causal_from)),
    "chunks with remat": Case(in_chunks(causal_from, remat=True)),
    "updated in chunks": Case(updated_in_chunks),
    "chunks in a scan": Case(in_chunks(causal_from), layers="scan"),
    "chunks in a scan with remat": Case(in_chunks(causal_from), layers="remat", forward=2),
    "examples one by one": Case(one_by_one(0)),
    "heads one by one": Case(one_by_one(2)),
    "matrices": Case(matrices, forward=BATCH * HEADS, backward=BATCH * HEADS),
    "matrices one by one": Case(matrices_one_by_one),
    "matrices in a scan with remat": Case(matrices, batch=1, layers="remat", forward=HEADS, backward=HEADS),
    "one of two branches": Case(if_on, extra=switched_on),
    "two of three branches": Case(local_or_global, extra=switched_on, forward=2, backward=2),
    "weights in two branches": Case(captured, extra=switched_on, forward=0, backward=1, stored=1),
    "layer drop": Case(causal, extra=switched_on, layers="dropped"),
    "layer drop of chunks": Case(in_chunks(causal_from), extra=switched_on, layers="dropped"),
    "one row": Case(causal, batch=1),
    # A row of scores for each head, and scores without separate queries and keys.
    "one query": Case(later, queries=1, forward=0, backward=0, stored=1),
    "symmetric": Case(symmetric, forward=0, backward=0, stored=1),
    "heads of one": Case(causal, width=HEADS),
    # Sums over several blocks of queries, of which the last is smaller.
    "long": Case(causal, queries=200, keys=200, most_keys=(200,)),
    "long grouped": Case(grouped, kv_heads=1, queries=200, keys=72),
    # Keys that no query of a tile attends to are skipped, if each row has other keys.
    "long causal": Case(causal, queries=600, keys=600, most_keys=(600,)),
    "long tril": Case(tril, queries=320, keys=320, most_keys=(320,)),
    "shared key": Case(shared_key),
    "shifted windows": Case(shifted_windows, batch=4),
    "narrow positions": Case(narrow_positions, queries=200, keys=200),
    "long off by one": Case(causal_off_by_one, queries=300, keys=300, most_keys=(300,)),
    "long selected dropout": Case(selected_dropout, wide=False, queries=300, keys=300, most_keys=(300,)),
    "long mask of NumPy": Case(mask_of_numpy, queries=300, keys=300, most_keys=(300,)),
    "long added mask": Case(added_mask, queries=300, keys=300, most_keys=(300,)),
    "long float mask": Case(float_mask, queries=300, keys=300, most_keys=(300,)),
    "long soft cap": Case(lambda *a: causal(*a, cap=5.0), queries=300, keys=300, most_keys=(300,)),
    "long bf16": Case(causal, queries=600, keys=600, dtype="bfloat16", most_keys=(600,)),
    "long jax.nn": Case(jax_nn(is_causal=True), kv_heads=1, queries=300, keys=300, most_keys=(300,)),
    "long scan with remat": Case(causal, queries=300, keys=300, layers="remat", most_keys=(300,)),
    "later queries": Case(later, queries=200, keys=400, most_keys=(400,)),
    # With a window, tiles begin with the first key that they see.
    "long window": Case(lambda *a: window(*a, size=70), queries=300, keys=300, most_keys=(160,)),
    "long window of both sides": Case(both_sides, queries=300, keys=300, most_keys=(160,)),
    "long window bf16": Case(lambda *a: window(*a, size=130), queries=600, keys=600, dtype="bfloat16", most_keys=(192, 224)),
    "long window grouped": Case(jax_nn(local_window_size=(60, 0)), kv_heads=1, queries=300, keys=300, most_keys=(128,)),
    "long window in a scan": Case(lambda *a: window(*a, size=70), queries=300, keys=300, layers="remat", most_keys=(160,)),
    "long window padded": Case(lambda *a: window_and_padded(*a, size=70), queries=300, keys=300, extra=paddings, most_keys=(160,)),
    "later window": Case(later_window, queries=200, keys=400, most_keys=(96, 128)),
    "window without keys": Case(window_without_keys, queries=300, keys=200, most_keys=(200,)),
    "long packed": Case(packed, queries=300, keys=300, extra=long_segments, most_keys=(300,)),
    "long packed without padding": Case(packed_without_padding, queries=300, keys=300, extra=long_segments, most_keys=(300,)),
    "long causal and padded": Case(causal_and_padded, queries=320, keys=320, extra=paddings, most_keys=(320,)),
    "long alibi": Case(alibi, queries=300, keys=300, most_keys=(300,)),
    "steep": Case(steep),
    "ties": Case(ties),
    "subnormal": Case(subnormal),
    "no softmax": Case(no_softmax, forward=0, backward=0),
    "returned": Case(returned, forward=0, backward=1, stored=1),
    "talking heads": Case(talking_heads, parameters=learned((HEADS, HEADS)), forward=0, backward=0, stored=1),
}


def make_loss(case):
    def block(params, x, memory, extra):
        split = lambda y, heads: y.reshape(y.shape[0], y.shape[1], heads, -1)
        q = split(x @ params["wq"].astype(x.dtype), case.heads)
        k = split(memory @ params["wk"].astype(x.dtype), case.kv_heads)
        v = split(memory @ params["wv"].astype(x.dtype), case.kv_heads)
        out = case.attend(q, k, v, extra | params).reshape(x.shape)
        return x + out @ params["wo"].astype(x.dtype)

    def loss(params, x, memory, extra):
        compute = x.dtype if case.dtype == "float32" else jnp.bfloat16
        x, memory = x.astype(compute), memory.astype(compute)
        checkpointed = lambda layer: jax.checkpoint(layer, policy=case.saves) if case.saves or case.layers == "remat" else layer
        if case.layers == "dropped":
            body = lambda y, layer: (jax.lax.cond(layer[1] > 0, lambda y: block(layer[0], y, memory, extra), lambda y: y, y), None)
            x, _ = jax.lax.scan(body, x, (params, extra["on"]))
        elif case.layers == "nested":
            body = lambda y, layer: (block(layer, y, memory, extra), None)
            outer = checkpointed(lambda y, layers: jax.lax.scan(body, y, layers))
            x, _ = jax.lax.scan(outer, x, jax.tree.map(lambda a: a.reshape(2, 2, *a.shape[1:]), params))
        elif case.layers in STACKS:
            body = lambda y, layer: (block(layer, y, memory, extra), None)
            x, _ = jax.lax.scan(checkpointed(body), x, params, unroll=UNROLL.get(case.layers, 1))
        elif case.layers == "unrolled":
            for i in range(2):
                x = checkpointed(block)({key: params[f"{key}{i}"] for key in ("wq", "wk", "wv", "wo")}, x, memory, extra)
        else:
            x = block(params, x, memory, extra)
        return jnp.mean(jnp.sin(x.astype(jax.tree.leaves(params)[0].dtype) * 3))

    return loss


def make_inputs(case, random):
    width, depth = case.width, case.width // case.heads
    stack = (STACKS[case.layers],) if case.layers in STACKS else ()
    weight = lambda *shape: (random.standard_normal(stack + shape) * 0.5).astype(np.float32)
    params = {"wq": weight(width, width), "wk": weight(width, case.kv_heads * depth), "wv": weight(width, case.kv_heads * depth),
              "wo": weight(width, width)}  # fmt: skip
    params |= {key: np.broadcast_to(value, stack + value.shape) for key, value in case.parameters(random).items()}
    if case.layers == "unrolled":
        params = {f"{key}{i}": value[::-1] * (1 - i / 2) for key, value in params.items() for i in range(2)}
    x = random.standard_normal((case.batch, case.queries, width)).astype(np.float32)
    memory = random.standard_normal((case.batch, case.keys, width)).astype(np.float32)
    return params, x, memory, case.extra(random)


def widen(tree):
    return jax.tree.map(lambda a: np.asarray(a, np.float64) if np.issubdtype(a.dtype, np.floating) else a, tree)


def distance(a, b):
    """Returns the norm of the difference of two trees."""
    return float(np.sqrt(sum(np.sum((np.asarray(a[k], np.float64) - np.asarray(b[k], np.float64)) ** 2) for k in a)))


def norm(tree):
    return float(np.sqrt(sum(np.sum(np.asarray(a, np.float64) ** 2) for a in tree.values())))


def quantize(fp8_opt, folder):
    """Writes step.mlir after the fp8 stage to 2.mlir, and its verdicts. Returns its numbers of ops of attention, forward and backward."""
    step, quantized, verdicts = (folder / name for name in ("step.mlir", "2.mlir", "verdicts.json"))
    t.run([fp8_opt, "--fp8-import", f"--fp8-quantize=recipe=none report={verdicts}", step, "-o", quantized])
    text = quantized.read_text()
    backward = len(re.findall(r"fp8\.attention_backward", text))
    return len(re.findall(r"fp8\.attention", text)) - backward, backward


def count_stored(folder):
    """Returns how many softmaxes store their scores; each of their rows names the op that needs them."""
    softmaxes = json.loads((folder / "verdicts.json").read_text())["softmaxes"]
    stored = [row for row in softmaxes if row["scores"] == "stored"]
    whys = "there is a single query", "there is a single key", "what is normalized are neither all queries nor all keys"
    assert all("obstacle" in row or row["reason"] in whys for row in stored), f"expected an obstacle or a reason but got {stored}"
    return len(stored)


def most_keys(fp8_opt, folder):
    """Returns the numbers of keys in the plans of the step's kernels."""
    text = t.run([fp8_opt, "--fp8-structure", "--fp8-kernels", "--fp8-target=cpu=x86-64-v3", "--fp8-plan-tiles", folder / "2.mlir"]).stdout
    return [int(keys) for keys in re.findall(r"cpu_plan<tile = [^>]*, keys = ([0-9]+)>", text)]


def write_inputs(folder, params, x, memory, extra):
    """Writes the inputs of a step; returns the options of fp8-run that name its batch."""
    t.save_tree(folder / "init.safetensors", params=params)
    batch = {f"extra['{key}']": value for key, value in extra.items()} | {"x": x, "memory": memory}
    save_file({key: np.ascontiguousarray(value[None]) for key, value in batch.items()}, folder / "batch.safetensors")
    return [part for key in batch for part in ("--batch", f"{key}={folder / 'batch.safetensors'}:{key}")]


def gradient_of(fp8_run, folder, params, feeds, *options, **kwargs):
    """Runs one step; returns the gradient, of which its update consists."""
    t.run([fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", *feeds, "--recipe", "none", "--steps", 1,
           "--out", folder / "out", "--overwrite", *options], **kwargs)  # fmt: skip
    after = t.load_tensors(folder / "out" / "checkpoint-1.safetensors")
    return {key: (np.float64(params[key]) - after[f"params['{key}']"]) / RATE for key in params}


# LLVM's optimizations change no bit. It is checked for these, which have kernels of each kind.
OPTIMIZED = ("causal", "grouped", "learned bias", "dropout", "bf16", "long", "long grouped", "long causal", "long scan with remat")


def check(name, fp8_opt, fp8_run, folder):
    case, random = CASES[name], np.random.default_rng(len(name))
    folder = folder / name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    loss = make_loss(case)

    def step(params, x, memory, extra):
        value, gradients = jax.value_and_grad(loss)(params, x, memory, extra)
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value

    params, x, memory, extra = make_inputs(case, random)
    expected = jax.jit(jax.grad(loss))(params, x, memory, extra)
    with jax.enable_x64(case.wide):
        wide = make_loss(dataclasses.replace(case, dtype="float32"))
        inputs = (params, x, memory, extra)
        exact = jax.tree.map(np.asarray, jax.jit(jax.grad(wide))(*(widen(inputs) if case.wide else inputs)))
    (folder / "step.mlir").write_text(jax.jit(step).lower(params, x, memory, extra).as_text(debug_info=True))
    assert (found := quantize(fp8_opt, folder)) == (case.forward, case.backward), f"expected {(case.forward, case.backward)} ops of attention but got {found}"
    assert (stored := count_stored(folder)) == case.stored, f"expected {case.stored} softmaxes with stored scores but got {stored}"
    keys = most_keys(fp8_opt, folder)
    assert set(keys) == set(case.most_keys), f"expected keys {case.most_keys} but got {keys}"
    feeds = write_inputs(folder, params, x, memory, extra)
    found = gradient_of(fp8_run, folder, params, feeds, "--threads", 3, "--no-optimize")
    single = gradient_of(fp8_run, folder, params, feeds, "--threads", 1, *(() if name in OPTIMIZED else ("--no-optimize",)))
    assert all(np.array_equal(single[key], found[key], equal_nan=True) for key in params), "expected bits that depend neither on threads nor on LLVM"
    ours, theirs, size = distance(found, exact), distance(expected, exact), norm(exact)
    print(f"  {name}: {ours / size:.2e} of the gradient beside {theirs / size:.2e} of JAX")
    limit = max(2.5 * theirs, (1e-6 if case.wide else 1e-5) * size)
    assert ours <= limit, f"expected an error of at most {limit / size:.3g} but got {ours / size:.3g}"


def check_differences(name, fp8_opt, fp8_run, folder):
    """Compares the gradient in f64 with finite differences of the step's loss."""
    case, random = CASES[name], np.random.default_rng(len(name))
    folder = folder / f"differences_{name.replace(' ', '_')}"
    folder.mkdir(parents=True, exist_ok=True)
    params, x, memory, extra = widen(make_inputs(case, random))
    along = {key: random.standard_normal(value.shape) for key, value in params.items()}
    with jax.enable_x64(True):
        value_of = jax.value_and_grad(make_loss(case))
        step = lambda params, x, memory: (lambda value, gradients: (jax.tree.map(lambda p, g: p - g, params, gradients), value))(*value_of(params, x, memory, extra))
        (folder / "step.mlir").write_text(jax.jit(step).lower(params, x, memory).as_text(debug_info=True))
    assert (found := quantize(fp8_opt, folder)) == (case.forward, case.backward), f"expected {(case.forward, case.backward)} ops of attention but got {found}"

    def run(distance):
        """Returns the loss at a distance along `along`, and its slope from the gradient."""
        moved = {key: value + distance * along[key] for key, value in params.items()}
        t.save_tree(folder / "in.safetensors", params=moved, x=x, memory=memory)
        t.run([fp8_run, folder / "step.mlir", "--entry", "main", "--inputs", folder / "in.safetensors", "--outputs", folder / "out.safetensors", "--recipe", "none"])
        out = t.load_tensors(folder / "out.safetensors")
        return out["result[1]"], sum(np.sum((moved[key] - out[f"result[0]['{key}']"]) * along[key]) for key in params)

    # Fourth order: the truncation error is smaller than the rounding of the loss.
    h = 1e-5
    losses = {distance: run(distance * h)[0] for distance in (-2, -1, 1, 2)}
    difference = (8 * (losses[1] - losses[-1]) - (losses[2] - losses[-2])) / (12 * h)
    slope = run(0)[1]
    print(f"  differences of {name}: {difference:.12g} beside {slope:.12g}")
    assert abs(difference - slope) <= 1e-7 * abs(slope), f"expected a slope of {difference} but got {slope}"


# Random and adversarial scores.
UNFUSED_CASES = ("causal", "soft cap", "steep", "ties", "subnormal", "padded", "long causal")
SAMPLES, LARGEST_RATIO = 4, 1.2


def check_unfused(name, fp8_opt, fp8_run, folder):
    """Checks that the error of the op, over several inputs, is at most LARGEST_RATIO times that of the same step with an
    op between its softmax and the values, which is computed op by op. Both are compared with JAX in f64."""
    global UNFUSED
    case, errors = CASES[name], []
    for fused in (True, False):
        UNFUSED, squares = not fused, 0.0
        place = folder / f"{'fused' if fused else 'unfused'}_{name.replace(' ', '_')}"
        place.mkdir(parents=True, exist_ok=True)
        loss = make_loss(case)
        step = lambda params, x, memory, extra: (lambda value, gradients: (jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value))(*jax.value_and_grad(loss)(params, x, memory, extra))
        for sample in range(SAMPLES):
            params, x, memory, extra = make_inputs(case, np.random.default_rng(sample))
            if sample == 0:
                (place / "step.mlir").write_text(jax.jit(step).lower(params, x, memory, extra).as_text(debug_info=True))
                expected = (case.forward, case.backward) if fused else (0, 0)
                assert (found := quantize(fp8_opt, place)) == expected, f"expected {expected} ops of attention but got {found}"
            with jax.enable_x64(True):
                exact = jax.tree.map(np.asarray, jax.jit(jax.grad(loss))(*widen((params, x, memory, extra))))
            found = gradient_of(fp8_run, place, params, write_inputs(place, params, x, memory, extra), "--no-optimize")
            squares += (distance(found, exact) / norm(exact)) ** 2 / SAMPLES
        errors.append(squares**0.5)
    UNFUSED = False
    print(f"  {name}: {errors[0]:.2e} of the gradient beside {errors[1]:.2e} without the op")
    assert errors[0] <= LARGEST_RATIO * errors[1], f"expected an error of at most {LARGEST_RATIO} times {errors[1]:.3g} but got {errors[0]:.3g}"


if __name__ == "__main__":
    fp8_opt, fp8_run, folder, names = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
    cases = {name: (lambda fixture, name=name: check(name, *fixture)) for name in CASES}
    cases |= {f"differences of {name}": (lambda fixture, name=name: check_differences(name, *fixture)) for name in ("causal", "soft cap", "grouped", "ties", "long", "learned bias", "learned slopes")}
    if names == ["--unfused"]:
        cases, names = {name: (lambda fixture, name=name: check_unfused(name, *fixture)) for name in UNFUSED_CASES}, []
    t.run_cases(cases, names, (fp8_opt, fp8_run, folder))
