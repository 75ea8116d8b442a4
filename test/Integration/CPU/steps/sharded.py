"""Steps in jax.shard_map on four devices: the ways in which people divide the training of a
transformer, each as it is written by hand. Together the steps name every preset."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from jax import lax
from jax.flatten_util import ravel_pytree
from jax.sharding import Mesh, PartitionSpec as P
from models import *

# Losses are JAX's to 1e-6. Sums have another order than in XLA. Their rounding errors are relative to
# the terms of a sum, of which little may be left in a bias, a moment or a norm. The largest measured
# difference is 8e-6 with AVX2 and 5e-6 with AVX-512, whose vectors XLA adds in another order.
EXACT = dict(loss_bound=1e-6, bound=2e-5)
# Layers in bf16, where another order of a sum may round a value to its neighbour.
BF16 = dict(loss_bound=2e-3, bound=5e-2)


def mesh(**axes):
    return Mesh(np.array(jax.devices()[: np.prod(list(axes.values()))]).reshape(*axes.values()), tuple(axes))


def adamw(**options):
    # With a smaller epsilon Adam would divide by rounding errors.
    return optax.adamw(3e-3, eps=1e-3, **options)


def specs_like(opt_state, specs):
    """Returns the specs of an optimizer's state: those of the parameter with the same path."""
    flat = {jax.tree_util.keystr(path): spec for path, spec in jax.tree_util.tree_flatten_with_path(specs, is_leaf=lambda x: isinstance(x, P))[0]}
    spec = lambda path, _: next((s for name, s in flat.items() if jax.tree_util.keystr(path).endswith(name)), P())
    return jax.tree_util.tree_map_with_path(spec, opt_state)


def norm_over(grads, specs):
    """Returns the norm of gradients of which devices have parts, as their specs say."""

    def square(g, spec):
        axes = tuple(axis for axis in spec if axis)
        total = jnp.sum(jnp.square(g.astype(jnp.float32)))
        return lax.psum(total, axes) if axes else total

    return jnp.sqrt(sum(jax.tree.leaves(jax.tree.map(square, grads, specs))))


def inside(loss, params, specs, over, data, data_specs, tx, clip=None, **options):
    """Makes a step that is a shard_map as a whole; `loss` is the same on all devices."""
    opt_state = tx.init(params)
    opt_specs = specs_like(opt_state, specs)

    def update(params, opt_state, *batch):
        value, grads = jax.value_and_grad(loss)(params, *batch)
        norm = norm_over(grads, specs)
        if clip:
            grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, clip / norm), grads)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": value, "grad_norm": norm}

    names = list(data)
    train = jax.shard_map(update, mesh=over, in_specs=(specs, opt_specs, *data_specs), out_specs=(specs, opt_specs, P()))
    named = {1: lambda params, opt_state, tokens: train(params, opt_state, tokens),
             2: lambda params, opt_state, x, y: train(params, opt_state, x, y)}  # fmt: skip
    return Step(named[len(names)], {"params": params, "opt_state": opt_state}, data, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, **{**EXACT, **options})  # fmt: skip


def pairs(**sizes):
    data = tokens(**sizes)
    return {"x": data[..., :-1], "y": data[..., 1:]}


@step
def gradients_averaged():
    """Data parallel as most code has it, without types of axes: pmean of gradients and loss, then clipping and AdamW."""
    tx = optax.chain(optax.clip_by_global_norm(1.0), adamw(weight_decay=0.1, mask=lambda p: jax.tree.map(lambda x: x.ndim > 1, p)))

    def update(params, opt_state, x, y):
        loss, grads = jax.value_and_grad(lambda p: smooth_loss(gpt(p, x, approximate=False), y))(params)
        loss, grads = lax.pmean((loss, grads), "data")
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "ppl": jnp.exp(loss)}

    over = jax.shard_map(update, mesh=mesh(data=4), in_specs=(P(), P(), P("data"), P("data")), out_specs=P(), check_vma=False)
    p = gpt_params()
    return Step(lambda params, opt_state, x, y: over(params, opt_state, x, y), {"params": p, "opt_state": tx.init(p)}, pairs(batch=8),
                lambda r: r[2]["loss"], lambda r: {"params": r[0], "opt_state": r[1]}, linear=8, presets=("fp8", "delayed", "coat"), **EXACT)  # fmt: skip


