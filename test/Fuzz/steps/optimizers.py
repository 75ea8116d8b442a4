"""Optimizers: all of optax and optax.contrib that take gradients, and some hand-written ones.

An algorithm is init(params) -> state and step(objective, params, state) ->
params, state, (loss, metrics); objective(params) -> ((loss, metrics), gradients).

Left out: lookahead and sam in opaque mode wrap others (see `wrap`),
differentially private ones and per-example clipping need a gradient for each example, split_real_and_imaginary
is for complex parameters, freeze and set_to_zero do not move parameters, and nnls and the
Hessian estimator alone are not optimizers.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from optax import contrib

tm = jax.tree.map

RATE = 1e-2


def _schedule(c):
    return optax.linear_schedule(2e-3, RATE, 4) if c.schedule == "warmup" else RATE


# Name: factory and its options. A rate of None takes the draw's schedule.
OPTAX = {
    "sgd": (optax.sgd, {"learning_rate": None}),
    "momentum": (optax.sgd, {"learning_rate": None, "momentum": 0.9}),
    "nesterov_momentum": (optax.sgd, {"learning_rate": None, "momentum": 0.9, "nesterov": True}),
    "adam": (optax.adam, {"learning_rate": None}),
    "adam_bf16_moments": (optax.adam, {"learning_rate": None, "mu_dtype": jnp.bfloat16}),
    "adamw": (optax.adamw, {"learning_rate": None, "weight_decay": 0.1}),
    "nadam": (optax.nadam, {"learning_rate": None}),
    "nadamw": (optax.nadamw, {"learning_rate": None}),
    "amsgrad": (optax.amsgrad, {"learning_rate": None}),
    "adamax": (optax.adamax, {"learning_rate": None}),
    "adamaxw": (optax.adamaxw, {"learning_rate": None}),
    "adabelief": (optax.adabelief, {"learning_rate": None, "eps": 1e-8}),
    "adadelta": (optax.adadelta, {"learning_rate": 1.0}),
    "adafactor": (optax.adafactor, {"learning_rate": None, "min_dim_size_to_factor": 8}),
    "adafactor_momentum": (optax.adafactor, {"learning_rate": None, "min_dim_size_to_factor": 8, "momentum": 0.9}),
    "adagrad": (optax.adagrad, {"learning_rate": None}),
    "adan": (optax.adan, {"learning_rate": None}),
    "fromage": (optax.fromage, {"learning_rate": 1e-2}),
    "lamb": (optax.lamb, {"learning_rate": None}),
    "lars": (optax.lars, {"learning_rate": 1.0}),
    "lion": (optax.lion, {"learning_rate": None}),
    "noisy_sgd": (optax.noisy_sgd, {"learning_rate": None}),
    "novograd": (optax.novograd, {"learning_rate": None}),
    "optimistic_adam": (optax.optimistic_adam_v2, {"learning_rate": None}),
    "optimistic_gradient_descent": (optax.optimistic_gradient_descent, {"learning_rate": None}),
    "polyak_sgd": (optax.polyak_sgd, {"max_learning_rate": 0.1}),
    "radam": (optax.radam, {"learning_rate": None, "threshold": 5.0}),
    "rmsprop": (optax.rmsprop, {"learning_rate": None}),
    "rmsprop_centered_momentum": (optax.rmsprop, {"learning_rate": 1e-3, "centered": True, "momentum": 0.9}),
    "rprop": (optax.rprop, {"learning_rate": 1e-2}),
    "sign_sgd": (optax.sign_sgd, {"learning_rate": 1e-3}),
    "signum": (optax.signum, {"learning_rate": 1e-3}),
    "sm3": (optax.sm3, {"learning_rate": 1e-2}),
    "yogi": (optax.yogi, {"learning_rate": None}),
    "lbfgs": (optax.lbfgs, {"memory_size": 3}),
    "lbfgs_backtracking": (lambda: optax.chain(optax.scale_by_lbfgs(3), optax.scale(-1.0), optax.scale_by_backtracking_linesearch(5)), {}),
    "sgd_backtracking": (lambda: optax.chain(optax.sgd(0.2), optax.scale_by_backtracking_linesearch(5)), {}),
    "sgd_zoom": (lambda: optax.chain(optax.sgd(1.0), optax.scale_by_zoom_linesearch(5)), {}),
    "apply_every": (lambda: optax.chain(optax.apply_every(2), optax.sgd(RATE)), {}),
    "ema_of_gradients": (lambda: optax.chain(optax.ema(0.9), optax.sgd(5 * RATE)), {}),
    "add_noise": (lambda: optax.chain(optax.add_noise(1e-3, 0.5, 1), optax.adam(RATE)), {}),
    "normalize_by_update_norm": (lambda: optax.chain(optax.normalize_by_update_norm(), optax.sgd(5 * RATE)), {}),
    "param_block_rms": (lambda: optax.chain(optax.scale_by_rss(), optax.scale_by_param_block_rms(), optax.scale(-RATE)), {}),
    "param_block_norm": (lambda: optax.chain(optax.trace(0.9), optax.scale_by_param_block_norm(), optax.scale(-RATE)), {}),
    "stddev": (lambda: optax.chain(optax.scale_by_stddev(), optax.scale(-RATE)), {}),
    "trust_ratio": (lambda: optax.chain(optax.centralize(), optax.scale_by_trust_ratio(), optax.scale(-5 * RATE)), {}),
    "nonnegative": (lambda: optax.chain(optax.sgd(RATE), optax.keep_params_nonnegative()), {}),
    "distance_over_gradients": (lambda: optax.chain(optax.scale_by_distance_over_gradients(reps_rel=1e-2), optax.scale(-1.0)), {}),
    "monitored": (lambda: optax.chain(optax.snapshot("grads", lambda u: optax.global_norm(u)), optax.adam(RATE)), {}),
    "acprop": (contrib.acprop, {"learning_rate": None}),
    "ademamix": (contrib.ademamix, {"learning_rate": None}),
    "simplified_ademamix": (contrib.simplified_ademamix, {"learning_rate": 1e-3}),
    "adopt": (contrib.adopt, {"learning_rate": None}),
    "cocob": (contrib.cocob, {}),
    "dadapt_adamw": (contrib.dadapt_adamw, {"learning_rate": 1.0, "estim_lr0": 1e-3}),
    "dog": (contrib.dog, {"learning_rate": 1.0, "init_step": ("heuristic", 1e-2)}),
    "dowg": (contrib.dowg, {"learning_rate": 1.0, "init_estim_sq_dist": 1e-3}),
    "galore": (contrib.galore, {"learning_rate": RATE, "rank": 4}),
    "madgrad": (contrib.madgrad, {"learning_rate": None}),
    "mechanized_sgd": (lambda: contrib.mechanize(optax.sgd(RATE), s_init=0.1), {}),
    "momo": (contrib.momo, {"learning_rate": 1.0}),
    "momo_adam": (contrib.momo_adam, {"learning_rate": RATE}),
    "muon": (contrib.muon, {"learning_rate": None}),
    "normalized": (lambda: optax.chain(contrib.normalize(), optax.sgd(5 * RATE)), {}),
    "prodigy": (contrib.prodigy, {"learning_rate": 1.0, "estim_lr0": 1e-3}),
    "reduce_on_plateau": (lambda: optax.chain(optax.adam(RATE), contrib.reduce_on_plateau(patience=1, factor=0.5)), {}),
    "sam": (lambda: contrib.sam(optax.sgd(RATE), optax.chain(contrib.normalize(), optax.sgd(0.05)), sync_period=2), {}),
    "schedule_free_adamw": (contrib.schedule_free_adamw, {"learning_rate": RATE, "warmup_steps": 2}),
    "schedule_free_sgd": (contrib.schedule_free_sgd, {"learning_rate": 5 * RATE}),
    "schedule_free_momentum": (lambda: contrib.schedule_free(optax.sgd(RATE), learning_rate=RATE, b1=0.9), {}),
    "sophia": (contrib.sophia, {"learning_rate": RATE}),
}

# These evaluate the objective in the update.
SEARCHES = {"lbfgs", "lbfgs_backtracking", "sgd_backtracking", "sgd_zoom", "sophia"}
# These divide a gradient by an earlier one: if rounding made that small, the loss leaps, and recovers.
LEAPING = {"acprop"}
# They step by the sign of a gradient or of an average.
SIGNED = {"sign_sgd", "signum", "lion", "rprop"}
# They divide a gradient by its norm.
SCALE_FREE = {"lars"}


def optax_factory(c):
    factory, options = OPTAX[c.optimizer]
    return factory, {name: _schedule(c) if value is None else value for name, value in options.items()}


def of_optax(tx, name):
    tx = optax.with_extra_args_support(tx)

    def step(objective, params, state):
        out, grads = objective(params)
        value = lambda p: objective(p)[0][0]
        # Line searches pass on unknown arguments, which sam rejects.
        asked = {"obj_fn": value} if name == "sophia" else {"value_fn": value}
        asked = {} if name == "sam" else {"value": out[0], "grad": grads, **asked}
        updates, state = tx.update(grads, state, params, **asked)
        return optax.apply_updates(params, updates), state, out

    return tx.init, step


# --------------------------------------------------------------------- by hand


def heavy_ball(rate=RATE, beta=0.9):
    def step(objective, params, state):
        out, grads = objective(params)
        return tm(lambda p, q, g: p + beta * (p - q) - rate * g, params, state, grads), params, out

    return lambda params: params, step


def nesterov(rate=RATE, beta=0.9):
    """The parameters are the iterate, the state is the extrapolated point."""

    def step(objective, params, state):
        out, grads = objective(state)
        new = tm(lambda y, g: y - rate * g, state, grads)
        return new, tm(lambda n, x: n + beta * (n - x), new, params), out

    return lambda params: params, step


def fista(rate=RATE, shrink=1e-4):
    def step(objective, params, state):
        out, grads = objective(state["y"])
        moved = tm(lambda y, g: y - rate * g, state["y"], grads)
        new = tm(lambda m: jnp.sign(m) * jnp.maximum(jnp.abs(m) - shrink, 0), moved)
        t = (1 + jnp.sqrt(1 + 4 * state["t"] ** 2)) / 2
        beta = (state["t"] - 1) / t
        return new, {"t": t, "y": tm(lambda n, x: n + (beta * (n - x)).astype(n.dtype), new, params)}, out

    return lambda params: {"t": jnp.float32(1), "y": params}, step


def svrg(rate=RATE, every=3):
    """Corrects the gradient by the snapshot's; the snapshot is renewed every third step."""

    def step(objective, params, state):
        out, grads = objective(params)
        _, there = objective(state["snapshot"])
        renew = state["count"] % every == 0
        choose = lambda new, old: tm(lambda n, o: jnp.where(renew, n, o), new, old)
        new = tm(lambda p, g, h, m: p - rate * (g - h + m), params, grads, there, state["mean"])
        return new, {"count": state["count"] + 1, "mean": choose(grads, state["mean"]), "snapshot": choose(params, state["snapshot"])}, out

    def init(params):
        random = np.random.default_rng(0)
        return {"count": jnp.int32(0), "mean": tm(jnp.zeros_like, params), "snapshot": tm(lambda p: p + jnp.asarray(random.normal(0, 1e-2, p.shape), p.dtype), params)}

    return init, step


