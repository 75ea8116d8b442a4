"""Steps that the tests of the Python package share: random data, and every kind of container that
JAX has."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2))


class Pair(NamedTuple):
    params: Any
    opt: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Record:
    params: Any
    opt: Any


class Plain:
    """Its children have no names, only numbers."""

    def __init__(self, params, opt):
        self.params, self.opt = params, opt


jax.tree_util.register_pytree_node(Plain, lambda x: ((x.params, x.opt), None), lambda _, children: Plain(*children))


def parameters(seed=0, dtype=jnp.float32):
    random = np.random.default_rng(seed)
    shapes = {"in": (48, 64), "up": (64, 96), "down": (96, 64), "out": (64, 8)}
    return {name: jnp.asarray(random.normal(0, shape[0] ** -0.5, shape), dtype) for name, shape in shapes.items()}


def batch(seed=1):
    random = np.random.default_rng(seed)
    normal = lambda *shape: jnp.asarray(random.normal(size=shape), jnp.float32)
    return {"x": normal(32, 48), "y": normal(32, 8), "weights": {"unused": jnp.ones((32, 3))}}


def forward(params, x):
    h = x @ params["in"]
    h = h + jax.nn.silu(h @ params["up"]) @ params["down"]
    return h @ params["out"]


def update(params, opt, batch):
    def loss(p):
        return jnp.mean((forward(p, batch["x"]).astype(jnp.float32) - batch["y"]) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    updates, opt = OPTIMIZER.update(grads, opt, params)
    return optax.apply_updates(params, updates), opt, {"loss": value, "norm": optax.tree.norm(grads)}


def tupled(state, batch):
    params, opt, metrics = update(*state, batch)
    return (params, opt), metrics


def keyed(state, batch):
    params, opt, metrics = update(state["params"], state["opt"], batch)
    return {"params": params, "opt": opt, "key": jax.random.split(state["key"])[0]}, metrics


def paired(state, batch):
    params, opt, metrics = update(state.params, state.opt, batch)
    return type(state)(params, opt), metrics


def flat(params, opt, batch):
    return update(params, opt, batch)


def state(kind="tupled", dtype=jnp.float32):
    params = parameters(dtype=dtype)
    opt = OPTIMIZER.init(params)
    return {
        "tupled": lambda: (params, opt),
        "keyed": lambda: {"params": params, "opt": opt, "key": jax.random.key(7)},
        "pair": lambda: Pair(params, opt),
        "record": lambda: Record(params, opt),
        "plain": lambda: Plain(params, opt),
    }[kind]()
