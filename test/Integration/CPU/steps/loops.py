"""Loops in a step: over layers, micro-batches, time and iterations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *


def tx():
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3, eps=1e-6))


def scan(block, x, layers, **options):
    return jax.lax.scan(lambda x, p: (block(p, x), None), x, layers, **options)[0]


def scan_remat(block, x, layers, **options):
    return scan(jax.checkpoint(block), x, layers, **options)


def scan_remat_dots(block, x, layers):
    return scan(jax.checkpoint(block, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable), x, layers)


def scanned(run, layers=3, update=None, **options):
    opt = tx()

    def train(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens, scan=run))(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "grad_norm": optax.global_norm(grads)}

    p = llama_params(stacked=True, layers=layers)
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"tokens": tokens()}, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, **options)  # fmt: skip


@step
def layers():
    """scan over stacked layers."""
    return scanned(scan, linear=5)


@step
def layers_remat():
    """scan over jax.checkpoint of a layer."""
    # The backward pass recomputes all dots but the last.
    return scanned(scan_remat, linear=(9, 5, 5))


@step
def layers_remat_saving_dots():
    """A policy saves the dots' results, so that the loop's body returns more than its carry."""
    return scanned(scan_remat_dots, linear=5)


@step
def layers_unrolled_in_pairs():
    """scan with unroll=2: two layers in a body."""
    return scanned(partial(scan, unroll=2), layers=4, linear=10)


@step
def layers_unrolled_with_one_left_over():
    """scan with unroll=2 over five layers: the last one is after the forward loop, the first one after the backward loop."""
    return scanned(partial(scan, unroll=2), layers=5, linear=15)


@step
def layers_unrolled_with_one_left_over_remat():
    """The same with jax.checkpoint of a layer."""
    return scanned(partial(scan_remat, unroll=2), layers=5, linear=(27, 15, 15))


@step
def layers_unrolled_with_two_left_over():
    """scan with unroll=3 over five layers: JAX makes no loop of a single iteration."""
    return scanned(partial(scan, unroll=3), layers=5, linear=25)


@step
def layers_dropped_in_unrolled_scan():
    """Layer drop by a flag of the batch, in a scan with unroll=2, trained by plain gradient descent."""

    def objective(params, tokens, keep):
        x = params["embed"][tokens[:, :-1]]

        def body(x, layer):
            p, kept = layer
            return jax.lax.cond(kept > 0, lambda x: llama_block(p, x), lambda x: x, x), None

        x, _ = jax.lax.scan(body, x, (params["layers"], keep), unroll=2)
        return next_token_loss(rms_norm(x, params["norm"]) @ params["lm_head"], tokens[:, 1:])

    def train(params, tokens, keep):
        loss, grads = jax.value_and_grad(objective)(params, tokens, keep)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

    keep = np.random.default_rng(5).integers(0, 2, (STEPS, 5), dtype=np.int32)
    return Step(train, {"params": llama_params(stacked=True, layers=5)}, {"tokens": tokens(), "keep": keep}, lambda r: r[1],
                lambda r: {"params": r[0]}, linear=15)  # fmt: skip


@step
def layers_backwards():
    """A scan with reverse=True, and an output of every layer that the loss reads."""
    opt = tx()

    def train(params, opt_state, tokens):
        def objective(p):
            x = p["embed"][tokens[:, :-1]]

            def body(x, layer):
                x = llama_block(layer, x)
                return x, jnp.mean(x**2)

            x, sizes = jax.lax.scan(body, x, p["layers"], reverse=True)
            return next_token_loss(rms_norm(x, p["norm"]) @ p["lm_head"], tokens[:, 1:]) + 1e-3 * jnp.sum(sizes), sizes

        (loss, sizes), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss, sizes

    p = llama_params(stacked=True, layers=3)
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=5)  # fmt: skip


def microbatched(objective, params, tokens, parts):
    """Returns loss and gradients, summed over parts of the batch in a scan."""
    split = tokens.reshape(parts, -1, *tokens.shape[1:])

    def body(carry, part):
        loss, grads = jax.value_and_grad(objective)(params, part)
        return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), loss

    (loss, grads), each = jax.lax.scan(body, (jnp.float32(0), zeros(params)), split)
    return loss / parts, jax.tree.map(lambda g: g / parts, grads), each


@step
def micro_batches():
    """Gradient accumulation: a scan over parts of the batch."""
    opt = tx()

    def train(params, opt_state, tokens):
        loss, grads, each = microbatched(llama_loss, params, tokens, 4)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss, each

    p = llama_params()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"tokens": tokens(batch=8)}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=10)  # fmt: skip


@step
def micro_batches_of_scanned_layers():
    """Nested: micro-batches outside, rematerialized layers inside."""
    opt = tx()

    def train(params, opt_state, tokens):
        loss, grads, _ = microbatched(partial(llama_loss, scan=scan_remat), params, tokens, 2)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    p = llama_params(stacked=True, layers=3)
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=(9, 5, 5))  # fmt: skip


@step
def several_updates_in_one_step():
    """The whole training step is in a scan over three batches."""
    opt = tx()

    def train(state, tokens):
        def body(state, part):
            loss, grads = jax.value_and_grad(lambda p: llama_loss(p, part))(state[0])
            updates, o = opt.update(grads, state[1], state[0])
            return (optax.apply_updates(state[0], updates), o), loss

        state, losses = jax.lax.scan(body, state, tokens)
        return state, jnp.mean(losses)

    p = llama_params(layers=1)
    data = np.stack([tokens(), tokens()[::-1], tokens()], 1)
    return Step(train, {"state": (p, opt.init(p))}, {"tokens": data}, lambda r: r[1], lambda r: {"state": r[0]}, linear=5)


@step
def recurrent():
    """A gated recurrent network: the weights are captured by a scan over time."""
    opt = optax.adam(1e-2, eps=1e-6)

    def train(params, opt_state, tokens):
        def objective(p):
            x = p["embed"][tokens[:, :-1]]

            def cell(h, x):
                z, r, n = jnp.split(x @ p["wx"] + p["b"], 3, -1)
                hz, hr, hn = jnp.split(h @ p["wh"], 3, -1)
                z, r = jax.nn.sigmoid(z + hz), jax.nn.sigmoid(r + hr)
                h = (1 - z) * jnp.tanh(n + r * hn) + z * h
                return h, h

            _, h = jax.lax.scan(cell, jnp.zeros((tokens.shape[0], WIDTH)), jnp.swapaxes(x, 0, 1))
            return next_token_loss(jnp.swapaxes(h, 0, 1) @ p["head"], tokens[:, 1:])

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    r = np.random.default_rng(0)
    p = {"embed": normal(r, VOCAB, WIDTH, scale=1.0), "wx": normal(r, WIDTH, 3 * WIDTH), "wh": normal(r, WIDTH, 3 * WIDTH),
         "b": jnp.zeros(3 * WIDTH), "head": normal(r, WIDTH, VOCAB)}  # fmt: skip
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]})  # fmt: skip


@step
def loss_in_chunks():
    """lax.map over chunks of the positions, so that not all logits are in memory at once, and blocks of attention in a
    fori_loop."""
    opt = tx()

    def train(params, opt_state, tokens):
        def objective(p):
            x = p["embed"][tokens[:, :-1]]
            for layer in p["layers"]:
                x = llama_block(layer, x)
            x = rms_norm(x, p["norm"]).reshape(-1, 16, WIDTH)
            chunk = jax.checkpoint(lambda c: next_token_loss(c[0] @ p["lm_head"], c[1]))
            return jnp.mean(jax.lax.map(chunk, (x, tokens[:, 1:].reshape(-1, 16))))

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        smooth = jax.lax.fori_loop(0, 5, lambda i, x: 0.5 * x + 0.1 * i, loss)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "smooth": smooth}

    p = llama_params()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"tokens": tokens()}, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=10)  # fmt: skip


@step
def rate_by_cases():
    """lax.switch selects the rate, and lax.cond decides whether to decay."""

    def train(params, momentum, count, x, y):
        loss, grads = jax.value_and_grad(lambda p: class_loss(mlp(p, x), y))(params)
        phase = jnp.minimum(count // 8, 2)
        rate = jax.lax.switch(phase, [lambda c: 0.01 * (c + 1) / 8, lambda c: 0.05 + 0 * c, lambda c: 0.05 * 0.98**c], count.astype(jnp.float32))
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
        params = jax.tree.map(lambda p, m: p - rate * m, params, momentum)
        params = jax.lax.cond(count % 5 == 4, lambda p: jax.tree.map(lambda x: 0.999 * x, p), lambda p: p, params)
        return params, momentum, count + 1, {"loss": loss, "rate": rate}

    p = mlp_params()
    x, y = clusters()
    state = {"params": p, "momentum": zeros(p), "count": jnp.zeros((), jnp.int32)}
    return Step(train, state, {"x": x, "y": y}, lambda r: r[3]["loss"], lambda r: dict(zip(state, r)))


@step
def deep_equilibrium():
    """The layer is a while loop to a fixed point; its gradient (custom_vjp) is one too."""

    def solve(f, start):
        body = lambda c: (c[1], f(c[1]), c[2] + 1)
        more = lambda c: (jnp.max(jnp.abs(c[1] - c[0])) > 1e-5) & (c[2] < 30)
        return jax.lax.while_loop(more, body, (start, f(start), 0))[1]

    def layer(w, x, z):
        return jnp.tanh(0.3 * z @ w + x)

    @jax.custom_vjp
    def fixed_point(w, x):
        return solve(lambda z: layer(w, x, z), jnp.zeros_like(x))

    def forward(w, x):
        z = fixed_point(w, x)
        return z, (w, x, z)

    def backward(saved, g):
        w, x, z = saved
        _, pull = jax.vjp(lambda z: layer(w, x, z), z)
        u = solve(lambda u: g + pull(u)[0], g)
        _, pull = jax.vjp(lambda w, x: layer(w, x, z), w, x)
        return pull(u)

    fixed_point.defvjp(forward, backward)
    opt = optax.adam(3e-3, eps=1e-6)

    def train(params, opt_state, x, y):
        f = lambda p: class_loss(fixed_point(p["w"], x @ p["in"]) @ p["out"], y)
        loss, grads = jax.value_and_grad(f)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    r = np.random.default_rng(0)
    p = {"in": normal(r, 32, WIDTH), "w": normal(r, WIDTH, WIDTH), "out": normal(r, WIDTH, 10)}
    x, y = clusters()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"x": x, "y": y}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, repeated=1)  # fmt: skip