def lookahead(rate=5 * RATE, every=3):
    def step(objective, params, state):
        out, grads = objective(params)
        fast = tm(lambda p, g: p - rate * g, params, grads)
        sync = state["count"] % every == every - 1
        slow = tm(lambda s, f: jnp.where(sync, s + 0.5 * (f - s), s), state["slow"], fast)
        return tm(lambda f, s: jnp.where(sync, s, f), fast, slow), {"count": state["count"] + 1, "slow": slow}, out

    return lambda params: {"count": jnp.int32(0), "slow": params}, step


def schedule_free(rate=5 * RATE, beta=0.9):
    """Takes gradients at y, between the average x and the iterate z."""

    def step(objective, params, state):
        between = lambda z, x: ((1 - beta) * z + beta * x).astype(z.dtype)
        out, grads = objective(tm(between, state["z"], params))
        z = tm(lambda z, g: z - rate * g, state["z"], grads)
        count = state["count"] + 1
        return tm(lambda x, z: (x + (z - x) / (count + 1)).astype(x.dtype), params, z), {"count": count, "z": z}, out

    return lambda params: {"count": jnp.float32(0), "z": params}, step


def rollback(rate=5 * RATE):
    """Returns to the last parameters if the loss has increased."""

    def step(objective, params, state):
        out, grads = objective(params)
        worse = out[0] > state["loss"] * 1.05
        new = tm(lambda p, o, g: jnp.where(worse, o, p - rate * g), params, state["old"], grads)
        return new, {"loss": out[0].astype(jnp.float32), "old": params}, out

    return lambda params: {"loss": jnp.float32(1e9), "old": params}, step


