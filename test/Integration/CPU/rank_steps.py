"""Steps for one device that ranks.py runs on several ranks."""

import dataclasses
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

ROWS, BATCH = 64, 4
WIDTH, CLASSES, LENGTH = 32, 16, 8


@dataclasses.dataclass
class Case:
    """Has `loss(params, batch)`, initial parameters, all rows, the optimizer, and a key if the loss
    reads one. `micro` is the number of micro-batches: the batch is reshaped, unless it has them as
    a dimension (`stacked`), or they are slices (`sliced`), in a loop or `unrolled`. With `careful` the rows decide the size of the
    update, with `guarded` whether there is one. `watch(params, batch, seen)` returns more metrics,
    and the next value of what it has `seen`, which is state. With `turns` a step updates several
    parts of the parameters, one after another, each by the gradient of its own loss."""

    loss: Callable
    params: Any
    batch: dict
    optimizer: Any
    micro: int = 1
    key: Any = None
    stacked: bool = False
    sliced: bool = False
    unrolled: bool = False
    careful: bool = False
    guarded: bool = False
    watch: Callable | None = None
    seen: Any = None
    turns: dict | None = None

    def rows(self, ranks):
        """Returns all rows in the order in which this number of ranks reads them."""
        if self.sliced and ranks == 1:
            # Micro-batch i of a step consists of micro-batch i of all ranks.
            return {key: np.ascontiguousarray(x.reshape(-1, 2, self.micro, BATCH // self.micro, *x.shape[1:]).swapaxes(1, 2)).reshape(x.shape) for key, x in self.batch.items()}
        if not self.stacked:
            return self.batch
        split = lambda x: x.reshape(-1, 2, self.micro, BATCH, *x.shape[1:])
        if ranks == 2:
            return {key: split(x).reshape(-1, BATCH, *x.shape[1:]) for key, x in self.batch.items()}
        return {key: np.ascontiguousarray(split(x).swapaxes(1, 2)).reshape(-1, 2 * BATCH, *x.shape[1:]) for key, x in self.batch.items()}


def dense(random, *shape):
    return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)


def layers(random):
    return {"in": dense(random, WIDTH, 64), "bias": np.zeros(64, np.float32), "out": dense(random, 64, CLASSES)}


def apply(params, x):
    return jax.nn.gelu(x @ params["in"] + params["bias"]) @ params["out"]


def regression():
    """Adam after clipping by the norm of all gradients: neither is linear."""
    random = np.random.default_rng(0)
    batch = {"x": random.standard_normal((ROWS, WIDTH)).astype(np.float32), "y": random.standard_normal((ROWS, CLASSES)).astype(np.float32)}
    loss = lambda params, batch: jnp.mean(jnp.square(apply(params, batch["x"]) - batch["y"]))
    return Case(loss, layers(random), batch, optax.chain(optax.clip_by_global_norm(0.3), optax.adamw(1e-2, weight_decay=0.1)))


def micro_batches():
    return dataclasses.replace(regression(), micro=2)


def sequences():
    """A causal model of tokens, in a scan over layers. The masks leave each rank a different number
    of tokens, and the loss is divided by the total. With a key each layer has dropout, whose masks
    the backward pass reads from a stack."""
    random = np.random.default_rng(1)
    tokens = random.integers(0, CLASSES, (ROWS, LENGTH + 1)).astype(np.int32)
    mask = (np.arange(LENGTH)[None] < random.integers(2, LENGTH + 1, (ROWS, 1))).astype(np.float32)
    params = {"embed": dense(random, CLASSES, WIDTH), "head": dense(random, WIDTH, CLASSES)}
    params["layers"] = {"qkv": dense(random, 2, WIDTH, 3 * WIDTH) / 3, "up": dense(random, 2, WIDTH, 64) / 3, "down": dense(random, 2, 64, WIDTH) / 6}

    def norm(x):
        return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6)

    def drop(x, *key):
        return jnp.where(jax.random.bernoulli(*key, 0.8, x.shape), x / 0.8, 0) if key else x

    def layer(x, inputs):
        p, *key = inputs
        q, k, v = jnp.split(norm(x) @ p["qkv"], 3, -1)
        scores = jnp.einsum("bqd,bkd->bqk", q, k) / WIDTH**0.5
        causal = jnp.tril(jnp.ones((LENGTH, LENGTH), bool))
        x = x + jax.nn.softmax(jnp.where(causal, scores, -1e30)) @ v
        return x + drop(jax.nn.silu(norm(x) @ p["up"]) @ p["down"], *key), None

    def loss(params, batch, *key):
        x, _ = jax.lax.scan(layer, params["embed"][batch["tokens"][:, :-1]], (params["layers"], *(jax.random.split(k, 2) for k in key)))
        logp = jax.nn.log_softmax(norm(x) @ params["head"])
        nll = -jnp.take_along_axis(logp, batch["tokens"][:, 1:, None], -1)[..., 0]
        return jnp.sum(nll * batch["mask"]) / jnp.sum(batch["mask"])

    return Case(loss, params, {"tokens": tokens, "mask": mask}, optax.adam(1e-2))


def shifted():
    """Tokens that are shifted right, as for a decoder: columns of all rows are set to a number, to
    parameters, or to false."""
    case = sequences()

    def loss(params, batch):
        tokens = batch["tokens"]
        x = params["embed"][jnp.roll(tokens, 1, axis=1).at[:, 0].set(3)]
        x = x.at[:, 0].set(params["first"])
        x = x + jax.nn.gelu(x @ params["in"]) @ params["out"]
        logits = (x @ params["head"]).at[:, :, 0].set(-1e9)
        nll = -jnp.take_along_axis(jax.nn.log_softmax(logits), jnp.maximum(tokens, 1)[..., None], -1)[..., 0]
        mask = (tokens != 0).at[:, -2:].set(False)
        return jnp.sum(jnp.where(mask, nll, 0)) / jnp.sum(mask)

    random = np.random.default_rng(2)
    params = {"embed": case.params["embed"], "first": dense(random, WIDTH), "in": dense(random, WIDTH, 64), "out": dense(random, 64, WIDTH), "head": case.params["head"]}
    return Case(loss, params, {"tokens": case.batch["tokens"]}, optax.adam(1e-2))


def clipped_by_layer():
    """An optimizer that is a scan over layers, and clips the momentum of each by its own norm."""

    def layer(_, inputs):
        moment = jax.tree.map(lambda g, m: 0.9 * m + g, *inputs)
        return None, (jax.tree.map(lambda m: m / jnp.maximum(1, optax.global_norm(moment) / 0.05), moment), moment)

    def update(grads, state, params=None):
        updates, state = jax.lax.scan(layer, None, (grads["layers"], state))[1]
        return {**grads, "layers": updates}, state

    momentum = optax.GradientTransformation(lambda params: jax.tree.map(jnp.zeros_like, params["layers"]), update)
    return dataclasses.replace(sequences(), optimizer=optax.chain(momentum, optax.sgd(0.3)))


def plain():
    """Gradient descent whose state is the last gradient."""
    return dataclasses.replace(regression(), optimizer=optax.chain(optax.trace(0.0), optax.sgd(0.1)))


class Scaled:
    """A loss with a scale that is state: steps whose gradients overflow change nothing but the scale."""

    FACTOR = 2.0**20

    def __init__(self, inner):
        self.inner = inner

    def init(self, params):
        return {"inner": self.inner.init(params), "scale": np.float32(2.0**127)}

    def update(self, grads, state, params):
        grads = jax.tree.map(lambda g: g / state["scale"] / self.FACTOR, grads)
        is_finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))
        updates, inner = self.inner.update(grads, state["inner"], params)
        choose = lambda new, old: jax.tree.map(lambda n, o: jnp.where(is_finite, n, o), new, old)
        scale = jnp.where(is_finite, state["scale"] * 2, state["scale"] * 2.0**-40)
        return choose(updates, jax.tree.map(jnp.zeros_like, updates)), {"inner": choose(inner, state["inner"]), "scale": scale}


