"""Images: patches by a convolution, and small convolutional networks."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from families import Step, step
from models import *


def tx():
    return optax.adamw(3e-3, eps=1e-6)


@step
def vision_transformer():
    """Patch embedding by a convolution with bias, a class token, learned positions, LayerNorm with biases."""
    opt = tx()

    def model(p, image):
        patches = jax.lax.conv_general_dilated(image, p["patch"]["w"], (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = (patches + p["patch"]["b"]).reshape(image.shape[0], -1, WIDTH)
        x = jnp.concatenate([jnp.broadcast_to(p["class"], (x.shape[0], 1, WIDTH)), x], 1) + p["wpe"]
        for name in ("h0", "h1"):
            b = p[name]
            h = layer_norm(x, b["ln_1"])
            q, k, v = (heads_of(a, HEADS) for a in jnp.split(h @ b["attn"]["qkv"] + b["attn"]["qkv_b"], 3, axis=-1))
            w = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5)
            x = x + jnp.einsum("bhqk,bkhd->bqhd", w, v).reshape(x.shape) @ b["attn"]["o"] + b["attn"]["o_b"]
            h = jax.nn.gelu(layer_norm(x, b["ln_2"]) @ b["mlp"]["fc"] + b["mlp"]["fc_b"], approximate=False)
            x = x + h @ b["mlp"]["proj"] + b["mlp"]["proj_b"]
        return layer_norm(x, p["ln_f"])[:, 0] @ p["head"]

    def train(params, opt_state, image, label):
        loss, grads = jax.value_and_grad(lambda p: class_loss(model(p, image), label))(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss}

    r, p = np.random.default_rng(0), gpt_params()
    del p["wte"]
    p |= {"patch": {"w": normal(r, 4, 4, 3, WIDTH, scale=48**-0.5), "b": jnp.zeros(WIDTH)}, "class": jnp.zeros(WIDTH),
          "wpe": normal(r, 5, WIDTH, scale=0.02), "head": normal(r, WIDTH, 8)}  # fmt: skip
    image, label = images()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"image": image, "label": label}, lambda r: r[2]["loss"],
                lambda r: {"params": r[0], "opt_state": r[1]}, bound=1e-2)  # fmt: skip


@step
def residual_network():
    """Strided and padded convolutions, batch statistics as state, max and mean pooling."""

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x, train=True):
            norm = lambda: nn.BatchNorm(use_running_average=not train, momentum=0.9)
            x = nn.relu(norm()(nn.Conv(8, (3, 3), use_bias=False)(x)))
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
            h = nn.relu(norm()(nn.Conv(16, (3, 3), strides=(2, 2), use_bias=False)(x)))
            x = nn.Conv(16, (1, 1), strides=(2, 2))(x) + nn.Conv(16, (3, 3), feature_group_count=2)(h)
            return nn.Dense(8)(x.mean((1, 2)))

    net, opt = Net(), optax.sgd(0.05, momentum=0.9)

    def train(params, stats, opt_state, image, label):
        def objective(p):
            logits, new = net.apply({"params": p, "batch_stats": stats}, image, mutable=["batch_stats"])
            return class_loss(logits, label), new["batch_stats"]

        (loss, stats_), grads = jax.value_and_grad(objective, has_aux=True)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), stats_, opt_state, loss

    image, label = images()
    v = jax.jit(net.init)(jax.random.key(0), image[0])
    state = {"params": v["params"], "stats": v["batch_stats"], "opt_state": opt.init(v["params"])}
    return Step(train, state, {"image": image, "label": label}, lambda r: r[3], lambda r: dict(zip(state, r)))


@step
def mixer_on_patches():
    """MLP-Mixer: patches by reshapes, dots along the tokens and along the channels."""
    opt = tx()

    def train(params, opt_state, image, label):
        def objective(p):
            b = image.shape[0]
            x = image.reshape(b, 4, 2, 4, 2, 3).transpose(0, 1, 3, 2, 4, 5).reshape(b, 16, 12) @ p["embed"]
            for l in p["layers"]:
                h = jnp.swapaxes(layer_norm(x, l["n1"]), 1, 2)
                x = x + jnp.swapaxes(jax.nn.gelu(h @ l["t1"]) @ l["t2"], 1, 2)
                x = x + jax.nn.gelu(layer_norm(x, l["n2"]) @ l["c1"]) @ l["c2"]
            return class_loss(jnp.mean(x, 1) @ p["head"], label)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    r = np.random.default_rng(0)
    norm = lambda: {"scale": jnp.ones(WIDTH), "bias": jnp.zeros(WIDTH)}
    layer = lambda: {"n1": norm(), "n2": norm(), "t1": normal(r, 16, 32), "t2": normal(r, 32, 16), "c1": normal(r, WIDTH, 64), "c2": normal(r, 64, WIDTH)}
    p = {"embed": normal(r, 12, WIDTH), "layers": [layer(), layer()], "head": normal(r, WIDTH, 8)}
    image, label = images()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"image": image, "label": label}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=(9, 8, 9))  # fmt: skip


@step
def denoiser():
    """A U-Net in one dimension and two: overlapping windows with strides, dilation and one-sided padding, of a batch that is not the first dimension."""

    def conv(x, w, strides, padding, dilation=1):
        return jax.lax.conv_general_dilated(x, w, strides, padding, rhs_dilation=(dilation,) * len(strides), dimension_numbers=("HWNC", "HWIO", "HWNC"))

    opt = tx()

    def train(params, opt_state, image, label):
        def objective(p):
            x = jnp.moveaxis(image, 0, 2)
            top = jax.nn.silu(conv(x, p["first"], (1, 1), "SAME"))
            half = jax.nn.silu(conv(top, p["down"], (2, 2), [(1, 0), (1, 0)]))
            half = half + jax.nn.silu(conv(half, p["middle"], (1, 1), "SAME", 2))
            up = jax.image.resize(half, (*top.shape[:3], half.shape[3]), "nearest")
            x = jax.nn.silu(conv(jnp.concatenate([up, top], -1), p["join"], (1, 1), "SAME"))
            return class_loss(x.mean((0, 1)) @ p["head"], label)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    r = np.random.default_rng(0)
    p = {"first": normal(r, 3, 3, 3, 16, scale=0.2), "down": normal(r, 3, 3, 16, 32, scale=0.1), "middle": normal(r, 3, 3, 32, 32, scale=0.06),
         "join": normal(r, 2, 2, 48, 16, scale=0.1), "head": normal(r, 16, 8)}  # fmt: skip
    image, label = images()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"image": image, "label": label}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=(4, 3, 4))  # fmt: skip


@step
def layers_of_convolutions():
    """Layers that are written as convolutions: patches, 1x1 with and without strides; and kernels for each channel."""

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.gelu(nn.Conv(WIDTH, (2, 2), strides=(2, 2))(x))
            h = nn.LayerNorm()(nn.Conv(WIDTH, (3, 3), feature_group_count=WIDTH)(x))
            x = x + nn.Conv(WIDTH, (1, 1))(nn.gelu(nn.Conv(2 * WIDTH, (1, 1))(h)))
            x = nn.gelu(nn.Conv(WIDTH, (1, 1), strides=(2, 2), use_bias=False)(x))
            return nn.Dense(8)(x.mean((1, 2)))

    net, opt = Net(), tx()

    def train(params, opt_state, image, label):
        loss, grads = jax.value_and_grad(lambda p: class_loss(net.apply(p, image), label))(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    image, label = images()
    p = jax.jit(net.init)(jax.random.key(0), image[0])
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"image": image, "label": label}, lambda r: r[2],
                lambda r: {"params": r[0], "opt_state": r[1]}, linear=(4, 3, 4))  # fmt: skip


@step
def waveform_autoencoder():
    """Convolutions in one dimension: with strides, in groups with and without strides, and transposed ones, one of them in groups."""

    def conv(x, w, stride=1, groups=1):
        return jax.lax.conv_general_dilated(x, w, (stride,), "SAME", dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=groups)

    def spread(x, w, stride, groups=1):
        """The transpose of a convolution with a stride of as many taps as `w` has, less one or two at the ends."""
        taps = w.shape[0]
        return jax.lax.conv_general_dilated(x, w, (1,), [(taps - 1 - (taps - stride) // 2, taps - 1 - (taps - stride + 1) // 2)], lhs_dilation=(stride,),
                                            dimension_numbers=("NWC", "WIO", "NWC"), feature_group_count=groups)  # fmt: skip

    opt = tx()

    def train(params, opt_state, image):
        wave = image.reshape(image.shape[0], -1, 3)

        def objective(p):
            x = jax.nn.gelu(conv(wave, p["first"], 2))
            x = jax.nn.gelu(conv(x, p["down"], 2, groups=2))
            x = x + jax.nn.gelu(conv(x, p["position"], groups=4))
            x = jax.nn.gelu(spread(x, p["up"], 2, groups=4))
            x = jax.nn.gelu(spread(x, p["last"], 2))
            return jnp.mean((x @ p["out"] - wave) ** 2)

        loss, grads = jax.value_and_grad(objective)(params)
        updates, opt_state = opt.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, loss

    r = np.random.default_rng(0)
    p = {"first": normal(r, 5, 3, 32, scale=0.2), "down": normal(r, 4, 16, 64, scale=0.1), "position": normal(r, 9, 16, 64, scale=0.08),
         "up": normal(r, 4, 16, 64, scale=0.1), "last": normal(r, 5, 64, 32, scale=0.08), "out": normal(r, 32, 3)}  # fmt: skip
    image, _ = images()
    return Step(train, {"params": p, "opt_state": opt.init(p)}, {"image": image}, lambda r: r[2], lambda r: {"params": r[0], "opt_state": r[1]}, linear=(5, 4, 5))
