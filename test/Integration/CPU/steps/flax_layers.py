"""Modules of Flax as people write them: attention, scanned and rematerialized layers, batch
statistics, dropout."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from families import Step, step
from flax.training.train_state import TrainState
from models import *


def tx(rate=3e-3):
    return optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, eps=1e-6))


def token_loss(logits, targets):
    return optax.softmax_cross_entropy_with_integer_labels(logits, targets).mean()


KEYS = ("['key']['bias']",)


class Block(nn.Module):
    dropout: float = 0.0
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, x, mask, deterministic=True):
        h = nn.LayerNorm(dtype=self.dtype)(x)
        x = x + nn.MultiHeadDotProductAttention(
            num_heads=HEADS, dropout_rate=self.dropout, deterministic=deterministic, dtype=self.dtype
        )(h, mask=mask)
        h = nn.gelu(nn.Dense(4 * WIDTH, dtype=self.dtype)(nn.LayerNorm(dtype=self.dtype)(x)))
        h = nn.Dropout(self.dropout, deterministic=deterministic)(nn.Dense(WIDTH, dtype=self.dtype)(h))
        return x + h


class ScannedBlock(nn.Module):
    """A block as nn.scan needs it: from carry to carry."""

    @nn.compact
    def __call__(self, x, mask):
        return Block(name="block")(x, mask), None


class Decoder(nn.Module):
    layers: int = 2
    scan: bool = False
    remat: bool = False
    dropout: float = 0.0
    dtype: jnp.dtype = jnp.float32

    @nn.compact
    def __call__(self, inputs, deterministic=True):
        embed = nn.Embed(VOCAB, WIDTH, dtype=self.dtype)
        x = embed(inputs) + self.param("pos", nn.initializers.normal(0.02), (LENGTH, WIDTH)).astype(self.dtype)
        mask = nn.make_causal_mask(inputs)
        if self.scan:
            block = nn.remat(ScannedBlock, prevent_cse=False) if self.remat else ScannedBlock
            scanned = nn.scan(block, variable_axes={"params": 0}, split_rngs={"params": True}, length=self.layers, in_axes=nn.broadcast)
            x, _ = scanned(name="layers")(x, mask)
        else:
            block = nn.remat(Block, static_argnums=(3,)) if self.remat else Block
            for i in range(self.layers):
                x = block(self.dropout, self.dtype, name=f"block{i}")(x, mask, deterministic)
        return embed.attend(nn.LayerNorm(dtype=self.dtype)(x)).astype(jnp.float32)


def decoder_step(model, **options):
    def train(state, tokens):
        f = lambda p: token_loss(state.apply_fn({"params": p}, tokens[:, :-1]), tokens[:, 1:])
        loss, grads = jax.value_and_grad(f)(state.params)
        return state.apply_gradients(grads=grads), {"loss": loss}

    params = jax.jit(model.init)(jax.random.key(0), tokens()[0, :, :-1])["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=tx())
    return Step(train, {"state": state}, {"tokens": tokens()}, lambda r: r[1]["loss"], lambda r: {"state": r[0]},
                noise=KEYS, **options)  # fmt: skip


@step
def classifier():
    """An MLP on float inputs, in a TrainState; accuracy and logits as aux outputs."""

    class MLP(nn.Module):
        @nn.compact
        def __call__(self, x):
            for width in (64, 48):
                x = nn.relu(nn.Dense(width)(x))
            return nn.Dense(10)(x)

    model = MLP()

    def train(state, image, label):
        def objective(p):
            logits = state.apply_fn({"params": p}, image)
            return token_loss(logits, label), logits

        (loss, logits), grads = jax.value_and_grad(objective, has_aux=True)(state.params)
        return state.apply_gradients(grads=grads), loss, jnp.mean(jnp.argmax(logits, -1) == label), logits

    image, label = clusters()
    params = jax.jit(model.init)(jax.random.key(0), image[0])["params"]
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adam(3e-3, eps=1e-6))
    # The head is not quantized, and the first layer has no input gradient.
    return Step(train, {"state": state}, {"image": image, "label": label}, lambda r: r[1], lambda r: {"state": r[0]}, linear=(2, 1, 2))


@step
def decoder():
    """Flax's own attention, embedding and norms."""
    return decoder_step(Decoder(), linear=6 * 2)


