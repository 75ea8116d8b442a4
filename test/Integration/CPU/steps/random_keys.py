"""Dropout and noise, with keys of all kinds."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *


def tx():
    return optax.adamw(3e-3, eps=1e-6)


def dropper(key, rate=0.1):
    def dropout(x, place):
        keep = jax.random.bernoulli(jax.random.fold_in(key, place), 1 - rate, x.shape)
        return jnp.where(keep, x / (1 - rate), 0)

    return dropout


@step
def gpt_dropout_typed_key():
    """GPT-2 with dropout; each step splits a typed key and returns it."""
    opt = tx()

    def train(state, key, tokens):
        key, use = jax.random.split(key)
        f = lambda p: next_token_loss(gpt(p, tokens[:, :-1], dropout=dropper(use)), tokens[:, 1:])
        loss, grads = jax.value_and_grad(f)(state["params"])
        updates, o = opt.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": o}, key, loss

    p = gpt_params()
    state = {"state": {"params": p, "opt": opt.init(p)}, "key": jax.random.key(7)}
    return Step(train, state, {"tokens": tokens()}, lambda r: r[2], lambda r: {"state": r[0], "key": r[1]},
                bound=1e-2, linear=4 * 2)  # fmt: skip


@step
def key_by_step_number():
    """One key for the whole run, folded with the step's number."""
    opt = tx()

    def train(params, opt_state, key, x, y):
        use = jax.random.fold_in(key, opt_state[0].count)
        keys = jax.random.split(use, 2)

        def objective(p):
            h = jax.nn.relu(x @ p[0]["w"] + p[0]["b"])
            h = h * jax.random.bernoulli(keys[0], 0.9, h.shape) / 0.9
            h = jax.nn.relu(h @ p[1]["w"] + p[1]["b"])
            h = h + 0.1 * jax.random.normal(keys[1], h.shape)
            return class_loss(h @ p[2]["w"] + p[2]["b"], y)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    p = mlp_params()
    x, y = clusters()
    state = {"params": p, "opt_state": opt.init(p), "key": jax.random.PRNGKey(3)}
    return Step(train, state, {"x": x, "y": y}, lambda r: r[2], lambda r: {"params": r[0], "opt_state": r[1]}, keys=("key",))


@step
def old_key_in_state_noise_everywhere():
    """A raw key among the state; noise of many distributions, a random crop and a permutation."""
    opt = tx()

    def train(state, x, y):
        key, *keys = jax.random.split(state["key"], 7)

        def objective(p):
            h = x * jax.random.uniform(keys[0], x.shape, minval=0.9, maxval=1.1)
            h = h + 0.05 * jax.random.truncated_normal(keys[1], -2.0, 2.0, x.shape)
            h = jax.nn.relu(h @ p[0]["w"] + p[0]["b"])
            h = h + 0.01 * jax.random.gumbel(keys[2], h.shape) + 0.01 * jax.random.laplace(keys[3], h.shape)
            h = jax.nn.relu(h @ p[1]["w"] + p[1]["b"])
            shift = jax.random.randint(keys[4], (), 0, 4)
            h = jnp.roll(h, 4 * (shift // 8), axis=1)
            return class_loss(h @ p[2]["w"] + p[2]["b"], y)

        loss, grads = jax.value_and_grad(objective)(state["params"])
        updates, o = opt.update(grads, state["opt"], state["params"])
        state = {"params": optax.apply_updates(state["params"], updates), "opt": o, "key": key}
        return state, {"loss": loss, "choice": jax.random.categorical(keys[5], jnp.zeros(10)), "bits": jax.random.bits(keys[5], (3,))}

    p = mlp_params()
    x, y = clusters()
    state = {"params": p, "opt": opt.init(p), "key": jax.random.PRNGKey(11)}
    return Step(train, {"state": state}, {"x": x, "y": y}, lambda r: r[1]["loss"], lambda r: {"state": r[0]})


@step
def simulated_environment():
    """No data: a policy's loss is its cost in an environment that begins in random states and pushes it at random."""
    random = np.random.default_rng(0)
    params, opt = {"w1": normal(random, 4, 32, scale=0.5), "w2": normal(random, 32, 32, scale=0.2), "w3": normal(random, 32, 4, scale=0.2)}, tx()

    def train(params, opt_state, key):
        key, begin, push = jax.random.split(key, 3)

        def loss(p):
            def act(x, noise):
                x = 0.9 * x + 0.5 * jnp.tanh(jnp.tanh(x @ p["w1"]) @ p["w2"]) @ p["w3"] + 0.1 * noise
                return x, jnp.square(x).mean()

            noise = jax.random.normal(push, (5, 32, 4))
            return jax.lax.scan(act, jax.random.normal(begin, (32, 4)), noise)[1].mean()

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return {"params": optax.apply_updates(params, updates), "opt_state": opt_state, "key": key}, value

    state = {"params": params, "opt_state": opt.init(params), "key": jax.random.PRNGKey(0)}
    return Step(train, state, {}, lambda r: r[1], lambda r: r[0], linear=3)


@step
def philox_key():
    """The hardware's generator, rng_bit_generator (unsafe_rbg)."""
    opt = tx()

    def train(params, opt_state, key, tokens):
        key, use = jax.random.split(key)
        f = lambda p: next_token_loss(gpt(p, tokens[:, :-1], dropout=dropper(use, 0.2)), tokens[:, 1:])
        loss, grads = jax.value_and_grad(f)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return loss, key, optax.apply_updates(params, updates), opt_state

    p = gpt_params(layers=1)
    state = {"params": p, "opt_state": opt.init(p), "key": jax.random.key(5, impl="unsafe_rbg")}
    return Step(train, state, {"tokens": tokens()}, lambda r: r[0], lambda r: {"key": r[1], "params": r[2], "opt_state": r[3]},
                bound=1e-2, linear=4)  # fmt: skip
