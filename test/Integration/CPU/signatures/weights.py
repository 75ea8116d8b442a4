"""Arrays that look like the weights: averages, masters, teachers, and weights that are frozen or masked."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from cases import ADAM, PARAMETER, Case, case
from models import BATCH, LAYERS, LENGTH, TOKENS, VOCAB, WIDTH, init_params, logits_of, loss_of, masters, matrix, normalize, optimized


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
def bf16_masters():
    return masters(jnp.bfloat16)


@case
def bf16_masters_scanned():
    return masters(jnp.bfloat16, stacked=True)


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
def weights_left_out_by_flags():
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
