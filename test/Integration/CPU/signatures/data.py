"""Data of all kinds, other models, and what they return or keep beside the loss."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from cases import ADAM, PARAMETER, Case, case
from flax.training.train_state import TrainState
from models import BATCH, LAYERS, LENGTH, TOKENS, VOCAB, WIDTH, cross_entropy, init_params, logits_of, matrix, optimized


@case
def tied():
    return optimized(optax.adam(1e-3), params=init_params(tied=True), kinds=ADAM)


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
def statistics():
    """Batch normalization keeps averages of activations; the tokens are returned."""
    tx = optax.adam(1e-3)
    params = {
        "embed": init_params()["embed"],
        "layers": [{"w": layer["q"], "scale": layer["scale1"], "bias": layer["bias1"]} for layer in init_params()["layers"]],
        "head": init_params()["head"],
    }
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
