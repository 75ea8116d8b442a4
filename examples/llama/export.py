#!/usr/bin/env python3
"""A Llama-style byte model in plain JAX + optax, exported as StableHLO text.

    python3 examples/llama/export.py                   # writes step.mlir, init.mlir, eval.mlir beside this file
    python3 examples/llama/export.py --layers 2 --width 64 --heads 2 --ffn 172 --out /tmp/tiny

Nothing in this file is specific to FP8: it is an ordinary training step. The three
files are what `jax.jit(f).lower(...).as_text(debug_info=True)` prints:

    step.mlir   step(params, opt_state, tokens) -> (params, opt_state, metrics)
    init.mlir   init(seed)                      -> (params, opt_state)
    eval.mlir   evaluate(params, tokens)        -> mean loss in nats per byte

`tokens` is i32[batch, sequence + 1]: the model predicts each byte from those
before it. The learning-rate schedule is part of the step, so its length
(--schedule-steps) is fixed when exporting.
"""

import argparse
import pathlib
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax


@dataclass(frozen=True)
class Config:
    vocab: int = 256
    width: int = 256
    layers: int = 6
    heads: int = 4
    ffn: int = 688
    batch: int = 8
    sequence: int = 128
    learning_rate: float = 3e-3
    warmup_steps: int = 50
    schedule_steps: int = 500
    weight_decay: float = 0.1
    clip: float = 1.0
    # The precision of activations and dots; parameters and the optimizer
    # stay in f32. bfloat16 is there for comparisons (benchmarks/step).
    compute: str = "float32"
    # "unrolled": every layer has its own arrays and ops. "scan": arrays are
    # stacked, and one `while` loops over them; "remat": the same, and the
    # backward loop recomputes the activations.
    loop: str = "unrolled"


# ---------------------------------------------------------------- the model


def rms_norm(x, gain):
    x32 = x.astype(jnp.float32)
    scale = jax.lax.rsqrt(jnp.mean(jnp.square(x32), axis=-1, keepdims=True) + 1e-5)
    return (x32 * scale * gain).astype(x.dtype)


def rotary(x):
    """Rotates the two halves of every head by position-dependent angles."""
    sequence, depth = x.shape[1], x.shape[3]
    frequency = 10000.0 ** (-jnp.arange(0, depth, 2, dtype=jnp.float32) / depth)
    angle = jnp.arange(sequence, dtype=jnp.float32)[:, None] * frequency[None, :]
    cos = jnp.cos(angle)[None, :, None, :].astype(x.dtype)
    sin = jnp.sin(angle)[None, :, None, :].astype(x.dtype)
    a, b = jnp.split(x, 2, axis=-1)
    return jnp.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def attention(layer, x, heads):
    batch, sequence, width = x.shape
    split = (batch, sequence, heads, width // heads)
    q = rotary((x @ layer["wq"].astype(x.dtype)).reshape(split))
    k = rotary((x @ layer["wk"].astype(x.dtype)).reshape(split))
    v = (x @ layer["wv"].astype(x.dtype)).reshape(split)
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (split[3] ** -0.5)
    position = jnp.arange(sequence)
    causal = position[:, None] >= position[None, :]
    scores = jnp.where(causal, scores.astype(jnp.float32), -1e30)
    weights = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    out = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, sequence, width)
    return out @ layer["wo"].astype(x.dtype)


def swiglu(layer, x):
    gate = x @ layer["w_gate"].astype(x.dtype)
    up = x @ layer["w_up"].astype(x.dtype)
    return (jax.nn.silu(gate) * up) @ layer["w_down"].astype(x.dtype)


def forward(cfg, params, tokens):
    def block(x, layer):
        with jax.named_scope("attention"):
            x = x + attention(layer, rms_norm(x, layer["norm1"]), cfg.heads)
        with jax.named_scope("mlp"):
            return x + swiglu(layer, rms_norm(x, layer["norm2"])), None

    x = params["embed"][tokens].astype(cfg.compute)
    if cfg.loop == "unrolled":
        for index, layer in enumerate(params["layers"]):
            with jax.named_scope(f"layer{index}"):
                x, _ = block(x, layer)
    else:
        x, _ = jax.lax.scan(jax.checkpoint(block) if cfg.loop == "remat" else block, x, params["layers"])
    with jax.named_scope("head"):
        x = rms_norm(x, params["norm"])
        return (x @ params["head"].astype(x.dtype)).astype(jnp.float32)


def loss_fn(cfg, params, tokens):
    logits = forward(cfg, params, tokens[:, :-1])
    with jax.named_scope("loss"):
        labels = jax.nn.one_hot(tokens[:, 1:], cfg.vocab)
        return jnp.mean(optax.softmax_cross_entropy(logits, labels))


# ------------------------------------------------- initial values, optimizer


def hash_bits(index, key):
    """Well-mixed 32-bit words from a counter (the finalizer of MurmurHash3)."""
    x = index * jnp.uint32(0x9E3779B9) + key
    x = (x ^ (x >> 16)) * jnp.uint32(0x85EBCA6B)
    x = (x ^ (x >> 13)) * jnp.uint32(0xC2B2AE35)
    return x ^ (x >> 16)


