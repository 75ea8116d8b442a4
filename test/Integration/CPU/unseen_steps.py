"""Training steps of other people's kinds: whatever the model, the optimizer, the
order of arguments and results, the losses of `--recipe none` are JAX's, every
dot of a linear layer is FP8 under `tensorwise`, and it trains as well.

    python unseen_steps.py FP8_RUN FOLDER [CASE...]
"""

import json
import pathlib
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
import optax

STEPS, JAX_STEPS = 30, 20
VOCAB, WIDTH, HEADS, BATCH, LENGTH = 64, 32, 4, 4, 16

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


class Case:
    """A step, its state as keyword trees in the order of the arguments, what to
    feed as batches, and which results replace which state."""

    def __init__(self, step, state, batches, loss, replaced, donate, tolerance=1e-4, linear=None):
        # A count may be Python's own number.
        self.step, self.batches = step, batches
        self.state = {name: jax.tree.map(jnp.asarray, tree) for name, tree in state.items()}
        self.loss, self.replaced, self.donate = loss, replaced, donate
        self.tolerance, self.linear = tolerance, linear


def tokens(length=LENGTH + 1):
    """A walk over a ring with noise: something to learn."""
    random = np.random.default_rng(3)
    moves = random.choice([1, 1, 1, 5, 17], (STEPS, BATCH, length))
    return (np.cumsum(moves, axis=-1) % VOCAB).astype(np.int32)


def normal(random, *shape, scale=None):
    return jnp.asarray(random.normal(0, scale or shape[0] ** -0.5, shape), jnp.float32)


def heads_of(x, heads):
    return x.reshape(*x.shape[:-1], heads, -1)


def attend(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    scores = jnp.where(mask, scores.astype(jnp.float32), -1e9)
    out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(v.dtype), v)
    return out.reshape(*out.shape[:2], -1)


def gather_loss(logits, targets):
    logp = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logp, targets[..., None], axis=-1))


def smooth_loss(logits, targets, smoothing=0.1):
    labels = jax.nn.one_hot(targets, VOCAB) * (1 - smoothing) + smoothing / VOCAB
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1))


# ------------------------------------------------------------------ models


def gpt_params(seed, layers=2, tied=True, fused=True):
    r = np.random.default_rng(seed)
    norm = lambda: {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    params = {"wte": normal(r, VOCAB, WIDTH, scale=0.3), "wpe": normal(r, LENGTH, WIDTH, scale=0.02), "ln_f": norm()}
    if not tied:
        params["head"] = normal(r, WIDTH, VOCAB)
    for i in range(layers):
        params[f"h{i}"] = {
            "ln_1": norm(),
            "ln_2": norm(),
            "attn": {"qkv": normal(r, WIDTH, 3 * WIDTH), "qkv_b": jnp.zeros(3 * WIDTH), "o": normal(r, WIDTH, WIDTH), "o_b": jnp.zeros(WIDTH)},
            "mlp": {"fc": normal(r, WIDTH, 4 * WIDTH), "fc_b": jnp.zeros(4 * WIDTH), "proj": normal(r, 4 * WIDTH, WIDTH), "proj_b": jnp.zeros(WIDTH)},
        }  # fmt: skip
    return params


def layer_norm(x, p):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]


def gpt(params, inputs, approximate):
    x = params["wte"][inputs] + params["wpe"][: inputs.shape[1]]
    for i in range(sum(name.startswith("h") and name != "head" for name in params)):
        p = params[f"h{i}"]
        h = layer_norm(x, p["ln_1"])
        q, k, v = jnp.split(h @ p["attn"]["qkv"] + p["attn"]["qkv_b"], 3, axis=-1)
        x = x + attend(*(heads_of(a, HEADS) for a in (q, k, v))) @ p["attn"]["o"] + p["attn"]["o_b"]
        h = layer_norm(x, p["ln_2"])
        h = jax.nn.gelu(h @ p["mlp"]["fc"] + p["mlp"]["fc_b"], approximate=approximate)
        x = x + h @ p["mlp"]["proj"] + p["mlp"]["proj_b"]
    x = layer_norm(x, params["ln_f"])
    return x @ params["head"] if "head" in params else x @ params["wte"].T


