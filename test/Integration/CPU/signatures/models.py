"""The model of most cases, and steps that train it."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from cases import ADAM, Case

VOCAB, WIDTH, BATCH, LENGTH, LAYERS = 24, 8, 4, 6, 2
TOKENS = jnp.zeros((BATCH, LENGTH + 1), jnp.int32)


def matrix(random, *shape):
    return jnp.asarray(random.normal(0, shape[0] ** -0.5, shape), jnp.float32)


def init_layer(random):
    vector = lambda value: jnp.full((WIDTH,), value, jnp.float32)
    layer = {name: matrix(random, WIDTH, WIDTH) for name in ("q", "k", "v", "o", "up", "down")}
    return layer | {"scale1": vector(1), "bias1": vector(0), "scale2": vector(1), "bias2": vector(0), "up_b": vector(0), "down_b": vector(0), "q_b": vector(0)}


def init_params(tied=False, stacked=False):
    random = np.random.default_rng(0)
    layers = [init_layer(random) for _ in range(LAYERS)]
    if stacked:
        layers = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    params = {"embed": matrix(random, VOCAB, WIDTH), "places": matrix(random, LENGTH, WIDTH), "layers": layers, "norm": jnp.ones(WIDTH)}
    return params if tied else params | {"head": matrix(random, WIDTH, VOCAB)}


def normalize(x, scale, bias):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * scale + bias


def apply_layer(p, x, key=None):
    h = normalize(x, p["scale1"], p["bias1"])
    q, k, v = h @ p["q"] + p["q_b"], h @ p["k"], h @ p["v"]
    weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / WIDTH**0.5 + jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH))) > 0, 0, -1e4).astype(q.dtype))
    x = x + weights @ v @ p["o"]
    h = jax.nn.gelu(normalize(x, p["scale2"], p["bias2"]) @ p["up"] + p["up_b"])
    if key is not None:
        h = jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0)
    return x + h @ p["down"] + p["down_b"]


def logits_of(params, tokens, key=None, remat=False):
    x = params["embed"][tokens] + params["places"]
    if isinstance(params["layers"], list):
        for i, layer in enumerate(params["layers"]):
            f = jax.checkpoint(apply_layer) if remat else apply_layer
            x = f(layer, x, None if key is None else jax.random.fold_in(key, i))
    else:
        f = lambda x, p: (apply_layer(p, x), None)
        x, _ = jax.lax.scan(jax.checkpoint(f) if remat else f, x, params["layers"])
    x = x * params["norm"]
    return x @ params["head"] if "head" in params else x @ params["embed"].T


def cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets).mean()


def loss_of(params, tokens, **options):
    return cross_entropy(logits_of(params, tokens[:, :-1], **options), tokens[:, 1:])


def freeze_layers(params):
    return jax.tree_util.tree_map_with_path(lambda path, x: jax.lax.stop_gradient(x) if "layers" in str(path) else x, params)


def optimized(tx, params=None, kinds=(), loss_of=loss_of, more=lambda grads: {}):
    """The simplest step with the optimizer `tx`."""
    params = init_params() if params is None else params

    def step(params, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss} | more(grads)

    args = {"params": params, "opt": tx.init(params), "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [*kinds, (r"^params", "parameter")], {"tokens": "batch"})


def masters(dtype, tx=None, kinds=ADAM, **options):
    """A step that learns with masters in f32 of weights of another type."""
    tx = optax.adamw(1e-3) if tx is None else tx
    master = init_params(**options)
    params = jax.tree.map(lambda x: x.astype(dtype), master)

    def step(params, master, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        grads = jax.tree.map(lambda x: x.astype(jnp.float32), grads)
        updates, opt = tx.update(grads, opt, master)
        master = optax.apply_updates(master, updates)
        return {"params": jax.tree.map(lambda x: x.astype(dtype), master), "master": master, "opt": opt}, {"loss": loss}

    args = {"params": params, "master": master, "opt": tx.init(master), "tokens": TOKENS}
    return Case(step, args, ["params", "master", "opt"], [(r"^master", "other"), *kinds, (r"^params", "parameter")], {"tokens": "batch"})
