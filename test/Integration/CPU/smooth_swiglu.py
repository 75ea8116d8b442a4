"""Smooth-SwiGLU: gated units are found in all their spellings, the transformation alone
changes no bit, and it keeps the accuracy that an outlier destroys.

    smooth_swiglu.py FP8_OPT FP8_RUN FOLDER CASE...
"""

import json
import pathlib
import re
import sys
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file, save_file

import fp8_testing as t
import gated_mlp

t.compile_quickly()
WIDTH, FFN, TOKENS, OUT = 16, 24, 12, 8


def normal(seed, *shape, std=1.0):
    return (np.random.default_rng(seed).standard_normal(shape) * std).astype(np.float32)


def sgd_step(model, rate=1.0):
    """Returns a step of plain gradient descent on sum(sin(model(p, x) @ head))."""

    def loss(p, x):
        return jnp.sum(jnp.sin(model(p, x).astype(jnp.float32) @ p["head"]))

    def step(p, x):
        value, grads = jax.value_and_grad(loss)(p, x)
        return jax.tree.map(lambda w, g: w - rate * g, p, grads), value

    return step


def lowered(function, *args):
    return jax.jit(function).lower(*args)


def optimize(x, text, folder, *passes):
    source = folder / "in.mlir"
    source.write_text(text)
    return t.run([x.fp8_opt, source, *passes]).stdout


def gated_units(x, text, folder, recipe="tensorwise", *sets):
    """Returns the gated units of the verdict report."""
    report = folder / "verdicts.json"
    settings = " ".join(f"set={s}" for s in ("smooth_swiglu.granularity=channel", *sets))
    optimize(x, text, folder, "--fp8-import", f"--fp8-quantize=recipe={recipe} {settings} report={report}", "-o", "/dev/null")
    return json.loads(report.read_text())["gated_units"]


# ---------------------------------------------------------------- recognition


def two(p, x, f):
    """Gate and linear layer are two arrays; `f` computes the product."""
    return f(x @ p["a"], x @ p["b"]) @ p["c"]


def halves(p, x, f):
    a, b = jnp.split(x @ p["ab"], 2, axis=-1)
    return f(b, a) @ p["c"]


def alternating(p, x, f):
    both = x @ p["ab"]
    return f(both[..., ::2], both[..., 1::2]) @ p["c"]


def stacked(p, x, f):
    both = jnp.einsum("...i,ikj->k...j", x, p["abk"])
    return f(both[0], both[1]) @ p["c"]


def across(p, x, f):
    """Weights are transposed, as in PyTorch."""
    return f(x @ p["at"].T, x @ p["bt"].T) @ p["ct"].T


def biased(p, x, f):
    return f(x @ p["a"] + p["u"], x @ p["b"] + p["v"]) @ p["c"]


def in_bf16(p, x, f):
    low = jax.tree.map(lambda w: w.astype(jnp.bfloat16), p)
    x = x.astype(jnp.bfloat16)
    product = f((x @ low["a"]).astype(jnp.float32), (x @ low["b"]).astype(jnp.float32))
    return product.astype(jnp.bfloat16) @ low["c"]


def rematerialized(p, x, f):
    return jax.checkpoint(lambda p, x: two(p, x, f))(p, x)


def flat_tokens(p, x, f):
    """The down projection reads the product in another shape."""
    y = f(x @ p["a"], x @ p["b"]).reshape(-1, FFN) @ p["c"]
    return y.reshape(*x.shape[:-1], WIDTH)


PARTS = {
    two: ("a", "b", "c"),
    halves: ("ab", "c"),
    alternating: ("ab", "c"),
    stacked: ("abk", "c"),
    across: ("at", "bt", "ct"),
    biased: ("a", "b", "c", "u", "v"),
    in_bf16: ("a", "b", "c"),
    rematerialized: ("a", "b", "c"),
    flat_tokens: ("a", "b", "c"),
}
SHAPES = {
    "a": (WIDTH, FFN), "b": (WIDTH, FFN), "c": (FFN, WIDTH), "ab": (WIDTH, 2 * FFN), "abk": (WIDTH, 2, FFN),
    "at": (FFN, WIDTH), "bt": (FFN, WIDTH), "ct": (WIDTH, FFN), "u": (FFN,), "v": (FFN,), "head": (WIDTH, OUT),
}  # fmt: skip

