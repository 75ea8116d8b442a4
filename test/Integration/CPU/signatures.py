"""Training steps of many kinds, traced by JAX, with JAX's names and with every name
stripped and the arguments and results in random order: the role that fp8-run finds for
each argument, the result that replaces it, and the loss must be those of the Python
source. All layers have matrices of one shape, so that shapes do not distinguish them.

    python signatures.py FP8_RUN FOLDER [CASE...]
"""

import concurrent.futures
import pathlib
import re
import sys
from typing import Any, NamedTuple

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState

t.compile_quickly()
VOCAB, WIDTH, BATCH, LENGTH, LAYERS = 24, 8, 4, 6, 2

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Case(NamedTuple):
    """`step(**args)` returns a dictionary of the new values of the arguments named in `state`, and
    a dictionary of everything else. `kinds` has pairs of a regular expression for a path and the
    kind of the state at that path; the first match counts. `roles` has the roles of arguments that
    are not state."""

    step: Any
    args: dict
    state: list
    kinds: list
    roles: dict
    loss: str = "['loss']"
    # Arguments that could be state without names: an error that options resolve.
    unclear: tuple = ()
    # Matches state that results with the same value replace, in any order.
    alike: str = "$^"


PARAMETER = (r"params", "parameter")
ADAM = [(r"\.mu\b", "moment1"), (r"\.nu\b", "moment2"), (r"count", "step")]


# ------------------------------------------------------------------- models


def matrix(random, *shape):
    return jnp.asarray(random.normal(0, shape[0] ** -0.5, shape), jnp.float32)


def init_layer(random):
    vector = lambda value: jnp.full((WIDTH,), value, jnp.float32)
    layer = {name: matrix(random, WIDTH, WIDTH) for name in ("q", "k", "v", "o", "up", "down")}
    return layer | {"scale1": vector(1), "bias1": vector(0), "scale2": vector(1), "bias2": vector(0), "up_b": vector(0), "down_b": vector(0), "q_b": vector(0)}


def init_params(tied=False, stacked=False):
    random = np.random.default_rng(0)
    layers = [init_layer(random) for _ in range(LAYERS)]
    if stacked:
        layers = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
    params = {"embed": matrix(random, VOCAB, WIDTH), "places": matrix(random, LENGTH, WIDTH), "layers": layers, "norm": jnp.ones(WIDTH)}
    return params if tied else params | {"head": matrix(random, WIDTH, VOCAB)}


def normalize(x, scale, bias):
    x = x - x.mean(-1, keepdims=True)
    return x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + 1e-5) * scale + bias


def apply_layer(p, x, key=None):
    h = normalize(x, p["scale1"], p["bias1"])
    q, k, v = h @ p["q"] + p["q_b"], h @ p["k"], h @ p["v"]
    weights = jax.nn.softmax(q @ k.swapaxes(-1, -2) / WIDTH**0.5 + jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH))) > 0, 0, -1e4).astype(q.dtype))
    x = x + weights @ v @ p["o"]
    h = jax.nn.gelu(normalize(x, p["scale2"], p["bias2"]) @ p["up"] + p["up_b"])
    if key is not None:
        h = jnp.where(jax.random.bernoulli(key, 0.9, h.shape), h / 0.9, 0)
    return x + h @ p["down"] + p["down_b"]


def logits_of(params, tokens, key=None, remat=False):
    x = params["embed"][tokens] + params["places"]
    if isinstance(params["layers"], list):
        for i, layer in enumerate(params["layers"]):
            f = jax.checkpoint(apply_layer) if remat else apply_layer
            x = f(layer, x, None if key is None else jax.random.fold_in(key, i))
    else:
        f = lambda x, p: (apply_layer(p, x), None)
        x, _ = jax.lax.scan(jax.checkpoint(f) if remat else f, x, params["layers"])
    x = x * params["norm"]
    return x @ params["head"] if "head" in params else x @ params["embed"].T


def cross_entropy(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits.astype(jnp.float32), targets).mean()


def loss_of(params, tokens, **options):
    return cross_entropy(logits_of(params, tokens[:, :-1], **options), tokens[:, 1:])


TOKENS = jnp.zeros((BATCH, LENGTH + 1), jnp.int32)


