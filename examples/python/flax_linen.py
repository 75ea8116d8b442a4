"""Flax linen: a byte model with its TrainState, trained in FP8.

python examples/python/flax_linen.py [RECIPE] [STEPS]
"""

import sys

import flax.linen as nn
import jax
import optax
from flax.training.train_state import TrainState
from text import batches

import fp8


class Block(nn.Module):
    @nn.compact
    def __call__(self, x):
        h = nn.RMSNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4, use_bias=False)(h, mask=nn.make_causal_mask(x[..., 0]))
        h = nn.RMSNorm()(x)
        gate, up = nn.Dense(256, use_bias=False)(h), nn.Dense(256, use_bias=False)(h)
        return x + nn.Dense(x.shape[-1], use_bias=False)(nn.silu(gate) * up)


class ByteModel(nn.Module):
    @nn.compact
    def __call__(self, tokens):
        x = nn.Embed(256, 96)(tokens)
        for _ in range(2):
            x = Block()(x)
        return nn.Dense(256, use_bias=False)(nn.RMSNorm()(x))


def step(state, batch):
    def loss_of(params):
        logits = state.apply_fn(params, batch["tokens"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]).mean()

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), {"loss": loss, "norm": optax.tree.norm(grads)}


def initial():
    model = ByteModel()
    params = model.init(jax.random.key(0), next(batches())["tokens"])
    return TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(3e-3))


if __name__ == "__main__":
    recipe, steps = (sys.argv[1:] + ["tensorwise", "20"][len(sys.argv) - 1 :])[:2]
    state, data = initial(), batches()
    step8 = fp8.compile(step, state, next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, next(data))
        print(f"step {int(state.step)}  loss {metrics['loss']:.4f}")
