"""Linear layers, norms, gated units and experts, in the forms that a draw chooses."""

import jax
import jax.numpy as jnp
import numpy as np

WIDTH, HIDDEN, EXPERTS, RANK = 16, 24, 4, 2

ACTIVATIONS = {
    "relu": jax.nn.relu, "gelu": jax.nn.gelu, "silu": jax.nn.silu, "tanh": jnp.tanh, "relu2": lambda x: jnp.square(jax.nn.relu(x)),
}  # fmt: skip


def activation(c):
    return ACTIVATIONS[c.activation]


def normal(random, *shape, scale=None):
    return jnp.asarray(random.normal(0, scale or shape[-2] ** -0.5, shape), jnp.float32)


def linear_params(c, random, m, n):
    """Returns a weight of m inputs and n outputs, with the additional parameters of the draw."""
    p = {"w": normal(random, m, n)}
    if c.transform == "transposed":
        p["w"] = p["w"].T
    if c.transform == "weight_norm":
        p["g"] = jnp.ones(n)
    if c.transform.startswith("lora"):
        p["a"], p["z"] = normal(random, m, RANK), normal(random, RANK, n, scale=0.1)
    if c.bias == "yes":
        p["b"] = normal(random, 1, n, scale=0.1)[0]
    return p


def transformed(c, p):
    """Returns the weight that the layer multiplies by."""
    w = p["w"]
    if c.transform == "half":
        return w * 0.5
    if c.transform == "transposed":
        return w.T
    if c.transform == "mask":
        return w * (jnp.arange(w.shape[-1]) % 4 != 1).astype(w.dtype)
    if c.transform == "weight_norm":
        return p["g"] * w * jax.lax.rsqrt(jnp.sum(w * w, 0, keepdims=True) + 1e-6)
    if c.transform == "round_trip":
        return w.astype(jnp.bfloat16).astype(w.dtype)
    if c.transform == "lora":
        return w + 2.0 * p["a"] @ p["z"]
    return w


def transform_all(c, tree):
    """Returns the tree with every linear layer's weight transformed."""
    if isinstance(tree, dict) and "w" in tree:
        axes = tree["w"].ndim - 2
        transform = lambda p: transformed(c, p)
        for _ in range(axes):
            transform = jax.vmap(transform)
        return {"w": transform(tree), **{k: v for k, v in tree.items() if k not in ("w", "g") and c.transform == "lora_parallel" or k == "b"}}
    if isinstance(tree, dict):
        return {k: transform_all(c, v) for k, v in tree.items()}
    if isinstance(tree, list):
        return [transform_all(c, v) for v in tree]
    return tree


def linear(c, p, x):
    w = transformed(c, p) if c.transform_at == "layer" else p["w"]
    y = x @ w
    if c.transform == "lora_parallel":
        y = y + (x @ p["a"]) @ p["z"]
    return y + p["b"] if "b" in p else y


def norm_params(c, n):
    if c.norm == "none":
        return {}
    return {"scale": jnp.ones(n)} if c.norm == "rms" else {"scale": jnp.ones(n), "shift": jnp.zeros(n)}


def norm(c, p, x):
    if c.norm == "none":
        return x
    h = x.astype(jnp.float32)
    if c.norm == "layer":
        h = h - jnp.mean(h, -1, keepdims=True)
    h = h * jax.lax.rsqrt(jnp.mean(h * h, -1, keepdims=True) + 1e-5)
    h = h.astype(x.dtype) * p["scale"]
    return h + p["shift"] if c.norm == "layer" else h


def residual(c, x, h):
    return x + h if c.residual == "yes" else h


# ---------------------------------------------------------- feed-forward parts


def mlp_params(c, random, hidden=HIDDEN):
    p = {"down": linear_params(c, random, hidden, WIDTH)}
    if c.gated == "fused":
        p["gate_up"] = linear_params(c, random, WIDTH, 2 * hidden)
    else:
        p["up"] = linear_params(c, random, WIDTH, hidden)
        if c.gated == "separate":
            p["gate"] = linear_params(c, random, WIDTH, hidden)
    return p


def mlp(c, p, x):
    act = activation(c)
    if c.gated == "fused":
        gate, up = jnp.split(linear(c, p["gate_up"], x), 2, -1)
        h = act(gate) * up
    elif c.gated == "separate":
        h = act(linear(c, p["gate"], x)) * linear(c, p["up"], x)
    else:
        h = act(linear(c, p["up"], x))
    return linear(c, p["down"], h)


def moe_params(c, random):
    return {"router": normal(random, WIDTH, EXPERTS), "up": normal(random, EXPERTS, WIDTH, HIDDEN), "down": normal(random, EXPERTS, HIDDEN, WIDTH)}


def moe_dense(c, p, x):
    """Every expert computes every row; the two best are combined."""
    # With logits close to zero, the last bit of an exponential decides whether gates are equal.
    logits = (x @ p["router"]).astype(jnp.float32)
    best = jax.lax.top_k(logits, 2)[0][..., -1:]
    gates = jnp.where(logits >= best, jax.nn.softmax(logits), 0).astype(x.dtype)
    h = activation(c)(jnp.einsum("...d,edf->...ef", x, p["up"]))
    return jnp.einsum("...ef,efd,...e->...d", h, p["down"], gates)


def moe_sorted(c, p, x):
    """Sorts rows by their expert; each expert has slots for a fixed number of rows."""
    rows = x.reshape(-1, x.shape[-1])
    logits = (rows @ p["router"]).astype(jnp.float32)
    gate, expert = jnp.max(jax.nn.softmax(logits), -1), jnp.argmax(logits, -1)
    order = jnp.argsort(expert)
    n, capacity = rows.shape[0], max(1, rows.shape[0] // 2)
    start = jnp.searchsorted(expert[order], jnp.arange(EXPERTS))
    place = jnp.arange(n) - start[expert[order]]
    slots = jnp.zeros((EXPERTS, capacity, rows.shape[-1]), x.dtype).at[expert[order], place].set(rows[order], mode="drop")
    h = activation(c)(jnp.einsum("end,edf->enf", slots, p["up"]))
    out = jnp.einsum("enf,efd->end", h, p["down"])
    back = out.at[expert[order], place].get(mode="fill", fill_value=0)
    y = jnp.zeros_like(rows).at[order].set(back) * gate[:, None].astype(x.dtype)
    return y.reshape(x.shape)


def ffn_params(c, random):
    return mlp_params(c, random) if c.ffn == "mlp" else moe_params(c, random)


def ffn(c, p, x):
    return {"mlp": mlp, "moe_dense": moe_dense, "moe_sorted": moe_sorted}[c.ffn](c, p, x)
