"""Transformers in plain JAX: heads, norms, activations and losses of many kinds, and steps with
arguments and results in many orders."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *

# Keys' biases have no gradient but rounding errors (a softmax does not depend on them), which Adam
# enlarges.
KEY_BIASES = 1e-2


@step
def gpt_tied_fused_qkv_hand_adam():
    """Tied head, fused QKV with biases, learned positions, and moments as separate arguments."""

    def train(params, m, v, count, tokens):
        loss, grads = jax.value_and_grad(lambda p: next_token_loss(gpt(p, tokens[:, :-1]), tokens[:, 1:]))(params)
        return *hand_adam(grads, params, m, v, count), loss

    p = gpt_params()
    state = {"params": p, "m": zeros(p), "v": zeros(p), "count": jnp.zeros((), jnp.int32)}
    return Step(train, state, {"tokens": tokens()}, lambda r: r[4], lambda r: dict(zip(state, r)),
                bound=KEY_BIASES, linear=4 * 2)  # fmt: skip


@step
def gpt_exact_gelu_masked_decay_smoothing():
    """Untied head, exact GELU, label smoothing, weight decay of matrices only, without clipping."""
    tx = optax.adamw(3e-3, eps=1e-6, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p))

    def train(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(lambda p: smooth_loss(gpt(p, x, approximate=False), y))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "ppl": jnp.exp(loss)}

    p, data = gpt_params(tied=False), tokens()
    batches = {"x": data[..., :-1], "y": data[..., 1:]}
    return Step(train, {"params": p, "opt_state": tx.init(p)}, batches, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, bound=KEY_BIASES, linear=4 * 2)  # fmt: skip


@step
def results_in_any_order():
    """The loss comes first, then the optimizer, then parameters; the batch is the first argument."""
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3, eps=1e-6))

    def train(tokens, opt_state, params):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return loss, opt_state, optax.global_norm(grads), optax.apply_updates(params, updates)

    p = llama_params()
    return Step(train, {"opt_state": tx.init(p), "params": p}, {"tokens": tokens()}, lambda r: r[0],
                lambda r: {"opt_state": r[1], "params": r[3]}, linear=5 * 2)  # fmt: skip


@step
def grouped_query_metrics_dictionary():
    """GQA without repeated keys, -inf masks, Nesterov momentum, metrics and data in dictionaries."""
    tx = optax.sgd(0.05, momentum=0.9, nesterov=True)

    def train(state, batch):
        def objective(p):
            logits = llama(p, batch["tokens"][:, :-1], repeat=False)
            targets = batch["tokens"][:, 1:]
            accuracy = jnp.mean(jnp.argmax(logits, -1) == targets)
            return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean(), accuracy

        (loss, accuracy), grads = jax.value_and_grad(objective, has_aux=True)(state["params"])
        updates, opt = tx.update(grads, state["opt"], state["params"])
        metrics = {"accuracy": accuracy, "grad_norm": optax.global_norm(grads), "loss": loss, "param_norm": optax.global_norm(state["params"])}
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, metrics

    p = llama_params()
    return Step(train, {"state": {"params": p, "opt": tx.init(p)}}, {"batch": {"tokens": tokens()}},
                lambda r: r[1]["loss"], lambda r: {"state": r[0]}, linear=5 * 2)  # fmt: skip


@step
def geglu_qk_norm_softcap_z_loss():
    """GeGLU, one key-value head, soft-capped logits, a z-loss and a float mask in the data; the step returns logits and losses of each
    token."""
    tx = optax.adamw(3e-3, eps=1e-6)

    def train(params, opt_state, inputs, targets, mask):
        def objective(p):
            logits = llama(p, inputs, kv_heads=1, act=jax.nn.gelu)
            logits = 20.0 * jnp.tanh(logits / 20.0)
            z = jax.nn.logsumexp(logits, axis=-1)
            nll = z - jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
            total = jnp.sum(mask)
            return jnp.sum(mask * nll) / total + 1e-3 * jnp.sum(mask * z**2) / total, (logits, nll, total)

        (loss, aux), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss, aux

    p, data = llama_params(kv_heads=1), tokens()
    mask = (np.random.default_rng(1).random((STEPS, BATCH, LENGTH)) < 0.8).astype(np.float32)
    batches = {"inputs": data[..., :-1], "targets": data[..., 1:], "mask": mask}
    return Step(train, {"params": p, "opt_state": tx.init(p)}, batches, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=5 * 2)  # fmt: skip


@step
def boolean_mask_and_segments():
    """Packed sequences: segment ids and a boolean mask are data."""
    tx = optax.adam(3e-3, eps=1e-6)

    def train(state, batch):
        params, opt_state = state
        inputs, targets = batch["tokens"][:, :-1], batch["tokens"][:, 1:]

        def objective(p):
            x = p["wte"][inputs] + p["wpe"]
            same = batch["segments"][:, :, None] == batch["segments"][:, None, :]
            for i in range(2):
                b = p[f"h{i}"]
                h = layer_norm(x, b["ln_1"])
                q, k, v = (heads_of(a, HEADS) for a in jnp.split(h @ b["attn"]["qkv"], 3, axis=-1))
                s = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
                s = jnp.where(jnp.tril(same)[:, None], s, -1e9)
                x = x + jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s), v).reshape(x.shape) @ b["attn"]["o"]
                x = x + jax.nn.relu(layer_norm(x, b["ln_2"]) @ b["mlp"]["fc"]) ** 2 @ b["mlp"]["proj"]
            logp = jax.nn.log_softmax(layer_norm(x, p["ln_f"]) @ p["wte"].T)
            nll = -jnp.take_along_axis(logp, targets[..., None], axis=-1)[..., 0]
            return jnp.mean(nll, where=batch["valid"])

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    p = gpt_params()
    for i in range(2):
        del p[f"h{i}"]["attn"]["qkv_b"], p[f"h{i}"]["attn"]["o_b"], p[f"h{i}"]["mlp"]["fc_b"], p[f"h{i}"]["mlp"]["proj_b"]
    random = np.random.default_rng(2)
    segments = np.sort(random.integers(0, 3, (STEPS, BATCH, LENGTH)), axis=-1).astype(np.int8)
    batch = {"tokens": tokens(), "segments": segments, "valid": random.random((STEPS, BATCH, LENGTH)) < 0.9}
    return Step(train, {"state": (p, tx.init(p))}, {"batch": batch}, lambda r: r[1], lambda r: {"state": r[0]}, linear=4 * 2)


@step
def cross_entropy_with_custom_gradient():
    """The loss (custom_vjp) and the norm (custom_jvp) have custom gradients."""

    @jax.custom_vjp
    def cross_entropy(logits, targets):
        return jnp.mean(jax.nn.logsumexp(logits, -1) - jnp.take_along_axis(logits, targets[..., None], -1)[..., 0])

    def forward(logits, targets):
        return cross_entropy(logits, targets), (logits, targets)

    def backward(residuals, g):
        logits, targets = residuals
        grad = jax.nn.softmax(logits) - jax.nn.one_hot(targets, VOCAB)
        return g * grad / targets.size, None

    cross_entropy.defvjp(forward, backward)

    @jax.custom_jvp
    def safe_log(x):
        return jnp.log(jnp.maximum(x, 1e-6))

    safe_log.defjvp(lambda x, dx: (safe_log(x[0]), dx[0] / jnp.maximum(x[0], 1e-6)))
    tx = optax.adamw(3e-3, eps=1e-6)

    def train(params, opt_state, tokens):
        def objective(p):
            logits = llama(p, tokens[:, :-1])
            # A penalty for confident tokens, by the logarithm of their probability.
            peak = jnp.max(jax.nn.softmax(logits), -1)
            return cross_entropy(logits, tokens[:, 1:]) + 0.01 * jnp.mean(safe_log(peak))

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    p = llama_params()
    return Step(train, {"params": p, "opt_state": tx.init(p)}, {"tokens": tokens()}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=5 * 2)  # fmt: skip
