"""Optimizers other than Adam, from optax and written by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *


def with_optax(tx, model=llama_params, loss=llama_loss, **options):
    def train(params, opt_state, tokens):
        value, grads = jax.value_and_grad(lambda p: loss(p, tokens))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    p = model()
    return Step(train, {"params": p, "opt_state": tx.init(p)}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, **{"linear": 5 * 2, **options})  # fmt: skip


@step
def sgd():
    """The parameters are the only state."""
    return with_optax(optax.sgd(0.2))


@step
def adafactor():
    """Factored second moments, clipping by block, updates scaled by the parameters."""
    return with_optax(optax.adafactor(1e-2, min_dim_size_to_factor=16, momentum=0.9))


@step
def lion():
    """Updates are signs."""
    # A gradient near zero has the sign of its rounding errors.
    return with_optax(optax.lion(1e-3, weight_decay=0.01), bound=2e-2)


@step
def novograd():
    """Each tensor has a scalar second moment."""
    return with_optax(optax.novograd(2e-2))


@step
def lamb_with_lookahead_norms():
    """Trust ratios, with gradients centralized and clipped by block."""
    return with_optax(optax.chain(optax.centralize(), optax.adaptive_grad_clip(0.5), optax.lamb(1e-2, eps=1e-5)))


@step
def muon():
    """optax.contrib.muon: Newton-Schulz iterations of the momentum in a loop, and Adam for other
    parameters."""
    return with_optax(optax.contrib.muon(2e-2, eps=1e-6, adam_learning_rate=3e-3))


@step
def shampoo_by_hand():
    """The inverse roots of L and R come from a coupled Newton iteration, a while loop until it
    converges."""

    def inverse_root(matrix):
        """Returns the inverse square root of a positive matrix, after an error of at most 1e-4 or 12
        iterations."""
        n = matrix.shape[0]
        scale = jnp.trace(matrix)
        eye = jnp.eye(n)

        def body(carry):
            i, y, z, _ = carry
            m = 1.5 * eye - 0.5 * z @ y
            y, z = y @ m, m @ z
            return i + 1, y, z, jnp.max(jnp.abs(z @ y - eye))

        start = (0, matrix / scale, eye, jnp.float32(1e9))
        _, _, z, _ = jax.lax.while_loop(lambda c: (c[0] < 12) & (c[3] > 1e-4), body, start)
        return z * jax.lax.rsqrt(scale)

    def train(params, factors, x, y):
        loss, grads = jax.value_and_grad(lambda p: class_loss(mlp(p, x), y))(params)
        new_params, new_factors = [], []
        for p, f, g in zip(params, factors, grads):
            left = 0.9 * f["l"] + 0.1 * g["w"] @ g["w"].T
            right = 0.9 * f["r"] + 0.1 * g["w"].T @ g["w"]
            # Damped, so that few iterations are enough.
            damp = lambda m: m + (0.1 * jnp.trace(m) / m.shape[0] + 1e-6) * jnp.eye(m.shape[0])
            update = inverse_root(damp(left)) @ g["w"] @ inverse_root(damp(right))
            new_params.append({"w": p["w"] - 5e-3 * update, "b": p["b"] - 0.1 * g["b"]})
            new_factors.append({"l": left, "r": right})
        return new_params, new_factors, loss

    p = mlp_params((32, 24, 16, 10))
    factors = [{"l": 0.01 * jnp.eye(l["w"].shape[0]), "r": 0.01 * jnp.eye(l["w"].shape[1])} for l in p]
    x, y = clusters()
    return Step(train, {"params": p, "factors": factors}, {"x": x, "y": y}, lambda r: r[2],
                lambda r: {"params": r[0], "factors": r[1]})  # fmt: skip


@step
def learned_subspace():
    """Momenta lie in a subspace whose basis is learned by its own gradient: that of what the subspace lacks of the weights'
    gradient. The backward pass that it follows from is not the forward pass of that loss."""

    def train(params, state, x, y):
        loss, grads = jax.value_and_grad(lambda p: class_loss(mlp(p, x), y))(params)
        new_params, new_state = [], []
        for p, s, g in zip(params, state, grads):
            lacks = lambda basis, g=g["w"]: jnp.sum(jnp.square(g - basis @ (basis.T @ g)))
            basis = s["basis"] - 0.1 * jax.grad(lacks)(s["basis"])
            momentum = 0.9 * s["momentum"] + 0.1 * basis.T @ g["w"]
            new_params.append({"w": p["w"] - 0.5 * basis @ momentum, "b": p["b"] - 0.1 * g["b"]})
            new_state.append({"basis": basis, "momentum": momentum})
        return new_params, new_state, loss

    p, r = mlp_params((32, 24, 16, 10)), np.random.default_rng(1)
    state = [{"basis": normal(r, m := len(l["w"]), 8, scale=m**-0.5), "momentum": jnp.zeros((8, l["w"].shape[1]))} for l in p]
    x, y = clusters()
    return Step(train, {"params": p, "state": state}, {"x": x, "y": y}, lambda r: r[2],
                lambda r: {"params": r[0], "state": r[1]}, linear=(2, 1, 2))  # fmt: skip


@step
def line_search_by_hand():
    """Backtracking: a while loop, whose condition runs the model, halves the rate until the loss has fallen enough."""

    def train(params, x, y):
        objective = lambda p: class_loss(mlp(p, x), y)
        loss, grads = jax.value_and_grad(objective)(params)
        norm = sum(jnp.sum(g**2) for g in jax.tree.leaves(grads))
        moved = lambda rate: jax.tree.map(lambda p, g: p - rate * g, params, grads)
        bad = lambda c: (c[1] < 10) & (objective(moved(c[0])) > loss - 0.3 * c[0] * norm)
        rate, halvings = jax.lax.while_loop(bad, lambda c: (c[0] * 0.5, c[1] + 1), (jnp.float32(2.0), jnp.int32(0)))
        return moved(rate), {"loss": loss, "rate": rate, "halvings": halvings}

    x, y = clusters()
    return Step(train, {"params": mlp_params((32, 48, 10))}, {"x": x, "y": y}, lambda r: r[1]["loss"], lambda r: {"params": r[0]})


@step
def rates_and_rules_for_groups():
    """multi_transform has one optimizer for matrices and another for vectors; the rate is state
    (inject_hyperparams)."""
    matrices = optax.inject_hyperparams(optax.adamw)(learning_rate=optax.cosine_decay_schedule(3e-3, 60), eps=1e-6)
    labels = lambda p: jax.tree.map(lambda x: "matrix" if x.ndim > 1 else "vector", p)
    return with_optax(optax.multi_transform({"matrix": matrices, "vector": optax.rmsprop(1e-3, eps=1e-5)}, labels))


@step
def schedule_free():
    """The trained parameters differ from those at which gradients are taken and from the average.
    """
    return with_optax(optax.contrib.schedule_free_adamw(3e-3, warmup_steps=5, eps=1e-6))


@step
def sharpness_aware():
    """Two gradients a step, the second at the point nearby where the loss is largest."""

    def train(params, momentum, x, y):
        objective = jax.value_and_grad(lambda p: class_loss(mlp(p, x), y))
        loss, grads = objective(params)
        scale = 0.05 / (optax.global_norm(grads) + 1e-6)
        _, sharp = objective(jax.tree.map(lambda p, g: p + scale * g, params, grads))
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, sharp)
        return jax.tree.map(lambda p, m: p - 0.02 * m, params, momentum), momentum, loss

    p = mlp_params()
    x, y = clusters()
    state = {"params": p, "momentum": zeros(p)}
    return Step(train, state, {"x": x, "y": y}, lambda r: r[2], lambda r: dict(zip(state, r)))