def with_loss_scale():
    case = regression()
    return dataclasses.replace(case, optimizer=Scaled(case.optimizer))


def guarded():
    """Some batches have a row that lets all ranks leave out the step."""
    return dataclasses.replace(regression(), guarded=True)


def averaged():
    """A running average of the weights, with gradients summed over two calls."""
    return dataclasses.replace(regression(), optimizer=optax.MultiSteps(optax.chain(optax.sgd(0.1, momentum=0.9), optax.ema(0.5)), 2))


def with_dropout(draws=None):
    """Masks, noise, and one key for every example: a rank's rows get those of their positions in
    the whole batch. `draws` selects another generator than threefry."""
    case = regression()

    def loss(params, batch, key):
        masks, noises, each = jax.random.split(key, 3)
        x = batch["x"] + 0.1 * jax.random.normal(noises, batch["x"].shape)
        hidden = jax.nn.gelu(x @ params["in"] + params["bias"])
        hidden = jnp.where(jax.random.bernoulli(masks, 0.7, hidden.shape), hidden / 0.7, 0)
        own = jax.vmap(lambda key: jax.random.uniform(key, (CLASSES,)))(jax.random.split(each, len(x))) if draws is None else 0
        keep = jax.random.bernoulli(jax.random.fold_in(masks, 1), 0.8, (len(x), 1))
        errors = jnp.square(hidden @ params["out"] + own - batch["y"])
        return jnp.sum(jnp.where(keep, errors, 0)) / jnp.maximum(jnp.sum(keep), 1)

    return dataclasses.replace(case, loss=loss, key=jax.random.key(7, impl=draws))