def optimized(tx, params=None, kinds=(), loss_of=loss_of, more=lambda grads: {}):
    """The simplest step with the optimizer `tx`."""
    params = init_params() if params is None else params

    def step(params, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss} | more(grads)

    args = {"params": params, "opt": tx.init(params), "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [*kinds, (r"^params", "parameter")], {"tokens": "batch"})


# -------------------------------------------------------------------- cases


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


@case
def pulled_to_an_anchor():
    """The gradients of the weights contain frozen weights, and so do the moments."""
    tx, params = optax.adam(1e-3), init_params()

    def step(params, opt, anchor, tokens):
        distance = lambda p: sum(jnp.square(x - y).sum() for x, y in zip(jax.tree.leaves(p), jax.tree.leaves(anchor)))
        loss, grads = jax.value_and_grad(lambda p: loss_of(p, tokens) + 1e-3 * distance(p))(params)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "anchor": params, "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [*ADAM, (r"^params", "parameter")], {"tokens": "batch", "anchor": "frozen"})


def by_hand(second, direction, kinds):
    """The optimizer moves by `direction(m, v)`; `second(v, g)` is the next v."""
    params = init_params()

    def step(params, m, v, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(second, v, grads)
        return {"params": jax.tree.map(lambda p, m, v: p - 1e-3 * direction(m, v), params, m, v), "m": m, "v": v}, {"loss": loss}

    zeros = jax.tree.map(jnp.zeros_like, params)
    args = {"params": params, "m": zeros, "v": zeros, "tokens": TOKENS}
    return Case(step, args, ["params", "m", "v"], [*kinds, (r"^params", "parameter")], {"tokens": "batch"})


@case
def squares_of_magnitudes():
    return by_hand(lambda v, g: 0.99 * v + 0.01 * jnp.abs(g) ** 2, lambda m, v: m / (jnp.sqrt(v) + 1e-8), [(r"^m", "moment1"), (r"^v", "moment2")])


@case
def divided_by_an_average():
    """An average that the update divides by, as by the diagonal of a Hessian, is not a first moment."""
    return by_hand(lambda v, g: 0.9 * v + 0.1 * g, lambda m, v: m / jnp.maximum(v, 1e-3), [(r"^m", "moment1"), (r"^v", "other")])


@case
def pruned():
    """Flags leave out weights."""
    tx, random = optax.adam(1e-3), np.random.default_rng(0)
    params = {"a": matrix(random, WIDTH, WIDTH), "b": matrix(random, WIDTH, WIDTH)}

    def step(params, opt, kept, x, y):
        def loss_of(p):
            h = jnp.tanh(x @ jnp.where(kept["a"], p["a"], 0))
            return jnp.square(h @ (p["b"] * kept["b"]) - y).mean()

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    rows = jnp.zeros((BATCH, WIDTH))
    args = {"params": params, "opt": tx.init(params), "kept": jax.tree.map(lambda p: p > 0, params), "x": rows, "y": rows}
    return Case(step, args, ["params", "opt"], [*ADAM, (r"^params", "parameter")], {"x": "batch", "y": "batch", "kept": "frozen"})


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
def tied():
    return optimized(optax.adam(1e-3), params=init_params(tied=True), kinds=ADAM)


@case
def scanned_remat():
    return optimized(optax.adamw(1e-3), params=init_params(stacked=True), kinds=ADAM, loss_of=lambda p, x: loss_of(p, x, remat=True))


@case
def remat():
    return optimized(optax.adamw(1e-3), kinds=ADAM, loss_of=lambda p, x: loss_of(p, x, remat=True))


@case
def low_rank():
    """Two low-rank factors for each layer learn; the base is frozen."""
    random = np.random.default_rng(1)
    base = init_params()
    lora = {"a": [matrix(random, WIDTH, 2) for _ in range(LAYERS)], "b": [matrix(random, 2, WIDTH) for _ in range(LAYERS)]}
    tx = optax.adam(1e-3)

    def step(base, lora, opt, tokens):
        def objective(lora):
            layers = [layer | {"q": layer["q"] + a @ b} for layer, a, b in zip(base["layers"], lora["a"], lora["b"])]
            return loss_of(base | {"layers": layers}, tokens)

        loss, grads = jax.value_and_grad(objective)(lora)
        updates, opt = tx.update(grads, opt)
        return {"lora": optax.apply_updates(lora, updates), "opt": opt}, {"loss": loss}

    args = {"base": base, "lora": lora, "opt": tx.init(lora), "tokens": TOKENS}
    return Case(step, args, ["lora", "opt"], [*ADAM, (r"^lora", "parameter")], {"base": "frozen", "tokens": "batch"})


@case
def multi_transform():
    """Half of the tensors learn, and the other half is returned unchanged."""
    label = lambda path, _: "learn" if "layers" in str(path) else "freeze"
    labels = jax.tree_util.tree_map_with_path(label, init_params())
    tx = optax.multi_transform({"learn": optax.adam(1e-3), "freeze": optax.set_to_zero()}, labels)
    return optimized(tx, kinds=ADAM + [(r"^params(?!.*layers)", None)])


@case
def averaged_weights():
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, ema, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        updates, opt = tx.update(grads, opt)
        params = optax.apply_updates(params, updates)
        return {"params": params, "opt": opt, "ema": optax.incremental_update(params, ema, 0.01)}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "ema": params, "tokens": TOKENS}
    return Case(step, args, ["params", "opt", "ema"], [(r"^ema", "average"), *ADAM, (r"^params", "parameter")], {"tokens": "batch"})


@case
def train_state():
    """Flax's TrainState, with metrics and outputs beside the loss."""
    state = TrainState.create(apply_fn=logits_of, params=init_params(), tx=optax.adamw(1e-3))

    def step(state, batch):
        def objective(params):
            logits = state.apply_fn(params, batch["inputs"])
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, batch["targets"])
            loss = jnp.sum(losses * batch["mask"]) / jnp.sum(batch["mask"])
            return loss, logits

        (loss, logits), grads = jax.value_and_grad(objective, has_aux=True)(state.params)
        accuracy = jnp.mean(logits.argmax(-1) == batch["targets"])
        out = {"loss": loss, "accuracy": accuracy, "perplexity": jnp.exp(loss), "norm": optax.global_norm(grads), "logits": logits, "tokens": jnp.sum(batch["mask"])}
        return {"state": state.apply_gradients(grads=grads)}, out

    tokens = jnp.zeros((BATCH, LENGTH), jnp.int32)
    args = {"state": state, "batch": {"inputs": tokens, "targets": tokens, "mask": jnp.ones((BATCH, LENGTH))}}
    return Case(step, args, ["state"], [*ADAM, (r"\.params", "parameter"), (r"\.step", "step")], {"batch": "batch"})


