"""Keras 3 on JAX: a model and an optimizer as pure functions of their variables (`stateless_call`, `stateless_apply`), trained in FP8.

python examples/python/keras_model.py [RECIPE] [STEPS]
"""

import os
import sys

os.environ["KERAS_BACKEND"] = "jax"

import jax
import jax.numpy as jnp
import keras
from keras import layers
from text import batches

import fp8


def make_model(length=64, width=64, blocks=2):
    tokens = keras.Input((length,), dtype="int32")
    x = layers.Embedding(256, width)(tokens)
    for _ in range(blocks):
        h = layers.LayerNormalization()(x)
        x = x + layers.MultiHeadAttention(4, width // 4)(h, h, use_causal_mask=True)
        h = layers.Dense(4 * width, activation="gelu")(layers.LayerNormalization()(x))
        x = x + layers.Dropout(0.1)(layers.Dense(width)(h))
    return keras.Model(tokens, layers.Dense(256)(layers.LayerNormalization()(x)))


keras.utils.set_random_seed(0)
MODEL = make_model()
OPTIMIZER = keras.optimizers.AdamW(3e-3, clipnorm=1.0)
OPTIMIZER.build(MODEL.trainable_variables)
LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def initial():
    """The variables: weights, what layers keep beside them (the dropout's key), and the optimizer's."""
    groups = MODEL.trainable_variables, MODEL.non_trainable_variables, OPTIMIZER.variables
    return tuple([jnp.array(variable.value) for variable in group] for group in groups)


def step(state, batch):
    weights, kept, opt = state

    def loss_of(weights, kept):
        logits, kept = MODEL.stateless_call(weights, kept, batch["tokens"], training=True)
        return LOSS(batch["next"], logits), kept

    (loss, kept), grads = jax.value_and_grad(loss_of, has_aux=True)(weights, kept)
    weights, opt = OPTIMIZER.stateless_apply(opt, grads, weights)
    return (weights, kept, opt), {"loss": loss}


if __name__ == "__main__":
    recipe, steps = (sys.argv[1:] + ["tensorwise", "20"][len(sys.argv) - 1 :])[:2]
    state, data = initial(), batches()
    step8 = fp8.compile(step, state, next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, next(data))
        print(f"step {i + 1}  loss {metrics['loss']:.4f}")
    # Put the trained weights back into the model.
    for variable, value in zip(MODEL.trainable_variables, state[0], strict=True):
        variable.assign(jnp.asarray(value))
    prompt = jnp.frombuffer(b"the ".rjust(MODEL.input_shape[1]), jnp.uint8).astype(jnp.int32)
    print("next byte after 'the ':", chr(int(MODEL(prompt[None])[0, -1].argmax())))