def nearly_normal(shape, key, std):
    """Returns sums of four 16-bit uniforms: close to normal, and exact in f32, so
    that every compiler computes the same bits."""
    size = 1
    for dim in shape:
        size *= dim
    index = jax.lax.iota(jnp.uint32, size)
    total = jnp.zeros((size,), jnp.uint32)
    for stream in range(2):
        bits = hash_bits(index * jnp.uint32(2) + jnp.uint32(stream), key)
        total = total + (bits & jnp.uint32(0xFFFF)) + (bits >> 16)
    centred = total.astype(jnp.int32) - jnp.int32(2 * 65535)
    unit = 65536.0 / 3.0**0.5  # the standard deviation of the sum
    return (centred.astype(jnp.float32) * jnp.float32(std / unit)).reshape(shape)


def init_params(cfg, seed):
    seed_key = hash_bits(seed, jnp.uint32(0x243F6A88))
    count = 0

    def draw(*shape, std):
        nonlocal count
        count += 1
        return nearly_normal(shape, hash_bits(jnp.uint32(count), seed_key), std)

    w, f = cfg.width, cfg.ffn
    out_std = (2 * cfg.layers * w) ** -0.5  # keeps the residual stream's variance
    down_std = (2 * cfg.layers * f) ** -0.5
    params = {
        "embed": draw(cfg.vocab, w, std=1.0),
        "layers": [
            {
                "norm1": jnp.ones((w,)),
                "wq": draw(w, w, std=w**-0.5),
                "wk": draw(w, w, std=w**-0.5),
                "wv": draw(w, w, std=w**-0.5),
                "wo": draw(w, w, std=out_std),
                "norm2": jnp.ones((w,)),
                "w_gate": draw(w, f, std=w**-0.5),
                "w_up": draw(w, f, std=w**-0.5),
                "w_down": draw(f, w, std=down_std),
            }
            for _ in range(cfg.layers)
        ],
        "norm": jnp.ones((w,)),
        "head": draw(w, cfg.vocab, std=w**-0.5),
    }
    if cfg.loop != "unrolled":
        params["layers"] = jax.tree.map(lambda *layers: jnp.stack(layers), *params["layers"])
    return params


def make_optimizer(cfg):
    schedule = optax.warmup_cosine_decay_schedule(
        init_value=0.0,
        peak_value=cfg.learning_rate,
        warmup_steps=cfg.warmup_steps,
        decay_steps=cfg.schedule_steps,
        end_value=0.1 * cfg.learning_rate,
    )

    def matrices_only(params):
        return jax.tree_util.tree_map_with_path(lambda path, p: not path[-1].key.startswith("norm"), params)

    # optax.adamw after the clipping, written out so that the learning rate of
    # a step can be reported.
    optimizer = optax.chain(
        optax.clip_by_global_norm(cfg.clip),
        optax.scale_by_adam(b1=0.9, b2=0.95, eps=1e-8),
        optax.add_decayed_weights(cfg.weight_decay, mask=matrices_only),
        optax.scale_by_learning_rate(schedule),
    )
    return optimizer, schedule


def make_functions(cfg):
    """Returns (init, step, evaluate) as plain functions of arrays."""
    optimizer, schedule = make_optimizer(cfg)

    def init(seed):
        params = init_params(cfg, seed)
        return params, optimizer.init(params)

    def step(params, opt_state, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_fn(cfg, p, tokens))(params)
        with jax.named_scope("optimizer"):
            metrics = {
                "loss": loss,
                "grad_norm": optax.global_norm(grads),
                "learning_rate": schedule(opt_state[-1].count),
            }
            updates, opt_state = optimizer.update(grads, opt_state, params)
            params = optax.apply_updates(params, updates)
        return params, opt_state, metrics

    def evaluate(params, tokens):
        return loss_fn(cfg, params, tokens)

    return init, step, evaluate


# ------------------------------------------------------------------- export


def example_arguments(cfg):
    init, _, _ = make_functions(cfg)
    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    tokens = jax.ShapeDtypeStruct((cfg.batch, cfg.sequence + 1), jnp.int32)
    params, opt_state = jax.eval_shape(init, seed)
    return seed, params, opt_state, tokens


def lowered(cfg):
    """Returns the three lowered functions by file name."""
    init, step, evaluate = make_functions(cfg)
    seed, params, opt_state, tokens = example_arguments(cfg)
    return {
        "step.mlir": jax.jit(step, donate_argnums=(0, 1)).lower(params, opt_state, tokens),
        "init.mlir": jax.jit(init).lower(seed),
        "eval.mlir": jax.jit(evaluate).lower(params, tokens),
    }


def write(cfg, folder):
    """Writes the three files into `folder`; returns their paths."""
    # Locations name files without the folders of this machine.
    jax.config.update("jax_hlo_source_file_canonicalization_regex", r".*/(?=[^/]+/[^/]+$)")
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, module in lowered(cfg).items():
        paths.append(folder / name)
        paths[-1].write_text(module.as_text(debug_info=True))
    return paths


def add_arguments(parser):
    """Adds one option for every field of Config."""
    defaults = Config()
    for name, kind in Config.__annotations__.items():
        default = getattr(defaults, name)
        choices = ("unrolled", "scan", "remat") if name == "loop" else None
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, choices=choices, default=default, help=f"(default {default})")


def config_from(args):
    return Config(**{name: getattr(args, name) for name in Config.__annotations__})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    here = pathlib.Path(__file__).resolve().parent
    parser.add_argument("--out", type=pathlib.Path, default=here, help="folder for the three files")
    args = parser.parse_args()
    cfg = config_from(args)

    for path in write(cfg, args.out):
        print(f"{path}: {path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
