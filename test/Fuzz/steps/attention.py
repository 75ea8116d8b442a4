"""Attention: multi-head, grouped, with one key-value head, latent; rotary or learned positions."""

import jax
import jax.numpy as jnp

from .layers import WIDTH, linear, linear_params

HEADS, LATENT = 4, 8
SIZE = WIDTH // HEADS


def groups(c):
    return {"gqa": 2, "mqa": 1}.get(c.attention, HEADS)


def params(c, random):
    p = {"q": linear_params(c, random, WIDTH, WIDTH), "o": linear_params(c, random, WIDTH, WIDTH)}
    if c.attention == "mla":
        p["kv_down"] = linear_params(c, random, WIDTH, LATENT)
        p["k"], p["v"] = (linear_params(c, random, LATENT, WIDTH) for _ in range(2))
    else:
        p["kv"] = linear_params(c, random, WIDTH, 2 * groups(c) * SIZE)
    return p


def rotate(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 100.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None].astype(x.dtype), jnp.sin(angle)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def attend(c, p, x, memory=None, causal=True):
    """Attends with queries of x, and keys and values of memory, by default x itself."""
    memory = x if memory is None else memory
    heads = lambda h: h.reshape(*h.shape[:2], -1, SIZE)
    q = heads(linear(c, p["q"], x))
    if c.attention == "mla":
        latent = linear(c, p["kv_down"], memory)
        k, v = heads(linear(c, p["k"], latent)), heads(linear(c, p["v"], latent))
    else:
        k, v = jnp.split(heads(linear(c, p["kv"], memory)), 2, 2)
    if c.position == "rope":
        q, k = rotate(q), rotate(k)
    k, v = (jnp.repeat(h, HEADS // h.shape[2], axis=2) for h in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(jnp.float32) * SIZE**-0.5
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(v.dtype), v)
    return linear(c, p["o"], out.reshape(*out.shape[:2], -1))
