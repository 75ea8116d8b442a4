"""Sequences of layers: unrolled, scanned, indexed, recomputed."""

import jax
import jax.numpy as jnp


def store(c, layers):
    """Returns the layers' parameters in the form of the spelling."""
    if c.share == "layers":
        return layers[0]
    if c.spelling == "unrolled":
        return layers
    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    if c.spelling == "nested":
        return jax.tree.map(lambda w: w.reshape(2, -1, *w.shape[1:]), stacked)
    return stacked


def recomputed(c, block):
    if c.remat == "none":
        return block
    if c.remat == "full":
        return jax.checkpoint(block)
    return jax.checkpoint(block, policy=getattr(jax.checkpoint_policies, c.remat))


def run(c, stored, block, x):
    """Returns x after `block(p, x)` of every layer."""
    block = recomputed(c, block)
    body = lambda x, p: (block(p, x), None)
    index = lambda i: jax.tree.map(lambda w: w[i], stored)
    slices = lambda i: jax.tree.map(lambda w: jax.lax.dynamic_index_in_dim(w, i, keepdims=False), stored)
    if c.share == "layers":
        if c.spelling != "unrolled":
            return jax.lax.scan(lambda x, _: (block(stored, x), None), x, None, length=c.depth)[0]
        for _ in range(c.depth):
            x = block(stored, x)
        return x
    if c.spelling == "unrolled":
        for p in stored:
            x = block(p, x)
        return x
    if c.spelling == "scan":
        return jax.lax.scan(body, x, stored)[0]
    if c.spelling == "unrolled_scan":
        return jax.lax.scan(body, x, stored, unroll=2)[0]
    if c.spelling == "nested":
        return jax.lax.scan(lambda x, p: (jax.lax.scan(body, x, p)[0], None), x, stored)[0]
    if c.spelling == "fori":
        return jax.lax.fori_loop(0, c.depth, lambda i, x: block(index(i), x), x)
    at = index if c.spelling == "index" else slices
    return jax.lax.scan(lambda x, i: (block(at(i), x), None), x, jnp.arange(c.depth))[0]
