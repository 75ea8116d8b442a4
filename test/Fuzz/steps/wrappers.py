"""Wrappers around an optax optimizer, and around an algorithm."""

import inspect

import jax
import jax.numpy as jnp
import optax

from . import optimizers
from .objective import cast

tm = jax.tree.map


def _matrices(params):
    return tm(lambda p: p.ndim > 1, params)


def _labels(params):
    return tm(lambda p: "matrix" if p.ndim > 1 else "vector", params)


def _wrapped(c):
    factory, options = optimizers.optax_factory(c)
    if c.wrap == "inject" and options:
        # Other options must be known while tracing; a type or function as default would be taken for a
        # schedule.
        defaults = {name: parameter.default for name, parameter in inspect.signature(factory).parameters.items()}
        static = {name for name in options if "learning_rate" not in name}
        static |= {name for name, value in defaults.items() if name not in options and value is not inspect.Parameter.empty and callable(value)}
        return optax.inject_hyperparams(factory, static_args=static)(**options)
    tx = factory(**options)
    if c.wrap == "multi_steps":
        # Its own gradient_transformation() drops the extra arguments of searches and polyak_sgd.
        multi = optax.MultiSteps(tx, every_k_schedule=2)
        return optax.GradientTransformationExtraArgs(multi.init, multi.update)
    if c.wrap == "apply_if_finite":
        return optax.apply_if_finite(tx, max_consecutive_errors=3)
    if c.wrap == "masked":
        return optax.chain(optax.masked(tx, _matrices), optax.masked(optax.sgd(1e-2), lambda p: tm(lambda m: not m, _matrices(p))))
    if c.wrap == "partition":
        return optax.partition({"matrix": tx, "vector": optax.adam(1e-2)}, _labels)
    if c.wrap == "chain_decay":
        return optax.chain(optax.add_decayed_weights(1e-2, mask=_matrices), optax.zero_nans(), tx)
    if c.wrap == "named_chain":
        return optax.named_chain(("main", tx), ("decay", optax.add_decayed_weights(-1e-4)))
    return tx


CLIPS = {
    "global_norm": lambda: optax.clip_by_global_norm(0.5), "adaptive": lambda: optax.adaptive_grad_clip(0.3),
    "block_rms": lambda: optax.clip_by_block_rms(0.02), "value": lambda: optax.clip(0.02),
}  # fmt: skip


def frozen_by_optimizer(tx, keep):
    """Sets updates to zero where keep(path) is false."""
    label = lambda params: jax.tree_util.tree_map_with_path(lambda path, _: "train" if keep(path) else "freeze", params)
    return optax.partition({"train": tx, "freeze": optax.set_to_zero()}, label)


def lookahead(tx, name):
    """Wraps in optax.lookahead, whose parameters are a pair."""
    tx = optax.with_extra_args_support(tx)

    def around(**asked):
        # It does not pass on the value, which momo needs; sam rejects it.
        asked = {} if name == "sam" else asked
        fast = optax.GradientTransformation(tx.init, lambda updates, state, params: tx.update(updates, state, params, **asked))
        return optax.lookahead(fast, sync_period=3, slow_step_size=0.5)

    synced = optax.LookaheadParams.init_synced

    def step(objective, params, state):
        out, grads = objective(params.fast)
        updates, state = around(value=out[0]).update(grads, state, params)
        return optax.apply_updates(params, updates), state, out

    return lambda params: around().init(synced(params)), step, synced


def algorithm(c, keep=None):
    """Returns init, step and the conversion of the initial parameters."""
    same = lambda params: params
    if optimizers.by_hand(c.optimizer):
        init, step = optimizers.BY_HAND[c.optimizer]()
    else:
        tx = _wrapped(c)
        if c.clip != "none":
            tx = optax.chain(CLIPS[c.clip](), tx)
        if keep and c.frozen == "optimizer":
            tx = frozen_by_optimizer(tx, keep)
        init, step = optimizers.of_optax(tx, c.optimizer)
        if c.wrap == "lookahead":
            init, step, same = lookahead(tx, c.optimizer)
    return with_types(c, init, step, same)


def with_types(c, init, step, first):
    """Converts parameters to the draw's types: bf16, with or without f32 masters."""
    if c.dtype == "all_bf16":
        return init, step, lambda params: first(cast(params, jnp.bfloat16))
    if c.dtype != "masters":
        return init, step, first

    def init_masters(params):
        # The step gets bf16 parameters; masters start from them.
        masters = cast(params, jnp.float32)
        return {"inner": init(masters), "masters": masters}

    def step_masters(objective, params, state):
        def of_masters(at):
            out, grads = objective(params if at is state["masters"] else cast(at, jnp.bfloat16))
            return out, cast(grads, jnp.float32)

        masters, inner, out = step(of_masters, state["masters"], state["inner"])
        return cast(masters, jnp.bfloat16), {"inner": inner, "masters": masters}, out

    return init_masters, step_masters, lambda params: cast(params, jnp.bfloat16)
