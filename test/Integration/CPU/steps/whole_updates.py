"""Several training steps in one call: a scan over whole updates."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import *

UPDATES = 3


def several(loss, params, opt, batches):
    def train(params, opt_state, tokens):
        def body(state, part):
            value, grads = jax.value_and_grad(loss)(state[0], part)
            updates, opt_state = opt.update(grads, state[1], state[0])
            return (optax.apply_updates(state[0], updates), opt_state), value

        (params, opt_state), losses = jax.lax.scan(body, (params, opt_state), tokens)
        return params, opt_state, jnp.mean(losses)

    return Step(train, {"params": params, "opt_state": opt.init(params)}, {"tokens": batches}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]})  # fmt: skip


def batches():
    return np.stack([tokens(), tokens()[::-1], tokens()], 1)


@step
def llama_layer_of_one():
    return several(llama_loss, llama_params(layers=1), optax.adam(1e-3, eps=1e-6), batches())


@step
def gpt_layer_of_one():
    # A bias of keys has no gradient.
    made = several(lambda p, t: next_token_loss(gpt(p, t[:, :-1]), t[:, 1:]), gpt_params(layers=1), optax.adam(1e-3, eps=1e-6), batches())
    made.noise = ("qkv_b",)
    return made


@step
def scanned_layers_and_micro_batches():
    """Loops in the loop: two micro-batches of an update, rematerialized layers of each."""

    def loss(p, pair):
        block = jax.checkpoint(lambda x, layer: (llama_block(layer, x), None))

        def run(one, x, layers):
            return jax.lax.scan(block, x, layers)[0]

        return jnp.mean(jax.lax.map(lambda part: llama_loss(p, part, scan=run), pair.reshape(2, -1, pair.shape[-1])))

    opt = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3, eps=1e-6))
    return several(loss, llama_params(stacked=True, layers=2), opt, batches())