SPELLINGS = {
    "silu": [
        lambda a, b: jax.nn.silu(a) * b,
        lambda a, b: b * (a * jax.nn.sigmoid(a)),
        lambda a, b: (a * b) / (1 + jnp.exp(-a)),
        lambda a, b: a * (b * (0.5 * jnp.tanh(0.5 * a) + 0.5)),
        lambda a, b: jnp.where(a > 0, a / (1 + jnp.exp(-a)), a * jnp.exp(a) / (1 + jnp.exp(a))) * b,
    ],
    "gelu": [
        lambda a, b: jax.nn.gelu(a, approximate=False) * b,
        lambda a, b: b * a * 0.5 * (1 + jax.scipy.special.erf(a / np.sqrt(2).astype(np.float32))),
    ],
    "gelu_tanh": [lambda a, b: jax.nn.gelu(a) * b],
    "quick_gelu": [lambda a, b: a * jax.nn.sigmoid(1.702 * a) * b],
    "relu": [
        lambda a, b: jax.nn.relu(a) * b,
        lambda a, b: jnp.where(a > 0, a, 0) * b,
        lambda a, b: 0.5 * (a + jnp.abs(a)) * b,
    ],
    "sigmoid": [lambda a, b: jax.nn.sigmoid(a) * b],
    "identity": [lambda a, b: a * b],
}


def parameters(names, seed=0):
    shapes = {name: SHAPES[name] for name in (*names, "head")}
    return {name: normal(seed + i, *shape, std=shape[0] ** -0.5) for i, (name, shape) in enumerate(shapes.items())}


