"""Equinox: a module split into its arrays, which are trained in FP8, and the rest.

python examples/python/equinox_model.py [RECIPE] [STEPS]
"""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from text import batches

import fp8


class Block(eqx.Module):
    norm: eqx.nn.RMSNorm
    attention: eqx.nn.MultiheadAttention
    up: eqx.nn.Linear
    down: eqx.nn.Linear

    def __init__(self, width, key):
        one, two, three = jax.random.split(key, 3)
        self.norm = eqx.nn.RMSNorm(width, use_bias=False)
        self.attention = eqx.nn.MultiheadAttention(4, width, key=one)
        self.up = eqx.nn.Linear(width, 4 * width, use_bias=False, key=two)
        self.down = eqx.nn.Linear(4 * width, width, use_bias=False, key=three)

    def __call__(self, x):
        h = jax.vmap(self.norm)(x)
        x = x + self.attention(h, h, h, mask=jnp.tri(len(x), dtype=bool))
        return x + jax.vmap(lambda row: self.down(jax.nn.gelu(self.up(self.norm(row)))))(x)


class ByteModel(eqx.Module):
    embed: eqx.nn.Embedding
    blocks: list
    head: eqx.nn.Linear

    def __init__(self, width=64, layers=2, *, key):
        keys = jax.random.split(key, layers + 2)
        self.embed = eqx.nn.Embedding(256, width, key=keys[0])
        self.blocks = [Block(width, key) for key in keys[1:-1]]
        self.head = eqx.nn.Linear(width, 256, use_bias=False, key=keys[-1])

    def __call__(self, tokens):
        x = jax.vmap(self.embed)(tokens)
        for block in self.blocks:
            x = block(x)
        return jax.vmap(self.head)(x)


OPTIMIZER = optax.adamw(3e-3)
# Fields that are not arrays (functions, sizes) are not part of the state.
STATIC = eqx.partition(ByteModel(key=jax.random.key(0)), eqx.is_array)[1]


def initial():
    arrays = eqx.filter(ByteModel(key=jax.random.key(0)), eqx.is_array)
    return arrays, OPTIMIZER.init(arrays)


def step(state, batch):
    arrays, opt = state

    def loss_of(arrays):
        logits = jax.vmap(eqx.combine(arrays, STATIC))(batch["tokens"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]).mean()

    loss, grads = jax.value_and_grad(loss_of)(arrays)
    updates, opt = OPTIMIZER.update(grads, opt, arrays)
    return (eqx.apply_updates(arrays, updates), opt), {"loss": loss}


if __name__ == "__main__":
    recipe, steps = (sys.argv[1:] + ["tensorwise", "20"][len(sys.argv) - 1 :])[:2]
    state, data = initial(), batches()
    step8 = fp8.compile(step, state, next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, next(data))
        print(f"step {i + 1}  loss {metrics['loss']:.4f}")
    # Make a module again from the trained arrays.
    model = eqx.combine(jax.tree.map(jnp.asarray, state[0]), STATIC)
    print("next byte after 'the ':", chr(int(model(jnp.frombuffer(b"the ", jnp.uint8).astype(jnp.int32))[-1].argmax())))
