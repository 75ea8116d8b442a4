"""Steps of research codes: several updates in a call, derivatives of derivatives, and losses that weight their terms by
parameters."""

import jax
import jax.flatten_util
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import normal

STEPS = 20


def tx(rate=1e-3):
    return optax.adam(rate, eps=1e-6)


def mlp(random, *sizes):
    return [{"w": normal(random, m, n, scale=m**-0.5), "b": jnp.zeros(n)} for m, n in zip(sizes, sizes[1:])]


def run(layers, x, activation=jnp.tanh):
    for layer in layers[:-1]:
        x = activation(x @ layer["w"] + layer["b"])
    return x @ layers[-1]["w"] + layers[-1]["b"]


def floats(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal((STEPS, *shape), np.float32)


def integers(top, *shape, seed=0):
    return np.random.default_rng(seed).integers(0, top, (STEPS, *shape)).astype(np.int32)


def trained(loss, params, batch, opt, **options):
    def train(params, opt_state, batch):
        value, grads = jax.value_and_grad(loss)(params, batch)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    return Step(train, {"params": params, "opt_state": opt.init(params)}, {"batch": batch}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, **options)  # fmt: skip


@step
def proximal_policy():
    """PPO: epochs over shuffled minibatches are a scan of whole updates in a scan."""
    random, opt = np.random.default_rng(0), optax.chain(optax.clip_by_global_norm(0.5), tx())
    params = {"policy": mlp(random, 16, 32, 32, 4), "value": mlp(random, 16, 32, 32, 1)}

    def loss(p, b):
        logp = jax.nn.log_softmax(run(p["policy"], b["state"]))
        ratio = jnp.exp(jnp.take_along_axis(logp, b["action"][:, None], 1)[:, 0] - b["logp"])
        gain = (b["gain"] - b["gain"].mean()) / (b["gain"].std() + 1e-8)
        value = run(p["value"], b["state"])[:, 0]
        clipped = b["value"] + jnp.clip(value - b["value"], -0.2, 0.2)
        off = jnp.maximum(jnp.square(value - b["target"]), jnp.square(clipped - b["target"])).mean()
        entropy = -(jnp.exp(logp) * logp).sum(-1).mean()
        return -jnp.minimum(ratio * gain, jnp.clip(ratio, 0.8, 1.2) * gain).mean() + 0.5 * off - 0.01 * entropy

    def train(params, opt_state, key, batch):
        key, *epochs = jax.random.split(key, 3)

        def update(carry, part):
            value, grads = jax.value_and_grad(loss)(carry[0], part)
            updates, opt_state = opt.update(grads, carry[1], carry[0])
            return (optax.apply_updates(carry[0], updates), opt_state), value

        def epoch(carry, key):
            order = jax.random.permutation(key, 32)
            return jax.lax.scan(update, carry, jax.tree.map(lambda x: x[order].reshape(2, 16, *x.shape[1:]), batch))

        (params, opt_state), losses = jax.lax.scan(epoch, (params, opt_state), jnp.stack(epochs))
        return params, opt_state, key, losses.mean()

    batch = {"state": floats(32, 16), "action": integers(4, 32), "logp": np.full((STEPS, 32), -1.4, np.float32)}
    batch |= {name: floats(32, seed=i) for i, name in enumerate(["gain", "value", "target"], 1)}
    state = {"params": params, "opt_state": opt.init(params), "key": jax.random.PRNGKey(0)}
    return Step(train, state, {"batch": batch}, lambda r: r[3], lambda r: dict(zip(state, r)), bound=1e-2, loss_bound=1e-3, linear=(4, 2, 4))


@step
def unrolled_updates():
    """Three updates in a call that are written out: layers read the weights that each of them has changed."""
    opt = optax.adamw(1e-3, eps=1e-6)
    loss_of = lambda p, b: jnp.square(run(p, b["x"]) - b["y"]).mean()

    def train(params, opt_state, batch):
        losses = []
        for part in range(3):
            value, grads = jax.value_and_grad(loss_of)(params, jax.tree.map(lambda x: x[part], batch))
            updates, opt_state = opt.update(grads, opt_state, params)
            params = optax.apply_updates(params, updates)
            losses.append(value)
        return params, opt_state, sum(losses) / 3

    params = mlp(np.random.default_rng(0), 16, 32, 32, 4)
    batch = {"x": floats(3, 16, 16), "y": floats(3, 16, 4, seed=1)}
    return Step(train, {"params": params, "opt_state": opt.init(params)}, {"batch": batch}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, bound=1e-2, loss_bound=1e-3, gap=0.5, linear=(6, 3, 6))  # fmt: skip


@step
def sharpness_aware():
    """SAM on a scan over layers that computes in bf16: the loss is that of the weights that a first gradient has moved."""
    opt = tx()

    def loss_of(p, b):
        layer = lambda h, w: (h + jnp.tanh(h @ w.astype(jnp.bfloat16)), None)
        h, _ = jax.lax.scan(layer, b["x"].astype(jnp.bfloat16), p["layers"])
        return jnp.square((h @ p["out"].astype(jnp.bfloat16)).astype(jnp.float32) - b["y"]).mean()

    def train(params, opt_state, batch):
        slope = jax.grad(loss_of)(params, batch)
        radius = 0.05 / (optax.global_norm(slope) + 1e-12)
        moved = jax.tree.map(lambda p, g: p + radius * g, params, slope)
        value, grads = jax.value_and_grad(loss_of)(moved, batch)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    random = np.random.default_rng(0)
    params = {"layers": normal(random, 3, 32, 32, scale=0.2), "out": normal(random, 32, 4, scale=0.2)}
    batch = {"x": floats(16, 32), "y": floats(16, 4, seed=1)}
    return Step(train, {"params": params, "opt_state": opt.init(params)}, {"batch": batch}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, bound=0.5, loss_bound=1e-2, gap=0.5, linear=(2, 2, 2))  # fmt: skip


@step
def sharpness_aware_first_loss():
    """SAM that returns the loss before the weights are moved: no result reads the second forward pass, but for its gradients."""
    opt = tx()
    loss_of = lambda p, b: jnp.square(run(p, b["x"]) - b["y"]).mean()

    def train(params, opt_state, batch):
        value, slope = jax.value_and_grad(loss_of)(params, batch)
        moved = jax.tree.map(lambda p, g: p + 0.05 / (optax.global_norm(slope) + 1e-12) * g, params, slope)
        updates, opt_state = opt.update(jax.grad(loss_of)(moved, batch), opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    params = mlp(np.random.default_rng(0), 16, 32, 32, 4)
    batch = {"x": floats(16, 16), "y": floats(16, 4, seed=1)}
    return Step(train, {"params": params, "opt_state": opt.init(params)}, {"batch": batch}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, bound=1e-2, loss_bound=1e-3, gap=0.5, linear=(4, 2, 4))  # fmt: skip


@step
def stacked_critics():
    """Two critics in stacked weights, and an actor whose loss reads what their gradients have changed."""

    def critics(p, state, action):
        layers = lambda p, x: (jnp.tanh(jnp.tanh(x @ p["w0"]) @ p["w1"]) @ p["w2"])[:, 0]
        return jax.vmap(layers, (0, None))(p, jnp.concatenate([state, action], -1))

    def train(params, batch):
        def critic_loss(p):
            return jnp.square(critics(p, batch["state"], batch["action"]) - batch["reward"]).mean()

        value, slope = jax.value_and_grad(critic_loss)(params["critic"])
        critic = jax.tree.map(lambda p, g: p - 1e-2 * g, params["critic"], slope)
        actor_loss = lambda p: -critics(critic, batch["state"], jnp.tanh(batch["state"] @ p)).min(0).mean()
        actor = params["actor"] - 1e-2 * jax.grad(actor_loss)(params["actor"])
        return {"actor": actor, "critic": critic}, value

    random = np.random.default_rng(0)
    critic = {"w0": normal(random, 2, 24, 32, scale=0.2), "w1": normal(random, 2, 32, 32, scale=0.2), "w2": normal(random, 2, 32, 1, scale=0.2)}
    batch = {"state": floats(16, 16), "action": floats(16, 8, seed=1), "reward": floats(16, seed=2)}
    return Step(train, {"params": {"actor": normal(random, 16, 8, scale=0.2), "critic": critic}}, {"batch": batch}, lambda r: r[1],
                lambda r: {"params": r[0]}, bound=1e-2, loss_bound=1e-3, gap=0.5, linear=(5, 3, 3))  # fmt: skip


@step
def meta_learning():
    """MAML: for each task of a vmap, the loss after a gradient step. Dots of the second derivatives are those of two softmaxes
    over scores, as far as attention can tell."""

    def loss_of(p, x, y):
        return jnp.square(run(p, x) - y).mean()

    def loss(p, b):
        def of_task(x, y, next_x, next_y):
            stepped = jax.tree.map(lambda w, g: w - 0.05 * g, p, jax.grad(loss_of)(p, x, y))
            return loss_of(stepped, next_x, next_y)

        return jax.vmap(of_task)(b["x"], b["y"], b["next_x"], b["next_y"]).mean()

    batch = {name: floats(4, 8, 4 if name.endswith("x") else 1, seed=i) for i, name in enumerate(["x", "y", "next_x", "next_y"])}
    return trained(loss, mlp(np.random.default_rng(0), 4, 32, 32, 1), batch, tx(), bound=1e-2)


@step
def gradient_penalty():
    """WGAN-GP: a critic whose loss contains the norm of its gradient by its inputs, and a generator."""
    random, opt = np.random.default_rng(0), optax.adam(1e-3, b1=0.5, eps=1e-6)
    params = {"critic": mlp(random, 16, 32, 32, 1), "generator": mlp(random, 8, 32, 32, 16)}
    judge = lambda p, x: run(p, x, jax.nn.softplus)

    def critic_loss(p, fake, b):
        between = b["part"] * b["real"] + (1 - b["part"]) * fake
        slopes = jax.vmap(jax.grad(lambda x: judge(p, x)[0]))(between)
        norms = jnp.sqrt(jnp.square(slopes).sum(-1) + 1e-12)
        return judge(p, fake).mean() - judge(p, b["real"]).mean() + 10 * jnp.square(norms - 1).mean()

    def train(params, opt_state, batch):
        fake = jax.lax.stop_gradient(run(params["generator"], batch["noise"]))
        critic, grads = jax.value_and_grad(critic_loss)(params["critic"], fake, batch)
        updates, of_critic = opt.update(grads, opt_state["critic"])
        p = optax.apply_updates(params["critic"], updates)
        generator, grads = jax.value_and_grad(lambda q: -judge(p, run(q, batch["noise"])).mean())(params["generator"])
        updates, of_generator = opt.update(grads, opt_state["generator"])
        params = {"critic": p, "generator": optax.apply_updates(params["generator"], updates)}
        return params, {"critic": of_critic, "generator": of_generator}, {"critic": critic, "generator": generator}

    state = {"params": params, "opt_state": {name: opt.init(p) for name, p in params.items()}}
    batch = {"real": floats(16, 16), "noise": floats(16, 8, seed=1), "part": np.abs(np.sin(floats(16, 1, seed=2)))}
    return Step(train, state, {"batch": batch}, lambda r: r[2]["critic"], lambda r: dict(zip(state, r)), bound=1e-2, loss_bound=1e-3, gap=0.5, repeated=3)


@step
def learned_task_weights():
    """Three losses, weighted by learned variances, whose gradients are the losses; two optimizers by label."""
    random = np.random.default_rng(0)
    heads = {name: mlp(random, 32, n) for name, n in (("value", 1), ("label", 4), ("point", 2))}
    params = {"body": mlp(random, 16, 32, 32), "heads": heads, "log_variance": jnp.zeros(3)}
    label = lambda path, _: "fast" if "log_variance" in jax.tree_util.keystr(path) else "slow"
    opt = optax.multi_transform({"fast": tx(1e-2), "slow": optax.adamw(1e-3, eps=1e-6)}, lambda p: jax.tree_util.tree_map_with_path(label, p))

    def loss(p, b):
        h = jax.nn.silu(run(p["body"], b["x"]))
        value, label, point = (run(p["heads"][name], h) for name in ("value", "label", "point"))
        terms = [
            jnp.square(value[:, 0] - b["value"]).mean(),
            optax.softmax_cross_entropy_with_integer_labels(label, b["label"]).mean(),
            optax.huber_loss(point, b["point"]).mean(),
        ]
        return (jnp.exp(-p["log_variance"]) * jnp.stack(terms) + p["log_variance"]).sum()

    x = floats(32, 16)
    batch = {"x": x, "value": x[..., 0], "label": np.argmax(x[..., :4], -1).astype(np.int32), "point": x[..., 4:6]}
    return trained(loss, params, batch, opt, bound=1e-2)


@step
def vector_of_parameters():
    """All weights lie in one vector."""
    vector, layers_of = jax.flatten_util.ravel_pytree(mlp(np.random.default_rng(0), 16, 32, 32, 4))
    loss = lambda p, batch: jnp.mean(jnp.square(run(layers_of(p), batch["x"]) - batch["y"]))
    return trained(loss, vector, {"x": floats(32, 16), "y": floats(32, 4, seed=1)}, tx(), linear=(2, 1, 2))


@step
def spectral_norm():
    """The weights are divided by their largest singular value, which power iterations from random vectors estimate."""

    def normalized(layer, v):
        w = layer["w"]
        unit = lambda x: jax.lax.stop_gradient(x / jnp.linalg.norm(x))
        v = v[: w.shape[1]]
        for _ in range(2):
            u = unit(w @ v)
            v = unit(u @ w)
        return {"w": w / jnp.sum(u * (w @ v)), "b": layer["b"]}

    params = mlp(np.random.default_rng(0), 16, 32, 32, 4)
    loss = lambda p, b: jnp.mean(jnp.square(run([normalized(layer, b["v"]) for layer in p], b["x"]) - b["y"]))
    x = floats(32, 16)
    return trained(loss, params, {"x": x, "y": x[..., :4], "v": floats(32, seed=1)}, tx(1e-2), linear=(17, 1, 5))


@step
def learned_latents():
    """Queries are made of parameters alone, and attend to the data (Perceiver)."""
    random = np.random.default_rng(0)
    params = {name: normal(random, 16, 16, scale=0.25) for name in ("query", "key", "value", "out")}
    params |= {"latents": normal(random, 4, 16), "head": normal(random, 16, 4, scale=0.25)}

    def loss(p, batch):
        heads = lambda x: x.reshape(*x.shape[:-1], 2, 8)
        latents = jnp.broadcast_to(p["latents"], (8, 4, 16))
        q, k, v = heads(latents @ p["query"]), heads(batch["x"] @ p["key"]), heads(batch["x"] @ p["value"])
        weights = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8**0.5)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(8, 4, 16) @ p["out"]
        return jnp.mean(jnp.square(jnp.tanh(mixed).mean(1) @ p["head"] - batch["y"]))

    x = floats(8, 12, 16)
    # The projection of the latents reads parameters alone, and so does its weight gradient.
    return trained(loss, params, {"x": x, "y": 3 * x[..., :4].mean(2)}, tx(1e-2), linear=(3, 1, 3))


@step
def frozen_integers():
    """LoRA beside frozen int8 weights with scales of columns, or with one scale."""
    random, opt = np.random.default_rng(0), tx(3e-3)
    sizes = ((16, 32), (32, 32), (32, 4))
    frozen = [{"q": random.integers(-127, 128, size).astype(np.int8), "s": np.full(size[1], 0.003, np.float32)} for size in sizes]
    frozen[1]["s"] = np.float32(0.003)
    params = [{"a": normal(random, m, 4, scale=0.25), "b": normal(random, 4, n, scale=0.1)} for m, n in sizes]

    def train(params, opt_state, frozen, batch):
        def loss(params):
            x = batch["x"]
            for i, (f, p) in enumerate(zip(frozen, params)):
                x = jnp.tanh(x) if i else x
                x = x @ (f["q"].astype(jnp.float32) * f["s"]) + x @ p["a"] @ p["b"]
            return jnp.mean(jnp.square(x - batch["y"]))

        value, grads = jax.value_and_grad(loss)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    state = {"params": params, "opt_state": opt.init(params), "frozen": frozen}
    batch = {"x": floats(32, 16), "y": floats(32, 4, seed=1)}
    return Step(train, state, {"batch": batch}, lambda r: r[2], lambda r: dict(zip(("params", "opt_state"), r)), linear=(7, 5, 5))