def check_recognition(x):
    """Finds every spelling in one layout, and one spelling in every layout; names and the order of
    arguments and results do not matter."""
    cases = [(two, name, f) for name, fs in SPELLINGS.items() for f in fs]
    cases += [(layout, "silu", SPELLINGS["silu"][0]) for layout in PARTS if layout is not two]
    data = normal(99, 2, TOKENS // 2, WIDTH)
    for number, (layout, name, f) in enumerate(cases):
        p = parameters(PARTS[layout])
        step = lowered(sgd_step(lambda p, x: layout(p, x, f)), p, data)
        what = f"{name}, spelling {number}, {layout.__name__}"
        units = gated_units(x, step.as_text(debug_info=True), x.folder)
        assert len(units) == 1 and "reason" not in units[0], f"{what}: expected one smoothed unit but got {units}"
        unit = units[0]
        assert unit["activation"] == name and unit["channels"] == FFN, f"{what}: got {unit}"
        if layout is not two and number % 2:
            continue
        stripped, order, _ = t.strip_names(step.as_text(), seed=number)
        nameless = gated_units(x, stripped, x.folder)
        same = lambda units: [{k: u[k] for k in ("activation", "channels", "granularity")} for u in units]
        assert same(units) == same(nameless), f"{what}: expected the same without names but got {nameless}"
        # arg<N> of the stripped step is argument order[N] of the original.
        names = [path for path in sorted(p)] + ["x"]
        for part in ("gate", "linear", "down"):
            old, new = unit[part], nameless[0][part]
            argument = names[order[int(new["path"].removeprefix("arg"))]]
            assert f"['{argument}']" in old["path"] and {**old, "path": ""} == {**new, "path": ""}, f"{what}: expected {old} but got {new}"
    print(f"{len(cases)} spellings and layouts of gated units found")


def check_channels(x):
    """The report gives the channels' dimensions, starts and strides."""
    f = SPELLINGS["silu"][0]
    want = {
        halves: {"gate": ("ab", [1], [0, FFN], 1), "linear": ("ab", [1], [0, 0], 1), "down": ("c", [0], [0, 0], 1)},
        alternating: {"gate": ("ab", [1], [0, 0], 2), "linear": ("ab", [1], [0, 1], 2), "down": ("c", [0], [0, 0], 1)},
        stacked: {"gate": ("abk", [2], [0, 0, 0], 1), "linear": ("abk", [2], [0, 1, 0], 1), "down": ("c", [0], [0, 0], 1)},
        across: {"gate": ("at", [0], [0, 0], 1), "linear": ("bt", [0], [0, 0], 1), "down": ("ct", [1], [0, 0], 1)},
        biased: {"linear": ("b", [1], [0, 0], 1), "linear_bias": ("v", [0], [0], 1)},
    }
    for layout, parts in want.items():
        p = parameters(PARTS[layout])
        text = lowered(sgd_step(lambda p, x: layout(p, x, f)), p, normal(99, TOKENS, WIDTH)).as_text(debug_info=True)
        (unit,) = gated_units(x, text, x.folder)
        for part, (array, dims, start, stride) in parts.items():
            got = unit[part]
            assert f"['{array}']" in got["path"] and (got["dimensions"], got["start"], got["stride"]) == (dims, start, stride), (
                f"{layout.__name__}: expected {part} at {array}, {dims}, {start}, {stride} but got {got}"
            )


def check_flax(x):
    """Two modules of Flax, behind norms and in a residual stream."""

    class Block(nn.Module):
        act: str

        @nn.compact
        def __call__(self, x):
            y = nn.RMSNorm()(x)
            gate, linear = nn.Dense(FFN, use_bias=False)(y), nn.Dense(FFN)(y)
            return x + nn.Dense(WIDTH, use_bias=False)(getattr(nn, self.act)(gate) * linear)

    class Model(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.Dense(OUT)(nn.LayerNorm()(Block("gelu")(Block("silu")(x))))

    model, data = Model(), normal(5, TOKENS, WIDTH)
    p = model.init(jax.random.key(0), data)

    def step(p, x):
        value, grads = jax.value_and_grad(lambda p: jnp.sum(jnp.sin(model.apply(p, x))))(p)
        return jax.tree.map(lambda w, g: w - 0.1 * g, p, grads), value

    units = gated_units(x, lowered(step, p, data).as_text(debug_info=True), x.folder)
    found = [(u["activation"], "linear_bias" in u, "reason" in u) for u in units]
    assert found == [("silu", True, False), ("gelu_tanh", True, False)], f"expected two units with biases but got {units}"


# ------------------------------------------------------- the transformation alone


def run_function(x, text, folder, inputs):
    """Returns the results of main by path; `inputs` has the arguments by path."""
    source = folder / "function.mlir"
    source.write_text(text)
    save_file({name: np.ascontiguousarray(v) for name, v in inputs.items()}, str(folder / "inputs.safetensors"))
    t.run([x.fp8_run, source, "--entry", "main", "--inputs", folder / "inputs.safetensors", "--outputs", folder / "outputs.safetensors", "--quiet"])
    return load_file(folder / "outputs.safetensors")


def smooth_alone(x, text, *sets):
    """Returns the smoothed step, with all dots in high precision."""
    settings = " ".join(f"set=smooth_swiglu.{s}" for s in sets)
    smoothed = optimize(x, text, x.folder, "--fp8-import", f"--fp8-resolve-recipe=recipe=none {settings}", "--fp8-smooth-swiglu=all-dots")
    # The run that follows has a recipe of its own.
    return re.sub(r"fp8\.recipe = #fp8\.recipe<.*>(, )?", "", smoothed, count=1)


def named(p, data):
    return {**{f"p['{name}']": value for name, value in p.items()}, "x": data}


def together(models, rate=1.0):
    """Returns one step of several models, {name: (model, parameters, data)}, each with its own
    loss, and its arguments. The gradients of a model's parameters do not depend on the other
    models."""

    def losses(p, x):
        return [jnp.sum(jnp.sin(m(p[n], x[n]).astype(jnp.float32) @ p[n]["head"])) for n, (m, _, _) in models.items()]

    def step(p, x):
        def total(p):
            values = losses(p, x)
            return sum(values), values

        (value, values), grads = jax.value_and_grad(total, has_aux=True)(p)
        return jax.tree.map(lambda w, g: w - rate * g, p, grads), value, values

    p, data = ({name: entry[i] for name, entry in models.items()} for i in (1, 2))
    inputs = {f"p['{n}']['{k}']": v for n in models for k, v in p[n].items()}
    return lowered(step, p, data).as_text(debug_info=True), {**inputs, **{f"x['{n}']": v for n, v in data.items()}}


def check_exact(x):
    """With powers of two every result of a step keeps its bits: the loss and, through the new
    parameters, all gradients."""
    data, f = normal(7, 2, TOKENS // 2, WIDTH), SPELLINGS["silu"][0]
    layouts = (two, halves, rematerialized, flat_tokens, in_bf16)
    models = {m.__name__: (lambda p, x, m=m: m(p, x, f), parameters(PARTS[m], seed=3), data) for m in layouts}
    text, inputs = together(models)
    plain = run_function(x, text, x.folder, inputs)
    assert all(np.isfinite(value).all() for value in plain.values())
    for granularity in ("channel", "token"):
        smoothed = smooth_alone(x, text, f"granularity={granularity}")
        # The product, which is rescaled again if it is recomputed, the weight or the gradient, and
        # two results.
        found, want = smoothed.count("fp8.rescale"), 4 * len(layouts) + 1
        assert found == want, f"{granularity}: expected {want} rescalings but got {found}"
        got = run_function(x, smoothed, x.folder, inputs)
        assert got.keys() == plain.keys(), f"expected {sorted(plain)} but got {sorted(got)}"
        for name, want in plain.items():
            assert want.tobytes() == got[name].tobytes(), (
                f"{granularity}: expected the bits of {name}, but the largest difference is {np.max(np.abs(want - got[name]))}"
            )


def check_bound(x):
    """With other factors the error of y = (h/s) · (s w) is at most 4 · 2^-24 · sum |h w|: here for
    one product, so that nothing else rounds."""
    rng = np.random.default_rng(11)
    p = {"a": np.float32([[1.0]]), "b": np.float32([[1.0]]), "c": normal(12, 1, 64), "head": np.eye(64, dtype=np.float32)}
    data = np.exp(rng.uniform(-3, 3, (4096, 1))).astype(np.float32)

    def model(p, x):
        return ((x @ p["a"]) * (x @ p["b"])) @ p["c"]

    # The step returns the result itself too.
    def step(p, x):
        value, grads = jax.value_and_grad(lambda p: jnp.sum(jnp.sin(model(p, x) @ p["head"])))(p)
        return jax.tree.map(lambda w, g: w - g, p, grads), value, model(p, x)

    text = lowered(step, p, data).as_text(debug_info=True)
    want = np.float64(data * data) @ np.float64(p["c"])
    for granularity in ("channel", "token"):
        smoothed = smooth_alone(x, text, f"granularity={granularity}", "scale=exact")
        got = run_function(x, smoothed, x.folder, named(p, data))["result[2]"]
        error = np.max(np.abs(got - want) / (2.0**-24 * np.abs(want)))
        print(f"scale exact, {granularity}: at most {error:.2f} of 2^-24 |h w|")
        assert 0 < error <= 4, f"expected an error of 0 to 4 but got {error}"


def check_guards(x):
    """Channels and tokens of zeros, and those with NaN and infinity, give the same results as
    without smoothing."""
    f, models = (lambda a, b: jax.nn.relu(a) * b), {}
    for what, poison in {"zero": 0.0, "nan": np.nan, "inf": np.inf}.items():
        p, data = parameters(PARTS[two], seed=5), np.abs(normal(8, TOKENS, WIDTH))
        if what == "zero":
            p["b"][:, 3] = 0
            data[2] = 0
        else:
            data[2, 1] = poison
        models[what] = (lambda p, x: two(p, x, f), p, data)
    text, inputs = together(models)
    plain = run_function(x, text, x.folder, inputs)
    for granularity in ("channel", "token"):
        got = run_function(x, smooth_alone(x, text, f"granularity={granularity}"), x.folder, inputs)
        for name, want in plain.items():
            finite = np.isfinite(want)
            if what := re.match(r"result\[0\]\['(\w+)'\]", name):
                assert finite.all() == (what[1] == "zero"), f"expected what is not finite to reach {name} alone"
            assert np.array_equal(finite, np.isfinite(got[name])), f"{granularity}: {name} is finite elsewhere"
            assert np.array_equal(want[finite], got[name][finite]), f"{granularity}: {name} differs"


# -------------------------------------------------------------------------- loops


def scanned(p, x, wrap, f=SPELLINGS["silu"][0], unroll=1):
    layers = {name: p[name] for name in ("la", "lb", "lc")}

    def layer(x, w):
        return x + f(x @ w["la"], x @ w["lb"]) @ w["lc"], None

    return jax.lax.scan(wrap(layer), x, layers, unroll=unroll)[0]


def scan_parameters(layers=3):
    p = {name: normal(i, layers, *SHAPES[name[1]], std=0.2) for i, name in enumerate(("la", "lb", "lc"))}
    return {**p, "head": normal(9, WIDTH, OUT)}


def check_loops(x):
    """Layers in a loop are exact too, and each tensor is rescaled where that costs least."""
    wraps = {"scan": lambda f: f, "remat": jax.checkpoint}
    data = normal(6, TOKENS, WIDTH)
    models = {n: (lambda p, x, w=w: scanned(p, x, w), scan_parameters(), data) for n, w in wraps.items()}
    text, inputs = together(models)
    plain = run_function(x, text, x.folder, inputs)
    for granularity in ("channel", "token"):
        got = run_function(x, smooth_alone(x, text, f"granularity={granularity}"), x.folder, inputs)
        for name, want in plain.items():
            assert want.tobytes() == got[name].tobytes(), f"{granularity}: expected the bits of {name}"

    for kind, entry in models.items():
        text, _ = together({kind: entry})
        # A product that the backward loop reads from a stack is divided by s before it is stored.
        for granularity, want in {"scan": {"channel": 5, "token": 4}, "remat": {"channel": 6, "token": 5}}[kind].items():
            found = smooth_alone(x, text, f"granularity={granularity}").count("fp8.rescale")
            assert found == want, f"{kind}, {granularity}: expected {want} rescalings but got {found}"
        (unit,) = gated_units(x, text, x.folder)
        assert unit["down"]["layers"] == [0] and unit["down"]["dimensions"] == [1], f"{kind}: got {unit}"

        # The backward loop needs only payloads of the product, and with delayed factors all weights
        # are rescaled and quantized outside of the loop.
        stacks = optimize(x, text, x.folder, "--fp8-import", "--fp8-quantize=recipe=tensorwise set=smooth_swiglu.granularity=channel")
        assert f"3x{TOKENS}x{FFN}xf8E4M3FN" in stacks or kind == "remat", f"{kind}: expected a stack of payloads"
        settings = " ".join(f"set=smooth_swiglu.{s}" for s in ("granularity=channel", "scaling=delayed", "initial=one"))
        delayed = optimize(x, text, x.folder, "--fp8-import", f"--fp8-quantize=recipe=tensorwise {settings}")
        whole = re.findall(rf"fp8.rescale .*: tensor<3x{FFN}x{WIDTH}xf32>, tensor<3x{FFN}xf32>", delayed)
        assert len(whole) == 1, f"{kind}: expected one rescaling of all weights but got {whole}"
        found, want = delayed.count("fp8.rescale"), 5 if kind == "remat" else 4
        assert found == want, f"{kind}: expected {want} rescalings but got {found}"


def check_shapes(x):
    """A unit has factors of several shapes if it is applied to two lengths, or if a scan with
    `unroll` leaves layers over. Every dot takes those of its own tokens and layers: no bit changes."""
    f = SPELLINGS["silu"][0]
    data = normal(7, TOKENS, WIDTH)
    for granularity in ("channel", "token"):
        p = parameters(PARTS[two], seed=3)
        text = lowered(sgd_step(lambda p, x: jnp.concatenate([two(p, x, f), two(p, x[:5], f)])), p, data).as_text(debug_info=True)
        plain = run_function(x, text, x.folder, named(p, data))
        smoothed = smooth_alone(x, text, f"granularity={granularity}")
        found = smoothed.count("fp8.rescale")
        assert found == 8, f"two lengths, {granularity}: expected 8 rescalings but got {found}"
        got = run_function(x, smoothed, x.folder, named(p, data))
        for name, want in plain.items():
            assert want.tobytes() == got[name].tobytes(), f"two lengths, {granularity}: expected the bits of {name}"

    p = scan_parameters(layers=5)
    text = lowered(sgd_step(lambda p, x: scanned(p, x, lambda layer: layer, unroll=2)), p, data).as_text(debug_info=True)
    plain = run_function(x, text, x.folder, named(p, data))
    smoothed = smooth_alone(x, text, "granularity=channel", "scaling=delayed", "initial=one")
    # The factors of two iterations in the loop, and those of the layer after it.
    arguments = re.findall(r'%arg\d+: tensor<([0-9x]*)xf32> {[^}]*fp8.path = "(fp8[^"]*)"', smoothed)
    states = {path: tuple(map(int, shape.split("x"))) for shape, path in arguments}
    quantizers = {path: shape for path, shape in states.items() if path.endswith(".quantizer")}
    assert sorted(map(len, quantizers.values())) == [1, 2], f"expected factors of one layer and of several but got {quantizers}"
    rng = np.random.default_rng(5)
    state = {path: np.exp2(rng.integers(-3, 4, shape)).astype(np.float32) if path in quantizers else np.zeros(shape, np.float32) for path, shape in states.items()}
    got = run_function(x, smoothed, x.folder, {**named(p, data), **state})
    for name, want in plain.items():
        assert want.tobytes() == got[name].tobytes(), f"left over by unroll: expected the bits of {name}"


def check_traffic(x):
    """With delayed or per-token factors (and delayed scales) one kernel computes the product from
    the dot of a branch, rescales and quantizes it, and never stores it in f32. (The branches are
    stored, for the backward pass.)"""
    p = parameters(PARTS[two])
    text = lowered(sgd_step(lambda p, x: two(p, x, SPELLINGS["silu"][0])), p, normal(99, TOKENS, WIDTH)).as_text(debug_info=True)
    recipe = "recipe=delayed " + " ".join(f"set={o}.initial=one" for o in ("forward.activation", "wgrad.activation"))
    payload, operands = f"{TOKENS}x{FFN}xf8E4M3FN", {f"{TOKENS}x{WIDTH}xf8E4M3FN", f"{WIDTH}x{FFN}xf8E4M3FN"}
    for settings in ("granularity=channel scaling=delayed initial=one", "granularity=token"):
        sets = " ".join(f"set=smooth_swiglu.{s}" for s in settings.split())
        kernels = optimize(x, text, x.folder, "--fp8-import", f"--fp8-quantize={recipe} {sets}", "--fp8-structure", "--fp8-kernels")
        buffers = [set(re.findall(r"memref<([^,>]*)", args)) for args in re.findall(r"fp8\.kernel @kernel_\w+\(([^)]*)\)", kernels)]
        made = [kernel for kernel in buffers if payload in kernel and operands <= kernel]
        assert made, f"{settings}: expected a kernel of a branch's dot that writes the product's payload"


# ----------------------------------------------------------------------- ablation


def on_grid(w):
    """Rounds to four significant bits, which E4M3 holds, so that the weights are exact in it."""
    fraction, exponent = np.frexp(w)
    return np.ldexp(np.round(fraction * 16) / 16, exponent).astype(np.float32)


def aligned(width=256, ffn=512, tokens=128, gain=16.0, channel=7, outlier=5):
    """The papers' setting: in one channel the columns of gate and linear layer are equal and large,
    and in the second step one token is parallel to them. Returns parameters, two batches, the
    results in f64 and the token's index."""
    p = {"a": normal(1, width, ffn, std=width**-0.5), "b": normal(2, width, ffn, std=width**-0.5)}
    p["a"][:, channel] = p["b"][:, channel] = gain * p["b"][:, channel]
    p["c"] = on_grid(normal(3, ffn, 32, std=ffn**-0.5))
    # Otherwise that channel would dominate the results of the other tokens too.
    p["c"][channel] /= 4
    p["head"] = normal(4, 32, OUT)
    data = normal(5, 2, tokens, width)
    data[1, outlier] += 4 * p["b"][:, channel] / gain * np.sqrt(width)
    a, b = (np.float64(data) @ np.float64(p[name]) for name in "ab")
    return p, data, ((a * b / (1 + np.exp(-a))) @ np.float64(p["c"])).astype(np.float32), outlier


def check_aligned(x):
    """One token is parallel to an aligned channel. With one scale for the tensor the other tokens
    lose their bits, and with delayed scaling that token saturates. With smoothing the others keep
    E4M3's precision."""
    p, data, want, outlier = aligned()
    def step(p, x, want):
        def loss(p):
            y = two(p, x, SPELLINGS["silu"][0])
            return jnp.sum(jnp.sin(y @ p["head"])), y

        (value, y), grads = jax.value_and_grad(loss, has_aux=True)(p)
        others = jnp.arange(y.shape[0]) != outlier
        noise, signal = jnp.sum((y - want) ** 2, axis=1), jnp.sum(want**2, axis=1)
        metrics = {
            "snr": 10 * jnp.log10(jnp.sum(signal * others) / jnp.sum(noise * others)),
            "lost": jnp.sqrt(noise[outlier] / signal[outlier]),
        }
        return jax.tree.map(lambda w, g: w - 1e-30 * g, p, grads), value, metrics

    text = lowered(step, p, data[0], want[0]).as_text(debug_info=True)
    (x.folder / "step.mlir").write_text(text)
    save_file({f"p['{name}']": value for name, value in p.items()}, str(x.folder / "init.safetensors"))
    np.save(x.folder / "x.npy", data)
    np.save(x.folder / "want.npy", want)

    def run(name, scaling, smooth):
        operand = f"format: f8E4M3FN, scale: pow2, scaling: {scaling}" + (", history: 1" if scaling == "delayed" else "")
        recipe = x.folder / f"{name}.yaml"
        recipe.write_text(
            f"name: {name}\n"
            f"forward: {{activation: {{{operand}}}, weight: {{format: f8E4M3FN, scale: pow2}}}}\n"
            + "rules:\n" + "".join(f"  - keep: {{path: \"p['{n}']\"}}\n" for n in ("a", "b", "head"))
            + f"smooth_swiglu: {{{smooth}}}\n"
        )  # fmt: skip
        log = t.train(
            x.fp8_run, x.folder, x.folder / name, "--init", x.folder / "init.safetensors", "--recipe", recipe, "--steps", 2,
            "--batch", f"x={x.folder / 'x.npy'}", "--batch", f"want={x.folder / 'want.npy'}", "--overwrite", "--quiet",
        )  # fmt: skip
        snr, lost = (t.metric(log, key)[1] for key in ("snr", "lost"))
        print(f"{name:16} the others {snr:5.1f} dB, the token's relative error {lost:.3f}")
        return snr, lost

    delayed = "scale: pow2, scaling: delayed, history: 1, initial: one"
    plain, _ = run("current", "current", "granularity: none")
    _, lost = run("delayed", "delayed", "granularity: none")
    assert plain <= 20, f"expected at most 20 dB of the others without smoothing but got {plain:.1f}"
    assert 0.9 < lost <= 1.01, f"expected delayed scaling to lose the token but its error is {lost:.3f}"
    for granularity in ("channel", "token"):
        snr, lost = run(f"{granularity}", "current", f"granularity: {granularity}")
        assert snr >= 30, f"{granularity}: expected at least 30 dB of the others but got {snr:.1f}"
        assert lost < 0.1, f"{granularity}: expected the token to keep its value but its error is {lost:.3f}"
    # With delayed factors and delayed scales the other tokens are safe. The token of this step
    # saturates, because its channel's factor is that of the previous step.
    snr, lost = run("channel-delayed", "delayed", f"granularity: channel, {delayed}")
    assert snr >= 30, f"delayed factors: expected at least 30 dB of the others but got {snr:.1f}"

    # The state after that step: 1/s of every channel, from this step's maxima.
    state = load_file(next((x.folder / "channel-delayed").glob("checkpoint-*2.safetensors")))["fp8.p['c'].smooth.quantizer"]
    a, b = (np.float64(data[1]) @ np.float64(p[name]) for name in "ab")
    amax = np.max(np.abs(a * b / (1 + np.exp(-a))), axis=0)
    exponent = np.log2(np.maximum(amax, amax.max() / 256) / 448)
    clear = np.abs(exponent - np.round(exponent)) > 1e-4
    assert clear.sum() > 500 and np.array_equal(state[clear], np.exp2(-np.ceil(exponent[clear])).astype(np.float32)), (
        "expected the quantizers of the channels' maxima"
    )


def check_optimizers(x):
    """Where not every call updates: with optax.MultiSteps and apply_if_finite a step trains as it
    does without smoothing, and delayed factors follow the values of the calls."""
    text = t.write_text(x.folder / "text.txt")
    for name, tx in {"calls": optax.MultiSteps(optax.adamw(3e-3), 2), "finite": optax.apply_if_finite(optax.adamw(3e-3), 3)}.items():
        model = x.folder / name
        gated_mlp.write(model, optimizer=optax.GradientTransformation(tx.init, tx.update), ffn=96)

        def train(*settings):
            out = model / "out"
            args = [word for setting in settings for word in ("--set", f"smooth_swiglu.{setting}")]
            losses = t.losses(t.train(x.fp8_run, model, out, "--init", model / "init.mlir", "--data", text, "--recipe", "tensorwise", *args,
                                      "--steps", 7, "--quiet", "--overwrite"))  # fmt: skip
            return losses, t.load_tensors(out / "checkpoint-7.safetensors")

        plain, _ = train()
        for settings in (["granularity=token"], ["granularity=token", "scaling=delayed"], ["granularity=channel", "scaling=delayed"]):
            losses, checkpoint = train(*settings)
            gap = max(abs(a - b) for a, b in zip(losses, plain))
            print(f"{name}, {' '.join(settings)}: at most {gap:.3f} nats from the step that is not smoothed")
            assert gap < 0.06, (losses, plain)
            factors = [value for key, value in checkpoint.items() if key.endswith(".smooth.quantizer")]
            assert len(factors) == (gated_mlp.LAYERS if "scaling=delayed" in settings else 0), checkpoint.keys()
            assert all((value > 0).all() and np.isfinite(value).all() for value in factors), factors


CASES = {
    "aligned": check_aligned,
    "recognition": check_recognition,
    "channels": check_channels,
    "flax": check_flax,
    "exact": check_exact,
    "bound": check_bound,
    "guards": check_guards,
    "loops": check_loops,
    "shapes": check_shapes,
    "traffic": check_traffic,
    "optimizers": check_optimizers,
}

if __name__ == "__main__":
    fp8_opt, fp8_run, folder, *names = sys.argv[1:]
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    t.run_cases(CASES, names, SimpleNamespace(fp8_opt=fp8_opt, fp8_run=fp8_run, folder=folder))
