"""Micro-batches in a scan, with weights that the loss transforms before it uses them: the
transformation is the same in every iteration."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import STEPS, normal, zeros

# Wide enough that the transformation of a weight stays in the loop.
INPUTS, OUTPUTS, PARTS = 64, 16, 4


def regression(batch=32):
    r = np.random.default_rng(7)
    return {
        "x": r.normal(0, 1, (STEPS, batch, INPUTS)).astype(np.float32),
        "y": r.normal(0, 1, (STEPS, batch, OUTPUTS)).astype(np.float32),
    }


def split(x):
    return x.reshape(PARTS, -1, *x.shape[1:])


def residual(weights, x, dtype=jnp.float32):
    for w in weights:
        x = x + jax.nn.relu((x.astype(dtype) @ w).astype(jnp.float32))
    return x


def micro_batched(model, params, **options):
    opt = optax.adam(1e-3, eps=1e-6)

    def train(params, opt_state, x, y):
        def body(carry, part):
            loss, grads = jax.value_and_grad(lambda p: jnp.mean((model(p, part[0]) - part[1]) ** 2))(params)
            return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), None

        (loss, grads), _ = jax.lax.scan(body, (jnp.float32(0), zeros(params)), (split(x), split(y)))
        updates, opt_state = opt.update(jax.tree.map(lambda g: g / PARTS, grads), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss / PARTS

    return Step(train, {"params": params, "opt_state": opt.init(params)}, regression(), lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, **options)  # fmt: skip


def weights(*names, seed=0):
    r = np.random.default_rng(seed)
    return {name: normal(r, INPUTS, INPUTS) for name in names} | {"out": normal(r, INPUTS, OUTPUTS)}


@step
def cast():
    """Master weights in f32; the loss reads them in bf16."""

    def model(p, x):
        p = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
        return (residual([p["a"], p["b"]], x, jnp.bfloat16).astype(jnp.bfloat16) @ p["out"]).astype(jnp.float32)

    # XLA rounds dots of bf16 at other places, and second moments are squares of small numbers.
    return micro_batched(model, weights("a", "b"), bound=0.5, loss_bound=1e-2, gap=0.5)


@step
def arithmetic():
    """Weights are rounded and widened, transposed, scaled, normalized, masked, or added to a
    low-rank adapter."""
    mask = jnp.asarray(np.random.default_rng(1).integers(0, 2, (INPUTS, INPUTS)), jnp.float32)

    def model(p, x):
        norm = p["norm"] / jnp.linalg.norm(p["norm"], axis=0, keepdims=True)
        rounded = p["rounded"].astype(jnp.bfloat16).astype(jnp.float32)
        adapted = p["adapted"] + p["down"] @ p["up"]
        return residual([rounded, p["transposed"].T, 0.5 * p["scaled"], norm, p["masked"] * mask, adapted], x) @ p["out"]

    params = weights("rounded", "transposed", "scaled", "norm", "masked", "adapted")
    params |= {"down": normal(np.random.default_rng(2), INPUTS, 4), "up": jnp.zeros((4, INPUTS))}
    return micro_batched(model, params, gap=0.5)
