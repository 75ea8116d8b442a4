"""Steps whose gradients look unlike those of plain layers: written by hand, of numbers, of rounded weights, of branches; and a loss that
the gradients mask."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import normal
from research import floats, mlp, run, trained, tx


def images():
    """A batch that a small classifier can learn."""
    x = floats(32, 16)
    return {"x": x, "y": (2 * (x[..., 0] > 0) + (x[..., 1] > 0)).astype(np.int32)}


def cross_entropy(logits, batch):
    return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()


@step
def written_norm():
    """The backward pass of a norm, written by hand, has a dot with the gain, which the forward pass only multiplies."""

    @jax.custom_vjp
    def norm(x, gain):
        return forward(x, gain)[0]

    def forward(x, gain):
        inverse = jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)
        return x * inverse * gain, (x * inverse, inverse, gain)

    def backward(saved, gradient):
        y, inverse, gain = saved
        along = ((gradient * y) @ gain)[:, None] / gain.size
        return inverse * (gradient * gain - y * along), (gradient * y).sum(0)

    norm.defvjp(forward, backward)
    random = np.random.default_rng(0)
    params = {"in": normal(random, 16, 32, scale=0.25), "gain": jnp.ones(32), "w": normal(random, 32, 32, scale=0.2), "out": normal(random, 32, 4, scale=0.2)}
    loss = lambda p, b: cross_entropy(jax.nn.gelu(norm(b["x"] @ p["in"], p["gain"]) @ p["w"]) @ p["out"], b)
    return trained(loss, params, images(), tx(1e-2), linear=(2, 1, 2))


@step
def integer_weights():
    """Weights are rounded to integers in the forward pass; gradients pass as if they were not."""

    @jax.custom_vjp
    def rounded(w):
        return jnp.clip(jnp.round(w * 64), -127, 127) / 64

    rounded.defvjp(lambda w: (rounded(w), None), lambda _, gradient: (gradient,))
    params = mlp(np.random.default_rng(0), 16, 32, 32, 4)
    loss = lambda p, b: cross_entropy(run([{"w": rounded(layer["w"]), "b": layer["b"]} for layer in p], b["x"]), b)
    return trained(loss, params, images(), tx(1e-2), linear=(2, 1, 2))


@step
def scaled_penalty():
    """The gradient of a sum of squares, of a loss whose scale is state, is a product of a number and the weight."""
    params = mlp(np.random.default_rng(0), 16, 32, 32, 4)

    def train(params, scale, batch):
        def loss(p):
            return scale * (cross_entropy(run(p, batch["x"]), batch) + 1e-3 * sum(jnp.vdot(layer["w"], layer["w"]) for layer in p))

        value, grads = jax.value_and_grad(loss)(params)
        finite = jnp.isfinite(optax.global_norm(grads))
        new = jax.tree.map(lambda p, g: jnp.where(finite, p - 0.2 * g / scale, p), params, grads)
        return new, jnp.where(finite, scale, scale / 2), value / scale

    state = {"params": params, "scale": jnp.float32(1024)}
    return Step(train, state, {"batch": images()}, lambda r: r[2], lambda r: dict(zip(("params", "scale"), r)), linear=(2, 1, 2), repeated=3)


@step
def masked_loss():
    """The returned loss is zero in a step whose gradients are not finite, which takes part in the backward pass."""
    params = mlp(np.random.default_rng(0), 16, 32, 32, 4)

    def train(params, batch):
        value, grads = jax.value_and_grad(lambda p: cross_entropy(run(p, batch["x"]), batch))(params)
        finite = jnp.isfinite(optax.global_norm(grads))
        return jax.tree.map(lambda p, g: jnp.where(finite, p - 0.2 * g, p), params, grads), jnp.where(finite, value, 0.0)

    return Step(train, {"params": params}, {"batch": images()}, lambda r: r[1], lambda r: {"params": r[0]}, linear=(2, 1, 2))


@step
def ragged_experts():
    """A ragged dot contracts the experts in its forward pass and in its dgrad."""
    random = np.random.default_rng(0)
    params = {"in": normal(random, 16, 32, scale=0.25), "experts": normal(random, 3, 32, 32, scale=0.2), "out": normal(random, 32, 4, scale=0.2)}

    def loss(p, b):
        x = jax.lax.ragged_dot(jnp.tanh(b["x"] @ p["in"]), p["experts"], jnp.array([12, 4, 16], jnp.int32))
        return cross_entropy(jnp.tanh(x) @ p["out"], b)

    return trained(loss, params, images(), tx(1e-2), linear=(2, 1, 2))


@step
def branches_of_layers():
    """A scan takes one of two layers, whose branches compute the same gradient of their output."""
    random = np.random.default_rng(0)
    params = {"in": normal(random, 16, 32, scale=0.25), "out": normal(random, 32, 4, scale=0.2)}
    params |= {name: normal(random, 3, 32, 32, scale=0.25) for name in "ab"}

    def loss(p, batch):
        def layer(x, w):
            return jax.lax.cond(w[2], lambda x: jax.nn.relu(x @ w[0]), lambda x: jax.nn.relu(x @ w[1]), x), None

        x, _ = jax.lax.scan(layer, batch["x"] @ p["in"], (p["a"], p["b"], jnp.array([True, False, True])))
        return cross_entropy(x @ p["out"], batch)

    return trained(loss, params, images(), tx(1e-2), linear=(3, 2, 3), wgrads=3)
