"""PyTorch: an nn.Module with its loss is converted to JAX by torchax, trained in FP8 with optax, and converted back to a state_dict.

python examples/python/torch_model.py [RECIPE] [STEPS] [WEIGHTS.pt]
"""

import os
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
import torchax.interop
from text import batches
from torch import nn

import fp8


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        rows, length, width = x.shape
        q, k, v = (part.view(rows, length, self.heads, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        scores = (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).masked_fill(~mask, -1e9)
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(rows, length, width))
        h = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(h)) * self.up(h))


class ByteModel(nn.Module):
    """Returns the loss, as modules of Hugging Face do when they get labels."""

    def __init__(self, width=64, layers=2):
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.blocks = nn.Sequential(*(Block(width, 4) for _ in range(layers)))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, 256, bias=False)

    def forward(self, tokens, labels):
        logits = self.head(self.norm(self.blocks(self.embed(tokens))))
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def make_model():
    torch.manual_seed(0)
    return ByteModel()


# The module as a JAX function of its weights; gradients are taken with respect to the trainable
# ones.
WEIGHTS, CALL = torchax.extract_jax(make_model())
OPTIMIZER = optax.adamw(3e-3)


def initial(weights=None):
    weights = weights or WEIGHTS
    return {"weights": weights, "opt": OPTIMIZER.init(weights)}


def step(state, batch):
    loss, grads = jax.value_and_grad(lambda weights: CALL(weights, (batch["tokens"], batch["next"])))(state["weights"])
    updates, opt = OPTIMIZER.update(grads, state["opt"], state["weights"])
    return {"weights": optax.apply_updates(state["weights"], updates), "opt": opt}, {"loss": loss}


def state_dict(state):
    """Returns the weights as PyTorch tensors."""
    return {name: torch.from_numpy(np.array(weight)) for name, weight in state["weights"].items()}


if __name__ == "__main__":
    recipe, steps, path = (sys.argv[1:] + ["tensorwise", "20", "weights.pt"][len(sys.argv) - 1 :])[:3]
    state, data = initial(), batches()
    step8 = fp8.compile(step, state, next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, next(data))
        print(f"step {i + 1}  loss {metrics['loss']:.4f}")
    torch.save(state_dict(state), path)
    model = make_model()
    model.load_state_dict(torch.load(path))
    batch = next(data)
    loss = model(*(torch.from_numpy(np.array(batch[key])).long() for key in ("tokens", "next")))
    print(f"the weights in {path}, in PyTorch: loss {loss.item():.4f} on the next batch")
