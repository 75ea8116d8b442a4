"""A byte model without attention that compiles quickly: gated layers, AdamW, and the init, step and
evaluation functions that examples/llama has too."""

import pathlib

import jax
import jax.numpy as jnp
import optax

WIDTH, LAYERS, BATCH, SEQUENCE, VOCABULARY = 64, 2, 2, 16, 256


def block(x, layer):
    h = x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-5) * layer["norm"]
    if "both" in layer:
        gate, up = jnp.split(h @ layer["both"] + layer["bias"], 2, axis=-1)
        return x + (jax.nn.silu(gate) * up) @ layer["down"], None
    return x + (jax.nn.silu(h @ layer["gate"]) * (h @ layer["up"])) @ layer["down"], None


def loss_fn(loop, params, tokens):
    x = params["embed"][tokens[:, :-1]]
    if loop == "unrolled":
        for layer in params["layers"]:
            x, _ = block(x, layer)
    else:
        x, _ = jax.lax.scan(jax.checkpoint(block) if loop == "remat" else block, x, params["layers"])
    logits = x @ params["head"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), tokens[:, 1:, None], axis=-1))


def functions(loop="unrolled", ffn=64, optimizer=None, fused=False):
    """Returns init, step and evaluate; with `fused` gate and up are one projection with a bias."""
    optimizer = optimizer or optax.adamw(3e-3, weight_decay=0.1)

    def init(seed):
        def draw(number, *shape):
            index = jax.lax.iota(jnp.uint32, shape[0] * shape[1]) * jnp.uint32(2654435761) + jnp.uint32(number * 40503) + seed
            index = (index ^ (index >> 15)) * jnp.uint32(0x85EBCA6B)
            index = (index ^ (index >> 13)) * jnp.uint32(0xC2B2AE35)
            return (((index >> 16).astype(jnp.float32) / 65536 - 0.5) * (3.4 / shape[0] ** 0.5)).reshape(shape)

        layers = [{"norm": jnp.ones(WIDTH), "gate": draw(3 * i + 1, WIDTH, ffn), "up": draw(3 * i + 2, WIDTH, ffn), "down": draw(3 * i + 3, ffn, WIDTH)}
                  for i in range(LAYERS)]  # fmt: skip
        if fused:
            layers = [{"norm": each["norm"], "both": jnp.concatenate([each["gate"], each["up"]], axis=1), "bias": jnp.full(2 * ffn, 0.1), "down": each["down"]}
                      for each in layers]  # fmt: skip
        if loop != "unrolled":
            layers = jax.tree.map(lambda *each: jnp.stack(each), *layers)
        params = {"embed": 4 * draw(100, VOCABULARY, WIDTH), "layers": layers, "head": draw(101, WIDTH, VOCABULARY)}
        return params, optimizer.init(params)

    def step(params, state, tokens):
        loss, grads = jax.value_and_grad(lambda p: loss_fn(loop, p, tokens))(params)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    return init, step, lambda params, tokens: loss_fn(loop, params, tokens)


def lowered(loop="unrolled", donated=True, **options):
    """Returns the three lowered functions by file name, and the leaves of their state by path."""
    init, step, evaluate = functions(loop, **options)
    seed, tokens = jax.ShapeDtypeStruct((), jnp.uint32), jax.ShapeDtypeStruct((BATCH, SEQUENCE + 1), jnp.int32)
    params, state = jax.eval_shape(init, seed)
    modules = {
        "init.mlir": jax.jit(init).lower(seed),
        "step.mlir": jax.jit(step, donate_argnums=(0, 1) if donated else ()).lower(params, state, tokens),
        "eval.mlir": jax.jit(evaluate).lower(params, tokens),
    }
    leaves = {}
    for root, tree in {"params": params, "state": state}.items():
        for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            leaves[root + jax.tree_util.keystr(keys)] = leaf
    return modules, leaves


def write(folder, **options):
    """Writes the three files; returns the leaves of the state by path."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    modules, leaves = lowered(**options)
    for name, module in modules.items():
        (folder / name).write_text(module.as_text(debug_info=True))
    return leaves
