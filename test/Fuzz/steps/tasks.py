"""What a step trains: one or several players, each with its optimizer.

A task is its state, by name, and update(state, batch, key) -> new state, loss,
metrics. State that the update does not return is frozen."""

import dataclasses
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from . import layers, models, objective, wrappers
from .choices import number

tm = jax.tree.map


@dataclasses.dataclass
class Task:
    state: dict
    batches: dict
    update: Callable
    # The parts of the state that no update returns.
    fixed: tuple = ()

    @property
    def changing(self):
        return [name for name in self.state if name not in self.fixed]


def floats(tree):
    return tm(lambda p: p.astype(jnp.float32), tree)


def average(tau, old, new):
    return tm(lambda o, n: (o + tau * (n.astype(o.dtype) - o)).astype(o.dtype), old, new)


def where(ok, new, old):
    return tm(lambda n, o: jnp.where(ok, n, o), new, old)


# ------------------------------------------------------------------ one player


def is_frozen(c, path):
    """Returns whether a weight is frozen: with adapters all base weights, else the input layer."""
    text = jax.tree_util.keystr(path)
    if c.transform.startswith("lora"):
        return text.endswith("['w']")
    return "['embed']" in text or "['input']" in text


def parts(c, params):
    """Returns the tree of trained and the tree of frozen weights, with None for the other's leaves."""
    pick = lambda frozen: jax.tree_util.tree_map_with_path(lambda path, p: p if is_frozen(c, path) == frozen else None, params)
    return pick(False), pick(True)


def joined(learns, rest):
    return tm(lambda a, b: b if a is None else a, learns, rest, is_leaf=lambda x: x is None)


def supervised(c, seed, distill=False):
    model = models.make(c, seed)
    loss = objective.supervised(c, model)
    initial, rest = model.params, None
    if c.frozen in ("argument", "returned"):
        initial, rest = parts(c, model.params)
    keep = lambda path: not is_frozen(c, path)
    init, step, first = wrappers.algorithm(c, keep)
    params = first(initial)
    # Masters and moments start from the parameters.
    state = {"params": params, "opt": init(first(initial) if c.dtype == "all_bf16" else initial)}
    if rest is not None:
        state["frozen"] = rest
    if distill:
        state["teacher"] = models.make(c, seed + 1).params if rest is None else parts(c, models.make(c, seed + 1).params)[0]
    if c.ema != "none":
        state["ema"] = params.fast if c.wrap == "lookahead" else params
    if c.scaling == "dynamic":
        state["scale"] = {"scale": jnp.float32(256), "good": jnp.int32(0)}

    def update(state, batch, key):
        new = {}

        def full(p):
            p = p if rest is None else joined(p, objective.cast(state["frozen"], jax.tree.leaves(p)[0].dtype))
            if c.frozen != "stop":
                return p
            return jax.tree_util.tree_map_with_path(lambda path, w: jax.lax.stop_gradient(w) if is_frozen(c, path) else w, p)

        def total(p, batch, key):
            value, metrics = loss(full(p), batch, key)
            if distill:
                teacher = objective.cast(state["teacher"], jax.tree.leaves(p)[0].dtype)
                same = lambda x: x
                taught = jax.nn.softmax(model.outputs(full(teacher), batch, same)[0].astype(jnp.float32))
                value = value - 0.5 * jnp.mean(jnp.sum(taught * jax.nn.log_softmax(model.outputs(full(p), batch, same)[0].astype(jnp.float32)), -1))
            return value, metrics

        scale = state["scale"]["scale"] if c.scaling == "dynamic" else None
        of = objective.gradients(c, total, batch, key, scale)
        seen = []

        def watched(p):
            out, grads = of(p)
            seen.append(grads)
            return out, grads

        new["params"], new["opt"], (value, metrics) = step(watched, state["params"], state["opt"])
        if c.scaling == "dynamic":
            old = state["scale"]
            ok = jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(new["params"])]).all()
            new["params"], new["opt"] = where(ok, new["params"], state["params"]), where(ok, new["opt"], state["opt"])
            good = jnp.where(ok, old["good"] + 1, 0)
            grown = jnp.where(good % 3 == 0, old["scale"] * 2, old["scale"])
            new["scale"] = {"scale": jnp.where(ok, grown, old["scale"] / 2), "good": good}
        if c.metrics == "many":
            # Gradients inside a line search's loop cannot be returned.
            metrics = metrics | {"grad_norm": norm(seen[0])}
        if c.ema != "none":
            fast = new["params"].fast if c.wrap == "lookahead" else new["params"]
            new["ema"] = average(0.1 if c.ema != "warm" else 0.9 / (1 + state_count(new["opt"])), state["ema"], fast)
            if c.ema == "read":
                metrics = metrics | {"ema_loss": total(objective.cast(new["ema"], jnp.float32), batch, key)[0]}
        if c.frozen == "returned":
            new["frozen"] = state["frozen"]
        return new, value, metrics

    return Task(state, model.batches, update, tuple(name for name in ("teacher", "frozen") if name in state and (name, c.frozen) != ("frozen", "returned")))