def masters(dtype, tx=optax.adamw(1e-3), kinds=ADAM, **options):
    master = init_params(**options)
    params = jax.tree.map(lambda x: x.astype(dtype), master)

    def step(params, master, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        grads = jax.tree.map(lambda x: x.astype(jnp.float32), grads)
        updates, opt = tx.update(grads, opt, master)
        master = optax.apply_updates(master, updates)
        return {"params": jax.tree.map(lambda x: x.astype(dtype), master), "master": master, "opt": opt}, {"loss": loss}

    args = {"params": params, "master": master, "opt": tx.init(master), "tokens": TOKENS}
    return Case(step, args, ["params", "master", "opt"], [(r"^master", "other"), *kinds, (r"^params", "parameter")], {"tokens": "batch"})


@case
def bf16_masters():
    return masters(jnp.bfloat16)


@case
def bf16_masters_scanned():
    return masters(jnp.bfloat16, stacked=True)


def scaled_loss(skip):
    """f16 compute with a dynamic scale; a step that overflows changes nothing."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, scale, good, tokens):
        def objective(params):
            half = jax.tree.map(lambda x: x.astype(jnp.float16), params)
            loss = loss_of(half, tokens)
            return loss * scale, loss

        (_, loss), grads = jax.value_and_grad(objective, has_aux=True)(params)
        grads = jax.tree.map(lambda g: g / scale, grads)
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))

        def update(_):
            updates, new = tx.update(grads, opt)
            return optax.apply_updates(params, updates), new

        new = jax.lax.cond(finite, update, lambda _: (params, opt), None) if skip == "cond" else jax.tree.map(lambda a, b: jnp.where(finite, a, b), update(None), (params, opt))
        grown = jnp.where(good == 9, scale * 2, scale)
        scale = jnp.where(finite, grown, scale / 2)
        good = jnp.where(finite, jnp.where(good == 9, 0, good + 1), 0)
        return {"params": new[0], "opt": new[1], "scale": scale, "good": good}, {"loss": loss, "finite": finite}

    args = {"params": params, "opt": tx.init(params), "scale": jnp.float32(1024), "good": jnp.int32(0), "tokens": TOKENS}
    return Case(step, args, ["params", "opt", "scale", "good"], [(r"^scale", "other"), (r"^good", "step"), *ADAM, PARAMETER], {"tokens": "batch"})


@case
def loss_scale_select():
    return scaled_loss("select")


@case
def loss_scale_cond():
    return scaled_loss("cond")


@case
def micro_batches():
    tx = optax.adamw(1e-3)
    params = init_params()

    def step(params, opt, tokens):
        def micro(carry, tokens):
            loss, grads = jax.value_and_grad(loss_of)(params, tokens)
            return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), loss

        (total, grads), losses = jax.lax.scan(micro, (0.0, jax.tree.map(jnp.zeros_like, params)), tokens)
        grads = jax.tree.map(lambda g: g / 2, grads)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": total / 2, "norm": optax.global_norm(grads), "losses": losses}

    args = {"params": params, "opt": tx.init(params), "tokens": jnp.zeros((2, BATCH, LENGTH + 1), jnp.int32)}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"tokens": "batch"})


@case
def several_steps():
    """A loop over whole optimizer steps."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, tokens):
        def one(carry, tokens):
            params, opt = carry
            loss, grads = jax.value_and_grad(loss_of)(params, tokens)
            updates, opt = tx.update(grads, opt)
            return (optax.apply_updates(params, updates), opt), loss

        (params, opt), losses = jax.lax.scan(one, (params, opt), tokens)
        return {"params": params, "opt": opt}, {"loss": losses.mean()}

    args = {"params": params, "opt": tx.init(params), "tokens": jnp.zeros((2, BATCH, LENGTH + 1), jnp.int32)}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"tokens": "batch"})


def dropout(key, returned, impl=None):
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, key, tokens):
        use = key
        if returned:
            key, use = jax.random.split(key)
        loss, grads = jax.value_and_grad(lambda p: loss_of(p, tokens, key=use))(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt} | ({"key": key} if returned else {}), {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "key": key, "tokens": TOKENS}
    kinds = [(r"^key", "other"), *ADAM, PARAMETER]
    return Case(step, args, ["params", "opt"] + ["key"] * returned, kinds, {"tokens": "batch"} | ({} if returned else {"key": "key"}))


@case
def raw_key():
    return dropout(jax.random.PRNGKey(0), False)


@case
def typed_key_returned():
    return dropout(jax.random.key(0), True)


@case
def rbg_key():
    return dropout(jax.random.key(0, impl="rbg"), False)


@case
def raw_key_returned():
    return dropout(jax.random.PRNGKey(0), True)


@case
def step_keyed():
    """The key is folded with the step. The optimizer is written out, the loss has a z-loss, and the
    rate is an argument."""
    params = init_params()

    def step(params, m, v, step, key, rate, tokens):
        def objective(params):
            logits = logits_of(params, tokens[:, :-1], key=jax.random.fold_in(key, step))
            ce = cross_entropy(logits, tokens[:, 1:])
            z = jnp.mean(jnp.square(jax.nn.logsumexp(logits, -1)))
            return ce + 1e-4 * z, {"ce": ce, "z": z}

        (loss, aux), grads = jax.value_and_grad(objective, has_aux=True)(params)
        step = step + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.95 * v + 0.05 * g * g, v, grads)
        params = jax.tree.map(lambda p, m, v: p - rate * (m / (1 - 0.9**step) / (jnp.sqrt(v / (1 - 0.95**step)) + 1e-8) + 0.1 * p), params, m, v)
        return {"params": params, "m": m, "v": v, "step": step}, {"loss": loss, "weights": optax.global_norm(params)} | aux

    zeros = jax.tree.map(jnp.zeros_like, params)
    args = {"params": params, "m": zeros, "v": zeros, "step": jnp.int32(0), "key": jax.random.key(0), "rate": jnp.float32(1e-3), "tokens": TOKENS}
    kinds = [(r"^m\b", "moment1"), (r"^v\b", "moment2"), (r"^step", "step"), PARAMETER]
    # The returned norm of the weights depends on the rate.
    return Case(step, args, ["params", "m", "v", "step"], kinds, {"key": "key", "rate": "constant", "tokens": "batch"}, unclear=("rate",))


