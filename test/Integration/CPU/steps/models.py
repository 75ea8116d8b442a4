"""Small models and data that several families train."""

import jax
import jax.numpy as jnp
import numpy as np

# Every step of the zoo uses data of this size. The 50 steps read the data more than once.
STEPS, VOCAB, WIDTH, HEADS, BATCH, LENGTH = 50, 64, 32, 4, 4, 16


def tokens(batch=BATCH, length=LENGTH + 1):
    """Returns noisy walks over a ring, which a model can learn."""
    random = np.random.default_rng(3)
    moves = random.choice([1, 1, 1, 5, 17], (STEPS, batch, length))
    return (np.cumsum(moves, axis=-1) % VOCAB).astype(np.int32)


def clusters(classes=10, width=32, batch=16):
    """Returns points around centres, and the number of each point's centre."""
    random = np.random.default_rng(5)
    centres = random.normal(0, 1, (classes, width))
    label = random.integers(0, classes, (STEPS, batch)).astype(np.int32)
    return (centres[label] + random.normal(0, 0.5, (STEPS, batch, width))).astype(np.float32), label


def images(classes=8, size=8, channels=3, batch=8):
    """Returns noisy copies of a picture for each class, and the classes."""
    points, label = clusters(classes, size * size * channels, batch)
    return points.reshape(STEPS, batch, size, size, channels), label


def normal(random, *shape, scale=None):
    return jnp.asarray(random.normal(0, scale or shape[0] ** -0.5, shape), jnp.float32)


def zeros(tree):
    return jax.tree.map(jnp.zeros_like, tree)


# --------------------------------------------------------------------- losses


def next_token_loss(logits, targets):
    logp = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(logp, targets[..., None], axis=-1))


def smooth_loss(logits, targets, smoothing=0.1):
    labels = jax.nn.one_hot(targets, VOCAB) * (1 - smoothing) + smoothing / VOCAB
    return -jnp.mean(jnp.sum(labels * jax.nn.log_softmax(logits), axis=-1))


def class_loss(logits, label):
    logp = jax.nn.log_softmax(logits.astype(jnp.float32))
    return -jnp.mean(jnp.sum(jax.nn.one_hot(label, logits.shape[-1]) * logp, -1))


# ---------------------------------------------------------------------- parts


def heads_of(x, heads):
    return x.reshape(*x.shape[:-1], heads, -1)


def attend(q, k, v):
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    scores = jnp.where(mask, scores.astype(jnp.float32), -1e9)
    out = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores).astype(v.dtype), v)
    return out.reshape(*out.shape[:2], -1)