def norm(tree):
    return jnp.sqrt(sum(jnp.sum(jnp.square(g.astype(jnp.float32))) for g in jax.tree.leaves(tree)))


def state_count(opt):
    """Returns the first integer scalar of an optimizer, or 1."""
    counts = [x for x in jax.tree.leaves(opt) if x.ndim == 0 and jnp.issubdtype(x.dtype, jnp.integer)]
    return counts[0].astype(jnp.float32) if counts else jnp.float32(1)


# -------------------------------------------------------------------- players


def player(c, params):
    init, step, first = wrappers.algorithm(c)
    params = first(params)
    return params, init(params if c.dtype == "all_bf16" else floats(params)), step


def byol(c, seed):
    """An online network learns to predict its slow copy's output for another view."""
    model = models.make(c, seed)
    same = lambda x: x
    params, opt, step = player(c, model.params)
    state = {"params": params, "opt": opt, "target": params}

    def update(state, batch, key):
        def loss(p, batch, key):
            target = objective.cast(state["target"], jax.tree.leaves(p)[0].dtype)

            def unit(h):
                # Outputs of a deep network without norms may be so large that the cube of their norm, by which the
                # gradient divides, overflows; XLA flushes its reciprocal, which is subnormal, to zero.
                h = h / (1 + jax.lax.stop_gradient(jnp.max(jnp.abs(h))))
                # The norm of zeros, which FP8 makes from small outputs, has no gradient.
                return h * jax.lax.rsqrt(jnp.sum(jnp.square(h), -1, keepdims=True) + 1e-6)

            online = unit(model.outputs(p, batch, same)[0].astype(jnp.float32))
            slow = unit(model.outputs(target, model.view(batch), same)[0].astype(jnp.float32))
            return jnp.mean(jnp.sum(jnp.square(online - jax.lax.stop_gradient(slow)), -1)), {"spread": jnp.var(online)}

        params, opt, (value, metrics) = step(objective.gradients(c, loss, batch, key), state["params"], state["opt"])
        return {"params": params, "opt": opt, "target": average(0.05, state["target"], params)}, value, metrics

    return Task(state, model.batches, update)


def network(random, *sizes):
    return [{"w": layers.normal(random, m, n), "b": jnp.zeros(n)} for m, n in zip(sizes, sizes[1:])]


def mlp(p, x):
    x = x.astype(p[0]["w"].dtype)
    for l in p[:-1]:
        x = jax.nn.relu(x @ l["w"] + l["b"])
    return x @ p[-1]["w"] + p[-1]["b"]


def actor_of(model):
    """Returns a function to an action for each example: the model's outputs, averaged over all
    other dimensions."""

    def act(p, batch):
        out = model.outputs(p, batch, lambda x: x)[0].astype(jnp.float32)
        # The gradient of a saturated tanh would be the rounding of its last bit.
        out = out / (1 + jnp.abs(out))
        return out.mean(tuple(range(1, out.ndim - 1)))

    return act


def td3(c, seed):
    """A critic with a target, and an actor that is trained only through the critic."""
    random = np.random.default_rng(number(seed, "players"))
    model = models.make(c, seed)
    act = actor_of(model)
    one = tm(lambda b: jnp.asarray(b[0]), model.batches)
    seen, actions = model.features(one).shape[-1], jax.eval_shape(act, model.params, one).shape[-1]
    critic, critic_opt, critic_step = player(c, network(random, seen + actions, 24, 16, 1))
    actor, actor_opt, actor_step = player(c, model.params)
    state = {"actor": actor, "actor_opt": actor_opt, "critic": critic, "critic_opt": critic_opt, "critic_target": critic, "actor_target": actor}
    judge = lambda p, batch, action: mlp(p, jnp.concatenate([model.features(batch), action], -1)).astype(jnp.float32)

    def update(state, batch, key):
        def critic_loss(p, batch, key):
            half = lambda name: objective.cast(state[name], jax.tree.leaves(p)[0].dtype)
            here, there = act(half("actor"), batch), act(half("actor_target"), model.view(batch))
            reward = jnp.sum(here * jnp.cos(jnp.arange(here.shape[-1], dtype=jnp.float32)), -1, keepdims=True)
            aim = reward + 0.9 * judge(half("critic_target"), model.view(batch), there)
            return jnp.mean(jnp.square(judge(p, batch, here) - jax.lax.stop_gradient(aim))), {}

        critic, critic_opt, (value, _) = critic_step(objective.gradients(c, critic_loss, batch, key), state["critic"], state["critic_opt"])

        def actor_loss(p, batch, key):
            judged = objective.cast(critic, jax.tree.leaves(p)[0].dtype)
            return -jnp.mean(judge(judged, batch, act(p, batch))), {}

        actor, actor_opt, (other, _) = actor_step(objective.gradients(c, actor_loss, batch, key), state["actor"], state["actor_opt"])
        new = {"actor": actor, "actor_opt": actor_opt, "critic": critic, "critic_opt": critic_opt,
               "critic_target": average(0.02, state["critic_target"], critic), "actor_target": average(0.02, state["actor_target"], actor)}  # fmt: skip
        return new, value, {"actor_loss": other}

    return Task(state, model.batches, update)