@case
def images():
    """Patches by convolution, labels of two ui32 that are not a key, float data, and residuals that
    are returned."""
    random = np.random.default_rng(0)
    tx = optax.sgd(1e-2, momentum=0.9)
    params = {"patch": matrix(random, 2, 2, 3, WIDTH), "layers": [matrix(random, WIDTH, WIDTH) for _ in range(LAYERS)], "head": matrix(random, WIDTH, VOCAB)}

    def step(params, opt, images, target, labels):
        def objective(params):
            x = jax.lax.conv_general_dilated(images, params["patch"], (2, 2), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
            for w in params["layers"]:
                x = x + jax.nn.gelu(x @ w)
            logits = x.mean((1, 2)) @ params["head"]
            return cross_entropy(logits, labels) + jnp.square(x - target).mean(), x - target

        (loss, residual), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss, "residual": residual}

    args = {"params": params, "opt": tx.init(params), "images": jnp.zeros((2, 8, 8, 3)), "target": jnp.zeros((2, 4, 4, WIDTH)), "labels": jnp.zeros(2, jnp.uint32)}
    return Case(step, args, ["params", "opt"], [(r"trace", "moment1"), PARAMETER], {"images": "batch", "target": "batch", "labels": "batch"})


@case
def regression():
    """Without integers only the use of floats shows which of them are data."""
    random = np.random.default_rng(0)
    tx = optax.adam(1e-2)
    base = [matrix(random, WIDTH, WIDTH) for _ in range(LAYERS)]
    params = {"a": [matrix(random, WIDTH, 2) for _ in range(LAYERS)], "b": [matrix(random, 2, WIDTH) for _ in range(LAYERS)]}

    def step(params, opt, base, x, y):
        def objective(params):
            h = x
            for w, a, b in zip(base, params["a"], params["b"]):
                h = jnp.tanh(h @ w + h @ a @ b)
            return jnp.mean(jnp.square(h - y))

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "base": base, "x": jnp.zeros((WIDTH, WIDTH)), "y": jnp.zeros((WIDTH, WIDTH))}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"base": "frozen", "x": "batch", "y": "batch"})


@case
def lookahead():
    tx = optax.lookahead(optax.sgd(1e-2), sync_period=3, slow_step_size=0.5)
    params = optax.LookaheadParams.init_synced(init_params())

    def step(params, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params.fast, tokens)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [(r"steps_since", "step"), (r"slow", "other"), (r"fast", "parameter")], {"tokens": "batch"})


@case
def weighted_with_history():
    """The returned loss is unweighted; a history is updated in place; the old step is a metric."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, history, step, tokens, weight):
        def objective(params):
            losses = optax.softmax_cross_entropy_with_integer_labels(logits_of(params, tokens[:, :-1]), tokens[:, 1:])
            return jnp.sum(losses.mean(1) * weight), losses.mean()

        (_, loss), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt = tx.update(grads, opt)
        history = jnp.roll(history, 1).at[0].set(loss)
        return {"params": optax.apply_updates(params, updates), "opt": opt, "history": history, "step": step + 1}, {"loss": loss, "step": step}

    args = {"params": params, "opt": tx.init(params), "history": jnp.zeros(WIDTH), "step": jnp.int32(0), "tokens": TOKENS, "weight": jnp.ones(BATCH)}
    return Case(step, args, ["params", "opt", "history", "step"], [(r"^step", "step"), (r"^history", "other"), *ADAM, PARAMETER], {"tokens": "batch", "weight": "batch"})


@case
def gradients_of_two_steps():
    """MARS: the moments are those of a gradient to which its change since the last step is added."""
    params = init_params()

    def step(params, m, v, last, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        moved = jax.tree.map(lambda g, old: g + 0.5 * (g - old), grads, last)
        size = jnp.maximum(optax.global_norm(moved), 1)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g / size, m, moved)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * jnp.square(g / size), v, moved)
        params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
        return {"params": params, "m": m, "v": v, "last": grads}, {"loss": loss}

    zeros = jax.tree.map(jnp.zeros_like, params)
    args = {"params": params, "m": zeros, "v": zeros, "last": zeros, "tokens": TOKENS}
    kinds = [(r"^m\b", "moment1"), (r"^v\b", "moment2"), (r"^last", "other"), PARAMETER]
    return Case(step, args, ["params", "m", "v", "last"], kinds, {"tokens": "batch"})


@case
def written_in_parts():
    """Statistics of a table's rows, two of one shape, and a queue of activations: each step writes some of their rows."""
    random, tx, rows = np.random.default_rng(0), optax.adam(1e-3), 5 * BATCH
    params = {"table": matrix(random, rows, WIDTH), "w": matrix(random, WIDTH, WIDTH)}

    def step(params, opt, seen, gap, queue, number, ids):
        gap = gap.at[ids].set(0.9 * gap[ids] + 0.1 * (number - seen[ids]))
        seen = seen.at[ids].set(number.astype(jnp.float32))

        def objective(params):
            h = jnp.tanh(params["table"][ids] @ params["w"])
            return cross_entropy(h @ queue.T - jnp.log(gap[ids])[:, None], jnp.zeros(BATCH, jnp.int32)), h

        (loss, h), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt = tx.update(grads, opt)
        queue = jax.lax.dynamic_update_slice(queue, h, (number % 5 * BATCH, 0))
        return {"params": optax.apply_updates(params, updates), "opt": opt, "seen": seen, "gap": gap, "queue": queue, "number": number + 1}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "seen": jnp.zeros(rows), "gap": jnp.ones(rows), "queue": jnp.ones((2 * rows, WIDTH)), "number": jnp.int32(0)}
    kinds = [(r"^(seen|gap|queue)", None), *ADAM, (r"^number", "step"), PARAMETER]
    return Case(step, args | {"ids": jnp.zeros(BATCH, jnp.int32)}, list(args), kinds, {"ids": "batch"})


