"""Preference tuning (DPO, arXiv 2305.18290) with a frozen FP8 reference model.

python examples/python/dpo.py [RECIPE] [STEPS]
"""

import sys

import flax_nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from text import batches

import fp8

MODEL = flax_nnx.ByteModel(rngs=nnx.Rngs(0))
GRAPH, PARAMS = nnx.split(MODEL)
OPTIMIZER = optax.adamw(1e-3)
BETA = 0.1


def log_likelihood(params, batch):
    """Returns the log-likelihood of each row's bytes, given the preceding ones."""
    logits = nnx.merge(GRAPH, params)(batch["tokens"])
    return -jnp.sum(optax.softmax_cross_entropy_with_integer_labels(logits, batch["next"]) * batch["mask"], -1)


def step(state, reference, chosen, rejected):
    def loss_of(params):
        gain = lambda batch: log_likelihood(params, batch) - jax.lax.stop_gradient(log_likelihood(reference, batch))
        margin = BETA * (gain(chosen) - gain(rejected))
        return -jnp.mean(jax.nn.log_sigmoid(margin)), jnp.mean(margin > 0)

    (loss, accuracy), grads = jax.value_and_grad(loss_of, has_aux=True)(state["params"])
    updates, opt = OPTIMIZER.update(grads, state["opt"], state["params"])
    return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, {"loss": loss, "accuracy": accuracy}


def initial():
    # The step replaces its state; the reference does not change.
    return {"params": PARAMS, "opt": OPTIMIZER.init(PARAMS)}


def pairs():
    """Yields pairs: the text is chosen, a permutation of its bytes rejected."""
    random = np.random.default_rng(0)
    for batch in batches(prompt=16):
        order = random.permutation(64)
        yield batch, {**batch, "tokens": batch["tokens"][:, order], "next": batch["next"][:, order]}


if __name__ == "__main__":
    recipe, steps = (sys.argv[1:] + ["tensorwise", "20"][len(sys.argv) - 1 :])[:2]
    state, data = initial(), pairs()
    step8 = fp8.compile(step, state, PARAMS, *next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, PARAMS, *next(data))
        print(f"step {i + 1}  loss {metrics['loss']:.4f}  accuracy {metrics['accuracy']:.2f}")