@step
def micro_batches_masked():
    """Data parallel: micro-batches in a scan, bf16 layers, a loss scale, a count of unmasked tokens of all devices, and an update that a
    branch skips if a gradient is not finite."""

    def micro(p, scale, tokens, mask):
        logits = llama(p, tokens[:, :-1], dtype=jnp.bfloat16)
        nll = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return scale * jnp.sum(mask * nll)

    def update(state, batch):
        params, momentum, scale = state["params"], state["momentum"], state["scale"]
        count = lax.psum(jnp.sum(batch["mask"]), "data")
        parts = jax.tree.map(lambda x: x.reshape(2, -1, *x.shape[1:]), batch)

        def body(carry, part):
            return jax.tree.map(jnp.add, carry, jax.value_and_grad(micro)(params, scale, part["tokens"], part["mask"])), None

        sums, _ = lax.scan(body, (jnp.float32(0), zeros(params)), parts)
        loss, grads = jax.tree.map(lambda x: x / (scale * count), lax.psum(sums, "data"))
        finite = jnp.all(jnp.stack([jnp.all(jnp.isfinite(g)) for g in jax.tree.leaves(grads)]))

        def apply(args):
            params, momentum = args
            momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, grads)
            return jax.tree.map(lambda p, m: p - 0.05 * m, params, momentum), momentum

        params, momentum = lax.cond(finite, apply, lambda args: args, (params, momentum))
        scale = jnp.where(finite, scale, scale / 2)
        return {"params": params, "momentum": momentum, "scale": scale}, loss

    over = jax.shard_map(update, mesh=mesh(data=4), in_specs=(P(), P("data")), out_specs=P(), check_vma=False)
    p = llama_params()
    mask = (np.random.default_rng(1).random((STEPS, 16, LENGTH)) < 0.8).astype(np.float32)
    state = {"state": {"params": p, "momentum": zeros(p), "scale": jnp.float32(1024)}}
    return Step(lambda state, batch: over(state, batch), state, {"batch": {"tokens": tokens(batch=16), "mask": mask}}, lambda r: r[1],
                lambda r: {"state": r[0]}, linear=10, presets=("tensorwise", "fp8_lm", "blockwise"), **BF16)  # fmt: skip


# ------------------------------------------------- tensors divided by columns and rows


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def copied(x, axis):
    """Megatron's f: the identity, whose gradient is summed."""
    return x


copied.defvjp(lambda x, axis: (x, None), lambda axis, _, g: (lax.psum(g, axis),))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def summed(x, axis):
    """Megatron's g: a sum, whose gradient is the identity."""
    return lax.psum(x, axis)


summed.defvjp(lambda x, axis: (lax.psum(x, axis), None), lambda axis, _, g: (g,))


def split_layer(r):
    """A layer of GPT whose heads and channels devices can divide: queries, keys and values are apart."""
    norm = lambda: {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    return {"ln_1": norm(), "ln_2": norm(), "q": normal(r, WIDTH, WIDTH), "k": normal(r, WIDTH, WIDTH), "v": normal(r, WIDTH, WIDTH),
            "o": normal(r, WIDTH, WIDTH), "fc": normal(r, WIDTH, 4 * WIDTH), "fc_b": jnp.zeros(4 * WIDTH), "proj": normal(r, 4 * WIDTH, WIDTH)}  # fmt: skip


def split_params(layers=2, seed=0):
    r = np.random.default_rng(seed)
    return {"wte": normal(r, VOCAB, WIDTH, scale=0.3), "wpe": normal(r, LENGTH, WIDTH, scale=0.02),
            "layers": [split_layer(r) for _ in range(layers)], "ln_f": {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)},
            "head": normal(r, WIDTH, VOCAB)}  # fmt: skip


def stacked(params):
    return {**params, "layers": jax.tree.map(lambda *leaves: jnp.stack(leaves), *params["layers"])}


# How the weights of a layer are split by columns and rows.
COLUMNS_AND_ROWS = {"ln_1": {"scale": P(), "bias": P()}, "ln_2": {"scale": P(), "bias": P()}, "q": P(None, "tensor"), "k": P(None, "tensor"),
                    "v": P(None, "tensor"), "o": P("tensor"), "fc": P(None, "tensor"), "fc_b": P("tensor"), "proj": P("tensor")}  # fmt: skip


