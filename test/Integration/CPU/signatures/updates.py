"""Updates that the step itself computes, with state of its own."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from cases import PARAMETER, Case, case
from models import BATCH, LENGTH, TOKENS, WIDTH, cross_entropy, freeze_layers, init_params, logits_of, loss_of, matrix


def by_hand(second, direction, kinds):
    """The optimizer moves by `direction(m, v)`; `second(v, g)` is the next v."""
    params = init_params()

    def step(params, m, v, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(second, v, grads)
        return {"params": jax.tree.map(lambda p, m, v: p - 1e-3 * direction(m, v), params, m, v), "m": m, "v": v}, {"loss": loss}

    zeros = jax.tree.map(jnp.zeros_like, params)
    args = {"params": params, "m": zeros, "v": zeros, "tokens": TOKENS}
    return Case(step, args, ["params", "m", "v"], [*kinds, (r"^params", "parameter")], {"tokens": "batch"})


@case
def squares_of_magnitudes():
    return by_hand(lambda v, g: 0.99 * v + 0.01 * jnp.abs(g) ** 2, lambda m, v: m / (jnp.sqrt(v) + 1e-8), [(r"^m", "moment1"), (r"^v", "moment2")])


@case
def divided_by_an_average():
    """An average that the update divides by, as by the diagonal of a Hessian, is not a first moment."""
    return by_hand(lambda v, g: 0.9 * v + 0.1 * g, lambda m, v: m / jnp.maximum(v, 1e-3), [(r"^m", "moment1"), (r"^v", "other")])


@case
def gradients_of_two_steps():
    """MARS: the moments are those of a gradient to which its change since the last step is added."""
    params = init_params()

    def step(params, m, v, last, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        moved = jax.tree.map(lambda g, old: g + 0.5 * (g - old), grads, last)
        size = jnp.maximum(optax.global_norm(moved), 1)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g / size, m, moved)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * jnp.square(g / size), v, moved)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return {"params": params, "m": m, "v": v, "last": grads}, {"loss": loss}

    zeros = jax.tree.map(jnp.zeros_like, params)
    args = {"params": params, "m": zeros, "v": zeros, "last": zeros, "tokens": TOKENS}
    kinds = [(r"^m\b", "moment1"), (r"^v\b", "moment2"), (r"^last", "other"), PARAMETER]
    return Case(step, args, ["params", "m", "v", "last"], kinds, {"tokens": "batch"})


@case
def sharpness_aware():
    """Two gradients a step, the second with perturbed weights."""
    tx = optax.sgd(1e-2, momentum=0.9)
    params = init_params()

    def step(params, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        norm = optax.global_norm(grads)
        moved = jax.tree.map(lambda p, g: p + 0.05 * g / norm, params, grads)
        updates, opt = tx.update(jax.grad(loss_of)(moved, tokens), opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss, "norm": norm}

    args = {"params": params, "opt": tx.init(params), "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [(r"trace", "moment1"), PARAMETER], {"tokens": "batch"})


@case
def error_feedback():
    """The error of rounding the gradient to its sign is added to the next gradient."""
    params = init_params()

    def step(params, left, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        whole = jax.tree.map(jnp.add, grads, left)
        sent = jax.tree.map(lambda g: jnp.sign(g) * jnp.abs(g).mean(), whole)
        new = jax.tree.map(lambda p, g: p - 1e-2 * g, params, sent)
        return {"params": new, "left": jax.tree.map(jnp.subtract, whole, sent)}, {"loss": loss}

    left = jax.tree.map(jnp.zeros_like, params)
    return Case(step, {"params": params, "left": left, "tokens": TOKENS}, ["params", "left"], [(r"^left", "other"), PARAMETER], {"tokens": "batch"})


@case
def step_keyed():
    """The key is folded with the step. The optimizer is written out, the loss has a z-loss, and the
    rate is an argument."""
    params = init_params()

    def step(params, m, v, step, key, rate, tokens):
        def objective(params):
            logits = logits_of(params, tokens[:, :-1], key=jax.random.fold_in(key, step))
            ce = cross_entropy(logits, tokens[:, 1:])
            z = jnp.mean(jnp.square(jax.nn.logsumexp(logits, -1)))
            return ce + 1e-4 * z, {"ce": ce, "z": z}

        (loss, aux), grads = jax.value_and_grad(objective, has_aux=True)(params)
        step = step + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, grads)
        params = jax.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9**step) / (jnp.sqrt(v / (1 - 0.95**step)) + 1e-8) + 0.1 * p), params, m, v)
        return {"params": params, "m": m, "v": v, "step": step}, {"loss": loss, "weights": optax.global_norm(params)} | aux

    zeros = jax.tree.map(jnp.zeros_like, params)
    args = {"params": params, "m": zeros, "v": zeros, "step": jnp.int32(0), "key": jax.random.key(0), "rate": jnp.float32(1e-3), "tokens": TOKENS}
    kinds = [(r"^m\b", "moment1"), (r"^v\b", "moment2"), (r"^step", "step"), PARAMETER]
    # The returned norm of the weights depends on the rate.
    return Case(step, args, ["params", "m", "v", "step"], kinds, {"key": "key", "rate": "constant", "tokens": "batch"}, unclear=("rate",))


def accelerated(prox, loss_of):
    """Takes gradients at y, which runs ahead of the iterate x, and evaluates x too."""
    x = init_params()

    def step(x, y, tokens):
        _, grads = jax.value_and_grad(loss_of)(y, tokens)
        new = jax.tree.map(lambda y, g: prox(y - 1e-2 * g), y, grads)
        ahead = jax.tree.map(lambda a, b: a + 0.9 * (a - b), new, x)
        return {"x": new, "y": ahead}, {"loss": loss_of(x, tokens)}

    args = {"x": x, "y": jax.tree.map(jnp.copy, x), "tokens": TOKENS}
    return Case(step, args, ["x", "y"], [(r"^[xy]", None)], {"tokens": "batch"})


@case
def nesterov_evaluated():
    """Both points look up the same tokens, so that the gradient could be that of either."""
    return accelerated(lambda x: x, loss_of)


@case
def fista_partly_frozen():
    """Without a gradient only its own chain shows from which point a proximal step starts."""
    shrink = lambda x: jnp.sign(x) * jnp.maximum(jnp.abs(x) - 1e-4, 0)
    return accelerated(shrink, lambda params, tokens: loss_of(freeze_layers(params), tokens))


@case
def rollback_partly_frozen():
    """A frozen weight and its last value are exchanged if the step goes back: only the other
    weights show which of the two the step returns unchanged."""
    params = init_params()

    def step(params, old, limit, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_of(freeze_layers(p), tokens))(params)
        new = jax.tree.map(lambda p, o, g: jnp.where(loss > limit, o, p - 1e-2 * g), params, old, grads)
        return {"params": new, "old": params}, {"loss": loss}

    args = {"params": params, "old": jax.tree.map(jnp.copy, params), "limit": jnp.float32(9), "tokens": TOKENS}
    return Case(step, args, ["params", "old"], [(r"", None)], {"tokens": "batch", "limit": "constant"})


@case
def anchor_partly_frozen_scaled():
    """The gradient of frozen weights is a sum of zeros over the scale of the loss, which is not constant."""
    params = init_params()

    def step(params, anchor, scale, tokens):
        def add(total, piece):
            grads = jax.grad(lambda p: loss_of(freeze_layers(p), piece) * scale)(params)
            return jax.tree.map(lambda t, g: t + g / scale, total, grads), loss_of(params, piece)

        grads, losses = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), tokens.reshape(2, -1, LENGTH + 1))
        loss = losses.mean()
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        new = jax.tree.map(lambda p, a, g: jnp.where(finite, p - 1e-2 * (g + 0.5 * (p - a)), p), params, anchor, grads)
        old = jax.tree.map(lambda p, a: jnp.where(finite, p, a), params, anchor)
        return {"params": new, "anchor": old, "scale": jnp.where(finite, scale, scale / 2)}, {"loss": loss}

    args = {"params": params, "anchor": jax.tree.map(jnp.copy, params), "scale": jnp.float32(1024), "tokens": TOKENS}
    return Case(step, args, ["params", "anchor", "scale"], [(r"", None)], {"tokens": "batch"})


@case
def layers_by_index():
    """Plain gradient descent on a stack whose layers are indexed one by one."""
    random = np.random.default_rng(0)

    def step(w, x, y):
        def loss_of(w):
            h = x
            for i in range(3):
                h = jnp.tanh(h @ w[i])
            return jnp.mean(jnp.square(h - y))

        loss, grads = jax.value_and_grad(loss_of)(w)
        return {"w": w - 0.1 * grads}, {"loss": loss}

    args = {"w": matrix(random, 3, WIDTH, WIDTH), "x": jnp.zeros((BATCH, WIDTH)), "y": jnp.zeros((BATCH, WIDTH))}
    return Case(step, args, ["w"], [(r"", "parameter")], {"x": "batch", "y": "batch"})