@case
def averages_of_unrecognized_weights():
    """A teacher follows weights whose gradients no product shows: a class token, a mask's row, normalized prototypes. An angle
    whose gradient reads a decay of the same shape does not follow it, nor do moments of the factors of an inner product."""
    random, tx = np.random.default_rng(0), optax.adam(1e-3)
    params = {"w": matrix(random, WIDTH, WIDTH), "token": jnp.zeros(WIDTH), "mask": jnp.zeros(WIDTH), "prototypes": matrix(random, WIDTH, VOCAB)}
    params |= {name: jnp.ones(WIDTH) for name in ("decay", "angle", "left", "right")}

    def logits(p, x, hidden):
        h = jnp.where(hidden[..., None], p["mask"], x @ p["w"]) * (jnp.exp(-jnp.exp(p["decay"])) * jnp.cos(p["angle"]))
        h = jnp.concatenate([jnp.broadcast_to(p["token"], (BATCH, 1, WIDTH)), h], 1)
        return normalize(jnp.tanh(h), 1, 0) @ (p["prototypes"] / jnp.linalg.norm(p["prototypes"], axis=0, keepdims=True)) * (p["left"] * p["right"]).sum()

    def step(params, opt, teacher, x, hidden):
        goal = jax.nn.softmax(logits(teacher, x, jnp.zeros_like(hidden)))
        objective = lambda p: optax.softmax_cross_entropy(logits(p, x, hidden), goal).mean()
        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt = tx.update(grads, opt)
        params = optax.apply_updates(params, updates)
        return {"params": params, "opt": opt, "teacher": optax.incremental_update(params, teacher, 0.01)}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "teacher": params, "x": jnp.zeros((BATCH, LENGTH, WIDTH)), "hidden": jnp.zeros((BATCH, LENGTH), bool)}
    kinds = [(r"^teacher", "average"), (r"^opt.*(left|right)", "other"), *ADAM, PARAMETER]
    return Case(step, args, ["params", "opt", "teacher"], kinds, {"x": "batch", "hidden": "batch"})


@case
def noisy_images():
    """The data's first factor is noise; the key is state."""
    random = np.random.default_rng(0)
    tx = optax.adam(1e-3)
    params = {"a": matrix(random, WIDTH, WIDTH), "b": matrix(random, WIDTH, VOCAB)}

    def step(params, opt, key, x, labels):
        key, use = jax.random.split(key)

        def objective(params):
            h = x * jax.random.uniform(use, x.shape)
            return cross_entropy(jax.nn.relu(h @ params["a"]) @ params["b"], labels)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt, "key": key}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "key": jax.random.PRNGKey(0), "x": jnp.zeros((BATCH, WIDTH)), "labels": jnp.zeros(BATCH, jnp.int32)}
    return Case(step, args, ["params", "opt", "key"], [(r"^key", "other"), *ADAM, PARAMETER], {"x": "batch", "labels": "batch"})