def llama_params(seed, layers=2, kv_heads=2, ffn=48):
    r = np.random.default_rng(seed)
    d = WIDTH // HEADS
    return {
        "embed": normal(r, VOCAB, WIDTH, scale=1.0),
        "norm": jnp.ones(WIDTH),
        "lm_head": normal(r, WIDTH, VOCAB),
        "layers": [
            {
                "input_norm": jnp.ones(WIDTH), "post_norm": jnp.ones(WIDTH),
                "q": normal(r, WIDTH, WIDTH), "kv": normal(r, WIDTH, 2 * kv_heads * d), "o": normal(r, WIDTH, WIDTH),
                "gate_up": normal(r, WIDTH, 2 * ffn), "down": normal(r, ffn, WIDTH),
            }
            for _ in range(layers)
        ],
    }  # fmt: skip


def rms_norm(x, scale):
    return (x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def rotate(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None].astype(x.dtype), jnp.sin(angle)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def llama(params, inputs, dtype=jnp.float32, repeat=True, kv_heads=2):
    params = jax.tree.map(lambda p: p.astype(dtype), params)
    x = params["embed"][inputs]
    d = WIDTH // HEADS
    for p in params["layers"]:
        h = rms_norm(x, p["input_norm"])
        q = rotate(heads_of(h @ p["q"], HEADS))
        k, v = jnp.split(heads_of(h @ p["kv"], 2 * kv_heads), 2, axis=2)
        k = rotate(k)
        if repeat:
            k, v = (jnp.repeat(a, HEADS // kv_heads, axis=2) for a in (k, v))
            out = attend(q, k, v)
        else:
            q = q.reshape(*q.shape[:2], kv_heads, HEADS // kv_heads, d)
            s = jnp.einsum("bqgrd,bkgd->bgrqk", q, k).astype(jnp.float32) * d**-0.5
            s = jnp.where(jnp.tril(jnp.ones(s.shape[-2:], bool)), s, -jnp.inf)
            out = jnp.einsum("bgrqk,bkgd->bqgrd", jax.nn.softmax(s).astype(dtype), v).reshape(x.shape)
        x = x + out @ p["o"]
        gate, up = jnp.split(rms_norm(x, p["post_norm"]) @ p["gate_up"], 2, axis=-1)
        x = x + (jax.nn.silu(gate) * up) @ p["down"]
    return (rms_norm(x, params["norm"]) @ params["lm_head"]).astype(jnp.float32)


# --------------------------------------------------------------- optimizers


def hand_adam(grads, params, m, v, count, rate=3e-3, b1=0.9, b2=0.95):
    count = count + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
    c1, c2 = 1 - b1 ** count.astype(jnp.float32), 1 - b2 ** count.astype(jnp.float32)
    params = jax.tree.map(lambda p, m, v: p - rate * (m / c1) / (jnp.sqrt(v / c2) + 1e-8), params, m, v)
    return params, m, v, count


def zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


# -------------------------------------------------------------------- cases


@case
def gpt_tanh_hand_adam(seed=0):
    """Tied head, fused QKV with biases, moments as arguments of their own."""

    def step(params, m, v, count, tokens):
        loss, grads = jax.value_and_grad(lambda p: gather_loss(gpt(p, tokens[:, :-1], True), tokens[:, 1:]))(params)
        return *hand_adam(grads, params, m, v, count), loss

    p = gpt_params(seed)
    state = {"params": p, "m": zeros(p), "v": zeros(p), "count": jnp.zeros((), jnp.int32)}
    return Case(step, state, {"tokens": tokens()}, lambda r: r[4], lambda r: r[:4], (0, 1, 2, 3), linear=4 * 2)


@case
def gpt_erf_masked_decay_smoothing(seed=0):
    """Untied head, exact GELU, label smoothing, weight decay of matrices only, no clipping."""
    tx = optax.adamw(3e-3, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p))

    def step(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(lambda p: smooth_loss(gpt(p, x, False), y))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "ppl": jnp.exp(loss)}

    p, data = gpt_params(seed, tied=False), tokens()
    state = {"params": p, "opt_state": tx.init(p)}
    batches = {"x": data[..., :-1], "y": data[..., 1:]}
    return Case(step, state, batches, lambda r: r[2]["loss"], lambda r: r[:2], (0, 1), linear=4 * 2)


@case
def loss_first_everything_donated(seed=0):
    """Loss first, then the optimizer, then parameters; the batch is donated as well."""
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3))

    def step(tokens, opt_state, params):
        loss, grads = jax.value_and_grad(lambda p: gather_loss(llama(p, tokens[:, :-1]), tokens[:, 1:]))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return loss, opt_state, optax.apply_updates(params, updates)

    p = llama_params(seed)
    state = {"opt_state": tx.init(p), "params": p}
    return Case(step, state, {"tokens": tokens()}, lambda r: r[0], lambda r: r[1:], (0, 1, 2), linear=5 * 2)


@case
def grouped_query_sgd_momentum(seed=0):
    """GQA without repeated keys, -inf masks, SGD with momentum, metrics of every kind, no donation."""
    tx = optax.sgd(0.05, momentum=0.9, nesterov=True)

    def step(state, batch):
        def objective(p):
            logits = llama(p, batch["tokens"][:, :-1], repeat=False)
            targets = batch["tokens"][:, 1:]
            accuracy = jnp.mean(jnp.argmax(logits, -1) == targets)
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean(), accuracy

        (loss, accuracy), grads = jax.value_and_grad(objective, has_aux=True)(state["params"])
        updates, opt = tx.update(grads, state["opt"], state["params"])
        metrics = {"accuracy": accuracy, "grad_norm": optax.global_norm(grads), "loss": loss, "param_norm": optax.global_norm(state["params"])}
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, metrics

    p = llama_params(seed)
    state = {"state": {"params": p, "opt": tx.init(p)}}
    return Case(step, state, {"batch['tokens']": tokens()}, lambda r: r[1]["loss"], lambda r: r[:1], (), linear=5 * 2)


@case
def bf16_activations(seed=0):
    """Parameters in f32, everything between in bf16."""
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3))

    def step(params, opt_state, tokens):
        f = lambda p: gather_loss(llama(p, tokens[:, :-1], dtype=jnp.bfloat16), tokens[:, 1:])
        loss, grads = jax.value_and_grad(f)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    p = llama_params(seed)
    state = {"params": p, "opt_state": tx.init(p)}
    return Case(step, state, {"tokens": tokens()}, lambda r: r[2], lambda r: r[:2], (0, 1), tolerance=2e-2, linear=5 * 2)


