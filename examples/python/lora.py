"""Fine-tuning with LoRA: a frozen base from a Hugging Face-style file, in FP8, and a mask over the prompt.

    python examples/python/lora.py [MODEL.safetensors] [RECIPE] [STEPS]

Without a file it first writes a random one. The names are those of a Llama: `model.layers.0.mlp.up_proj.weight`, [out, in].
"""

import pathlib
import sys
import tempfile

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
from safetensors.numpy import load_file, save_file
from text import batches

import fp8

WIDTH, HIDDEN, HEADS, LAYERS, RANK = 64, 160, 4, 2, 8
OPTIMIZER = optax.adam(2e-3)
ATTENTION = {name: (WIDTH, WIDTH) for name in ("q_proj", "k_proj", "v_proj", "o_proj")}
MLP = {"gate_proj": (HIDDEN, WIDTH), "up_proj": (HIDDEN, WIDTH), "down_proj": (WIDTH, HIDDEN)}


def write_random_model(path):
    random = np.random.default_rng(0)
    shapes = {"model.embed_tokens.weight": (256, WIDTH), "model.norm.weight": (WIDTH,), "lm_head.weight": (256, WIDTH)}
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        shapes |= {f"{at}.{norm}_layernorm.weight": (WIDTH,) for norm in ("input", "post_attention")}
        shapes |= {f"{at}.self_attn.{name}.weight": shape for name, shape in ATTENTION.items()}
        shapes |= {f"{at}.mlp.{name}.weight": shape for name, shape in MLP.items()}
    make = lambda shape: np.ones(shape) if len(shape) == 1 else random.normal(size=shape) * shape[1] ** -0.5
    save_file({name: make(shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()}, path)


def initial(base):
    """Returns an adapter for each linear layer: y = x Wᵀ + x Aᵀ Bᵀ, with B = 0."""
    adapters = {}
    for i, (name, weight) in enumerate(sorted(base.items())):
        if "_proj" in name:
            out, into = weight.shape
            adapters[name] = {"a": jax.random.normal(jax.random.key(i), (RANK, into)) * into**-0.5, "b": jnp.zeros((out, RANK))}
    return {"adapters": adapters, "opt": OPTIMIZER.init(adapters)}


def forward(base, adapters, tokens):
    def linear(name, x):
        adapter = adapters[name + ".weight"]
        return x @ base[name + ".weight"].T + ((x @ adapter["a"].T.astype(x.dtype)) @ adapter["b"].T.astype(x.dtype))

    def norm(name, x):
        wide = x.astype(jnp.float32)
        return (wide * jax.lax.rsqrt(jnp.mean(wide**2, -1, keepdims=True) + 1e-6)).astype(x.dtype) * base[name + ".weight"]

    split = lambda x: x.reshape(*x.shape[:2], HEADS, -1)
    x = base["model.embed_tokens.weight"][tokens]
    for i in range(LAYERS):
        at = f"model.layers.{i}"
        h = norm(f"{at}.input_layernorm", x)
        q, k, v = (split(linear(f"{at}.self_attn.{name}", h)) for name in ("q_proj", "k_proj", "v_proj"))
        h = jax.nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape)
        x = x + linear(f"{at}.self_attn.o_proj", h)
        h = norm(f"{at}.post_attention_layernorm", x)
        x = x + linear(f"{at}.mlp.down_proj", jax.nn.silu(linear(f"{at}.mlp.gate_proj", h)) * linear(f"{at}.mlp.up_proj", h))
    return (norm("model.norm", x) @ base["lm_head.weight"].T).astype(jnp.float32)


def step(state, base, batch):
    def loss_of(adapters):
        losses = optax.softmax_cross_entropy_with_integer_labels(forward(base, adapters, batch["tokens"]), batch["next"])
        return jnp.sum(losses * batch["mask"]) / jnp.sum(batch["mask"])

    loss, grads = jax.value_and_grad(loss_of)(state["adapters"])
    updates, opt = OPTIMIZER.update(grads, state["opt"])
    return {"adapters": optax.apply_updates(state["adapters"], updates), "opt": opt}, {"loss": loss}


if __name__ == "__main__":
    path, recipe, steps = (sys.argv[1:] + ["", "tensorwise", "20"][len(sys.argv) - 1 :])[:3]
    if not path:
        path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
        write_random_model(path)
    base = {name: jnp.asarray(weight) for name, weight in load_file(path).items()}
    state, data = initial(base), batches(prompt=16)
    step8 = fp8.compile(step, state, base, next(data), recipe=recipe)
    print(step8.verdicts.summary)
    for i in range(int(steps)):
        state, metrics = step8(state, base, next(data))
        print(f"step {i + 1}  loss {metrics['loss']:.4f}")
    adapters = {f"{name}.{part}": np.asarray(array) for name, adapter in state["adapters"].items() for part, array in adapter.items()}
    save_file(adapters, pathlib.Path(path).with_name("adapters.safetensors"))
