"""Flax NNX: model and optimizer are split into a graph and a state, and the state is trained in FP8.

python examples/python/flax_nnx.py [RECIPE] [STEPS]
"""

import sys

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from text import batches

import fp8


class Mixer(nnx.Module):
    """A gated unit over each byte and its neighbours."""

    def __init__(self, width, rngs):
        self.norm = nnx.RMSNorm(width, rngs=rngs)
        self.gate = nnx.Linear(4 * width, 2 * width, use_bias=False, rngs=rngs)
        self.up = nnx.Linear(4 * width, 2 * width, use_bias=False, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, use_bias=False, rngs=rngs)

    def __call__(self, x):
        h = self.norm(x)
        h = jnp.concatenate([jnp.pad(h, ((0, 0), (i, 0), (0, 0)))[:, : x.shape[1]] for i in range(4)], -1)
        return x + self.down(nnx.silu(self.gate(h)) * self.up(h))


class ByteModel(nnx.Module):
    def __init__(self, width=64, layers=3, *, rngs):
        self.embed = nnx.Embed(256, width, rngs=rngs)
        self.layers = nnx.List([Mixer(width, rngs) for _ in range(layers)])
        self.head = nnx.Linear(width, 256, use_bias=False, rngs=rngs)

    def __call__(self, tokens):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def initial():
    model = ByteModel(rngs=nnx.Rngs(0))
    return nnx.split((model, nnx.Optimizer(model, optax.adamw(3e-3), wrt=nnx.Param)))


GRAPH, _ = initial()


def step(state, batch):
    model, optimizer = nnx.merge(GRAPH, state)

    def loss_of(model):
        return optax.softmax_cross_entropy_with_integer_labels(model(batch["tokens"]), batch["next"]).mean()

    loss, grads = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, grads)
    return nnx.state((model, optimizer)), {"loss": loss}


if __name__ == "__main__":
    recipe, steps = (sys.argv[1:] + ["tensorwise", "20"][len(sys.argv) - 1 :])[:2]
    (_, state), data = initial(), batches()
    step8 = fp8.compile(step, state, next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, next(data))
        print(f"step {i + 1}  loss {metrics['loss']:.4f}")
    # The trained model as an NNX module.
    model, _ = nnx.merge(GRAPH, jax.tree.map(jnp.asarray, state))
    print(model(next(data)["tokens"]).shape)
