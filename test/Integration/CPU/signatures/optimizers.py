"""Optimizers of optax: what each of their states is."""

import jax
import jax.numpy as jnp
import optax
from cases import ADAM, PARAMETER, Case, case
from models import TOKENS, init_params, loss_of, masters, optimized


@case
def adam():
    return optimized(optax.adam(1e-3), kinds=ADAM)


@case
def adamw_clipped_scheduled():
    schedule = optax.warmup_cosine_decay_schedule(0, 1e-3, 10, 100)
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.add_decayed_weights(0.1), optax.scale_by_schedule(schedule), optax.scale(-1.0))
    return optimized(tx, kinds=ADAM, more=lambda grads: {"norm": optax.global_norm(grads)})


@case
def injected_hyperparameters():
    return optimized(optax.inject_hyperparams(optax.adamw)(learning_rate=optax.linear_schedule(1e-3, 0, 100)), kinds=ADAM)


@case
def momentum():
    return optimized(optax.sgd(1e-2, momentum=0.9, nesterov=True), kinds=[(r"trace", "moment1")])


@case
def lion():
    return optimized(optax.lion(1e-4), kinds=ADAM)


@case
def rmsprop():
    return optimized(optax.rmsprop(1e-3, momentum=0.9), kinds=[(r"trace", "moment1"), (r"\.nu\b", "moment2")])


@case
def coupled_decay():
    """The decay goes through the moments."""
    return optimized(optax.chain(optax.add_decayed_weights(0.1), optax.adam(1e-3)), kinds=ADAM)


def over_calls(tx, kinds):
    tx = optax.MultiSteps(tx, every_k_schedule=2)
    return optimized(optax.GradientTransformation(tx.init, tx.update), kinds=[(r"acc_grads", "gradient"), (r"mini_step|gradient_step", "step"), *kinds])


@case
def multi_steps():
    return over_calls(optax.adamw(1e-3), ADAM)


@case
def multi_steps_descent():
    """The sum is the only state; it starts from zero again."""
    return over_calls(optax.sgd(1e-2), [])


@case
def multi_steps_momentum():
    return over_calls(optax.sgd(1e-2, momentum=0.9), [(r"trace", "moment1")])


@case
def multi_steps_lion():
    return over_calls(optax.lion(1e-4), ADAM)


@case
def apply_if_finite():
    return optimized(optax.apply_if_finite(optax.adam(1e-3), 3), kinds=[(r"notfinite", "step"), (r"last_finite", "other"), *ADAM])


@case
def adafactor():
    return optimized(optax.adafactor(1e-3, min_dim_size_to_factor=4), kinds=[(r"count", "step"), (r"\.v(_row|_col)?\b", None)])


@case
def adagrad():
    return optimized(optax.adagrad(1e-2), kinds=[(r"sum_of_squares", None)])


@case
def amsgrad():
    return optimized(optax.amsgrad(1e-3), kinds=[(r"nu_max", None), *ADAM])


@case
def adabelief():
    return optimized(optax.adabelief(1e-3), kinds=ADAM)


@case
def adan():
    return optimized(optax.adan(1e-3), kinds=[(r"count", "step"), (r"^opt", None)])


@case
def nadam():
    return optimized(optax.nadam(1e-3), kinds=ADAM)


@case
def lamb():
    return optimized(optax.lamb(1e-3), kinds=ADAM)


@case
def adamax():
    """The divisor is a magnitude, which is not linear in the gradient."""
    return optimized(optax.adamax(1e-3), kinds=ADAM)


@case
def slow_average():
    """AdEMAMix has two averages of the gradient, of which the slow one is not a moment for narrow
    formats."""
    from optax.contrib import ademamix

    return optimized(ademamix(1e-3), kinds=[(r"count", "step"), (r"\.m1\b", "moment1"), (r"\.m2\b", "other"), (r"\.nu\b", "moment2")])


@case
def sums_of_gradients():
    """MADGRAD sums all gradients of the training."""
    from optax.contrib import madgrad

    return optimized(madgrad(1e-3), kinds=[(r"\.count", "step"), (r"grad_sum_sq", "other"), (r"\.s\b", "other"), (r"^opt", None)])


@case
def muon():
    from optax.contrib import muon

    return optimized(muon(1e-3), kinds=[(r"count", "step"), (r"^opt", None)])


@case
def schedule_free():
    """The iterate z moves by the gradient and does not decay, as weights do."""
    from optax.contrib import schedule_free_adamw

    return optimized(schedule_free_adamw(1e-3), kinds=[(r"count", "step"), (r"\.z\b", "other"), (r"\.nu\b", "moment2"), (r"^opt", None)])


@case
def schedule_free_descent():
    from optax.contrib import schedule_free_sgd

    return optimized(schedule_free_sgd(1e-2), kinds=[(r"count", "step"), (r"\.z\b", "other"), (r"^opt", None)])


COCOB = [(r"^opt", None)]


@case
def coin_betting():
    """COCOB: p + (-p + start + bet), where the start is returned unchanged and the gradient is
    multiplied by the distance of p from it."""
    return optimized(optax.contrib.cocob(), kinds=COCOB)


@case
def coin_betting_with_decay():
    return optimized(optax.chain(optax.add_decayed_weights(1e-2), optax.contrib.cocob()), kinds=COCOB)


@case
def coin_betting_averaged():
    """An average of p contains p and -p too."""
    tx = optax.contrib.cocob()
    params = init_params()

    def step(params, opt, average, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, opt = tx.update(grads, opt, params)
        params = optax.apply_updates(params, updates)
        average = jax.tree.map(lambda a, p: 0.99 * a + 0.01 * p, average, params)
        return {"params": params, "opt": opt, "average": average}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "average": params, "tokens": TOKENS}
    return Case(step, args, ["params", "opt", "average"], [(r"^average", None), *COCOB, PARAMETER], {"tokens": "batch"})


@case
def coin_betting_masters():
    """Only the sum shows which of master and start changes."""
    return masters(jnp.bfloat16, optax.contrib.cocob(), COCOB)


@case
def last_gradient_with_decay():
    """The last gradient contains a share of the weights, and a flag is beside many flags of another kind."""
    return optimized(optax.chain(optax.add_decayed_weights(1e-2), optax.zero_nans(), optax.optimistic_gradient_descent(1e-2)), kinds=[(r"^opt", None)])


@case
def norms_with_injected_decay():
    """NovoGrad's averages of norms are scalars, and so is their decay, which is state."""
    return optimized(optax.inject_hyperparams(optax.novograd)(1e-2), kinds=[(r"^opt", None)])


@case
def flags_that_one_constant_replaces():
    """Optimistic descent of two groups, each with a flag for its first step."""
    labels = jax.tree_util.tree_map_with_path(lambda path, _: "layers" if "layers" in str(path) else "rest", init_params())
    tx = optax.partition({name: optax.optimistic_gradient_descent(1e-2) for name in ("layers", "rest")}, labels)
    return optimized(tx, kinds=[(r"^opt", None)])._replace(alike="is_initial_step")


@case
def ema_of_gradients_in_loop():
    return optimized(optax.chain(optax.ema(0.9), optax.sgd(1e-2)), params=init_params(stacked=True), kinds=[(r"\.ema\b", "moment1"), (r"count", "step")])
