"""Loops over layers: the values that they read from outside, how they index their weights, nested
loops. Every tensor has one scale for each layer that it belongs to."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
from families import Step, step
from models import STEPS, normal

INPUTS, OUTPUTS, LAYERS = 16, 4, 3
relu = jax.nn.relu


def trained(loss, params, **options):
    opt = optax.adam(3e-3, eps=1e-6)

    def train(params, opt_state, x, y):
        value, grads = jax.value_and_grad(lambda p: jnp.mean((loss(p, x) @ p["out"] - y) ** 2))(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, value

    r = np.random.default_rng(7)
    data = {"x": r.normal(0, 1, (STEPS, 32, INPUTS)).astype(np.float32), "y": r.normal(0, 1, (STEPS, 32, OUTPUTS)).astype(np.float32)}
    return Step(train, {"params": params, "opt_state": opt.init(params)}, data, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, gap=0.5, **options)  # fmt: skip


def weights(seed=0, **layers):
    """Returns square weights with leading dimensions for their layers."""
    r = np.random.default_rng(seed)
    params = {name: normal(r, *lead, INPUTS, INPUTS, scale=INPUTS**-0.5) for name, lead in layers.items()}
    return params | {"out": normal(r, INPUTS, OUTPUTS)}


def scan(block, x, layers):
    return jax.lax.scan(lambda x, w: (block(x, w), None), x, layers)[0]


def of(layers, *names):
    """Returns the shapes of the scales of tensors that have an entry for each of `layers`."""
    return {f"params['{name}'].{tensor}": layers for name in names for tensor in ("activation", "gradient")}


# ------------------------------------------------ what comes from outside of the loop


@step
def cross_attention():
    """The keys of every layer read an encoder's output."""

    def loss(p, x):
        memory = relu(x @ p["encoder"])
        return scan(lambda h, w: h + relu(h @ w["query"] + memory @ w["key"]), x, {n: p[n] for n in ("query", "key")})

    scales = {"['key'].activation": (), "['key'].gradient": (LAYERS,), "['query'].activation": (LAYERS,)}
    return trained(loss, weights(encoder=(), query=(LAYERS,), key=(LAYERS,)), scales=scales)


@step
def cross_attention_remat():
    """The same in another layout, recomputed in the backward pass."""

    def loss(p, x):
        memory = relu(x @ p["encoder"]).reshape(2, -1, INPUTS)
        block = jax.checkpoint(lambda h, w: h + relu(h @ w["query"] + memory.reshape(x.shape) @ w["key"]))
        return scan(block, x, {n: p[n] for n in ("query", "key")})

    scales = {"['key'].activation": (), "['key'].gradient": (LAYERS,), "['query'].activation": (LAYERS,)}
    return trained(loss, weights(encoder=(), query=(LAYERS,), key=(LAYERS,)), scales=scales)


@step
def experts():
    """Every expert reads the same tokens, in a scan over the experts."""

    def loss(p, x):
        gates = jax.nn.softmax(x @ p["gate"])
        h = relu(x @ p["encoder"])

        def body(sum, expert):
            up, down, gate = expert
            return sum + gate[:, None] * (relu(h @ up) @ down), None

        return jax.lax.scan(body, jnp.zeros_like(x), (p["up"], p["down"], gates.T))[0]

    params = weights(encoder=(), up=(LAYERS,), down=(LAYERS,)) | {"gate": normal(np.random.default_rng(1), INPUTS, LAYERS)}
    return trained(loss, params, scales={"['up'].activation": (), "['up'].gradient": (LAYERS,)} | of((LAYERS,), "down"))


@step
def conditioning():
    """One embedding modulates every layer."""

    def loss(p, x):
        condition = relu(jnp.mean(x, 0, keepdims=True) @ p["encoder"])
        return scan(lambda h, w: h + relu((h * (1 + condition @ w["modulate"])) @ w["layer"]), x, {n: p[n] for n in ("modulate", "layer")})

    scales = {"['modulate'].activation": (), "['modulate'].gradient": (LAYERS,)} | of((LAYERS,), "layer")
    return trained(loss, weights(encoder=(), modulate=(LAYERS,), layer=(LAYERS,)), scales=scales)


@step
def shared_weight():
    """All layers share one weight, with different activations."""

    def loss(p, x):
        return scan(lambda h, w: h + relu(relu(h @ w) @ p["shared"]), x, p["layer"])

    return trained(loss, weights(shared=(), layer=(LAYERS,)), scales=of((LAYERS,), "shared", "layer") | {"['shared'].weight": ()})


# --------------------------------------------------------------------- loops in loops

BLOCKS = (2, LAYERS)


def gated(h, w):
    return h + (jax.nn.silu(h @ w["gate"]) * (h @ w["up"])) @ w["down"]