@case
def flax_classifier(seed=0):
    """An MLP of flax on float inputs, in a TrainState."""
    import flax.linen as nn
    from flax.training.train_state import TrainState

    class MLP(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (64, 48):
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(10)(x)

    model = MLP()

    def step(state, image, label):
        def objective(p):
            logits = state.apply_fn({"params": p}, image)
            return optax.softmax_cross_entropy_with_integer_labels(logits, label).mean(), logits

        (loss, logits), grads = jax.value_and_grad(objective, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), loss, jnp.mean(jnp.argmax(logits, -1) == label)

    random = np.random.default_rng(seed)
    centres = random.normal(0, 1, (10, 32))
    label = random.integers(0, 10, (STEPS, 16)).astype(np.int32)
    image = (centres[label] + random.normal(0, 0.5, (STEPS, 16, 32))).astype(np.float32)
    params = model.init(jax.random.key(seed), image[0])["params"]
    state = {"state": TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(3e-3))}
    return Case(step, state, {"image": image, "label": label}, lambda r: r[1], lambda r: r[:1], (0,), linear=2)


@case
def flax_transformer(seed=0):
    """Flax's own attention, embedding and norms."""
    import flax.linen as nn

    class Block(nn.Module):
        @nn.compact
        def __call__(self, x, mask):
            x = x + nn.MultiHeadDotProductAttention(num_heads=HEADS, deterministic=True)(nn.LayerNorm()(x), mask=mask)
            h = nn.gelu(nn.Dense(4 * WIDTH)(nn.LayerNorm()(x)))
            return x + nn.Dense(WIDTH)(h)

    class Model(nn.Module):
        @nn.compact
        def __call__(self, inputs):
            embed = nn.Embed(VOCAB, WIDTH)
            x = embed(inputs) + self.param("pos", nn.initializers.normal(0.02), (LENGTH, WIDTH))
            for _ in range(2):
                x = Block()(x, nn.make_causal_mask(inputs))
            return embed.attend(nn.LayerNorm()(x))

    model = Model()
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.warmup_cosine_decay_schedule(0, 3e-3, 5, 40)))

    def step(variables, opt_state, tokens):
        f = lambda v: optax.softmax_cross_entropy_with_integer_labels(model.apply(v, tokens[:, :-1]), tokens[:, 1:]).mean()
        loss, grads = jax.value_and_grad(f)(variables)
        updates, opt_state = tx.update(grads, opt_state, variables)
        return loss, optax.apply_updates(variables, updates), opt_state

    v = model.init(jax.random.key(seed), tokens()[0, :, :-1])
    state = {"variables": v, "opt_state": tx.init(v)}
    return Case(step, state, {"tokens": tokens()}, lambda r: r[0], lambda r: r[1:], (0, 1), linear=6 * 2)