def layer_norm(x, p):
    mean = jnp.mean(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(jnp.var(x, -1, keepdims=True) + 1e-5) * p["scale"] + p["bias"]


def rms_norm(x, scale):
    return (x * jax.lax.rsqrt(jnp.mean(jnp.square(x.astype(jnp.float32)), -1, keepdims=True) + 1e-6)).astype(x.dtype) * scale


def rotate(x):
    half = x.shape[-1] // 2
    angle = jnp.arange(x.shape[1])[:, None] * 10000.0 ** (-jnp.arange(half) / half)
    cos, sin = jnp.cos(angle)[:, None].astype(x.dtype), jnp.sin(angle)[:, None].astype(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


# ------------------------------------------------------------------------ MLP


def mlp_params(widths=(32, 64, 48, 10), seed=0):
    r = np.random.default_rng(seed)
    return [{"w": normal(r, m, n, scale=(2 / m) ** 0.5), "b": jnp.zeros(n)} for m, n in zip(widths, widths[1:])]


def mlp(params, x):
    for p in params[:-1]:
        x = jax.nn.relu(x @ p["w"] + p["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


# ------------------------------------------------------------------------ GPT


def gpt_params(seed=0, layers=2, tied=True):
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


def gpt_block(p, x, dropout=lambda x, place: x, approximate=True):
    h = layer_norm(x, p["ln_1"])
    q, k, v = jnp.split(h @ p["attn"]["qkv"] + p["attn"]["qkv_b"], 3, axis=-1)
    h = attend(*(heads_of(a, HEADS) for a in (q, k, v))) @ p["attn"]["o"] + p["attn"]["o_b"]
    x = x + dropout(h, 0)
    h = layer_norm(x, p["ln_2"])
    h = jax.nn.gelu(h @ p["mlp"]["fc"] + p["mlp"]["fc_b"], approximate=approximate)
    return x + dropout(h @ p["mlp"]["proj"] + p["mlp"]["proj_b"], 1)


def gpt(params, inputs, approximate=True, dropout=lambda x, place: x):
    """`dropout(x, place)` drops parts of x; `place` numbers the calls."""
    x = params["wte"][inputs] + params["wpe"][: inputs.shape[1]]
    x = dropout(x, 0)
    for i in range(sum(name.startswith("h") and name != "head" for name in params)):
        x = gpt_block(params[f"h{i}"], x, lambda x, place: dropout(x, 1 + 2 * i + place), approximate)
    x = layer_norm(x, params["ln_f"])
    return x @ params["head"] if "head" in params else x @ params["wte"].T


# ---------------------------------------------------------------------- Llama


def llama_layer(r, kv_heads=2, ffn=48):
    d = WIDTH // HEADS
    return {
        "input_norm": jnp.ones(WIDTH), "post_norm": jnp.ones(WIDTH),
        "q": normal(r, WIDTH, WIDTH), "kv": normal(r, WIDTH, 2 * kv_heads * d), "o": normal(r, WIDTH, WIDTH),
        "gate_up": normal(r, WIDTH, 2 * ffn), "down": normal(r, ffn, WIDTH),
    }  # fmt: skip


def llama_params(seed=0, layers=2, stacked=False, **sizes):
    """With `stacked` the layers' parameters are one tree of arrays with a leading dimension."""
    r = np.random.default_rng(seed)
    params = {"embed": normal(r, VOCAB, WIDTH, scale=1.0), "norm": jnp.ones(WIDTH), "lm_head": normal(r, WIDTH, VOCAB)}
    params["layers"] = [llama_layer(r, **sizes) for _ in range(layers)]
    if stacked:
        params["layers"] = jax.tree.map(lambda *leaves: jnp.stack(leaves), *params["layers"])
    return params


def llama_block(p, x, repeat=True, kv_heads=2, act=jax.nn.silu):
    d = WIDTH // HEADS
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
        out = jnp.einsum("bgrqk,bkgd->bqgrd", jax.nn.softmax(s).astype(x.dtype), v).reshape(x.shape)
    x = x + out @ p["o"]
    gate, up = jnp.split(rms_norm(x, p["post_norm"]) @ p["gate_up"], 2, axis=-1)
    return x + (act(gate) * up) @ p["down"]


def llama(params, inputs, dtype=jnp.float32, scan=None, **options):
    """`scan(block, x, stacked layers)` runs stacked layers."""
    params = jax.tree.map(lambda p: p.astype(dtype), params)
    x = params["embed"][inputs]
    if scan:
        x = scan(lambda p, x: llama_block(p, x, **options), x, params["layers"])
    else:
        for p in params["layers"]:
            x = llama_block(p, x, **options)
    return (rms_norm(x, params["norm"]) @ params["lm_head"]).astype(jnp.float32)


def llama_loss(params, tokens, **options):
    return next_token_loss(llama(params, tokens[:, :-1], **options), tokens[:, 1:])


# ----------------------------------------------------------------- optimizers


def hand_adam(grads, params, m, v, count, rate=3e-3, b1=0.9, b2=0.95):
    count = count + 1
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
    c1, c2 = 1 - b1 ** count.astype(jnp.float32), 1 - b2 ** count.astype(jnp.float32)
    params = jax.tree.map(lambda p, m, v: p - rate * (m / c1) / (jnp.sqrt(v / c2) + 1e-6), params, m, v)
    return params, m, v, count
