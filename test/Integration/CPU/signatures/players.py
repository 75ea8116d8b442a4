"""Several models that learn in one step, each with a loss that reads another one's weights."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from cases import ADAM, Case, case
from models import BATCH, WIDTH, init_params, matrix


@case
def two_players():
    """The actor's loss reads the updated critic."""
    critic, actor = init_params(), init_params()
    tx = optax.adam(1e-3)

    def update(loss_of, params, opt):
        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt = tx.update(grads, opt)
        return loss, optax.apply_updates(params, updates), opt

    def step(critic, actor, critic_opt, actor_opt, x, y):
        value = lambda p, x: jnp.tanh(x @ p["layers"][0]["q"]) @ p["layers"][0]["up"]
        loss, critic, critic_opt = update(lambda p: jnp.square(value(p, x) - y).mean(), critic, critic_opt)
        actor_loss, actor, actor_opt = update(lambda p: -value(critic, value(p, x)).mean(), actor, actor_opt)
        return {"critic": critic, "actor": actor, "critic_opt": critic_opt, "actor_opt": actor_opt}, {"loss": loss, "actor": actor_loss}

    pick = lambda tree: {"layers": [{name: tree["layers"][0][name] for name in ("q", "up")}]}
    critic, actor = pick(critic), pick(actor)
    args = {"critic": critic, "actor": actor, "critic_opt": tx.init(critic), "actor_opt": tx.init(actor), "x": jnp.zeros((BATCH, WIDTH)), "y": jnp.zeros((BATCH, WIDTH))}
    return Case(step, args, ["critic", "actor", "critic_opt", "actor_opt"], [*ADAM, (r"^(critic|actor)\b", "parameter")], {"x": "batch", "y": "batch"})


@case
def two_players_one_loss():
    """The actor's loss is not returned."""
    case = two_players()

    def step(**args):
        state, out = case.step(**args)
        return state, {"loss": out["loss"]}

    return case._replace(step=step)


@case
def two_players_error_feedback():
    """The judge's new masters contribute to the other player's gradients; their own gradient
    depends only on the judge in bf16."""
    random = np.random.default_rng(0)
    make = lambda: {"a": matrix(random, WIDTH, WIDTH), "b": jnp.zeros(WIDTH), "c": matrix(random, WIDTH, WIDTH)}
    judge, maker = make(), make()
    half = lambda tree: jax.tree.map(lambda x: x.astype(jnp.bfloat16), tree)
    apply = lambda p, x: jax.nn.relu(x @ p["a"] + p["b"]) @ p["c"]

    def learn(loss_of, masters, left, weights):
        loss, grads = jax.value_and_grad(loss_of)(weights)
        whole = jax.tree.map(lambda g, e: g.astype(jnp.float32) + e, grads, left)
        sent = jax.tree.map(lambda g: jax.lax.reduce_precision(g, 8, 3), whole)
        masters = jax.tree.map(lambda p, g: p - 1e-2 * g, masters, sent)
        return half(masters), masters, jax.tree.map(jnp.subtract, whole, sent), loss

    def step(judge, judge_masters, judge_left, maker, maker_masters, maker_left, x):
        size = lambda x: jnp.mean(jnp.square(x.astype(jnp.float32)))
        judge, judge_masters, judge_left, loss = learn(lambda p: size(apply(p, x) - apply(p, apply(maker, x))), judge_masters, judge_left, judge)
        maker, maker_masters, maker_left, _ = learn(lambda p: size(apply(judge, apply(p, x))), maker_masters, maker_left, maker)
        new = {"judge": judge, "judge_masters": judge_masters, "judge_left": judge_left, "maker": maker, "maker_masters": maker_masters, "maker_left": maker_left}
        return new, {"loss": loss}

    zeros = lambda tree: jax.tree.map(jnp.zeros_like, tree)
    args = {"judge": half(judge), "judge_masters": judge, "judge_left": zeros(judge), "maker": half(maker), "maker_masters": maker, "maker_left": zeros(maker)}
    args["x"] = jnp.zeros((BATCH, WIDTH), jnp.bfloat16)
    return Case(step, args, list(args)[:-1], [(r"", None)], {"x": "batch"})


@case
def one_element():
    """The gradient of a judge's last bias is a scalar until it is reshaped, and the new judge
    contributes to the gradients of the player that it judges."""
    random = np.random.default_rng(0)
    judge = {"a": matrix(random, WIDTH, WIDTH), "b": jnp.zeros(WIDTH), "c": matrix(random, WIDTH, 1), "d": jnp.zeros(1)}
    maker = {"a": matrix(random, WIDTH, WIDTH)}
    tx = optax.rmsprop(1e-3, centered=True, momentum=0.9)
    score = lambda judge, x: jax.nn.relu(x @ judge["a"] + judge["b"]) @ judge["c"] + judge["d"]

    def learn(loss_of, params, opt):
        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt = tx.update(grads, opt)
        return optax.apply_updates(params, updates), opt, loss

    def step(judge, judge_opt, maker, maker_opt, x):
        judge, judge_opt, loss = learn(lambda p: jnp.mean(jax.nn.softplus(-score(p, x))) + jnp.mean(jax.nn.softplus(score(p, x @ maker["a"]))), judge, judge_opt)
        maker, maker_opt, _ = learn(lambda p: jnp.mean(jax.nn.softplus(-score(judge, x @ p["a"]))), maker, maker_opt)
        return {"judge": judge, "judge_opt": judge_opt, "maker": maker, "maker_opt": maker_opt}, {"loss": loss}

    args = {"judge": judge, "judge_opt": tx.init(judge), "maker": maker, "maker_opt": tx.init(maker), "x": jnp.zeros((BATCH, WIDTH))}
    return Case(step, args, list(args)[:-1], [(r"", None)], {"x": "batch"})