def gan(c, seed):
    """A generator of feature vectors, and a discriminator for them."""
    random = np.random.default_rng(number(seed, "players"))
    model = models.make(c, seed)
    one = tm(lambda b: jnp.asarray(b[0]), model.batches)
    size = model.features(one).shape[-1]
    encode = actor_of(model)
    code = jax.eval_shape(encode, model.params, one).shape[-1]
    made, made_opt, made_step = player(c, {"model": model.params, "out": network(random, code + 4, 24, size)})
    judge, judge_opt, judge_step = player(c, network(random, size, 24, 16, 1))
    state = {"generator": made, "generator_opt": made_opt, "discriminator": judge, "discriminator_opt": judge_opt}
    batches = model.batches | {"noise": random.normal(0, 1, (models.STEPS, models.BATCH, 4)).astype(np.float32)}

    def generate(p, batch):
        return mlp(p["out"], jnp.concatenate([encode(p["model"], batch), batch["noise"]], -1)).astype(jnp.float32)

    def update(state, batch, key):
        def discriminate(p, batch, key):
            fake = jax.lax.stop_gradient(generate(objective.cast(state["generator"], jax.tree.leaves(p)[0].dtype), batch))
            real = mlp(p, model.features(batch)).astype(jnp.float32)
            return jnp.mean(jax.nn.softplus(-real)) + jnp.mean(jax.nn.softplus(mlp(p, fake).astype(jnp.float32))), {}

        judge, judge_opt, (value, _) = judge_step(objective.gradients(c, discriminate, batch, key), state["discriminator"], state["discriminator_opt"])

        def deceive(p, batch, key):
            judged = objective.cast(judge, jax.tree.leaves(p)[0].dtype)
            return jnp.mean(jax.nn.softplus(-mlp(judged, generate(p, batch)).astype(jnp.float32))), {}

        made, made_opt, (other, _) = made_step(objective.gradients(c, deceive, batch, key), state["generator"], state["generator_opt"])
        return {"generator": made, "generator_opt": made_opt, "discriminator": judge, "discriminator_opt": judge_opt}, value, {"generator_loss": other}

    return Task(state, batches, update)


TASKS = {"supervised": supervised, "distill": lambda c, seed: supervised(c, seed, distill=True), "byol": byol, "td3": td3, "gan": gan}


def several_updates(task, epochs):
    """Returns the task with two whole updates a call, in a scan, or in a scan over two epochs."""

    def update(state, batch, key):
        def body(changing, batch):
            new, value, metrics = task.update({**state, **changing}, batch, None)
            return new, (value, metrics)

        def epoch(changing, _):
            return jax.lax.scan(body, changing, objective.pieces(batch))

        changing = {name: state[name] for name in task.changing}
        new, (values, metrics) = jax.lax.scan(epoch, changing, None, length=2) if epochs else epoch(changing, None)
        return new, values.mean(), tm(jnp.mean, metrics)

    return Task(task.state, task.batches, update, task.fixed)


def make(c, seed):
    task = TASKS[c.task](c, seed)
    if c.dropout == "key":
        task.state["key"] = jax.random.PRNGKey(seed % 1000)
        inner = task.update

        def update(state, batch, _):
            key, use = jax.random.split(state["key"])
            new, value, metrics = inner(state, batch, use)
            return new | {"key": key}, value, metrics

        task = Task(task.state, task.batches, update, task.fixed)
    return several_updates(task, c.micro == "epochs") if c.micro in ("updates", "epochs") else task
