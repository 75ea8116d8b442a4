"""Several training steps in one call: a scan over whole updates."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *

UPDATES = 3


def several(loss, params, opt, batches):
    def train(params, opt_state, batch):
        def body(state, part):
            value, grads = jax.value_and_grad(loss)(state[0], part)
            updates, opt_state = opt.update(grads, state[1], state[0])
            return (optax.apply_updates(state[0], updates), opt_state), value

        (params, opt_state), losses = jax.lax.scan(body, (params, opt_state), batch)
        return params, opt_state, jnp.mean(losses)

    return Step(train, {"params": params, "opt_state": opt.init(params)}, {"batch": batches}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]})  # fmt: skip


def batches():
    return np.stack([tokens(), tokens()[::-1], tokens()], 1)


@step
def llama_layer_of_one():
    return several(llama_loss, llama_params(layers=1), optax.adam(1e-3, eps=1e-6), batches())


@step
def gpt_layer_of_one():
    # The bias of keys has no gradient.
    made = several(lambda p, t: next_token_loss(gpt(p, t[:, :-1]), t[:, 1:]), gpt_params(layers=1), optax.adam(1e-3, eps=1e-6), batches())
    made.noise = ("qkv_b",)
    return made


@step
def scanned_layers_and_micro_batches():
    """Nested loops: two micro-batches of an update, with rematerialized layers in each."""

    def loss(p, pair):
        block = jax.checkpoint(lambda x, layer: (llama_block(layer, x), None))

        def run(one, x, layers):
            return jax.lax.scan(block, x, layers)[0]

        return jnp.mean(jax.lax.map(lambda part: llama_loss(p, part, scan=run), pair.reshape(2, -1, pair.shape[-1])))

    opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3, eps=1e-6))
    return several(loss, llama_params(stacked=True, layers=2), opt, batches())


@step
def rectified_norms():
    """A convolution saves a rectified norm and its mask, which no preset narrows."""
    random = np.random.default_rng(0)
    params = {"k": [normal(random, 3, 3, 16, 16, scale=0.1) for _ in range(2)], "scale": jnp.ones((2, 16)), "in": normal(random, 3, 16), "out": normal(random, 16, 8)}

    def loss(p, pair):
        picture, label = pair
        x = picture @ p["in"]
        for kernel, scale in zip(p["k"], p["scale"]):
            h = jax.nn.relu(rms_norm(x, scale))
            x = x + jax.lax.conv_general_dilated(h, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        return class_loss(x.mean((1, 2)) @ p["out"], label)

    picture, label = images()
    return several(loss, params, optax.adam(1e-3, eps=1e-6), (np.stack([picture] * 2, 1), np.stack([label] * 2, 1)))
