"""The state that steps carry: train states, counters, masters, averages, frozen parameters, scales,
and wrappers of optimizers."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *


def adam(rate=3e-3):
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, eps=1e-6))


@step
def train_state_with_counters():
    """A Flax TrainState, with several i32 counters, running metrics that are state, and a history."""
    from flax.training.train_state import TrainState

    def train(state, counters, tokens):
        loss, grads = jax.value_and_grad(lambda p: state.apply_fn(p, tokens))(state.params)
        seen = {
            "tokens": counters["tokens"] + tokens.size,
            "epoch": counters["epoch"] + (counters["tokens"] % 640 == 0).astype(jnp.int32),
            "best": jnp.minimum(counters["best"], loss),
            "history": jnp.roll(counters["history"], 1).at[0].set(loss),
        }
        metrics = {"loss": loss, "grad_norm": optax.global_norm(grads), "step": state.step, "finite": jnp.isfinite(loss)}
        return state.apply_gradients(grads=grads), seen, metrics

    rate = optax.warmup_cosine_decay_schedule(0, 3e-3, 5, 40)
    state = TrainState.create(apply_fn=llama_loss, params=llama_params(), tx=adam(rate))
    integer = lambda: jnp.zeros((), jnp.int32)
    counters = {"tokens": integer(), "epoch": integer(), "best": jnp.float32(1e9), "history": jnp.zeros(8)}
    return Step(train, {"state": state, "counters": counters}, {"tokens": tokens()}, lambda r: r[2]["loss"],
                lambda r: {"state": r[0], "counters": r[1]}, linear=5 * 2)  # fmt: skip


@step
def bf16_parameters_f32_masters():
    """Parameters and gradients in bf16; the optimizer keeps f32 masters, of which the parameters are copies.
    """

    class Masters(NamedTuple):
        params: Any
        adam: Any

    tx = adam()

    def train(params, opt, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens, dtype=jnp.bfloat16))(params)
        grads = jax.tree.map(lambda g: g.astype(jnp.float32), grads)
        updates, state = tx.update(grads, opt.adam, opt.params)
        masters = optax.apply_updates(opt.params, updates)
        return jax.tree.map(lambda p: p.astype(jnp.bfloat16), masters), Masters(masters, state), loss

    p = llama_params()
    half = jax.tree.map(lambda p: p.astype(jnp.bfloat16), p)
    return Step(train, {"params": half, "opt": Masters(p, tx.init(p))}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt": r[1]}, loss_bound=2e-2, bound=5e-2, linear=5 * 2)  # fmt: skip


@step
def bf16_activations():
    """Parameters in f32, activations in bf16."""
    tx = adam()

    def train(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens, dtype=jnp.bfloat16))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    p = llama_params()
    return Step(train, {"params": p, "opt_state": tx.init(p)}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, loss_bound=2e-2, bound=5e-2, linear=5 * 2)  # fmt: skip


@step
def nested_trees():
    """Nested tuples, lists, dictionaries, named tuples and data classes, with None among the leaves."""

    class Layer(NamedTuple):
        attention: dict
        rest: list

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class Everything:
        model: Any
        optimizer: Any
        counts: Any

    tx = adam()

    def split(params):
        layers = [
            Layer({"q": p["q"], "kv": p["kv"], "out": {"o": p["o"]}}, [(p["input_norm"], p["post_norm"]), p["gate_up"], p["down"]])
            for p in params["layers"]
        ]
        return ({"embed": (params["embed"],), 7: None}, [layers, (params["norm"], params["lm_head"])])

    def join(model):
        (embed, (layers, (norm, head))) = model
        return {
            "embed": embed["embed"][0], "norm": norm, "lm_head": head,
            "layers": [
                {"q": l.attention["q"], "kv": l.attention["kv"], "o": l.attention["out"]["o"], "input_norm": l.rest[0][0],
                 "post_norm": l.rest[0][1], "gate_up": l.rest[1], "down": l.rest[2]}
                for l in layers
            ],
        }  # fmt: skip

    def train(everything, batch):
        loss, grads = jax.value_and_grad(lambda m: llama_loss(join(m), batch[0]["ids"]))(everything.model)
        updates, opt = tx.update(grads, everything.optimizer, everything.model)
        counts = (everything.counts[0] + 1, [everything.counts[1][0] + 2])
        return {"new": Everything(optax.apply_updates(everything.model, updates), opt, counts), "info": [(loss,), counts[0] * 2]}

    # JAX sorts a dictionary's keys, which must be comparable.
    model = split(llama_params())
    model = ({"embed": model[0]["embed"], "none": None}, model[1])
    counts = (jnp.zeros((), jnp.int32), [jnp.ones((), jnp.int32)])
    return Step(train, {"everything": Everything(model, tx.init(model), counts)}, {"batch": [{"ids": tokens()}]},
                lambda r: r["info"][0][0], lambda r: {"everything": r["new"]}, linear=5 * 2)  # fmt: skip


@step
def average_of_weights():
    """EMA of the parameters, with the loss of the averaged parameters as a metric."""
    tx = adam()

    def train(params, ema, opt_state, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        ema = optax.incremental_update(params, ema, 0.1)
        return params, ema, opt_state, {"loss": loss, "update_norm": optax.global_norm(updates), "ema_norm": optax.global_norm(ema)}

    p = llama_params()
    state = {"params": p, "ema": jax.tree.map(jnp.copy, p), "opt_state": tx.init(p)}
    return Step(train, state, {"tokens": tokens()}, lambda r: r[3]["loss"], lambda r: dict(zip(state, r)), linear=5 * 2)


@step
def low_rank_adapters():
    """LoRA: the model is frozen and not returned; two adapters a layer learn."""
    tx = adam(2e-2)

    def adapt(frozen, adapters):
        scale = 2.0
        layers = [
            {**p, "q": p["q"] + scale * a["q"]["a"] @ a["q"]["b"], "down": p["down"] + scale * a["down"]["a"] @ a["down"]["b"]}
            for p, a in zip(frozen["layers"], adapters)
        ]
        return {**frozen, "layers": layers}

    def train(frozen, adapters, opt_state, tokens):
        loss, grads = jax.value_and_grad(lambda a: llama_loss(adapt(frozen, a), tokens))(adapters)
        updates, opt_state = tx.update(grads, opt_state, adapters)
        return optax.apply_updates(adapters, updates), opt_state, loss

    p, r = llama_params(), np.random.default_rng(1)
    pair = lambda w: {"a": normal(r, w.shape[0], 4), "b": jnp.zeros((4, w.shape[1]))}
    adapters = [{"q": pair(l["q"]), "down": pair(l["down"])} for l in p["layers"]]
    state = {"frozen": p, "adapters": adapters, "opt_state": tx.init(adapters)}
    return Step(train, state, {"tokens": tokens()}, lambda r: r[2], lambda r: {"adapters": r[0], "opt_state": r[1]})


@step
def parallel_adapters_and_frozen_layers():
    """LoRA beside the layer, x w + (x a) b; optax.multi_transform freezes embedding and first layer."""
    labels = lambda p: jax.tree_util.tree_map_with_path(
        lambda path, _: "adam" if "lora" in jax.tree_util.keystr(path) or "head" in jax.tree_util.keystr(path) else "freeze", p
    )
    tx = optax.multi_transform({"adam": optax.adam(1e-2, eps=1e-6), "freeze": optax.set_to_zero()}, labels)

    def model(p, x):
        for l in p["layers"]:
            x = jax.nn.relu(x @ l["w"] + (x @ l["lora"]["a"]) @ l["lora"]["b"] + l["b"])
        return x @ p["head"]["w"] + p["head"]["b"]

    def train(params, opt_state, batch):
        loss, grads = jax.value_and_grad(lambda p: class_loss(model(p, batch["x"]), batch["y"]))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    r, layers = np.random.default_rng(1), mlp_params((32, 64, 48, 10))
    for l in layers[:-1]:
        l["lora"] = {"a": normal(r, l["w"].shape[0], 4), "b": jnp.zeros((4, l["w"].shape[1]))}
    p = {"layers": layers[:-1], "head": layers[-1]}
    x, y = clusters()
    return Step(train, {"params": p, "opt_state": tx.init(p)}, {"batch": {"x": x, "y": y}}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]})  # fmt: skip


@step
def arguments_pruned_by_jit():
    """Arguments that nothing reads, which jit drops: of the batch, of the state, and a whole tree.
    """
    tx = adam()

    def train(config, params, opt_state, batch, unused):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, batch["tokens"]))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss * config["scale"], "nll": loss}

    p = llama_params()
    state = {"config": {"scale": jnp.float32(0.5), "dropout": jnp.float32(0.1)}, "params": p, "opt_state": tx.init(p),
             "unused": {"a": jnp.ones(3), "b": [jnp.zeros((2, 2))]}}  # fmt: skip
    batch = {"tokens": tokens(), "weights": np.ones((STEPS, BATCH), np.float32), "ids": np.arange(STEPS * BATCH).reshape(STEPS, BATCH)}
    return Step(train, state, {"batch": batch}, lambda r: r[2]["nll"], lambda r: {"params": r[0], "opt_state": r[1]}, linear=5 * 2)


@step
def f16_loss_scaling():
    """Compute in f16 with a scaled loss; the scale falls if a gradient overflows and grows after some good steps."""
    tx = optax.sgd(0.1, momentum=0.9)

    def train(params, opt_state, scale, good, tokens):
        def objective(p):
            loss = llama_loss(p, tokens, dtype=jnp.float16)
            return loss * scale, loss

        (_, loss), grads = jax.value_and_grad(objective, has_aux=True)(params)
        grads = jax.tree.map(lambda g: g / scale, grads)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        updates, new_opt = tx.update(grads, opt_state, params)
        choose = lambda new, old: jax.tree.map(lambda n, o: jnp.where(finite, n, o), new, old)
        params, opt_state = choose(optax.apply_updates(params, updates), params), choose(new_opt, opt_state)
        good = jnp.where(finite, good + 1, 0)
        scale = jnp.where(finite, jnp.where(good % 8 == 0, scale * 2, scale), scale * 0.5)
        return params, opt_state, scale, good, {"loss": loss, "finite": finite}

    p = llama_params()
    # The initial scale is so large that the first steps overflow.
    state = {"params": p, "opt_state": tx.init(p), "scale": jnp.float32(2.0**22), "good": jnp.zeros((), jnp.int32)}
    return Step(train, state, {"tokens": tokens()}, lambda r: r[4]["loss"], lambda r: dict(zip(state, r)),
                loss_bound=5e-3, bound=2e-2, linear=5 * 2)  # fmt: skip


def poisoned(every):
    """Returns points around centres, and weights of which one is infinite in every `every`-th step,
    so that its gradients are not finite."""
    x, y = clusters()
    weight = np.ones((STEPS, 16), np.float32)
    weight[every::every, 3] = np.inf
    return x, y, weight


@step
def apply_if_finite():
    """optax.apply_if_finite skips the steps whose gradients are not finite."""
    tx = optax.apply_if_finite(optax.adam(3e-3, eps=1e-6), max_consecutive_errors=3)

    def train(params, opt_state, x, y, weight):
        def objective(p):
            logp = jax.nn.log_softmax(mlp(p, x))
            nll = -jnp.sum(logp * jax.nn.one_hot(y, 10), -1)
            return jnp.sum(nll * weight) / 16, jnp.mean(nll)

        (_, loss), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "skipped": opt_state.total_notfinite / 50}

    p = mlp_params()
    x, y, weight = poisoned(7)
    return Step(train, {"params": p, "opt_state": tx.init(p)}, {"x": x, "y": y, "weight": weight}, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]})  # fmt: skip


@step
def multi_steps():
    """optax.MultiSteps updates in every third step, by a case."""
    tx = optax.MultiSteps(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-2, eps=1e-6)), every_k_schedule=3)

    def train(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "updated": tx.has_updated(opt_state)}

    p = llama_params()
    return Step(train, {"params": p, "opt_state": tx.init(p)}, {"tokens": tokens()}, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=5 * 2)  # fmt: skip


@step
def gradient_accumulators():
    """Gradients are summed in the state by hand and applied by lax.cond in every fourth step."""
    tx = optax.sgd(0.2, momentum=0.9)

    def train(state, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens))(state["params"])
        total = jax.tree.map(jnp.add, state["sum"], grads)
        count = state["count"] + 1

        def apply(params, opt, total):
            updates, opt = tx.update(jax.tree.map(lambda g: g / 4, total), opt, params)
            return optax.apply_updates(params, updates), opt, zeros(total)

        params, opt, total = jax.lax.cond(count % 4 == 0, apply, lambda *same: same, state["params"], state["opt"], total)
        return {"params": params, "opt": opt, "sum": total, "count": count}, loss

    p = llama_params()
    state = {"params": p, "opt": tx.init(p), "sum": zeros(p), "count": jnp.zeros((), jnp.int32)}
    return Step(train, {"state": state}, {"tokens": tokens()}, lambda r: r[1], lambda r: {"state": r[0]}, linear=5 * 2)


@step
def two_losses_two_optimizers():
    """Two models with an optimizer each: the teacher's softened output is the student's target, and both learn.
    """
    one, two = optax.adam(3e-3, eps=1e-6), optax.sgd(0.05)

    def train(teacher, student, x, y):
        hard, grads = jax.value_and_grad(lambda p: class_loss(mlp(p, x), y))(teacher["params"])
        updates, opt = one.update(grads, teacher["opt"])
        target = jax.lax.stop_gradient(jax.nn.softmax(mlp(teacher["params"], x) / 2))
        soft, other = jax.value_and_grad(lambda p: -jnp.mean(jnp.sum(target * jax.nn.log_softmax(mlp(p, x)), -1)))(student["params"])
        steps, state = two.update(other, student["opt"])
        return ({"params": optax.apply_updates(teacher["params"], updates), "opt": opt},
                {"params": optax.apply_updates(student["params"], steps), "opt": state}, {"loss": hard + soft, "hard": hard})  # fmt: skip

    p, q = mlp_params(), mlp_params((32, 32, 32, 10), seed=1)
    x, y = clusters()
    state = {"teacher": {"params": p, "opt": one.init(p)}, "student": {"params": q, "opt": two.init(q)}}
    return Step(train, state, {"x": x, "y": y}, lambda r: r[2]["loss"], lambda r: dict(zip(state, r)), repeated=3)