# --------------------------------------------------------------------- runs


def arguments(case, names, state, batches):
    """The step's positional arguments; a batch path may lie in a tree."""
    values = []
    for name in names:
        if name in state:
            values.append(state[name])
        elif name in batches:
            values.append(batches[name])
        else:
            prefix = f"{name}['"
            values.append({path[len(prefix) : -2]: b for path, b in batches.items() if path.startswith(prefix)})
    return values


def run(fp8_run, folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    case = CASES[name]()
    names = case.step.__code__.co_varnames[: case.step.__code__.co_argcount]
    # What JAX donates is gone after the call: the initial values are saved first.
    t.save_tree(folder / "init.safetensors", **case.state)
    batch = lambda i: {path: jnp.asarray(b[i]) for path, b in case.batches.items()}
    step = jax.jit(case.step, donate_argnums=case.donate)
    state = case.state
    lowered = step.lower(*arguments(case, names, state, batch(0)))
    (folder / "step.mlir").write_text(lowered.as_text(debug_info=True))
    compiled, expected = lowered.compile(), []
    for i in range(JAX_STEPS):
        results = compiled(*arguments(case, names, state, batch(i)))
        expected.append(float(case.loss(results)))
        state = dict(zip(case.state, case.replaced(results)))

    feeds = []
    for i, (path, array) in enumerate(case.batches.items()):
        np.save(folder / f"batch{i}.npy", array)
        feeds += ["--batch", f"{path}={folder / f'batch{i}.npy'}"]
    got = {}
    for recipe in ("none", "tensorwise"):
        log = t.train(fp8_run, folder, folder / recipe, "--init", folder / "init.safetensors", *feeds, "--recipe", recipe,
                      "--steps", STEPS, "--fail-on-fallback", "--overwrite")  # fmt: skip
        got[recipe] = np.array(t.losses(log))

    worst = np.max(np.abs(got["none"][:JAX_STEPS] / expected - 1))
    apart = abs(np.mean(got["tensorwise"][-5:] - got["none"][-5:]))
    rows = json.loads((folder / "tensorwise" / "verdicts.json").read_text())["dots"]
    fp8 = sum(row["verdict"] == "fp8" for row in rows)
    print(f"{name}: loss {expected[0]:.4f} -> {got['none'][-1]:.4f}, from JAX {worst:.1e}, tensorwise {apart:.4f} nats, {fp8} of {len(rows)} dots FP8")
    assert worst <= case.tolerance, f"{name}: expected losses\n{expected}\nbut got\n{got['none'].tolist()}"
    assert got["none"][-1] < expected[0], f"{name}: expected the loss to fall but got {got['none'].tolist()}"
    assert apart <= 0.05, f"{name}: expected tensorwise near none but got\n{got['none']}\n{got['tensorwise']}"
    for row in rows:
        assert row["verdict"] == "fp8" or row["reason"], f"{name}: expected a reason in {row}"
    if case.linear is not None:
        # Forward, weight gradient and, but of a first layer, input gradient.
        roles = [sum(row["verdict"] == "fp8" and row["role"] == role for row in rows) for role in ("forward", "dgrad", "wgrad")]
        first = 1 if "classifier" in name else 0
        assert roles == [case.linear, case.linear - first, case.linear], f"{name}: expected {case.linear} layers but got {roles}: {rows}"


def main():
    fp8_run, folder, names = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
    failed = []
    for name in names or CASES:
        try:
            run(fp8_run, folder / name, name)
        except (AssertionError, SystemExit) as error:
            print(error, file=sys.stderr)
            failed.append(name)
    assert not failed, f"failed: {failed}"


if __name__ == "__main__":
    main()