@case
def sharpness_aware():
    """Two gradients a step, the second with perturbed weights."""
    tx = optax.sgd(1e-2, momentum=0.9)
    params = init_params()

    def step(params, opt, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        norm = optax.global_norm(grads)
        moved = jax.tree.map(lambda p, g: p + 0.05 * g / norm, params, grads)
        updates, opt = tx.update(jax.grad(loss_of)(moved, tokens), opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss, "norm": norm}

    args = {"params": params, "opt": tx.init(params), "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [(r"trace", "moment1"), PARAMETER], {"tokens": "batch"})


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


def freeze_layers(params):
    return jax.tree_util.tree_map_with_path(lambda path, x: jax.lax.stop_gradient(x) if "layers" in str(path) else x, params)


def accelerated(prox, loss_of):
    """Takes gradients at y, which runs ahead of the iterate x, and evaluates x too."""
    x = init_params()

    def step(x, y, tokens):
        _, grads = jax.value_and_grad(loss_of)(y, tokens)
        new = jax.tree.map(lambda y, g: prox(y - 1e-2 * g), y, grads)
        ahead = jax.tree.map(lambda a, b: a + 0.9 * (a - b), new, x)
        return {"x": new, "y": ahead}, {"loss": loss_of(x, tokens)}

    args = {"x": x, "y": jax.tree.map(jnp.copy, x), "tokens": TOKENS}
    return Case(step, args, ["x", "y"], [(r"^[xy]", None)], {"tokens": "batch"})


@case
def nesterov_evaluated():
    """Both points look up the same tokens, so that the gradient could be that of either."""
    return accelerated(lambda x: x, loss_of)


@case
def fista_partly_frozen():
    """Without a gradient only its own chain shows from which point a proximal step starts."""
    shrink = lambda x: jnp.sign(x) * jnp.maximum(jnp.abs(x) - 1e-4, 0)
    return accelerated(shrink, lambda params, tokens: loss_of(freeze_layers(params), tokens))


@case
def rollback_partly_frozen():
    """A frozen weight and its last value are exchanged if the step goes back: only the other
    weights show which of the two the step returns unchanged."""
    params = init_params()

    def step(params, old, limit, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_of(freeze_layers(p), tokens))(params)
        new = jax.tree.map(lambda p, o, g: jnp.where(loss > limit, o, p - 1e-2 * g), params, old, grads)
        return {"params": new, "old": params}, {"loss": loss}

    args = {"params": params, "old": jax.tree.map(jnp.copy, params), "limit": jnp.float32(9), "tokens": TOKENS}
    return Case(step, args, ["params", "old"], [(r"", None)], {"tokens": "batch", "limit": "constant"})


@case
def anchor_partly_frozen_scaled():
    """The gradient of frozen weights is a sum of zeros over the scale of the loss, which is not constant.
    """
    params = init_params()

    def step(params, anchor, scale, tokens):
        def add(total, piece):
            grads = jax.grad(lambda p: loss_of(freeze_layers(p), piece) * scale)(params)
            return jax.tree.map(lambda t, g: t + g / scale, total, grads), loss_of(params, piece)

        grads, losses = jax.lax.scan(add, jax.tree.map(jnp.zeros_like, params), tokens.reshape(2, -1, LENGTH + 1))
        loss = losses.mean()
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        new = jax.tree.map(lambda p, a, g: jnp.where(finite, p - 1e-2 * (g + 0.5 * (p - a)), p), params, anchor, grads)
        old = jax.tree.map(lambda p, a: jnp.where(finite, p, a), params, anchor)
        return {"params": new, "anchor": old, "scale": jnp.where(finite, scale, scale / 2)}, {"loss": loss}

    args = {"params": params, "anchor": jax.tree.map(jnp.copy, params), "scale": jnp.float32(1024), "tokens": TOKENS}
    return Case(step, args, ["params", "anchor", "scale"], [(r"", None)], {"tokens": "batch"})


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


@case
def last_gradient_with_decay():
    """The last gradient contains a share of the weights, and a flag is beside many flags of another kind.
    """
    return optimized(optax.chain(optax.add_decayed_weights(1e-2), optax.zero_nans(), optax.optimistic_gradient_descent(1e-2)), kinds=[(r"^opt", None)])


@case
def layers_by_index():
    """Plain gradient descent on a stack whose layers are indexed one by one."""
    random = np.random.default_rng(0)

    def step(w, x, y):
        def loss_of(w):
            h = x
            for i in range(3):
                h = jnp.tanh(h @ w[i])
            return jnp.mean(jnp.square(h - y))

        loss, grads = jax.value_and_grad(loss_of)(w)
        return {"w": w - 0.1 * grads}, {"loss": loss}

    args = {"w": matrix(random, 3, WIDTH, WIDTH), "x": jnp.zeros((BATCH, WIDTH)), "y": jnp.zeros((BATCH, WIDTH))}
    return Case(step, args, ["w"], [(r"", "parameter")], {"x": "batch", "y": "batch"})


@case
def lookahead_partly_frozen():
    """A frozen weight has a gradient of zeros, divided by averages of its rows and columns."""
    tx = optax.lookahead(optax.adafactor(1e-2, min_dim_size_to_factor=4), 3, 0.5)
    params = optax.LookaheadParams.init_synced(init_params())

    def step(params, opt, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_of(p | {"embed": jax.lax.stop_gradient(p["embed"])}, tokens))(params.fast)
        updates, opt = tx.update(grads, opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    return Case(step, {"params": params, "opt": tx.init(params), "tokens": TOKENS}, ["params", "opt"], [(r"", None)], {"tokens": "batch"})


@case
def norms_with_injected_decay():
    """NovoGrad's averages of norms are scalars, and so is their decay, which is state."""
    return optimized(optax.inject_hyperparams(optax.novograd)(1e-2), kinds=[(r"^opt", None)])


@case
def pruned():
    """The loss reads weights through a select with masks that stay constant."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, opt, masks, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_of(jax.tree.map(lambda m, w: jnp.where(m, w, 0), masks, p), tokens))(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    masks = jax.tree.map(lambda w: w > 0, params)
    args = {"params": params, "opt": tx.init(params), "masks": masks, "tokens": TOKENS}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"tokens": "batch", "masks": "frozen"})


@case
def read_through_select():
    """A flag selects the weights or their average."""
    tx = optax.sgd(1e-2, momentum=0.9)
    params = init_params()

    def step(params, opt, average, flag, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_of(jax.tree.map(lambda a, w: jnp.where(flag, w, a), average, p), tokens))(params)
        updates, opt = tx.update(grads, opt)
        params = optax.apply_updates(params, updates)
        return {"params": params, "opt": opt, "average": jax.tree.map(lambda a, p: 0.9 * a + 0.1 * p, average, params)}, {"loss": loss}

    args = {"params": params, "opt": tx.init(params), "average": jax.tree.map(jnp.copy, params), "flag": jnp.bool_(True), "tokens": TOKENS}
    return Case(step, args, ["params", "opt", "average"], [(r"", None)], {"tokens": "batch", "flag": "constant"})


@case
def flags_that_one_constant_replaces():
    """Optimistic descent of two groups, each with a flag for its first step."""
    labels = jax.tree_util.tree_map_with_path(lambda path, _: "layers" if "layers" in str(path) else "rest", init_params())
    tx = optax.partition({name: optax.optimistic_gradient_descent(1e-2) for name in ("layers", "rest")}, labels)
    return optimized(tx, kinds=[(r"^opt", None)])._replace(alike="is_initial_step")


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
def error_feedback():
    """The error of rounding the gradient to its sign is added to the next gradient."""
    params = init_params()

    def step(params, left, tokens):
        loss, grads = jax.value_and_grad(loss_of)(params, tokens)
        whole = jax.tree.map(jnp.add, grads, left)
        sent = jax.tree.map(lambda g: jnp.sign(g) * jnp.abs(g).mean(), whole)
        new = jax.tree.map(lambda p, g: p - 1e-2 * g, params, sent)
        return {"params": new, "left": jax.tree.map(jnp.subtract, whole, sent)}, {"loss": loss}

    left = jax.tree.map(jnp.zeros_like, params)
    return Case(step, {"params": params, "left": left, "tokens": TOKENS}, ["params", "left"], [(r"^left", "other"), PARAMETER], {"tokens": "batch"})


def follower(follow):
    """The loss reads a teacher that no gradient reaches."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(params, teacher, opt, count, tokens):
        def objective(params):
            student, taught = (logits_of(p, tokens[:, :-1]) for p in (params, teacher))
            return jnp.mean(jnp.square(student - jax.lax.stop_gradient(taught)))

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt = tx.update(grads, opt)
        params = optax.apply_updates(params, updates)
        teacher = jax.tree.map(lambda t, p: follow(t, p, count), teacher, params)
        return {"params": params, "teacher": teacher, "opt": opt, "count": count + 1}, {"loss": loss}

    args = {"params": params, "teacher": params, "opt": tx.init(params), "count": jnp.int32(0), "tokens": TOKENS}
    return Case(step, args, ["params", "teacher", "opt", "count"], [(r"^teacher", "average"), *ADAM, PARAMETER], {"tokens": "batch"})


@case
def averaged_teacher():
    return follower(lambda t, p, count: 0.999 * t + 0.001 * p)


@case
def copied_teacher():
    return follower(lambda t, p, count: jnp.where(count % 4 == 3, p, t))


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
def muon():
    from optax.contrib import muon

    return optimized(muon(1e-3), kinds=[(r"count", "step"), (r"^opt", None)])


@case
def ema_of_gradients_in_loop():
    return optimized(optax.chain(optax.ema(0.9), optax.sgd(1e-2)), params=init_params(stacked=True), kinds=[(r"\.ema\b", "moment1"), (r"count", "step")])


@case
def distilled():
    """A frozen teacher, whose weights look like the student's, and float masks."""
    tx = optax.adam(1e-3)
    params = init_params()

    def step(teacher, params, opt, tokens, mask):
        def objective(params):
            student, taught = (logits_of(p, tokens[:, :-1]) for p in (params, teacher))
            losses = -jnp.sum(jax.nn.softmax(taught) * jax.nn.log_softmax(student), -1)
            return jnp.sum(losses * mask) / jnp.sum(mask)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "opt": opt}, {"loss": loss}

    args = {"teacher": params, "params": params, "opt": tx.init(params), "tokens": TOKENS, "mask": jnp.ones((BATCH, LENGTH))}
    return Case(step, args, ["params", "opt"], [*ADAM, PARAMETER], {"teacher": "frozen", "tokens": "batch", "mask": "batch"})


@case
def statistics():
    """Batch normalization keeps averages of activations; the tokens are returned."""
    tx = optax.adam(1e-3)
    params = {"embed": init_params()["embed"], "layers": [{"w": layer["q"], "scale": layer["scale1"], "bias": layer["bias1"]} for layer in init_params()["layers"]], "head": init_params()["head"]}
    stats = [{"mean": jnp.zeros(WIDTH), "var": jnp.ones(WIDTH)} for _ in range(LAYERS)]

    def step(params, stats, opt, tokens):
        def objective(params):
            x, new = params["embed"][tokens[:, :-1]], []
            for p, old in zip(params["layers"], stats):
                h = x @ p["w"]
                mean, var = h.mean((0, 1)), h.var((0, 1))
                new.append({"mean": 0.9 * old["mean"] + 0.1 * mean, "var": 0.9 * old["var"] + 0.1 * var})
                x = x + jax.nn.relu((h - mean) * jax.lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"])
            return cross_entropy(x @ params["head"], tokens[:, 1:]), new

        (loss, new), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt = tx.update(grads, opt)
        return {"params": optax.apply_updates(params, updates), "stats": new, "opt": opt}, {"loss": loss, "tokens": tokens}

    args = {"params": params, "stats": stats, "opt": tx.init(params), "tokens": TOKENS}
    return Case(step, args, ["params", "stats", "opt"], [(r"^stats", "other"), *ADAM, PARAMETER], {"tokens": "batch"})


@case
def micro_batches_dropout_remat_scan():
    """Everything at once: nested loops, keys, multiple steps, and a skip on overflow."""
    tx = optax.apply_if_finite(optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-3, 10))), 3)
    params = init_params(stacked=True)

    def step(params, opt, key, tokens):
        key, use = jax.random.split(key)

        def noisy(params, tokens, key):
            keep = jax.random.bernoulli(key, 0.9, (WIDTH,))
            return loss_of(params | {"norm": jnp.where(keep, params["norm"], 0)}, tokens, remat=True)

        def micro(grads, xs):
            tokens, key = xs
            loss, new = jax.value_and_grad(noisy)(params, tokens, key)
            return jax.tree.map(jnp.add, grads, new), loss

        grads, losses = jax.lax.scan(micro, jax.tree.map(jnp.zeros_like, params), (tokens, jax.random.split(use, 2)))
        updates, opt = tx.update(jax.tree.map(lambda g: g / 2, grads), opt, params)
        return {"params": optax.apply_updates(params, updates), "opt": opt, "key": key}, {"loss": losses.mean()}

    args = {"params": params, "opt": tx.init(params), "key": jax.random.key(0), "tokens": jnp.zeros((2, BATCH, LENGTH + 1), jnp.int32)}
    kinds = [(r"^key", "other"), (r"notfinite", "step"), (r"last_finite", "other"), *ADAM, PARAMETER]
    return Case(step, args, ["params", "opt", "key"], kinds, {"tokens": "batch"})


