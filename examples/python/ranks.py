"""One step on several ranks, each with its own rows of the batch: state on all of them, or dealt to them with `zero`.

mpirun -n 2 python examples/python/ranks.py [RECIPE] [STEPS]
python examples/python/ranks.py                 # one rank alone
"""

import sys

import jax
import jax.numpy as jnp
import optax
from text import batches

import fp8

CONTEXT, WIDTH = 8, 256
OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3))


def initial():
    """Returns the initial state, the same on all ranks."""
    keys = jax.random.split(jax.random.key(0), 4)
    shapes = {"embed": (256, 32), "in": (32 * CONTEXT, WIDTH), "hidden": (WIDTH, WIDTH), "head": (WIDTH, 256)}
    params = {name: jax.random.normal(key, shape) * shape[0] ** -0.5 for key, (name, shape) in zip(keys, shapes.items())}
    return params, OPTIMIZER.init(params)


def step(state, batch):
    """Predicts a byte from the CONTEXT bytes before it. Nothing in it is specific to ranks."""
    params, opt = state

    def loss_of(params):
        x = jnp.pad(params["embed"][batch["tokens"]], ((0, 0), (CONTEXT - 1, 0), (0, 0)))
        x = jnp.concatenate([x[:, i : i + batch["tokens"].shape[1]] for i in range(CONTEXT)], axis=-1)
        x = jax.nn.gelu(x @ params["in"])
        x = x + jax.nn.gelu(x @ params["hidden"])
        return optax.softmax_cross_entropy_with_integer_labels(x @ params["head"], batch["next"]).mean()

    loss, grads = jax.value_and_grad(loss_of)(params)
    updates, opt = OPTIMIZER.update(grads, opt, params)
    return (optax.apply_updates(params, updates), opt), {"loss": loss}


if __name__ == "__main__":
    recipe, steps = (sys.argv[1:] + ["fp8_lm", "20"][len(sys.argv) - 1 :])[:2]
    with fp8.Group() as group:
        state, data = initial(), batches(seed=group.rank)
        step8 = fp8.compile(step, state, next(data), recipe=recipe, group=group, zero=1)
        for i in range(int(steps)):
            state, metrics = step8(state, next(data))
            if group.rank == 0:
                print(f"step {i + 1}  loss {metrics['loss']:.4f}, the mean over {group.size} ranks")
        step8.gather(state)  # each rank owns a part of the masters and moments
        if group.rank == 0:
            print("largest weight:", max(float(jnp.abs(jnp.asarray(weight)).max()) for weight in state[0].values()))