def proximal(rate=5 * RATE):
    """Pulls towards the parameters of the previous step."""

    def step(objective, params, state):
        out, grads = objective(params)
        return tm(lambda p, a, g: p - rate * (g + 0.5 * (p - a)), params, state, grads), params, out

    return lambda params: params, step


def adams_bashforth(rate=RATE):
    """A multistep method: combines the last three gradients."""

    def step(objective, params, state):
        out, grads = objective(params)
        move = lambda p, g, h, k: (p - rate * (23 * g - 16 * h + 5 * k) / 12).astype(p.dtype)
        return tm(move, params, grads, state["g1"], state["g2"]), {"g1": grads, "g2": state["g1"]}, out

    return lambda params: {name: tm(jnp.zeros_like, params) for name in ("g1", "g2")}, step


def barzilai_borwein(rate=RATE):
    """Computes the rate from the last two points and gradients."""

    def step(objective, params, state):
        out, grads = objective(params)
        dp, dg = tm(jnp.subtract, params, state["p"]), tm(jnp.subtract, grads, state["g"])
        dot = lambda a, b: sum(jnp.sum((x * y).astype(jnp.float32)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b)))
        bb = jnp.clip(jnp.abs(dot(dp, dg)) / jnp.maximum(dot(dg, dg), 1e-6), 1e-3, 5 * rate)
        return tm(lambda p, g: (p - bb * g).astype(p.dtype), params, grads), {"g": grads, "p": params, "rate": bb}, out

    init = lambda params: {"g": tm(jnp.zeros_like, params), "p": tm(lambda p: p * 0.99, params), "rate": jnp.float32(rate)}
    return init, step