# -------------------------------------------------------------------- checks


def labels_of(tree):
    """Returns the paths of the leaves of a dictionary of arguments, each with its argument's name.
    """
    return [name + jax.tree_util.keystr(keys) for name, value in tree.items() for keys, _ in jax.tree_util.tree_flatten_with_path(value)[0]]


def explain(fp8_run, path, *options):
    """Returns what fp8-run prints of each argument and result: (path, role, kind or state)."""
    lines = t.run([fp8_run, path, "--explain-signature", *options]).stdout.splitlines()
    split = lines.index("results:")
    arguments = [re.split(r"  +", line.strip())[:4] for line in lines[1:split]]
    results = [re.split(r"  +", line.strip())[:4] for line in lines[split + 1 :]]
    return arguments, results


def check_unclear(fp8_run, path, error, options):
    result = t.run([fp8_run, path, "--explain-signature", *options], check=False)
    return [] if error in result.stderr else [f"expected '{error}' but got {result.stderr[:200]}"]


def check(name, fp8_run, folder):
    case = CASES[name]()
    new_state, out = jax.eval_shape(case.step, **case.args)
    result_labels = labels_of({key: new_state[key] for key in case.state}) + ["out" + jax.tree_util.keystr(keys) for keys, _ in jax.tree_util.tree_flatten_with_path(out)[0]]

    def flat(*args):
        new_state, out = case.step(**dict(zip(case.args, args)))
        return [new_state[key] for key in case.state], out

    # Exports once: without donation the stripped text equals that of an export without donation.
    donate = [i for i, key in enumerate(case.args) if key in case.state]
    lowered = jax.jit(flat, donate_argnums=donate).lower(*case.args.values())
    kept = sorted(lowered._lowering.compile_args["kept_var_idx"])
    arg_labels = [labels_of(case.args)[i] for i in kept]
    text, problems = lowered.as_text(), set()
    path = folder / f"{name}.mlir"
    path.write_text(lowered.as_text(debug_info=True))
    problems.update(compare(case, explain(fp8_run, path), arg_labels, result_labels))
    for seed, donated in ((0, False), (1, True)):
        stripped, order, result_order = t.strip_names(text, seed=seed, donated=donated)
        path = folder / f"{name}-{seed}.mlir"
        path.write_text(stripped)
        labels, options = [arg_labels[i] for i in order], []
        for label in case.unclear:
            number = labels.index(label)
            problems.update(check_unclear(fp8_run, path, f"ambiguous state: 'arg{number}' is", options))
            options.append(f"--role=arg{number}={case.roles[label]}")
        problems.update(compare(case, explain(fp8_run, path, *options), labels, [result_labels[i] for i in result_order]))
    return sorted(problems)