def with_noise():
    """Noise that rows read at their labels, and noise that a loop carries on."""
    case = regression()

    def loss(params, batch, key):
        table, each = jax.random.split(key)
        noise = jnp.take_along_axis(jax.random.gumbel(table, batch["y"].shape), jnp.argmax(batch["y"], -1)[:, None], axis=1)

        def layer(carry, key):
            x, before = carry
            return (x + 0.1 * jnp.tanh(before), jax.random.normal(key, x.shape)), None

        (x, _), _ = jax.lax.scan(layer, (batch["x"], batch["x"]), jax.random.split(each, 3))
        return jnp.mean(jnp.square(apply(params, x) + noise - batch["y"]))

    return dataclasses.replace(case, loss=loss, key=jax.random.key(9))


def samples_first(shared=False):
    """Several samples of noise for each row, and layers' masks, along a dimension before the rows:
    each rank goes on behind all that the rank before it has drawn, unless they share the batch."""
    case, samples = regression(), 3

    def draw(random, key, rows, *args):
        if shared:
            return random(key, *args, (samples, rows, WIDTH))
        ranks = rows // BATCH
        drawn = random(key, *args, (ranks * samples, BATCH, WIDTH))
        return drawn if ranks == 1 else drawn.reshape(ranks, samples, BATCH, WIDTH).swapaxes(0, 1).reshape(samples, rows, WIDTH)

    def loss(params, batch, key):
        noises, masks = jax.random.split(key)
        x = batch["x"] + 0.1 * draw(jax.random.normal, noises, len(batch["x"]))
        x = jnp.where(draw(jax.random.bernoulli, masks, len(batch["x"]), 0.7), x / 0.7, 0)
        return jnp.mean(jnp.square(apply(params, x) - batch["y"]))

    return dataclasses.replace(case, loss=loss, key=jax.random.key(13))


