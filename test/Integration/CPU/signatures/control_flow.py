"""Loops, branches, recomputation, and random keys."""

import jax
import jax.numpy as jnp
import optax
from cases import ADAM, PARAMETER, Case, case
from models import BATCH, LENGTH, TOKENS, WIDTH, init_params, loss_of, optimized


@case
def scanned_remat():
    return optimized(optax.adamw(1e-3), params=init_params(stacked=True), kinds=ADAM, loss_of=lambda p, x: loss_of(p, x, remat=True))


@case
def remat():
    return optimized(optax.adamw(1e-3), kinds=ADAM, loss_of=lambda p, x: loss_of(p, x, remat=True))


def scaled_loss(skip):
    """f16 compute with a dynamic scale; a step that overflows changes nothing."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, scale, good, tokens):
        def objective(params):
            half = jax.tree.map(lambda x: x.astype(jnp.float16), params)
            loss = loss_of(half, tokens)
            return loss * scale, loss

        (_, loss), grads = jax.value_and_grad(objective, has_aux=True)(params)
        grads = jax.tree.map(lambda g: g / scale, grads)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))

        def update(_):
            updates, new = tx.update(grads, opt)
            return optax.apply_updates(params, updates), new

        new = jax.lax.cond(finite, update, lambda _: (params, opt), None) if skip == "cond" else jax.tree.map(lambda a, b: jnp.where(finite, a, b), update(None), (params, opt))
        grown = jnp.where(good == 9, scale * 2, scale)
        scale = jnp.where(finite, grown, scale / 2)
        good = jnp.where(finite, jnp.where(good == 9, 0, good + 1), 0)
        return {"params": new[0], "opt": new[1], "scale": scale, "good": good}, {"loss": loss, "finite": finite}

    args = {"params": params, "opt": tx.init(params), "scale": jnp.float32(1024), "good": jnp.int32(0), "tokens": TOKENS}
    return Case(step, args, ["params", "opt", "scale", "good"], [(r"^scale", "other"), (r"^good", "step"), *ADAM, PARAMETER], {"tokens": "batch"})


@case
def loss_scale_select():
    return scaled_loss("select")


@case
def loss_scale_cond():
    return scaled_loss("cond")


@case
def micro_batches():
    tx = optax.adamw(1e-3)
    params = init_params()

    def step(params, opt, tokens):
        def micro(carry, tokens):
            loss, grads = jax.value_and_grad(loss_of)(params, tokens)
            return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), loss

        (total, grads), losses = jax.lax.scan(micro, (0.0, jax.tree.map(jnp.zeros_like, params)), tokens)
        grads = jax.tree.map(lambda g: g / 2, grads)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": total / 2, "norm": optax.global_norm(grads), "losses": losses}

    args = {"params": params, "opt": tx.init(params), "tokens": jnp.zeros((2, BATCH, LENGTH + 1), jnp.int32)}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"tokens": "batch"})


@case
def several_steps():
    """A loop over whole optimizer steps."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, tokens):
        def one(carry, tokens):
            params, opt = carry
            loss, grads = jax.value_and_grad(loss_of)(params, tokens)
            updates, opt = tx.update(grads, opt)
            return (optax.apply_updates(params, updates), opt), loss

        (params, opt), losses = jax.lax.scan(one, (params, opt), tokens)
        return {"params": params, "opt": opt}, {"loss": losses.mean()}

    args = {"params": params, "opt": tx.init(params), "tokens": jnp.zeros((2, BATCH, LENGTH + 1), jnp.int32)}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"tokens": "batch"})


def dropout(key, returned, impl=None):
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, key, tokens):
        use = key
        if returned:
            key, use = jax.random.split(key)
        loss, grads = jax.value_and_grad(lambda p: loss_of(p, tokens, key=use))(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt} | ({"key": key} if returned else {}), {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "key": key, "tokens": TOKENS}
    kinds = [(r"^key", "other"), *ADAM, PARAMETER]
    return Case(step, args, ["params", "opt"] + ["key"] * returned, kinds, {"tokens": "batch"} | ({} if returned else {"key": "key"}))


@case
def raw_key():
    return dropout(jax.random.PRNGKey(0), False)


@case
def typed_key_returned():
    return dropout(jax.random.key(0), True)


@case
def rbg_key():
    return dropout(jax.random.key(0, impl="rbg"), False)


@case
def raw_key_returned():
    return dropout(jax.random.PRNGKey(0), True)


@case
def micro_batches_dropout_remat_scan():
    """Everything at once: nested loops, keys, multiple steps, and a skip on overflow."""
    tx = optax.apply_if_finite(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-3, 10))), 3)
    params = init_params(stacked=True)

    def step(params, opt, key, tokens):
        key, use = jax.random.split(key)

        def noisy(params, tokens, key):
            keep = jax.random.bernoulli(key, 0.9, (WIDTH,))
            return loss_of(params | {"norm": jnp.where(keep, params["norm"], 0)}, tokens, remat=True)

        def micro(grads, xs):
            tokens, key = xs
            loss, new = jax.value_and_grad(noisy)(params, tokens, key)
            return jax.tree.map(jnp.add, grads, new), loss

        grads, losses = jax.lax.scan(micro, jax.tree.map(jnp.zeros_like, params), (tokens, jax.random.split(use, 2)))
        updates, opt = tx.update(jax.tree.map(lambda g: g / 2, grads), opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt, "key": key}, {"loss": losses.mean()}

    args = {"params": params, "opt": tx.init(params), "key": jax.random.key(0), "tokens": jnp.zeros((2, BATCH, LENGTH + 1), jnp.int32)}
    kinds = [(r"^key", "other"), (r"notfinite", "step"), (r"last_finite", "other"), *ADAM, PARAMETER]
    return Case(step, args, ["params", "opt", "key"], kinds, {"tokens": "batch"})