def compare(case, explained, arg_labels, result_labels):
    arguments, results = explained
    assert len(arguments) == len(arg_labels) and len(results) == len(result_labels)
    problems = []

    def expect(label, what, expected, got):
        if expected != got:
            problems.append(f"{label}: expected {what} {expected} but got {got}")

    by_path = {path: label for (path, *_), label in zip(arguments, arg_labels)}
    state = set(arg_labels) & set(result_labels)
    for (_, _, role, *_), label in zip(arguments, arg_labels):
        if label not in state:
            expected = next((role for root, role in case.roles.items() if re.match(root + r"\b", label)), "constant")
            expect(label, "role", expected, role)
            continue
        expected = next((kind for pattern, kind in case.kinds if re.search(pattern, label)), "other")
        expect(label, "role", f"state {expected or role.partition(' ')[2]}", role)
    for (_, _, kind, *_), label in zip(results, result_labels):
        if label in state:
            path = kind.partition(" ")[2]
            replaced = by_path.get(path, kind)
            if not (re.search(case.alike, label) and re.search(case.alike, replaced)):
                expect(label, "replaced argument", label, replaced)
        elif label == "out" + case.loss:
            expect(label, "kind", "loss", kind)
        elif kind not in ("metric", "output"):
            problems.append(f"{label}: expected metric or output but got {kind} ({by_path.get(kind.partition(' ')[2])})")
    return problems


def main():
    fp8_run, folder, *only = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    failed = []

    def attempt(name):
        try:
            return check(name, fp8_run, folder)
        except SystemExit as error:
            return [str(error)]

    names = only or list(CASES)
    # Two threads: one case is traced while fp8-run reads another.
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = list(pool.map(attempt, names))
    for name, problems in zip(names, found):
        print(name, "as written" if not problems else f"{len(problems)} mistakes")
        for problem in problems[:8]:
            print("   ", problem)
        failed += [name] * bool(problems)
    if failed:
        raise SystemExit(f"expected every signature to be recognized but got mistakes in {', '.join(failed)}")


main()
