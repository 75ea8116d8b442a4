"""Losses and their gradients: whole or in micro-batches, in several types, with or without loss
scaling."""

import jax
import jax.numpy as jnp

MICRO = 2
STATIC_SCALE = 256.0


def cast(tree, dtype):
    return jax.tree.map(lambda p: p.astype(dtype) if jnp.issubdtype(p.dtype, jnp.floating) else p, tree)


def loss_of(c, logits, targets):
    """Returns one head's loss; its logits (..., classes) are converted to f32."""
    logits = logits.astype(jnp.float32)
    hot = jax.nn.one_hot(targets, logits.shape[-1])
    logp = jax.nn.log_softmax(logits)
    nll = -jnp.sum(hot * logp, -1)
    if c.loss == "mse":
        return jnp.mean(jnp.square(logits - hot))
    if c.loss == "huber":
        error = jnp.abs(logits - hot)
        return jnp.mean(jnp.where(error < 0.5, 0.5 * error**2, 0.5 * error - 0.125))
    if c.loss == "smooth":
        return -jnp.mean(jnp.sum((0.9 * hot + 0.1 / logits.shape[-1]) * logp, -1))
    if c.loss == "z":
        return jnp.mean(nll) + 1e-2 * jnp.mean(jnp.square(jax.nn.logsumexp(logits, -1)))
    if c.loss == "masked":
        mask = (targets % 3 != 0).astype(jnp.float32)
        return jnp.sum(mask * nll) / jnp.maximum(jnp.sum(mask), 1)
    return jnp.mean(nll)


def supervised(c, model):
    """Returns loss(params, batch, key) -> loss, metrics."""

    def loss(params, batch, key):

        def drop(x):
            """Returns x with some features dropped. A norm of only zeros makes the gradients of an
            example explode: these change no weight, but they determine per-tensor scales."""
            if key is None:
                return x
            keep = jax.random.bernoulli(key, 0.9, (x.shape[0], *[1] * (x.ndim - 2), x.shape[-1]))
            return jnp.where(keep, x / 0.9, 0).astype(x.dtype)

        outputs, targets = model.outputs(params, batch, drop), model.targets(batch)
        total = loss_of(c, outputs[0], targets)
        metrics = {"accuracy": jnp.mean((jnp.argmax(outputs[0], -1) == targets).astype(jnp.float32))}
        for other in outputs[1:]:
            extra = loss_of(c, other, targets % other.shape[-1])
            total, metrics = total + 0.3 * extra, metrics | {"second": extra}
        return total, metrics

    return loss


def pieces(batch):
    return jax.tree.map(lambda b: b.reshape(MICRO, b.shape[0] // MICRO, *b.shape[1:]), batch)


def gradients(c, loss, batch, key, scale=None):
    """Returns params -> ((loss, metrics), gradients), computed in the draw's way."""
    scale = STATIC_SCALE if c.scaling == "static" else scale

    def of_piece(params, batch, key):
        def scaled(params):
            if c.dtype == "cast_inside":
                params = cast(params, jnp.bfloat16)
            value, metrics = loss(params, batch, key)
            return value if scale is None else value * scale, (value, metrics)

        (_, out), grads = jax.value_and_grad(scaled, has_aux=True)(params)
        return out, grads if scale is None else jax.tree.map(lambda g: (g / scale).astype(g.dtype), grads)

    mean = lambda tree: jax.tree.map(lambda t: t / MICRO, tree)

    def whole(params):
        if c.micro not in ("scan", "unrolled"):
            return of_piece(params, batch, key)
        keys = jax.random.split(key, MICRO) if key is not None else None
        if c.micro == "unrolled":
            total = None
            for i in range(MICRO):
                piece = of_piece(params, jax.tree.map(lambda b: b[i], pieces(batch)), keys if keys is None else keys[i])
                total = piece if total is None else jax.tree.map(jnp.add, total, piece)
            return mean(total)

        def body(total, xs):
            batch, key = xs
            return jax.tree.map(jnp.add, total, of_piece(params, batch, key)), None

        first = jax.tree.map(lambda b: b[0], (pieces(batch), keys))
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(of_piece, params, *first))
        return mean(jax.lax.scan(body, zeros, (pieces(batch), keys))[0])

    def objective(params):
        if c.dtype != "cast_outside":
            return whole(params)
        out, grads = whole(cast(params, jnp.bfloat16))
        return out, cast(grads, jnp.float32)

    return objective