@step
def decoder_bf16():
    """Modules with dtype=bfloat16 and f32 parameters."""
    # Gradients of biases have few digits in bf16, and Adam scales them all to one magnitude.
    return decoder_step(Decoder(dtype=jnp.bfloat16), loss_bound=2e-2, bound=0.5, linear=6 * 2)


@step
def decoder_remat():
    """The backward pass recomputes each layer."""
    return decoder_step(Decoder(remat=True), linear=(22, 12, 12))


@step
def decoder_scanned():
    """nn.scan over stacked layers."""
    return decoder_step(Decoder(scan=True, layers=3), linear=6)


@step
def decoder_scanned_remat():
    """nn.scan over nn.remat."""
    return decoder_step(Decoder(scan=True, remat=True, layers=3), linear=(11, 6, 6))


@step
def decoder_dropout():
    """Dropout, also of attention weights, with the key in a custom TrainState."""
    model = Decoder(dropout=0.1, layers=1)

    class State(TrainState):
        key: jax.Array

    def train(state, tokens):
        key = jax.random.fold_in(state.key, state.step)
        f = lambda p: token_loss(state.apply_fn({"params": p}, tokens[:, :-1], deterministic=False, rngs={"dropout": key}), tokens[:, 1:])
        loss, grads = jax.value_and_grad(f)(state.params)
        return state.apply_gradients(grads=grads), loss

    params = jax.jit(model.init)(jax.random.key(0), tokens()[0, :, :-1])["params"]
    state = State.create(apply_fn=model.apply, params=params, tx=tx(), key=jax.random.key(1))
    return Step(train, {"state": state}, {"tokens": tokens()}, lambda r: r[1], lambda r: {"state": r[0]}, noise=KEYS, linear=6)


def nnx_step(model, optimizer, **options):
    """A step of Flax NNX: the graph definition is separate, and all state is in one tree."""
    from flax import nnx

    graph, state = nnx.split((model, optimizer))

    def train(state, x, y):
        model, optimizer = nnx.merge(graph, state)
        loss, grads = nnx.value_and_grad(lambda m: token_loss(m(x), y))(model)
        optimizer.update(model, grads)
        return nnx.state((model, optimizer)), loss

    x, y = clusters()
    return Step(train, {"state": state}, {"x": x, "y": y}, lambda r: r[1], lambda r: {"state": r[0]}, **options)


@step
def nnx_model():
    """Layers as attributes of an object."""
    from flax import nnx

    class MLP(nnx.Module):
        def __init__(self, rngs):
            self.one = nnx.Linear(32, 64, rngs=rngs)
            self.norm = nnx.LayerNorm(64, rngs=rngs)
            self.two = nnx.Linear(64, 48, rngs=rngs)
            self.head = nnx.Linear(48, 10, rngs=rngs)

        def __call__(self, x):
            x = nnx.gelu(self.norm(self.one(x)))
            return self.head(nnx.gelu(self.two(x)))

    model = MLP(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(3e-3, eps=1e-6), wrt=nnx.Param)
    return nnx_step(model, optimizer, linear=(2, 1, 2))


@step
def nnx_scanned_remat():
    """nnx.scan over nnx.remat: the loop over layers also returns their weights."""
    from flax import nnx

    class Layer(nnx.Module):
        def __init__(self, rngs):
            self.up = nnx.Linear(32, 32, rngs=rngs)

        def __call__(self, x):
            return x + nnx.gelu(self.up(x))

    class Model(nnx.Module):
        def __init__(self, rngs):
            self.layers = nnx.vmap(Layer, in_axes=(0,))(rngs.fork(split=3))
            self.head = nnx.Linear(32, 10, rngs=rngs)

        def __call__(self, x):
            scanned = nnx.scan(nnx.remat(lambda x, layer: layer(x)), in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
            return self.head(scanned(x, self.layers))

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, tx(), wrt=nnx.Param)
    return nnx_step(model, optimizer, linear=(2, 1, 1))