def stacks(specs, of="layers"):
    """Returns the specs of stacks of layers."""
    return jax.tree.map(lambda s: P(None, *s) if s != P() else s, specs, is_leaf=lambda x: isinstance(x, P))


def split_block(p, x, enter, leave, attend=attend):
    """A layer with parts of its weights: `enter` precedes the dots that are split by columns, and `leave` follows those split by rows."""
    width = WIDTH // HEADS
    h = enter(layer_norm(x, p["ln_1"]))
    q, k, v = (heads_of(h @ p[name], p[name].shape[-1] // width) for name in "qkv")
    x = x + leave(attend(q, k, v) @ p["o"])
    h = enter(layer_norm(x, p["ln_2"]))
    return x + leave(jax.nn.gelu(h @ p["fc"] + p["fc_b"]) @ p["proj"])


@step
def columns_and_rows():
    """Megatron on 2 x 2 devices, without types of axes: custom gradients for the sums, an embedding and a head whose vocabulary is
    divided, gradients averaged over rows."""
    tx = adamw()
    p = split_params()
    specs = {"wte": P("tensor"), "wpe": P(), "layers": [COLUMNS_AND_ROWS] * 2, "ln_f": {"scale": P(), "bias": P()}, "head": P(None, "tensor")}
    opt = tx.init(p)
    opt_specs = specs_like(opt, specs)

    def embed(table, ids):
        rows = ids - lax.axis_index("tensor") * len(table)
        ours = (rows >= 0) & (rows < len(table))
        return summed(jnp.where(ours[..., None], table[jnp.clip(rows, 0, len(table) - 1)], 0.0), "tensor")

    def cross_entropy(logits, ids):
        peak = lax.pmax(lax.stop_gradient(jnp.max(logits, -1)), "tensor")
        logits = logits - peak[..., None]
        total = summed(jnp.sum(jnp.exp(logits), -1), "tensor")
        classes = logits.shape[-1]
        rows = ids - lax.axis_index("tensor") * classes
        ours = (rows >= 0) & (rows < classes)
        mine = jnp.take_along_axis(logits, jnp.clip(rows, 0, classes - 1)[..., None], -1)[..., 0]
        return jnp.mean(jnp.log(total) - summed(jnp.where(ours, mine, 0.0), "tensor"))

    def loss_of(p, x, y):
        h = embed(p["wte"], x) + p["wpe"]
        enter, leave = (functools.partial(f, axis="tensor") for f in (copied, summed))
        for layer in p["layers"]:
            h = split_block(layer, h, lambda x: copied(x, "tensor"), lambda x: summed(x, "tensor"))
        return cross_entropy(copied(layer_norm(h, p["ln_f"]), "tensor") @ p["head"], y)

    def update(params, opt_state, x, y):
        loss, grads = lax.pmean(jax.value_and_grad(loss_of)(params, x, y), "data")
        norm = norm_over(grads, specs)
        grads = jax.tree.map(lambda g: g / jnp.maximum(norm, 1.0), grads)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss, "grad_norm": norm}

    over = jax.shard_map(update, mesh=mesh(data=2, tensor=2), in_specs=(specs, opt_specs, P("data"), P("data")),
                         out_specs=(specs, opt_specs, P()), check_vma=False)  # fmt: skip
    return Step(lambda params, opt_state, x, y: over(params, opt_state, x, y), {"params": p, "opt_state": opt}, pairs(),
                lambda r: r[2]["loss"], lambda r: {"params": r[0], "opt_state": r[1]}, linear=12, presets=("fp8", "rowwise", "scaling_fp8"), **EXACT)  # fmt: skip


@step
def positions_divided():
    """Sequence parallelism on 2 x 2 devices: rematerialized layers in a scan, between whose dots each device has half of the positions."""
    specs = {"wte": P(), "wpe": P("tensor"), "layers": stacks(COLUMNS_AND_ROWS), "ln_f": {"scale": P(), "bias": P()}, "head": P()}

    def loss(p, x, y):
        h = p["wte"][x] + p["wpe"]
        gather = lambda x: lax.all_gather(x, "tensor", axis=1, tiled=True)
        scatter = lambda x: lax.psum_scatter(x, "tensor", scatter_dimension=1, tiled=True)
        block = jax.checkpoint(lambda p, x: split_block(p, x, gather, scatter))
        h, _ = lax.scan(lambda h, layer: (block(layer, h), None), h, p["layers"])
        return lax.pmean(next_token_loss(layer_norm(h, p["ln_f"]) @ p["head"], y), ("data", "tensor"))

    return inside(loss, stacked(split_params(layers=3)), specs, mesh(data=2, tensor=2), pairs(), [P("data", "tensor")] * 2, adamw(),
                  clip=1.0, linear=(11, 6, 6), presets=("tensorwise", "coat", "mxfp8"))  # fmt: skip


# ------------------------------------------------------------- weights and state divided


@step
def weights_gathered():
    """FSDP: a device has a quarter of each weight and of its moments, and gathers a layer in bf16 in the scan, again for its gradient."""
    p = llama_params(stacked=True, layers=3)
    specs = jax.tree.map(lambda _: P(None, "data"), p["layers"])
    specs = {"embed": P("data"), "norm": P(), "lm_head": P("data"), "layers": specs}

    def whole(x):
        return lax.all_gather(x.astype(jnp.bfloat16), "data", axis=0, tiled=True)

    def loss(p, tokens):
        x = whole(p["embed"])[tokens[:, :-1]]
        block = jax.checkpoint(lambda x, layer: llama_block(jax.tree.map(whole, layer), x))
        x, _ = lax.scan(lambda x, layer: (block(x, layer), None), x, p["layers"])
        logits = rms_norm(x, p["norm"].astype(x.dtype)) @ whole(p["lm_head"])
        return lax.pmean(next_token_loss(logits, tokens[:, 1:]), "data")

    return inside(loss, p, specs, mesh(data=4), {"tokens": tokens()}, [P("data")], adamw(weight_decay=0.1),
                  linear=(9, 5, 5), presets=("fp8", "coat", "scaling_fp8"), **BF16)  # fmt: skip


@step
def weights_gathered_and_split():
    """FSDP over two devices and columns and rows over the other two, in a scan; the optimizer and its norm are outside of shard_map."""
    p = stacked(split_params(layers=2))
    columns, rows = P(None, "data", "tensor"), P(None, "tensor", "data")
    layers = {"ln_1": {"scale": P(), "bias": P()}, "ln_2": {"scale": P(), "bias": P()}, "q": columns, "k": columns, "v": columns, "o": rows,
              "fc": columns, "fc_b": P(None, "tensor"), "proj": rows}  # fmt: skip
    specs = {"wte": P("data"), "wpe": P(), "layers": layers, "ln_f": {"scale": P(), "bias": P()}, "head": P("data", "tensor")}
    tx = optax.chain(optax.clip_by_global_norm(1.0), adamw(), optax.ema(0.9))

    def loss(p, x, y):
        gather = lambda w, axis=0: lax.all_gather(w, "data", axis=axis, tiled=True)
        h = gather(p["wte"])[x] + p["wpe"]
        sizes = {"o": 1, "proj": 1}

        def body(h, layer):
            layer = {k: gather(w, sizes.get(k, 0)) if k in ("q", "k", "v", "o", "fc", "proj") else w for k, w in layer.items()}
            return split_block(layer, h, lambda x: x, lambda x: lax.psum(x, "tensor")), None

        h, _ = lax.scan(body, h, p["layers"])
        logits = lax.all_gather(layer_norm(h, p["ln_f"]) @ gather(p["head"]), "tensor", axis=2, tiled=True)
        return lax.pmean(lax.pmean(next_token_loss(logits, y), "tensor"), "data")

    grads_of = jax.shard_map(jax.value_and_grad(loss), mesh=mesh(data=2, tensor=2), in_specs=(specs, P("data"), P("data")), out_specs=(P(), specs))

    def train(params, opt_state, x, y):
        value, grads = grads_of(params, x, y)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": value, "grad_norm": optax.global_norm(grads)}

    return Step(train, {"params": p, "opt_state": tx.init(p)}, pairs(), lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=6, presets=("tensorwise", "coat", "fp8_lm"), **EXACT)  # fmt: skip


@step
def moments_divided():
    """ZeRO by hand: gradients are one vector, of which each device gets a quarter of the sum; it has that quarter of the moments,
    and the others get its new weights."""
    p = llama_params()
    flat, tree_of = ravel_pytree(p)
    size = -(-flat.size // 4) * 4

    def update(params, m, v, count, tokens):
        loss, grads = jax.value_and_grad(lambda p: llama_loss(p, tokens))(params)
        flat = lambda tree: jnp.pad(ravel_pytree(tree)[0], (0, size - ravel_pytree(tree)[0].size))
        grads = lax.psum_scatter(flat(grads), "data", tiled=True) / 4
        mine = lax.dynamic_slice_in_dim(flat(params), lax.axis_index("data") * len(grads), len(grads))
        count = count + 1
        m, v = 0.9 * m + 0.1 * grads, 0.95 * v + 0.05 * grads * grads
        step = (m / (1 - 0.9 ** count.astype(jnp.float32))) / (jnp.sqrt(v / (1 - 0.95 ** count.astype(jnp.float32))) + 1e-3)
        new = lax.all_gather(mine - 3e-3 * step, "data", tiled=True)
        return tree_of(new[: ravel_pytree(params)[0].size]), m, v, count, lax.pmean(loss, "data")

    parts = P("data")
    over = jax.shard_map(update, mesh=mesh(data=4), in_specs=(P(), parts, parts, P(), parts), out_specs=(P(), parts, parts, P(), P()), check_vma=False)
    state = {"params": p, "m": jnp.zeros(size), "v": jnp.zeros(size), "count": jnp.int32(0)}
    return Step(lambda params, m, v, count, tokens: over(params, m, v, count, tokens), state, {"tokens": tokens()}, lambda r: r[4],
                lambda r: dict(zip(state, r)), linear=10, presets=("fp8", "coat", "switchback"), **EXACT)  # fmt: skip


@step
def apart_and_averaged():
    """Local SGD: each device has weights and momentum of its own, along a leading dimension; in every second step a branch averages
    them."""
    tx = optax.sgd(0.05, momentum=0.9, nesterov=True)
    one = gpt_params()
    p = jax.tree.map(lambda x: jnp.stack([x] * 4), one)
    opt = tx.init(p)

    def update(params, opt_state, count, tokens):
        params, opt_state = jax.tree.map(lambda x: x[0], (params, opt_state))
        loss, grads = jax.value_and_grad(lambda p: next_token_loss(gpt(p, tokens[:, :-1]), tokens[:, 1:]))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        params = optax.apply_updates(params, updates)
        params = lax.cond(count % 2 == 1, lambda p: lax.pmean(p, "data"), lambda p: p, params)
        return *jax.tree.map(lambda x: x[None], (params, opt_state)), count + 1, lax.pmean(loss, "data")

    parts = P("data")
    over = jax.shard_map(update, mesh=mesh(data=4), in_specs=(parts, parts, P(), parts), out_specs=(parts, parts, P(), P()), check_vma=False)
    state = {"params": p, "opt_state": opt, "count": jnp.int32(0)}
    return Step(lambda params, opt_state, count, tokens: over(params, opt_state, count, tokens), state, {"tokens": tokens()}, lambda r: r[3],
                lambda r: dict(zip(state, r)), linear=8, gap=0.08, presets=("tensorwise", "delayed", "bf16"), **EXACT)  # fmt: skip


# --------------------------------------------------- stages, experts and positions divided


def pipeline(p, tokens, block, micro=2):
    """Returns the loss of layers that are divided into stages; micro-batches go from one stage to the next in a loop."""
    stages, index = lax.axis_size("stage"), lax.axis_index("stage")
    x = p["embed"][tokens[:, :-1]].reshape(micro, -1, LENGTH, WIDTH)
    x = jnp.concatenate([x, jnp.zeros((stages - 1, *x.shape[1:]), x.dtype)])
    x = lax.pcast(x, "stage", to="varying")

    def tick(carry, new):
        h = jnp.where(index == 0, new, carry)
        h, _ = lax.scan(lambda h, layer: (block(layer, h), None), h, p["layers"])
        return lax.ppermute(h, "stage", [(i, i + 1) for i in range(stages - 1)]), h

    _, outs = lax.scan(tick, jnp.zeros_like(x[0]), x)
    outs = outs[stages - 1 :].reshape(-1, LENGTH, WIDTH)
    loss = next_token_loss(rms_norm(outs, p["norm"]) @ p["lm_head"], tokens[:, 1:])
    return lax.psum(jnp.where(index == stages - 1, loss, 0.0), "stage")


def stages_of(p):
    return {"embed": P(), "norm": P(), "lm_head": P(), "layers": jax.tree.map(lambda _: P("stage"), p["layers"])}


@step
def stages():
    """GPipe: four stages of a layer each, the optimizer inside."""
    p = llama_params(stacked=True, layers=4)
    return inside(functools.partial(pipeline, block=llama_block, micro=4), p, stages_of(p), mesh(stage=4), {"tokens": tokens()}, [P()], adamw(),
                  linear=5, gap=0.08, presets=("fp8", "delayed", "rowwise_gw_hp"))  # fmt: skip


@step
def stages_of_two_layers():
    """GPipe with two stages, beside data parallelism: each stage scans rematerialized layers, and the optimizer is outside."""
    p = llama_params(stacked=True, layers=4)
    tx = optax.chain(optax.clip_by_global_norm(1.0), adamw())
    specs = stages_of(p)
    loss = lambda p, tokens: lax.pmean(pipeline(p, tokens, jax.checkpoint(llama_block)), "data")
    grads_of = jax.shard_map(jax.value_and_grad(loss), mesh=mesh(data=2, stage=2), in_specs=(specs, P("data")), out_specs=(P(), specs))

    def train(state, tokens):
        value, grads = grads_of(state[0], tokens)
        updates, opt_state = tx.update(grads, state[1], state[0])
        return (optax.apply_updates(state[0], updates), opt_state), value

    return Step(train, {"state": (p, tx.init(p))}, {"tokens": tokens()}, lambda r: r[1], lambda r: {"state": r[0]},
                linear=(9, 5, 5), presets=("tensorwise", "coat", "fp8_lm"), **EXACT)  # fmt: skip


@step
def experts_exchanged():
    """Expert parallelism: a router, a capacity, an all_to_all to the devices of the experts and back, and balancing over all devices."""
    experts, capacity = 8, 12
    r = np.random.default_rng(0)
    p = llama_params(layers=1)
    p["moe"] = {"norm": jnp.ones(WIDTH), "router": normal(r, WIDTH, experts), "up": normal(r, experts, WIDTH, 48, scale=WIDTH**-0.5),
                "down": normal(r, experts, 48, WIDTH, scale=48**-0.5)}  # fmt: skip
    specs = jax.tree.map(lambda _: P(), p)
    specs["moe"]["up"] = specs["moe"]["down"] = P("expert")

    def mixture(p, x):
        probabilities = jax.nn.softmax(x @ p["router"])
        choice = jax.nn.one_hot(jnp.argmax(probabilities, -1), experts)
        place = (jnp.cumsum(choice, 0) - 1) * choice
        routes = choice[..., None] * jax.nn.one_hot(place, capacity) * (place < capacity)[..., None]
        sent = lax.all_to_all(jnp.einsum("tec,td->ecd", routes, x), "expert", 0, 1, tiled=True)
        done = jnp.einsum("ecf,efd->ecd", jax.nn.gelu(jnp.einsum("ecd,edf->ecf", sent, p["up"])), p["down"])
        back = lax.all_to_all(done, "expert", 1, 0, tiled=True)
        gate = jnp.sum(probabilities * choice, -1)
        balance = jnp.sum(lax.pmean(jnp.mean(choice, 0), "expert") * lax.pmean(jnp.mean(probabilities, 0), "expert"))
        return gate[:, None] * jnp.einsum("tec,ecd->td", routes, back), experts * balance

    def loss(p, tokens):
        x = llama_block(p["layers"][0], p["embed"][tokens[:, :-1]])
        out, balance = mixture(p["moe"], rms_norm(x, p["moe"]["norm"]).reshape(-1, WIDTH))
        x = x + out.reshape(x.shape)
        return lax.pmean(next_token_loss(rms_norm(x, p["norm"]) @ p["lm_head"], tokens[:, 1:]), "expert") + 0.01 * balance

    return inside(loss, p, specs, mesh(expert=4), {"tokens": tokens(batch=8)}, [P("expert")], adamw(), linear=8, presets=("fp8", "coat", "mxfp8"))


def ring_attend(q, k, v):
    """Attention where each device has some of the positions, and keys and values go around."""
    devices, me, length = lax.axis_size("ring"), lax.axis_index("ring"), q.shape[1]
    rows = me * length + jnp.arange(length)

    def turn(carry, i):
        peak, total, out, k, v = carry
        columns = (me - i) % devices * length + jnp.arange(length)
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / q.shape[-1] ** 0.5
        scores = jnp.where(rows[:, None] >= columns, scores, -1e9)
        new = jnp.maximum(peak, lax.stop_gradient(jnp.max(scores, -1)))
        weights, shrink = jnp.exp(scores - new[..., None]), jnp.exp(peak - new)
        out = shrink[..., None] * out + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
        around = lambda x: lax.ppermute(x, "ring", [(i, (i + 1) % devices) for i in range(devices)])
        return (new, shrink * total + jnp.sum(weights, -1), out, around(k), around(v)), None

    zero = jnp.swapaxes(q, 1, 2) * 0
    start = (zero[..., 0] - 1e30, zero[..., 0], zero, k, v)
    (_, total, out, _, _), _ = lax.scan(turn, start, jnp.arange(devices))
    return jnp.swapaxes(out / total[..., None], 1, 2).reshape(*q.shape[:2], -1)


@step
def keys_around_a_ring():
    """Context parallelism: two devices have half of the positions each, and keys and values go around in a loop."""
    p = split_params()
    specs = jax.tree.map(lambda _: P(), p)
    specs["wpe"] = P("ring")

    def loss(p, x, y):
        h = p["wte"][x] + p["wpe"]
        for layer in p["layers"]:
            h = split_block(layer, h, lambda x: x, lambda x: x, ring_attend)
        return lax.pmean(next_token_loss(layer_norm(h, p["ln_f"]) @ p["head"], y), ("data", "ring"))

    return inside(loss, p, specs, mesh(data=2, ring=2), pairs(), [P("data", "ring")] * 2, adamw(), linear=12, presets=("tensorwise", "blockwise", "delayed"))


@step
def heads_exchanged():
    """Ulysses: two devices exchange half of the positions of all heads for all positions of half of the heads; dropout has a key of
    its own on each device."""
    p = gpt_params()
    p.pop("wpe")
    specs = jax.tree.map(lambda _: P(), p)
    tx = adamw()

    def exchanged(q, k, v):
        apart = lambda x: lax.all_to_all(x, "heads", split_axis=2, concat_axis=1, tiled=True)
        out = attend(*map(apart, (q, k, v)))
        out = out.reshape(*out.shape[:2], -1, WIDTH // HEADS)
        return lax.all_to_all(out, "heads", split_axis=1, concat_axis=2, tiled=True).reshape(*q.shape[:2], -1)

    def loss_of(p, x, y, key):
        h = p["wte"][x]
        key = jax.random.fold_in(key, lax.axis_index(("data", "heads")))
        for i in range(2):
            layer = p[f"h{i}"]
            q, k, v = (heads_of(a, HEADS) for a in jnp.split(layer_norm(h, layer["ln_1"]) @ layer["attn"]["qkv"], 3, -1))
            h = h + exchanged(q, k, v) @ layer["attn"]["o"] + layer["attn"]["o_b"]
            out = jax.nn.gelu(layer_norm(h, layer["ln_2"]) @ layer["mlp"]["fc"] + layer["mlp"]["fc_b"]) @ layer["mlp"]["proj"]
            h = h + jnp.where(jax.random.bernoulli(jax.random.fold_in(key, i), 0.9, out.shape), out / 0.9, 0)
        return lax.pmean(next_token_loss(layer_norm(h, p["ln_f"]) @ p["wte"].T, y), ("data", "heads"))

    def update(params, opt_state, x, y, key):
        value, grads = jax.value_and_grad(loss_of)(params, x, y, key)
        updates, opt_state = tx.update(grads, opt_state, params)
        return value, optax.apply_updates(params, updates), opt_state

    rows = P("data", "heads")
    over = jax.shard_map(update, mesh=mesh(data=2, heads=2), in_specs=(P(), P(), rows, rows, P()), out_specs=P())
    for i in range(2):
        del p[f"h{i}"]["attn"]["qkv_b"], p[f"h{i}"]["mlp"]["proj_b"]
    state = {"params": p, "opt_state": tx.init(p), "key": jax.random.key(7)}
    return Step(lambda params, opt_state, x, y, key: over(params, opt_state, x, y, key), state, pairs(), lambda r: r[0],
                lambda r: {"params": r[1], "opt_state": r[2]}, keys=("key",), linear=8, presets=("fp8", "bf16", "scaling_fp8"), **EXACT)  # fmt: skip