def gated_weights(layers):
    params = weights(gate=layers, up=layers, down=layers)
    return {"layers": {name: 0.5 * params.pop(name) for name in ("gate", "up", "down")}, **params}


def gated_scales(layers):
    return {f"['{name}'].{tensor}": layers for name in ("gate", "down") for tensor in ("activation", "gradient")} | {"['down'].smooth": (*layers, INPUTS)}


@step
def nested_scans():
    """Blocks of layers are a scan in a scan."""

    def loss(p, x):
        return scan(lambda h, block: scan(gated, h, block), x, p["layers"])

    one = ("smooth_swiglu.scaling=delayed", "smooth_swiglu.initial=one")
    return trained(loss, gated_weights(BLOCKS), scales=gated_scales(BLOCKS), settings={"scaling_fp8": one})


@step
def nested_scans_remat():
    """The same, with blocks and layers recomputed in the backward pass."""

    def loss(p, x):
        return scan(jax.checkpoint(lambda h, block: scan(jax.checkpoint(gated), h, block)), x, p["layers"])

    return trained(loss, gated_weights(BLOCKS), scales=gated_scales(BLOCKS))


# ------------------------------------------------- loops that cut their weights themselves


def indexed(run, layers=(LAYERS,), **options):
    params = weights(layer=layers)
    params["layer"] *= 0.5
    return trained(run, params, scales=of(layers, "layer"), **options)


def block(p, h, *index):
    return h + relu(h @ p["layer"][index])


@step
def scan_over_indices():
    return indexed(lambda p, x: scan(lambda h, i: block(p, h, i), x, jnp.arange(LAYERS)))


@step
def scan_over_indices_remat():
    run = lambda p, x: scan(jax.checkpoint(lambda h, i: block(p, h, i)), x, jnp.arange(LAYERS))
    return indexed(run)


@step
def fori_from_the_last_layer():
    return indexed(lambda p, x: jax.lax.fori_loop(0, LAYERS, lambda i, h: block(p, h, -1 - i), x))


@step
def dynamic_index():
    layer = lambda p, i: jax.lax.dynamic_index_in_dim(p["layer"], i, keepdims=False)
    return indexed(lambda p, x: jax.lax.fori_loop(0, LAYERS, lambda i, h: h + relu(h @ layer(p, i)), x))


@step
def nested_indices():
    inner = lambda p, i, h: jax.lax.fori_loop(0, LAYERS, lambda j, h: block(p, h, i, j), h)
    return indexed(lambda p, x: jax.lax.fori_loop(0, 2, lambda i, h: inner(p, i, h), x), BLOCKS)


@step
def layers_in_an_order():
    """The iterations visit the layers in the order of a table."""
    return indexed(lambda p, x: scan(lambda h, i: block(p, h, i), x, jnp.array([2, 0, 1])))


@step
def backwards_remat():
    """The recomputation reads its index behind a barrier."""
    run = lambda p, x: scan(jax.checkpoint(lambda h, i: block(p, h, i)), x, jnp.arange(LAYERS)[::-1])
    return indexed(run)


def index_of_two_loops(layer):
    """The forward pass stacks the weights of each loop for the backward pass: these stacks are the
    weights again and have no scales of their own."""
    inner = lambda p, i, h: scan(lambda h, j: layer(p, h, i, j), h, jnp.arange(2))
    made = indexed(lambda p, x: scan(lambda h, i: inner(p, i, h), x, jnp.arange(2)[::-1]), (4,))
    made.scales = of((2, 2), "layer") | {"['layer'].weight": (4, 1, 1)}
    return made


@step
def sum_of_two_counters():
    return index_of_two_loops(lambda p, h, i, j: block(p, h, 2 * i + j))


@step
def sum_of_two_counters_remat():
    return index_of_two_loops(jax.checkpoint(lambda p, h, i, j: block(p, h, 2 * i + j)))


@step
def taken():
    """A gather of one layer, with a check of its index."""
    layer = lambda p, i: jnp.take(p["layer"], i, 0)
    return indexed(lambda p, x: jax.lax.fori_loop(0, LAYERS, lambda i, h: h + relu(h @ layer(p, i)), x))


@step
def taken_at():
    layer = lambda p, i: p["layer"].at[i].get(mode="fill", fill_value=0)
    return indexed(lambda p, x: scan(lambda h, i: h + relu(h @ layer(p, i)), x, jnp.arange(LAYERS)))


@step
def changed_in_the_loop():
    """The loop changes the weight before it reads it."""
    normalized = lambda w: w / jnp.linalg.norm(w, axis=0)
    made = trained(lambda p, x: scan(lambda h, w: h + relu(h @ normalized(w)), x, p["layer"]), weights(layer=(LAYERS,)))
    made.scales = of((LAYERS,), "layer")
    return made
