"""The optimizer's state as a recipe stores it: after each step payloads, scales,
centers and exponents equal, bit for bit, those of an independent computation in NumPy
and ml_dtypes from the previous step and the gradients. Updates that are not taken
change no bit, and a resumed run continues bit for bit.

    stored_state.py fp8-run FOLDER [CASE...]

The steps here return their gradients as state, so that the reference can start from
them: the test checks the update and its storage, not the gradients.
"""
import json
import math
import pathlib
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
from powers import power
from safetensors.numpy import save_file
from stochastic_rounding import mix_seed, random_numbers, round_by

t.compile_quickly()
F32 = np.float32
FORMATS = {"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


# ------------------------------------------------------------------ the reference


def largest(fmt):
    return F32(float(ml_dtypes.finfo(FORMATS[fmt]).max))


def scale_of(amax, fmt, rule="exact"):
    """Returns scale and quantizer of a group."""
    if amax == 0 or not np.isfinite(amax):
        return F32(1), F32(1)
    if rule == "exact":
        q = F32(min(largest(fmt) / amax, np.finfo(np.float32).max))
        return F32(1) / q, q
    (f, e), (top, top_e) = math.frexp(amax), math.frexp(largest(fmt))
    k = min(max(e - top_e + (f > top), -126), 126)
    return F32(2.0**k), F32(2.0**-k)


def expansion(group):
    a = np.abs(group)
    if not a.any():
        return F32(1), F32(1)
    high, low = a.max(), a[a > 0].min()
    with np.errstate(divide="ignore", over="ignore"):
        ratio = np.float64(high / low) if np.isfinite(high / low) else np.float64(high) / np.float64(low)
        k = np.floor(F32(16 * math.log2(448**2 / 2)) / F32(np.log2(ratio))) / F32(16)
    return (np.sqrt(high) * np.sqrt(low), k) if 0 < k < np.inf else (F32(1), F32(1))


def encode(x, storage, quantizer=None, random=None):
    """Returns the arrays that store x, by suffix; `quantizer` is that of a delayed scale, or 0 if
    it was never set."""
    fmt, tile = storage["format"], storage.get("tile", "tensor" if storage["format"].startswith("f8") else "none")
    dtype = FORMATS.get(fmt, np.float32)
    if tile == "none":
        return {"": x.astype(dtype) if random is None else round_by(x, random, dtype)}
    width = x.size if tile == "tensor" else 128
    rows = x.reshape(1, -1) if tile == "tensor" else x.reshape(-1, x.shape[-1])
    groups = -(-rows.shape[1] // width)
    payload = np.empty(rows.shape, dtype)
    out = {suffix: np.ones((len(rows), groups), np.float32) for suffix in (".scale", ".center", ".exponent")}
    for i in range(len(rows)):
        for j in range(groups):
            part = slice(j * width, (j + 1) * width)
            values = rows[i, part]
            if storage.get("expand"):
                c, k = expansion(values)
                out[".center"][i, j], out[".exponent"][i, j] = c, k
                values = np.copysign(power(np.abs(values) / c, k), values)
            s, q = scale_of(np.abs(values).max(), fmt, storage.get("scale", "exact"))
            if quantizer:
                s, q = F32(1) / quantizer, quantizer
            out[".scale"][i, j] = s
            y = np.clip(values * q, -largest(fmt), largest(fmt))
            payload[i, part] = y.astype(dtype) if random is None else round_by(y, random.reshape(rows.shape)[i, part], dtype)
    shape = () if tile == "tensor" else x.shape[:-1] + (groups,)
    result = {"": payload.reshape(x.shape), ".scale": out[".scale"].reshape(shape)}
    if storage.get("expand"):
        result |= {suffix: out[suffix].reshape(shape) for suffix in (".center", ".exponent")}
    return result


def decode(tensors, path):
    """Returns the values of the arrays at `path`, in f32."""
    values = tensors[path].astype(np.float32)
    if path + ".scale" not in tensors:
        return values

    def spread(what):
        array = tensors[path + what]
        return array if array.ndim == 0 else np.repeat(array, 128, axis=-1)[..., : values.shape[-1]]

    values = values * spread(".scale")
    if path + ".center" in tensors:
        root = F32(1) / spread(".exponent")
        values = np.copysign(power(np.abs(values), root) * spread(".center"), values)
    return values


# ----------------------------------------------------------------------- updates
# Each is written once, and runs in JAX and in NumPy.


def momentum(xp, p, s, g, count):
    m = s["m"] * F32(0.9) + g
    return p - F32(0.05) * m, {"m": m}


def lion(xp, p, s, g, count):
    u = xp.sign(s["m"] * F32(0.9) + g * F32(0.1)) + p * F32(0.01)
    return p - F32(0.01) * u, {"m": s["m"] * F32(0.99) + g * F32(0.01)}


def adamw(xp, p, s, g, count):
    m = s["m"] * F32(0.9) + g * F32(0.1)
    v = s["v"] * F32(0.95) + (g * g) * F32(0.05)
    step = (count + 1).astype(np.float32)
    if xp is np:
        powers = [F32(power(F32(b), step)) for b in (0.9, 0.95)]
    else:
        powers = [F32(b) ** step for b in (0.9, 0.95)]
    u = (m / (F32(1) - powers[0])) / (xp.sqrt(v / (F32(1) - powers[1])) + F32(1e-8)) + p * F32(0.1)
    return p - F32(0.01) * u, {"m": m, "v": v}


OPTIMIZERS = {"momentum": (momentum, "m"), "lion": (lion, "m"), "adamw": (adamw, "mv")}
SHAPES = {"up": (24, 300), "down": (300, 16), "bias": (16,)}
KEYS = {"m": "moment1", "v": "moment2"}


def loss(params, x, y):
    h = jnp.tanh(x @ params["up"])
    return jnp.mean((h @ params["down"] + params["bias"] - y) ** 2)


def make_step(update, moments, dtype=jnp.float32, every=None):
    """Returns a step that returns its gradients as state; with `every` it updates only once in so
    many calls."""

    def step(params, state, grads, count, x, y):
        value, g = jax.value_and_grad(loss)(params, x, y)
        g = {k: a.astype(jnp.float32) for k, a in g.items()}

        def take():
            pairs = {k: update(jnp, params[k], {m: state[m][k] for m in moments}, g[k], count) for k in params}
            new = {k: pairs[k][0].astype(params[k].dtype) for k in pairs}
            return new, {m: {k: pairs[k][1][m] for k in pairs} for m in moments}

        if every is None:
            new, state = take()
        else:
            new, state = jax.lax.cond(count % every == every - 1, take, lambda: (params, state))
        return new, state, g, count + 1, value

    rng = np.random.default_rng(0)
    params = {k: (rng.standard_normal(s) * 0.2).astype(np.float32) for k, s in SHAPES.items()}
    params = {k: jnp.asarray(a, dtype) for k, a in params.items()}
    zeros = {k: np.zeros(s, np.float32) for k, s in SHAPES.items()}
    return step, {"params": params, "state": {m: dict(zeros) for m in moments}, "grads": dict(zeros), "count": np.int32(0)}


# ------------------------------------------------------------------------- runs


class Fixture:
    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(1)
        # Small gradients beside an outlier: the moments have a wide range.
        self.x = (rng.standard_normal((8, 32, 24)) * np.exp(rng.standard_normal((8, 1, 24)))).astype(np.float32)
        self.y = rng.standard_normal((8, 32, 16)).astype(np.float32)
        save_file({"x": self.x, "y": self.y}, str(self.folder / "data.safetensors"))

    def run(self, name, step, initial, optimizer, steps, data=None):
        """Trains; returns the checkpoints by step."""
        folder = self.folder / name
        self.train(name, step, initial, optimizer, steps, data)
        found = {int(f.stem.split("-")[1]): t.load_tensors(f) for f in (folder / "out").glob("checkpoint-*.safetensors")}
        assert sorted(found) == list(range(1, steps + 1)), f"expected checkpoints of {steps} steps but got {sorted(found)}"
        return found

    def fail(self, *arguments):
        """Returns the messages of a run that fails with exit code 3."""
        result = self.train(*arguments, check=False)
        assert result.returncode == 3, f"expected exit code 3 but got {result.returncode}: {result.stderr[-300:]}"
        return result.stderr

    def resume_without(self, name, steps, counter):
        """A run whose checkpoint lacks the counter of its steps resumes with the same results."""
        folder = self.folder / name
        whole = folder / "out" / f"checkpoint-{steps}.safetensors"
        expected = t.load_tensors(whole)
        whole.unlink()
        without(folder / "out" / f"checkpoint-{steps - 1}.safetensors", counter)
        data = self.folder / "data.safetensors"
        t.run([self.fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", "--batch", f"x={data}:x", "--batch", f"y={data}:y",
               "--recipe", folder / "recipe.yaml", "--steps", steps, "--out", folder / "out", "--resume"])  # fmt: skip
        for key, value in t.load_tensors(whole).items():
            same(f"{name}, resumed, {key}", value, expected[key])

    def train(self, name, step, initial, optimizer, steps, data, check=True):
        folder = self.folder / name
        folder.mkdir(exist_ok=True)
        lowered = jax.jit(step, keep_unused=True).lower(**initial, x=self.x[0], y=self.y[0])
        (folder / "step.mlir").write_text(lowered.as_text(debug_info=True))
        t.save_tree(folder / "init.safetensors", **initial)
        (folder / "recipe.yaml").write_text("name: stored\n" + "optimizer:\n" + "".join(
            f"  {key}: {json.dumps(value)}\n".replace('"', "") for key, value in optimizer.items()))
        data = data or self.folder / "data.safetensors"
        return t.run([self.fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", "--batch", f"x={data}:x",
                      "--batch", f"y={data}:y", "--recipe", folder / "recipe.yaml", "--steps", steps, "--checkpoint-every", 1,
                      "--out", folder / "out"], check=check)


def without(path, name):
    """Removes a tensor from a safetensors file."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, body, kept = json.loads(data[8 : 8 + length]), data[8 + length :], b""
    del header[name]
    for key, entry in header.items():
        if key != "__metadata__":
            begin, end = entry["data_offsets"]
            entry["data_offsets"] = [len(kept), len(kept) + end - begin]
            kept += body[begin:end]
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + kept)


def same(label, got, want):
    assert got.dtype == want.dtype and got.shape == want.shape, f"{label}: expected {want.dtype}{want.shape} but got {got.dtype}{got.shape}"
    equal = np.atleast_1d(got).view(np.uint8) == np.atleast_1d(np.ascontiguousarray(want)).view(np.uint8)
    assert equal.all(), f"{label}: {(~equal).sum()} of {equal.size} bytes differ: {got[got != want][:3]} instead of {want[got != want][:3]}"


def storage_of(optimizer, what, array):
    """Returns how the recipe stores a kind of array, or None where it stays f32."""
    storage = optimizer.get(what)
    return storage if storage and array.size >= optimizer["min_elements"] else None


def check_updates(f, name, optimizer, steps=4, dtype=np.float32):
    """Every checkpoint follows from the previous one and its gradients."""
    update, moments = OPTIMIZERS[name.split("-")[0]]
    step, initial = make_step(update, moments, dtype)
    checkpoints = f.run(name, step, initial, optimizer, steps)
    before = {}
    for root, array in leaves_of(initial).items():
        kind = "master" if root.startswith("params") else KEYS.get(root.split("'")[1]) if root.startswith("state") else None
        storage = storage_of(optimizer, kind, array)
        before |= {root + suffix: a for suffix, a in encode(np.asarray(array, np.float32), storage).items()} if storage else {root: array}
    # JAX sorts arguments that are passed by name.
    arguments = list(leaves_of(dict(sorted(initial.items()))))
    compared = 0
    for number in range(1, steps + 1):
        after = checkpoints[number]
        for key in SHAPES:
            path = f"params['{key}']"
            paths = {m: f"state['{m}']['{key}']" for m in moments}
            p = decode(before, path).astype(dtype)
            g = after[f"grads['{key}']"]
            new, state = update(np, p, {m: decode(before, paths[m]) for m in moments}, g, np.int32(number - 1))
            for what, where, value in [("master", path, new)] + [(KEYS[m], paths[m], state[m]) for m in moments]:
                storage = storage_of(optimizer, what, value)
                if storage is None:
                    same(f"{name}, step {number}, {where}", after[where], value.astype(after[where].dtype))
                    continue
                random = None
                if storage.get("rounding") == "stochastic":
                    seed = mix_seed(0, number - 1)
                    random = random_numbers(seed, 2**32 + arguments.index(where), value.shape)
                quantizer = before.get(f"fp8.{where}.quantizer", F32(0)) if storage.get("scaling") == "delayed" else None
                for suffix, want in encode(value, storage, quantizer, random).items():
                    same(f"{name}, step {number}, {where}{suffix}", after[where + suffix], want)
                    compared += want.size
        before = after
    print(f"{name}: {compared} stored numbers of {steps} steps are bit-equal")
    return checkpoints


def leaves_of(trees):
    """Returns the leaves by path."""
    out = {}
    for root, tree in trees.items():
        for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            out[root + jax.tree_util.keystr(keys)] = np.asarray(leaf)
    return out


E4M3, E5M2 = {"format": "f8E4M3FN"}, {"format": "f8E5M2"}
GROUPS = {"format": "f8E4M3FN", "tile": "1x128"}
F16 = {"format": "f16", "tile": "tensor"}


def updates(f):
    """Tests tensors, groups, expansion, delayed scales and casts; small arrays stay as they are."""
    least = {"min_elements": 1000}
    check_updates(f, "adamw-scaled", {"moment1": E4M3, "moment2": E5M2, "master": F16, **least})
    check_updates(f, "adamw-expanded", {"moment1": {**GROUPS, "expand": True}, "moment2": {**GROUPS, "expand": True}, **least})
    check_updates(f, "adamw-cast", {"moment1": {"format": "bf16"}, "moment2": {**F16, "scale": "pow2"},
                                    "master": {"format": "bf16", "rounding": "stochastic"}, **least})  # fmt: skip
    check_updates(f, "adamw-delayed", {"moment1": {**E4M3, "scaling": "delayed"}, "moment2": {**E5M2, "scaling": "delayed"},
                                       "master": {**F16, "scaling": "delayed"}, **least})  # fmt: skip
    # Weights in bf16 are stored with more bits than the step reads, from the sum in f32.
    check_updates(f, "adamw-bf16", {"moment1": E4M3, "moment2": E5M2, "master": F16, **least}, dtype=ml_dtypes.bfloat16)
    check_updates(f, "momentum-groups", {"moment1": GROUPS, "min_elements": 0})
    check_updates(f, "lion-scaled", {"moment1": {**E5M2, "scale": "pow2", "rounding": "stochastic"}, "master": F16, **least})


def skipped(f):
    """An update that is skipped leaves every stored bit."""
    optimizer = {"moment1": E4M3, "moment2": {**GROUPS, "expand": True}, "master": F16, "min_elements": 1000}
    step, initial = make_step(adamw, "mv", every=3)
    check_skips(f.run("cond", step, initial, optimizer, 7), lambda number: number % 3 == 0, 2 + 4 + 2)
    for name, tx, arrays in [("adamw", optax.adamw(1e-2), 2 + 4 + 2), ("momentum", optax.sgd(1e-2, momentum=0.9), 2 + 2), ("lion", optax.lion(1e-3), 2 + 2)]:
        check_skips(accumulated(f, name, tx, optimizer), lambda number: number % 3 == 0, arrays)


def accumulated(f, name, tx, optimizer):
    """Returns checkpoints of seven calls, every third of which updates."""
    tx = optax.MultiSteps(tx, 3)
    _, initial = make_step(adamw, "mv")

    def accumulate(params, state, grads, count, x, y):
        value, g = jax.value_and_grad(loss)(params, x, y)
        changes, state = tx.update(g, state, params)
        return optax.apply_updates(params, changes), state, g, count + 1, value

    initial["state"] = tx.init(initial["params"])
    return f.run(f"multisteps-{name}", accumulate, initial, optimizer, 7)


def check_skips(checkpoints, takes, arrays):
    """Stored arrays change only in steps that update; `arrays` is the number of arrays for each of
    the two weights."""
    stored = [n for n, a in checkpoints[1].items() if n + ".scale" in checkpoints[1] or n.endswith((".scale", ".center", ".exponent"))]
    assert len(stored) == 2 * arrays, f"expected payloads and scales but got {stored}"
    changes = 0
    for number in range(2, len(checkpoints) + 1):
        for name in stored:
            changed = checkpoints[number][name].tobytes() != checkpoints[number - 1][name].tobytes()
            assert takes(number) or not changed, f"step {number} takes no update but changes {name}"
            changes += changed
    assert changes, "expected updates"


def bounded(f):
    """If no update is taken, a lower bound on what is added to the weights still changes them."""

    def step(params, state, grads, count, x, y):
        value, g = jax.value_and_grad(loss)(params, x, y)
        ok = count % 2 == 1
        move = lambda p, g: p + jax.lax.clamp(1e-2, jnp.where(ok, -0.1 * g, 0), 1.0)
        return jax.tree.map(move, params, g), state, g, count + 1, value

    _, initial = make_step(momentum, "")
    least = {"min_elements": 1000}
    for name, optimizer in {"f16": {"master": F16, **least}, "delayed": {"master": {**F16, "scaling": "delayed", "margin": 2}, **least}}.items():
        checkpoints = f.run(f"bounded-{name}", step, initial, optimizer, 4)
        want = initial["params"]
        for number in range(1, 5):
            g = {k: checkpoints[number][f"grads['{k}']"] for k in SHAPES}
            move = lambda k: np.clip(-0.1 * g[k] if number % 2 == 0 else 0, 1e-2, 1.0)
            want = {k: np.asarray(want[k]) + move(k) for k in SHAPES}
            for k in SHAPES:
                error = np.abs(decode(checkpoints[number], f"params['{k}']") - want[k]).max()
                assert error < (0 if k == "bias" else number) * 1e-3 * np.abs(want[k]).max() + 1e-6, f"{name}, step {number}, {k}: off by {error}"


def overflowed(f):
    """A micro-batch's gradients overflow: zero times infinity is NaN, in the stored state as in
    JAX, and the run does not continue from there."""

    def step(params, state, grads, count, x, y):
        value, g = jax.value_and_grad(loss)(params, x, y)
        emit = (count % 2 == 1).astype(jnp.float32)
        new = jax.tree.map(lambda p, g: p + emit * (-0.1 * g), params, g)
        new["bias"] = jnp.nan_to_num(new["bias"])  # It stays f32.
        return new, state, jax.tree.map(jnp.nan_to_num, g), count + 1, jnp.minimum(value, 1e9)

    _, initial = make_step(momentum, "")
    y = f.y.copy()
    y[2, 0, 3] = np.inf  # The third call is the first of a window.
    data = f.folder / "overflow.safetensors"
    save_file({"x": f.x, "y": y}, str(data))
    now = (initial["params"], {}, initial["grads"], initial["count"])
    for number in range(3):
        *now, _ = jax.jit(step)(*now, f.x[number], y[number])
    assert all(np.isnan(now[0][k]).any() for k in ("up", "down")), "expected NaN in JAX's weights"
    for name, storage in {"f16": F16, "bf16": {"format": "bf16"}, "delayed": {**F16, "scaling": "delayed"}}.items():
        error = f.fail(f"overflowed-{name}", step, initial, {"master": storage, "min_elements": 1000}, 3, data)
        assert "step 3: the state is not finite: params['" in error, error


def drawn(f):
    """Every call draws new random numbers, whatever the optimizer counts: a weight that moves by an
    eighth of the distance to its neighbour reaches it in time."""
    calls, rate = 40, 2.0**-12
    adam, sign = optax.adam(rate, b1=0, b2=0), optax.chain(optax.scale_by_sign(), optax.scale(-rate))
    optimizers = {
        "counted": adam,
        "uncounted": sign,
        "finite": optax.apply_if_finite(adam, 3),
        "finite-uncounted": optax.apply_if_finite(sign, 3),
        "calls": optax.MultiSteps(adam, 2),
        "several": optax.apply_if_finite(adam, 3),
    }
    rng = np.random.default_rng(3)
    # In this range bf16 numbers are 2^-9 apart.
    params = {k: np.float32(rng.uniform(0.26, 0.49, s) * rng.choice([-1, 1], s)) for k, s in SHAPES.items()}
    params = {k: a.astype(FORMATS["bf16"]).astype(np.float32) for k, a in params.items()}
    for name, tx in optimizers.items():

        def update(carry, x):
            value, g = jax.value_and_grad(loss)(carry[0], *x)
            changes, state = tx.update(g, carry[1], carry[0])
            return (optax.apply_updates(carry[0], changes), state), value

        def step(params, state, x, y):
            if name != "several":
                (params, state), value = update((params, state), (x, y))
            else:
                halves = x.reshape(2, 16, -1), y.reshape(2, 16, -1)
                (params, state), value = jax.lax.scan(update, (params, state), halves)
            return params, state, jnp.mean(value)

        initial = {"params": params, "state": tx.init(params)}
        master = {"master": {"format": "bf16", "rounding": "stochastic"}, "min_elements": 1000}
        checkpoints = f.run(f"drawn-{name}", step, initial, master, calls)
        kept = np.ones(SHAPES["down"], bool)
        for found in checkpoints.values():
            kept &= found["params['down']"].astype(np.float32) == params["down"]
        updates = {"calls": calls // 2, "several": 2 * calls}.get(name, calls)
        assert kept.mean() < 1.5 * (7 / 8) ** updates + 0.005, f"{name}: {100 * kept.mean():.1f} % have never moved"
        counter = checkpoints[calls].get("fp8.step")
        assert counter == (None if name == "counted" else calls), f"{name}: an own counter is {counter} after {calls} calls"
        if name == "finite":
            f.resume_without(f"drawn-{name}", calls, "fp8.step")


def clipped(f):
    """StableAdamW divides the update, without its decay, by max(1, RMS(g / sqrt(v)))."""
    steps = 4
    step, initial = make_step(adamw, "mv")
    # Gradients grow from batch to batch, so that v underestimates their squares.
    save_file({"x": f.x, "y": f.y * np.float32(3) ** np.arange(8, dtype=np.float32)[:, None, None]}, str(f.folder / "growing.safetensors"))
    checkpoints = f.run("clipped", step, initial, {"clip_update": True}, steps, data=f.folder / "growing.safetensors")
    before, largest_rms = leaves_of(initial), 0
    for number in range(1, steps + 1):
        after = checkpoints[number]
        for key in SHAPES:
            read = lambda root: before[f"{root}['{key}']"].astype(np.float64)
            p, m, v, g = read("params"), read("state['m']"), read("state['v']"), after[f"grads['{key}']"].astype(np.float64)
            m, v = 0.9 * m + 0.1 * g, 0.95 * v + 0.05 * g * g
            moment = v / (1 - 0.95**number)
            rms = math.sqrt(np.mean(g * g / np.maximum(moment, 1e-16)))
            u = m / (1 - 0.9**number) / (np.sqrt(moment) + 1e-8) / max(1, rms)
            want = p - 0.01 * (u + 0.1 * p)
            error = np.abs(after[f"params['{key}']"] - want).max()
            assert error < 1e-6, f"step {number}, {key}: off by {error} with an RMS of {rms}"
            largest_rms = max(largest_rms, rms)
        before = after
    assert largest_rms > 1.2, f"expected an RMS beyond 1 but got {largest_rms}"
    print(f"clipped by up to {largest_rms:.2f}")


CASES = {"updates": updates, "skipped": skipped, "bounded": bounded, "overflowed": overflowed, "drawn": drawn, "clipped": clipped}

if __name__ == "__main__":
    t.run_cases(CASES, sys.argv[3:], Fixture(sys.argv[1], sys.argv[2]))