def sharpness_aware(rate=5 * RATE, radius=0.05):
    def step(objective, params, state):
        out, grads = objective(params)
        norm = optax.global_norm(grads) + 1e-6
        _, grads = objective(tm(lambda p, g: (p + radius * g / norm).astype(p.dtype), params, grads))
        state = tm(lambda m, g: 0.9 * m + g, state, grads)
        return tm(lambda p, m: p - rate * m, params, state), state, out

    return lambda params: tm(jnp.zeros_like, params), step


def error_feedback(rate=5 * RATE):
    """Rounds gradients to fewer bits, and adds the rounding error to the next ones."""

    def step(objective, params, state):
        out, grads = objective(params)
        total = tm(jnp.add, grads, state)
        cut = tm(lambda t: jax.lax.reduce_precision(t.astype(jnp.float32), 8, 3).astype(t.dtype), total)
        return tm(lambda p, q: p - rate * q, params, cut), tm(jnp.subtract, total, cut), out

    return lambda params: tm(jnp.zeros_like, params), step


BY_HAND = {f"hand_{f.__name__}": f for f in (heavy_ball, nesterov, fista, svrg, lookahead, schedule_free, rollback, proximal, adams_bashforth, barzilai_borwein, sharpness_aware, error_feedback)}  # fmt: skip
NAMES = ["sgd", *(name for name in OPTAX if name != "sgd"), *BY_HAND]


def by_hand(name):
    return name in BY_HAND


def searches(name):
    """Returns whether the losses of an optimizer's objective decide its steps."""
    return name in SEARCHES or name == "hand_rollback"
