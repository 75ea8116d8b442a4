"""Exports training steps of one small Transformer, written in different styles.
Usage: variants.py OUTPUT_DIRECTORY"""

import math
import os
import sys

import jax
import jax.numpy as jnp
import optax

WIDTH, HEADS, KV_HEADS, VOCABULARY, BATCH, TOKENS, HIDDEN = 64, 4, 2, 256, 2, 32, 128
HEAD = WIDTH // HEADS
KV_WIDTH = KV_HEADS * HEAD
LAYERS = 2


def norm(x, gain):
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * gain


def attention(q, k, v):
    # Grouped queries: two of them share a key and a value.
    k, v = (jnp.repeat(t, HEADS // KV_HEADS, 2) for t in (k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(HEAD)
    scores = jnp.where(jnp.tril(jnp.ones((TOKENS, TOKENS), bool)), scores, -1e9)
    weights = jax.nn.softmax(scores.astype(jnp.float32), -1).astype(v.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v)


def export(path, *, tied=False, onehot=False, fused=False, bf16=False, bias=False,
           remat=False, scan=False, swapped=False, heads=False, unroll=1, branch=None,
           layers=LAYERS, micro=1, steps=1):
    full = lambda *shape: jnp.full(shape, 0.1)

    def layer():
        p = {"n1": full(WIDTH), "n2": full(WIDTH), "w2": full(HIDDEN, WIDTH)}
        if fused:
            p |= {"wqkv": full(WIDTH, WIDTH + 2 * KV_WIDTH), "w13": full(WIDTH, 2 * HIDDEN)}
        else:
            p |= {"w1": full(WIDTH, HIDDEN), "w3": full(WIDTH, HIDDEN)}
            if heads:
                p |= {"wq": full(WIDTH, HEADS, HEAD), "wk": full(WIDTH, KV_HEADS, HEAD),
                      "wv": full(WIDTH, KV_HEADS, HEAD)}
            elif swapped:
                p |= {"wq": full(WIDTH, WIDTH), "wk": full(KV_WIDTH, WIDTH), "wv": full(KV_WIDTH, WIDTH)}
            else:
                p |= {"wq": full(WIDTH, WIDTH), "wk": full(WIDTH, KV_WIDTH), "wv": full(WIDTH, KV_WIDTH)}
        p["wo"] = full(HEADS, HEAD, WIDTH) if heads else full(WIDTH, WIDTH)
        if bias:
            p |= {"bq": full(WIDTH), "b1": full(HIDDEN), "b2": full(WIDTH)}
        return p

    def block(h, p):
        if bf16:
            p = jax.tree.map(lambda a: a.astype(jnp.bfloat16), p)
        y = norm(h, p["n1"])
        if fused:
            q, k, v = jnp.split(y @ p["wqkv"], [WIDTH, WIDTH + KV_WIDTH], -1)
        elif heads:
            q, k, v = (jnp.einsum("bsw,whd->bshd", y, p[n]) for n in ("wq", "wk", "wv"))
        elif swapped:
            q = jnp.einsum("io,bsi->bso", p["wq"], y)
            k = y @ p["wk"].T
            v = jnp.einsum("oi,bsi->bso", p["wv"], y)
        else:
            q, k, v = y @ p["wq"], y @ p["wk"], y @ p["wv"]
        if bias:
            q = q + p["bq"]
        o = attention(q.reshape(BATCH, TOKENS, HEADS, HEAD), k.reshape(BATCH, TOKENS, KV_HEADS, HEAD),
                      v.reshape(BATCH, TOKENS, KV_HEADS, HEAD))
        if heads:
            h = h + jnp.einsum("bshd,hdw->bsw", o, p["wo"])
        else:
            h = h + o.reshape(BATCH, TOKENS, WIDTH) @ p["wo"]
        y = norm(h, p["n2"])

        def swiglu(y, p):
            gate, up = jnp.split(y @ p["w13"], 2, -1) if fused else (y @ p["w1"], y @ p["w3"])
            if bias:
                gate = gate + p["b1"]
            return (jax.nn.silu(gate) * up) @ p["w2"]

        def relu(y, p):
            return jax.nn.relu(y @ p["w1"]) @ p["w2"]

        if branch == "if":
            y = jax.lax.cond(jnp.sum(y) > 0, swiglu, relu, y, p)
        elif branch == "case":
            y = jax.lax.switch(jnp.argmax(y[0, 0, :3]), [swiglu, relu, lambda y, p: y], y, p)
        else:
            y = swiglu(y, p)
        return h + (y + p["b2"] if bias else y)

    def loss(p, x, y):
        h = jax.nn.one_hot(x, VOCABULARY) @ p["emb"] if onehot else p["emb"][x]
        if bf16:
            h = h.astype(jnp.bfloat16)
        f = jax.checkpoint(block) if remat else block
        if scan:
            h, _ = jax.lax.scan(lambda h, p: (f(h, p), None), h, p["layers"], unroll=unroll)
        else:
            for layer in p["layers"]:
                h = f(h, layer)
        h = norm(h, p["norm"].astype(h.dtype))
        head = p["emb"].T if tied else p["head"]
        logits = (h @ head.astype(h.dtype)).astype(jnp.float32)
        targets = jnp.take_along_axis(logits, y[..., None], -1)[..., 0]
        return jnp.mean(jax.nn.logsumexp(logits, -1) - targets)

    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))

    def gradient(p, x, y):
        if micro == 1:
            return jax.value_and_grad(loss)(p, x, y)

        def accumulate(sums, xy):
            return jax.tree.map(jnp.add, sums, jax.value_and_grad(loss)(p, *xy)), None

        zeros = jnp.zeros(()), jax.tree.map(jnp.zeros_like, p)
        split = lambda t: t.reshape(micro, BATCH, TOKENS)
        sums, _ = jax.lax.scan(accumulate, zeros, (split(x), split(y)))
        return jax.tree.map(lambda s: s / micro, sums)

    def one(p, o, x, y):
        value, gradients = gradient(p, x, y)
        updates, o = optimizer.update(gradients, o, p)
        return optax.apply_updates(p, updates), o, value

    def step(p, o, x, y):
        if steps == 1:
            return one(p, o, x, y)

        def body(state, xy):
            p, o, value = one(*state, *xy)
            return (p, o), value

        split = lambda t: t.reshape(steps, BATCH, TOKENS)
        (p, o), values = jax.lax.scan(body, (p, o), (split(x), split(y)))
        return p, o, values[-1]

    p = {"emb": full(VOCABULARY, WIDTH), "norm": full(WIDTH), "layers": [layer() for _ in range(layers)]}
    if not tied:
        p["head"] = full(WIDTH, VOCABULARY)
    if scan:
        p["layers"] = jax.tree.map(lambda *a: jnp.stack(a), *p["layers"])
    x = jnp.zeros((BATCH * micro * steps, TOKENS), jnp.int32)
    lowered = jax.jit(step, donate_argnums=(0, 1)).lower(p, optimizer.init(p), x, x)
    with open(path, "w") as file:
        file.write(lowered.as_text(debug_info=True))


if __name__ == "__main__":
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    variants = {
        "plain": {},
        "tied": {"tied": True},
        "onehot": {"tied": True, "onehot": True},
        "fused": {"fused": True},
        "bf16": {"bf16": True},
        "bias": {"bias": True},
        "remat": {"remat": True},
        "swapped": {"swapped": True},
        "heads": {"heads": True},
        "scan": {"scan": True},
        "scan-remat": {"scan": True, "remat": True},
        "scan-unroll": {"scan": True, "unroll": 2, "layers": 4},
        "micro": {"micro": 3},
        "micro-scan": {"micro": 3, "scan": True},
        "micro-scan-remat": {"micro": 3, "scan": True, "remat": True, "bf16": True, "fused": True},
        "steps": {"steps": 2},
        "if": {"branch": "if"},
        "case-scan": {"branch": "case", "scan": True},
        "all": {"tied": True, "bf16": True, "fused": True, "remat": True},
    }
    for name, options in variants.items():
        export(os.path.join(directory, name + ".mlir"), **options)