def masked():
    """A masked autoencoder of random crops: each row draws where its crop begins, and the order in
    which its patches are kept, by which they are also put back."""
    case, kept, size = regression(), 3, 2

    def crop(image, key):
        return jax.lax.dynamic_slice(image, (jax.random.randint(key, (), 0, WIDTH // size - LENGTH + 1), 0), (LENGTH, size))

    def loss(params, batch, key):
        order, places = jax.random.split(key)
        images = batch["x"].reshape(-1, WIDTH // size, size)
        x = jax.vmap(crop)(images, jax.random.split(places, len(images)))
        x = x @ params["patches"]
        order = jnp.argsort(jax.random.uniform(order, x.shape[:2]), axis=1)
        back = jnp.argsort(order, axis=1)
        x = jnp.take_along_axis(x, order[:, :kept, None], axis=1)
        x = jax.nn.gelu(x @ params["in"] + params["bias"]) @ params["out"]
        x = jnp.concatenate([x, jnp.broadcast_to(params["mask"], (len(x), LENGTH - kept, CLASSES))], 1)
        errors = jnp.square(jnp.take_along_axis(x, back[..., None], axis=1) - batch["y"][:, None])
        hidden = jnp.take_along_axis(jnp.ones(back.shape).at[:, :kept].set(0), back, axis=1)
        return jnp.sum(jnp.mean(errors, -1) * hidden) / jnp.sum(hidden)

    random = np.random.default_rng(3)
    params = {**case.params, "patches": dense(random, size, WIDTH), "mask": dense(random, CLASSES)}
    return dataclasses.replace(case, loss=loss, params=params, key=jax.random.key(4))


def branches():
    """Every second layer of a loop keeps half of its features: their mask is that of a branch."""
    case = regression()

    def loss(params, batch):
        def layer(x, inputs):
            weight, index = inputs
            first = jnp.arange(WIDTH) < WIDTH // 2
            y = jax.lax.cond(index % 2 == 0, lambda y: jnp.where(first, y, 0.0), lambda y: y, jnp.tanh(x @ weight))
            return x + y * jax.lax.cond(index % 3 == 0, lambda: jnp.where(first, 1.0, 0.5), lambda: jnp.ones(WIDTH)), None

        x, _ = jax.lax.scan(layer, batch["x"], (params["layers"], jnp.arange(3)))
        return jnp.mean(jnp.square(apply(params, x) - batch["y"]))

    return dataclasses.replace(case, loss=loss, params={**case.params, "layers": dense(np.random.default_rng(5), 3, WIDTH, WIDTH)})


def two_views():
    """Two views of each example go through the layers side by side, and one predicts the other."""
    case = regression()

    def loss(params, batch):
        noise = jnp.roll(batch["x"], 1, axis=1)
        out = apply(params, jnp.concatenate([batch["x"], batch["x"] + 0.1 * noise]))
        one, two = jnp.split(out, 2)
        return jnp.mean(jnp.square(one @ params["predict"] - jax.lax.stop_gradient(two))) + jnp.mean(jnp.square(two - batch["y"]))

    return dataclasses.replace(case, loss=loss, params={**case.params, "predict": dense(np.random.default_rng(6), CLASSES, CLASSES)})


def one_by_one():
    """A loop over single rows, each of which has a key of its own: a causal model, with as many
    tokens as a row has."""
    case = sequences()

    def loss(params, batch, key):
        def row_loss(inputs):
            row, key = inputs
            return case.loss(params, jax.tree.map(lambda x: x[None], row), key) * jnp.sum(row["mask"])

        losses = jax.lax.map(jax.checkpoint(row_loss), (batch, jax.random.split(key, len(batch["mask"]))))
        return jnp.sum(losses) / jnp.sum(batch["mask"])

    return dataclasses.replace(case, loss=loss, optimizer=optax.sgd(0.3, momentum=0.9), key=jax.random.key(12))


def row_sums():
    """A scan over rows that adds up their losses."""
    case = regression()

    def loss(params, batch):
        def add(total, row):
            return total + jnp.mean(jnp.square(apply(params, row["x"]) - row["y"])), None

        return jax.lax.scan(add, jnp.zeros(()), batch)[0] / len(batch["x"])

    return dataclasses.replace(case, loss=loss)


def watched():
    """Sums over the batch that several metrics share, also with the loss, and sums that are state."""

    def loss(params, batch):
        errors = apply(params, batch["x"]) - batch["y"]
        return jnp.vdot(errors, errors) / errors.size

    def watch(params, batch, seen):
        out, want = apply(params, batch["x"]), batch["y"]
        squares, wanted = jnp.sum(out**2), jnp.sum(want**2)
        metrics = {"l2": jnp.sqrt(squares), "rms": jnp.sqrt(squares / out.size), "cosine": jnp.sum(out * want) / jnp.sqrt(squares * wanted)}
        errors = out - want
        metrics |= {"deviation": jnp.std(out), "logsumexp": jax.nn.logsumexp(out)}
        metrics |= {"wanted": wanted / want.size, "squared": jnp.square(jnp.vdot(errors, errors))}
        metrics |= {"clipped": jnp.sum(jnp.sum(out, 0).at[0].max(0.0)), "share": jnp.mean(jnp.abs(errors)) * wanted}
        codes = jax.nn.one_hot(jnp.argmax(out, -1), CLASSES)
        return metrics, {
            "counts": seen["counts"] + jnp.sum(codes, 0),
            "sums": seen["sums"] + codes.T @ out,
            "mean": 0.9 * seen["mean"] + 0.1 * jnp.mean(out, 0),
            "averages": 0.9 * seen["averages"] + 0.1 * codes.T @ out,
        }

    seen = {key: np.zeros(CLASSES, np.float32) for key in ("counts", "mean")}
    seen |= {key: np.zeros((CLASSES, CLASSES), np.float32) for key in ("sums", "averages")}
    return dataclasses.replace(regression(), loss=loss, watch=watch, seen=seen)


def adversarial():
    """A critic is updated, and then the generator, by what the new critic says of the same
    batch."""
    case, random = regression(), np.random.default_rng(8)

    def score(params, x):
        return jax.nn.leaky_relu(x @ params["critic"]["in"], 0.2) @ params["critic"]["out"]

    def critic(params, batch):
        real, fake = score(params, batch["y"]), score(params, apply(params["generator"], batch["x"]))
        return jnp.mean(jax.nn.softplus(-real)) + jnp.mean(jax.nn.softplus(fake))

    def generator(params, batch):
        return jnp.mean(jax.nn.softplus(-score(params, apply(params["generator"], batch["x"]))))

    params = {"critic": {"in": dense(random, CLASSES, 64), "out": dense(random, 64, 1)}, "generator": case.params}
    return dataclasses.replace(case, loss=None, params=params, turns={"critic": critic, "generator": generator})


def actor_critic():
    """A critic is updated, then the policy by the new critic, and then the temperature by the new
    policy. The rows that count are divided by their number."""
    case, random = regression(), np.random.default_rng(10)
    value = lambda params, x, action: jax.nn.gelu(jnp.concatenate([x, action], -1) @ params["critic"]["in"]) @ params["critic"]["out"]
    over = lambda values, batch: jnp.sum(values * (batch["y"][:, 0] > -1)) / jnp.sum(batch["y"][:, 0] > -1)

    def critic(params, batch):
        return over(jnp.square(value(params, batch["x"], batch["y"])[:, 0] - batch["y"][:, 1]), batch)

    def actor(params, batch):
        policy = jax.nn.softmax(apply(params["actor"], batch["x"]))
        entropy = -jnp.sum(policy * jnp.log(policy), -1)
        return -over(value(params, batch["x"], policy)[:, 0] + jnp.exp(params["alpha"]) * entropy, batch)

    def alpha(params, batch):
        policy = jax.nn.softmax(apply(params["actor"], batch["x"]))
        return over(jnp.exp(params["alpha"]) * (-jnp.sum(policy * jnp.log(policy), -1) - 2), batch)

    params = {"critic": {"in": dense(random, WIDTH + CLASSES, 64), "out": dense(random, 64, 1)}, "actor": case.params, "alpha": np.float32(-1)}
    return dataclasses.replace(case, loss=None, params=params, optimizer=optax.sgd(0.05, momentum=0.9), turns={"critic": critic, "actor": actor, "alpha": alpha})


def normalized():
    """A normalization over the batch, and a loss that balances experts: one row reads what follows from all."""

    def loss(params, batch):
        x = batch["x"] @ params["in"]
        x = (x - jnp.mean(x, 0)) * jax.lax.rsqrt(jnp.var(x, 0) + 1e-3) + params["bias"]
        share = jax.nn.softmax(x)
        balance = jnp.sum(jnp.square(jnp.mean(share, 0)))
        return jnp.mean(jnp.square(jax.nn.gelu(x * share) @ params["out"] - batch["y"])) + 0.1 * balance

    return dataclasses.replace(regression(), loss=loss)


def contrastive():
    """Each row is told apart from all others, whose places are its labels (CLIP)."""

    def loss(params, batch):
        a, b = jax.nn.gelu(batch["x"] @ params["in"] + params["bias"]) @ params["out"], batch["y"]
        scores = a @ b.T / jnp.linalg.norm(b, axis=1) / 4
        labels = jnp.arange(len(a))
        ce = optax.softmax_cross_entropy_with_integer_labels
        return jnp.mean(ce(scores, labels) + ce(scores.T, labels)) / 2

    return dataclasses.replace(regression(), loss=loss)


def in_order():
    """Rows in the order of the batch: their places, sums up to each, and the half with the least errors."""

    def loss(params, batch):
        errors = jnp.mean(jnp.square(apply(params, batch["x"]) - batch["y"]), 1)
        places = jnp.arange(len(errors)) / len(errors)
        least = jnp.sort(errors)[: len(errors) // 2]
        return jnp.mean(errors * places) + jnp.mean(least) + 0.1 * jnp.mean(jnp.cumsum(errors)) + jnp.mean(jnp.square(errors - errors[::-1]))

    return dataclasses.replace(regression(), loss=loss)


def updated_inside():
    """The loss reads parameters that its own gradient on other rows has updated (MAML)."""

    def error(params, batch):
        return jnp.mean(jnp.square(apply(params, batch["x"]) - batch["y"]))

    def loss(params, batch):
        grads = jax.grad(error)(params, {"x": batch["x"] * 0.9, "y": batch["y"]})
        return error(jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), batch)

    return dataclasses.replace(regression(), loss=loss)


def halves():
    """The first half of the batch is compared with the second one, and each has dropout."""
    case = regression()

    def loss(params, batch, key):
        n = len(batch["x"]) // 2
        out = apply(params, batch["x"])
        teacher = jax.nn.softmax(out[n:] + batch["y"][n:])
        kept = jax.random.bernoulli(key, 0.7, out.shape)
        return -jnp.mean(jnp.sum(jax.lax.stop_gradient(teacher) * jax.nn.log_softmax(jnp.where(kept, out, 0)[:n]), -1))

    return dataclasses.replace(case, loss=loss, key=jax.random.key(5))


def groups():
    """Answers to one question are one after another, and each is compared with the mean of its group; pairs take every second row."""
    case = regression()

    def loss(params, batch):
        out = apply(params, batch["x"])
        rewards = batch["y"][:, 0].reshape(-1, 2)
        advantages = (rewards - jnp.mean(rewards, 1, keepdims=True)) / (jnp.std(rewards, 1, keepdims=True) + 1e-3)
        margins = jnp.sum(out[::2] - out[1::2], -1)
        return jnp.mean(jax.nn.logsumexp(out, -1) * advantages.reshape(-1)) - jnp.mean(jax.nn.log_sigmoid(0.1 * margins))

    return dataclasses.replace(case, loss=loss)


def step_of(case):
    def in_turns(params, opt, batch):
        losses, norms = [], []
        for part, loss_of in case.turns.items():
            loss, grads = jax.value_and_grad(lambda own: loss_of({**params, part: own}, batch))(params[part])
            updates, state = case.optimizer.update(grads, opt[part], params[part])
            params, opt = {**params, part: optax.apply_updates(params[part], updates)}, {**opt, part: state}
            losses, norms = [*losses, loss], [*norms, optax.global_norm(grads)]
        return params, opt, {"loss": losses[-1], "losses": sum(losses), "norm": sum(norms)}

    def gradients(params, opt, batch, *key):
        if isinstance(case.optimizer, Scaled):
            scaled = lambda params: ((loss := case.loss(params, batch)) * opt["scale"] * Scaled.FACTOR, loss)
            grads, loss = jax.grad(scaled, has_aux=True)(params)
            return loss, grads
        if case.micro == 1:
            return jax.value_and_grad(case.loss)(params, batch, *key)
        size = len(jax.tree.leaves(batch)[0]) // case.micro
        if case.sliced:
            parts = jnp.arange(case.micro)
        else:
            parts = batch if case.stacked else jax.tree.map(lambda b: b.reshape(case.micro, size, *b.shape[1:]), batch)
        parts = (parts, *(jax.random.split(k, case.micro) for k in key))

        def add(total, part):
            if case.sliced:
                part = (jax.tree.map(lambda b: jax.lax.dynamic_slice_in_dim(b, part[0] * size, size), batch), *part[1:])
            return jax.tree.map(jnp.add, total, jax.value_and_grad(case.loss)(params, *part)), None

        if case.unrolled:
            halves = [jax.tree.map(lambda b: b[i * size : (i + 1) * size], batch) for i in range(case.micro)]
            return jax.tree.map(lambda *x: sum(x) / case.micro, *(jax.value_and_grad(case.loss)(params, half) for half in halves))

        zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        return jax.tree.map(lambda x: x / case.micro, jax.lax.scan(add, zeros, parts)[0])

    def step(params, opt, batch, *key):
        loss, grads = gradients(params, opt, batch, *key)
        norm = optax.global_norm(grads)
        metrics = {"loss": loss, "norm": jnp.where(jnp.isfinite(norm), norm, 0)}
        if case.watch:
            opt, seen = opt
            watched, seen = case.watch(params, batch, seen)
            metrics |= watched
        updates, opt = case.optimizer.update(grads, opt, params)
        if case.careful:
            far = jnp.any(jnp.abs(batch["x"]) > 3) | ~jnp.all(jnp.isfinite(batch["y"]))
            updates = jax.tree.map(lambda u: jnp.where(far, u / 4, u), updates)
        return optax.apply_updates(params, updates), (opt, seen) if case.watch else opt, metrics

    def guarded(params, opt, batch):
        skip = lambda *state: (*state, {"loss": jnp.zeros(()), "norm": jnp.zeros(())})
        is_good = jnp.all(jnp.abs(batch["x"]) < 2.9)
        return jax.lax.cond(is_good, lambda *state: step(*state, batch), skip, params, opt)

    if case.turns:
        return in_turns
    return guarded if case.guarded else step


CASES = {"regression": regression, "micro-batches": micro_batches, "sequences": sequences, "shifted": shifted, "averaged": averaged, "clipped by layer": clipped_by_layer}
CASES |= {"dropout": with_dropout, "dropout in micro-batches": lambda: dataclasses.replace(with_dropout(), micro=2, stacked=True), "dropout by rbg": lambda: with_dropout("rbg")}
CASES |= {"dropout in layers": lambda: dataclasses.replace(sequences(), key=jax.random.key(3))}
CASES |= {"noise": with_noise, "masked": masked, "branches": branches, "watched": watched, "plain": plain, "loss scale": with_loss_scale, "guarded": guarded}
CASES |= {"slices": lambda: dataclasses.replace(with_dropout(), micro=2, sliced=True), "unrolled": lambda: dataclasses.replace(regression(), micro=2, unrolled=True)}
CASES |= {"one by one": one_by_one, "row sums": row_sums, "micro-batches of one row": lambda: dataclasses.replace(regression(), micro=BATCH)}
CASES |= {"samples first": samples_first, "groups": groups}
CASES |= {"two views": two_views, "adversarial": adversarial, "actor and critic": actor_critic}
CASES |= {"stacked": lambda: dataclasses.replace(regression(), micro=2, stacked=True, careful=True)}
# Ranks that share a batch compute what one process computes, so more steps run on them.
SHARED = CASES | {"samples first": lambda: samples_first(shared=True), "normalized": normalized, "updated inside": updated_inside}
SHARED |= {"contrastive": contrastive, "contrastive micro-batches": lambda: dataclasses.replace(contrastive(), micro=2), "in order": in_order, "halves": halves}
SHARED |= {"normalized micro-batches": lambda: dataclasses.replace(normalized(), micro=2)}
