"""Writes the steps that the tests read: python export.py, in this folder.

Locations of ops are removed, because they hold paths of this machine; those of
arguments stay, because they are the tree paths.
"""

import math
import re

import jax
import jax.numpy as jnp
import optax

V, D, B, T = 11, 4, 2, 3
schedule = optax.warmup_cosine_decay_schedule(0.0, 1e-3, 10, 100)
tx = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.adamw(schedule, b1=0.9, b2=0.95, weight_decay=0.1),
)
adam = optax.adam(1e-3)
accumulating = optax.MultiSteps(adam, 4)
shapes = {"b": (V,), "emb": (V, D), "out": (D, V)}


def loss_fn(p, tok):
    z = jnp.tanh(p["emb"][tok[:, :-1]]) @ p["out"] + p["b"]
    logp = jax.nn.log_softmax(z)
    picked = jnp.take_along_axis(logp, tok[:, 1:, None], axis=-1)
    return -jnp.mean(picked)


def update(p, o, tok):
    loss, g = jax.value_and_grad(loss_fn)(p, tok)
    u, new = tx.update(g, o, p)
    return optax.apply_updates(p, u), new, loss, g


def loss_first(p, o, tok):
    # The first result with the shape of p['b'] is mu['b'], so that donation is misleading.
    p, o, loss, _ = update(p, o, tok)
    return loss, o, p


def metrics(p, o, tok):
    new, opt, loss, g = update(p, o, tok)
    logits = jnp.tanh(p["emb"][tok[:, :-1]]) @ p["out"] + p["b"]
    return (
        {
            "accuracy": jnp.mean(jnp.argmax(logits, -1) == tok[:, 1:]),
            "grad_norm": optax.global_norm(g),
            "learning_rate": schedule(o[1][2].count),
            "nll": loss,
            "perplexity": jnp.exp(loss),
            "weight_norm": optax.global_norm(p),
        },
        new,
        opt,
    )


def hand_adam(v, m, w, x, y):
    # Each role has one tensor, without a tree; w has L2 decay in m.
    def squared_error(w):
        return jnp.mean((x @ w - y) ** 2)

    loss, g = jax.value_and_grad(squared_error)(w)
    g = g + 0.01 * w
    m = 0.9 * m + 0.1 * g
    v = 0.99 * v + 0.01 * g * g
    return m, w - 0.1 * m / (jnp.sqrt(v) + 1e-8), v, loss


def masters(p16, p, o, tok):
    loss, g = jax.value_and_grad(loss_fn)(p16, tok)
    g = jax.tree.map(lambda x: x.astype(jnp.float32), g)
    u, o = adam.update(g, o, p)
    p = optax.apply_updates(p, u)
    return jax.tree.map(lambda x: x.astype(jnp.bfloat16), p), p, o, loss


def multi_steps(p, o, average, tok):
    # Gradients of four steps are accumulated, and an average of weights is kept.
    loss, g = jax.value_and_grad(loss_fn)(p, tok)
    u, o = accumulating.update(g, o, p)
    p = optax.apply_updates(p, u)
    average = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b, average, p)
    return p, o, average, loss


def init(seed):
    def uniform(i, shape):
        x = jax.lax.iota(jnp.uint32, math.prod(shape)) + seed * jnp.uint32(7919)
        x = (x + jnp.uint32(i)) * jnp.uint32(2654435761)
        x = x ^ (x >> 16)
        return (x.astype(jnp.float32) / 4294967296.0 - 0.5).reshape(shape)

    p = {k: uniform(i, s) for i, (k, s) in enumerate(shapes.items())}
    return p, tx.init(p)


def write(name, f, *args, donate=(), names=True):
    text = jax.jit(f, donate_argnums=donate).lower(*args).as_text(debug_info=names)
    text = re.sub(r"(?m)^#loc.*\n", "", text)
    text = re.sub(r' loc\((#loc\d*|unknown|"[^"]*"\(#loc\d*\))\)', "", text)
    if not names:
        text = re.sub(r' \{jax\.result_info = "[^"]*"\}', "", text)
    with open(name + ".mlir", "w") as out:
        out.write(text)


p = {k: jnp.zeros(s) for k, s in shapes.items()}
o = tx.init(p)
tok = jnp.zeros((B, T + 1), jnp.int32)
w, x, y = jnp.zeros((D, V)), jnp.zeros((B, D)), jnp.zeros((B, V))
write("loss-first", loss_first, p, o, tok, donate=(0, 1))
write("no-names", loss_first, p, o, tok, names=False)
write("metrics", metrics, p, o, tok)
write("hand-adam", hand_adam, w, w, w, x, y, donate=(0, 1, 2))
p16 = jax.tree.map(lambda x: x.astype(jnp.bfloat16), p)
write("masters", masters, p16, p, adam.init(p), tok)
write("multi-steps", multi_steps, p, accumulating.init(p), p, tok, names=False)
write("init", init, jnp.uint32(0))
write("eval", loss_fn, p, tok)
