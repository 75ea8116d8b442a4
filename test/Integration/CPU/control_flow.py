"""Compares compiled loops and branches, as JAX writes them, with JAX: scans forward,
in reverse, unrolled, nested and rematerialized, loops with bounds of all kinds,
branches, random numbers, optimizers with branches, and functions of randomly nested
control flow.

    python3 control_flow.py FP8_RUN WORK_DIR [--seeds N:M] [--driver DIR] [GROUP...]

A group is one function: all its cases run at once. With --driver, the directory
of the emulator's libcuda.so.1, they run on its GPU, as one graph that decides all
control flow on the device.
"""

import argparse
import json
import os
import pathlib
import random
import re

import fp8_testing
import jax
import jax.numpy as jnp
import numpy as np
import optax
from conformance_testing import run_function
from jax import lax

fp8_testing.compile_jax_quickly()
jax.config.update("jax_platforms", "cpu")
rng = np.random.default_rng(0)
groups = {}


def case(group, name, function, *args):
    groups.setdefault(group, []).append((name, function, args))


def f32(*shape):
    return jnp.asarray(rng.standard_normal(shape), jnp.float32)


# Scans: layers over stacked weights.
def layer(h, w):
    return jnp.tanh(h @ w), h.sum()


def scan(w, x, **options):
    return lax.scan(layer, x, w, **options)


def scan_gradient(w, x):
    def loss(w, x):
        y, _ = lax.scan(jax.checkpoint(lambda h, w: (jnp.tanh(h @ w), None)), x, w)
        return (y**2).mean()

    return jax.value_and_grad(loss)(w, x)


def nested_gradient(w, x):
    def block(h, ws):
        return lax.scan(lambda h, w: (jnp.tanh(h @ w), None), h, ws)[0], None

    return jax.value_and_grad(lambda w, x: (lax.scan(jax.checkpoint(block), x, w)[0] ** 2).mean())(w, x)


def micro_batches(w, x):
    gradient = jax.grad(lambda w, b: ((b @ w) ** 2).mean())
    return lax.scan(lambda g, b: (g + gradient(w, b), None), jnp.zeros_like(w), x)[0]


def recurrent(w, u, x):
    def cell(h, x):
        h = jnp.tanh(h @ w + x @ u)
        return h, h

    return (lax.scan(cell, jnp.zeros((2, 4)), x)[1] ** 2).sum()


weights, hidden = f32(4, 8, 8) * 0.3, f32(2, 8)
case("scan", "forward", scan, weights, hidden)
case("scan", "reverse", lambda w, x: scan(w, x, reverse=True), weights, hidden)
case("scan", "unrolled twice", lambda w, x: scan(w, x, unroll=2), weights, hidden)
case("scan", "unrolled twice, an odd length", lambda w, x: scan(w, x, unroll=2), f32(5, 8, 8) * 0.3, hidden)
case("scan", "one iteration", scan, weights[:1], hidden)
case("scan", "no iteration", scan, weights[:0], hidden)
case("scan", "bf16", scan, weights.astype(jnp.bfloat16), hidden.astype(jnp.bfloat16))
case("scan", "unsigned", lambda k: lax.scan(lambda c, k: (c + k[0], k * 3), jnp.uint32(0), k), jnp.arange(12, dtype=jnp.uint32).reshape(4, 3))
case("scan", "nested", lambda w, x: lax.scan(lambda h, ws: lax.scan(layer, h, ws), x, w), f32(3, 4, 8, 8) * 0.3, hidden)
case("scan gradients", "rematerialized", scan_gradient, weights, hidden)
case("scan gradients", "nested", nested_gradient, f32(3, 2, 8, 8) * 0.3, hidden)
case("scan gradients", "micro-batches", micro_batches, f32(8, 8), f32(4, 2, 8))

case("scan gradients", "recurrent", jax.grad(recurrent, argnums=(0, 1)), f32(4, 4) * 0.5, f32(3, 4) * 0.5, f32(7, 2, 3))
case("scan gradients", "of a counted loop", jax.grad(lambda x: lax.fori_loop(0, 5, lambda i, h: jnp.sin(h) * x[i], x[0]).sum()), f32(5, 4))
case("scan gradients", "of a choice", jax.grad(lambda x: lax.switch(jnp.int32(x[0, 0] * 2), [lambda x: (jnp.sin(x) ** 2).sum(), lambda x: (x**3).sum(), jnp.sum], x)), f32(3, 4))

# Loops with bounds and counters of all kinds.
rows = f32(10, 5)
case("loops", "dynamic bound", lambda n, x: lax.fori_loop(0, n, lambda i, h: jnp.sin(h) + i, x), jnp.int32(7), f32(4, 5))
case("loops", "no iteration, dynamic bound", lambda n, x: lax.fori_loop(3, n, lambda i, h: jnp.sin(h) + i, x), jnp.int32(-7), f32(4, 5))
case("loops", "updates from 2", lambda x: lax.fori_loop(2, 9, lambda i, h: h.at[i].set(h[i - 1] * 0.5 + 1), x), rows)
case("loops", "updates downwards", lambda x: lax.fori_loop(0, 9, lambda i, h: h.at[8 - i].add(h[9 - i]), x), rows)
case("loops", "wrapped indices", lambda x: lax.fori_loop(0, 5, lambda i, h: h + x[i - 2] * x[2 - i], x[0]), f32(5, 5))
case("loops", "slices that are clamped", lambda x: lax.fori_loop(0, 10, lambda i, h: h + lax.dynamic_slice(x, (i, 0), (4, 5)), x[:4]), rows)
case("loops", "updates that are clamped", lambda x: lax.fori_loop(0, 10, lambda i, h: lax.dynamic_update_slice(h, h[:3] * 0.5, (i, 1)), x), f32(10, 5))
case("loops", "two counters", lambda x: lax.fori_loop(0, 6, lambda i, c: (c[0] + 2, c[1] + x[c[0] // 2] * i), (0, x[0])), f32(6, 3))
case("loops", "unsigned counter", lambda x: lax.fori_loop(jnp.uint32(1), jnp.uint32(5), lambda i, h: h + x[i] * i, x[0]), f32(6, 3))
case("loops", "condition on values", lambda x: lax.while_loop(lambda c: (c**2).sum() > 0.5, lambda c: c * 0.7, x), f32(4, 5))
case("loops", "condition on several", lambda x, k: lax.while_loop(lambda c: (c[0] < k) & (c[1].max() < 50.0), lambda c: (c[0] + 3, c[1] * 1.5 + 1), (jnp.int32(0), x)), f32(4, 5), jnp.int32(20))
case("loops", "exchanged carries", lambda x, y: lax.fori_loop(0, 5, lambda i, c: (c[1] + x.sum(), c[0]), (x, y)), f32(4, 4), f32(4, 4))
case("loops", "a loop in a loop", lambda n, x: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, lax.while_loop(lambda d: d.sum() > 1.0, lambda d: d * 0.5, c[1]) + 1), (jnp.int32(0), x)), jnp.int32(4), jnp.abs(f32(3, 3)))
case("loops", "batched", jax.vmap(lambda x: lax.while_loop(lambda c: (c**2).sum() > 0.1, lambda c: c * 0.8, x)), f32(3, 4))
case("loops", "rotated carries", lambda x, y, z: lax.while_loop(lambda c: c[0].sum() < 30, lambda c: (c[1], c[2], c[0] + 1), (x, y, z)), f32(3), f32(3), f32(3))
case("loops", "updates in two dimensions", lambda x: lax.fori_loop(0, 3, lambda i, s: lax.fori_loop(0, 4, lambda j, s: s.at[i, j].set(s[i, j] * 2 + i * j + s[2 - i, 3 - j]), s), x), f32(3, 4, 5))
case("loops", "associative scan", lambda x: lax.associative_scan(jnp.add, x), f32(9, 3))

# Branches.
for number in (-1.0, 1.0):
    case("branches", f"cond {number}", lambda p, x: lax.cond(p > 0, lambda x: (jnp.sin(x), x), lambda x: (x * 2, x + 1), x), jnp.float32(number), f32(4, 5))
    case("branches", f"cond of values {number}", lambda p, x, y: lax.cond(p > 0, lambda x, y: (x, y), lambda x, y: (y, x), x, y), jnp.float32(number), f32(4, 5), f32(4, 5))
for number in (-3, 0, 1, 2, 7):
    case("branches", f"switch {number}", lambda i, x: lax.switch(i, [jnp.sin, lambda x: x * 2, lambda x: x @ x], x), jnp.int32(number), f32(4, 4))
case("branches", "in a loop", lambda x: lax.fori_loop(0, 6, lambda i, h: lax.cond(i % 2 == 0, jnp.sin, lambda h: h @ h, h), x), f32(4, 4))

# Random numbers: threefry.
key = jnp.asarray([1, 2], jnp.uint32)
case("random", "normal of a seed", lambda s: jax.random.normal(jax.random.key(s), (4, 33)), jnp.uint32(3))
case("random", "split and fold in", lambda k: (jax.random.split(k, 3), jax.random.fold_in(k, 7)), key)
case("random", "bernoulli", lambda k: jax.random.bernoulli(k, 0.3, (8, 17)), key)
case("random", "categorical", jax.random.categorical, key, f32(8, 17))
case("random", "integers", lambda k: jax.random.randint(k, (8, 17), 3, 1000), key)
case("random", "permutation", lambda k: jax.random.permutation(k, 50), key)
case("random", "dropout in a scan", lambda k, x: lax.scan(lambda c, _: ((jax.random.split(c[0])[0], c[1] * jax.random.bernoulli(c[0], 0.5, (4, 5))), None), (k, x), None, length=3)[0], key, f32(4, 5))


# Optimizers that do not update in every call.
def shift(x):
    """Adds so many concatenations that they need more than one kernel."""
    for _ in range(5):
        x = jnp.roll(x, 1, 0) + jnp.roll(x, -1, 1)
    return x


case("concatenations", "shifts", shift, f32(16, 16))


def step_of(optimizer):
    def step(p, s, x):
        loss, g = jax.value_and_grad(lambda p: ((x @ p["w"]) ** 2).mean())(p)
        updates, s = optimizer.update(g, s, p)
        return optax.apply_updates(p, updates), s, loss

    return step


parameters = {"w": f32(8, 8) * 0.3}
several = optax.MultiSteps(optax.adam(1e-2), 2)
first = several.init(parameters)
finite = optax.apply_if_finite(optax.adam(1e-2), 3)
case("optimizers", "first of two steps", step_of(several), parameters, first, hidden)
case("optimizers", "second of two steps", step_of(several), parameters, step_of(several)(parameters, first, hidden)[1], hidden)
case("optimizers", "finite", step_of(finite), parameters, finite.init(parameters), hidden)
case("optimizers", "not finite", step_of(finite), parameters, finite.init(parameters), hidden * jnp.nan)


def random_function(seed):
    """Returns a function of arrays of one shape with randomly nested control flow."""
    choice = random.Random(seed)
    extent = choice.choice([3, 5, 6, 7])

    def expression(values):
        v, w = choice.choice(values), choice.choice(values)
        return choice.choice(
            [
                lambda: jnp.sin(v),
                lambda: v * w,
                lambda: v - 0.5 * w,
                lambda: jnp.tanh(v @ v.T @ w),
                lambda: jnp.where(v > w, v, w * 0.5),
                lambda: v / (1 + jnp.abs(w)),
                lambda: v.sum(0, keepdims=True) * 0.1 + w,
                lambda: jnp.flip(v, 0) + w,
            ]
        )()

    def block(values, depth):
        values = list(values)
        for _ in range(choice.randint(1, 3)):
            nested = depth > 0 and choice.random() < 0.5
            values.append(control(values, depth - 1) if nested else expression(values))
        return values[-1]

    def control(values, depth):
        kind = choice.choice(["fori", "scan", "reverse", "while", "cond", "switch", "update", "read", "remat"])
        v, state = choice.choice(values), choice.getstate()

        def body(*more):
            # JAX traces a body more than once: each trace must make the same choices.
            choice.setstate(state)
            return jnp.tanh(block(values + list(more), depth))

        if kind == "fori":
            low = choice.randint(-3, 3)
            out = lax.fori_loop(low, low + choice.randint(0, 5), lambda i, c: body(c) + i * 0.01, v)
        elif kind in ("scan", "reverse"):
            xs = jnp.stack([v * (j + 1) * 0.3 for j in range(choice.randint(1, 4))])
            unroll = choice.choice([1, 1, 2])
            out, ys = lax.scan(lambda c, x: (body(c, x), x * c), v, xs, reverse=kind == "reverse", unroll=unroll)
            out = out + ys.mean(0)
        elif kind == "while":
            start = (jnp.int32(0), v, jnp.float32(30))
            going = lambda c: (c[0] < 7) & (c[1].sum() < c[2])
            out = lax.while_loop(going, lambda c: (c[0] + 2, body(c[1]) * 0.9, c[2]), start)[1]
        elif kind == "cond":
            out = lax.cond(v.sum() > 0, lambda: body(v), lambda: expression(values))
        elif kind == "switch":
            out = lax.switch(jnp.int32(v[0, 0] * 3), [lambda: body(v), lambda: body(v + 1), lambda: v])
        elif kind == "update":
            update = lambda i, s: s.at[i].set(body(s[jnp.maximum(i - 1, 0)]))
            stack = lax.fori_loop(1, extent, update, jnp.broadcast_to(v, (extent, 4, 5)))
            out = stack[extent - 1] + stack[1] * 0.5
        elif kind == "read":
            stack = jnp.stack([v * (j + 1) for j in range(extent)])
            read = lambda i, c: c * 0.5 + body(stack[i], stack[extent - 1 - i], stack[(i * 2) % extent]) * 0.3
            out = lax.fori_loop(0, extent, read, v)
        else:
            # Reverse mode does not support while: the body has only expressions.
            def recomputed(x):
                choice.setstate(state)
                return jnp.tanh(block(values + [x], 0)).sum()

            out = jax.grad(lambda x: jax.checkpoint(recomputed)(x))(v)
        choice.setstate(state)
        choice.random()
        return jnp.tanh(out)

    def function(a, b):
        choice.seed(seed + 1)
        values = [a, b]
        for _ in range(choice.randint(1, 3)):
            values.append(control(values, 2))
        return values[-1], values[-2]

    return function


def run_group(name, cases):
    """Returns the number of results that differ from JAX's."""

    def function(*args):
        return [f(*a) for (_, f, _), a in zip(cases, args)]

    args = [a for _, _, a in cases]
    lowered = jax.jit(function, keep_unused=True).lower(*args)
    leaves = {f"arg{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(args))}
    got = run_function(options.fp8_run, work / name.replace(" ", "-"), lowered.as_text(), leaves, flags)
    if isinstance(got, str):
        print(f"{name}: {got}")
        return len(cases)
    if options.driver:
        counts = json.loads((work / "counts").read_text())
        assert counts["graphs"] == 1 and counts["kernels"] == 0, f"{name}: expected one graph but got {counts}"
        print(f"{name}: {counts['iterations']} iterations and {counts['branches']} branches on the GPU")
    wrong = 0
    results = jax.tree_util.tree_flatten_with_path(lowered.compile()(*args))[0]
    for path, b in results:
        path, b = "result" + jax.tree_util.keystr(path), np.asarray(b)
        a = got[path]
        if a.dtype != b.dtype or a.shape != b.shape:
            same = False
        elif b.dtype.kind in "iub":
            same = np.array_equal(a, b)
        else:
            bound = 2e-2 if b.dtype.itemsize == 2 else 2e-5
            same = np.allclose(a.astype(np.float64), b.astype(np.float64), rtol=bound, atol=bound, equal_nan=True)
        if not same:
            print(f"{name}, {cases[int(re.search(r'[0-9]+', path)[0])][0]}, {path}: expected\n{b}\nbut got\n{a}")
            wrong += 1
    return wrong


parser = argparse.ArgumentParser()
parser.add_argument("fp8_run")
parser.add_argument("work", type=pathlib.Path)
parser.add_argument("groups", nargs="*")
parser.add_argument("--seeds", default="0:0")
parser.add_argument("--driver")
parser.add_argument("--expand", default=2048, help="launches up to which the GPU does not count a loop itself")
options = parser.parse_args()
work = options.work
work.mkdir(parents=True, exist_ok=True)
flags = ["--target", "nvptx:sm_89", "--gpu-image", "bitcode", "--gpu-expand", options.expand] if options.driver else []
if options.driver:
    os.environ.update(LD_LIBRARY_PATH=options.driver, FP8_EMULATOR_COUNTS=str(work / "counts"))
low, high = (int(n) for n in options.seeds.split(":"))
for seed in range(low, high):
    case(f"seeds {seed // 4 * 4}", f"seed {seed}", random_function(seed), f32(4, 5), f32(4, 5))
chosen = {name: cases for name, cases in groups.items() if not options.groups or name in options.groups}
wrong = sum(run_group(name, cases) for name, cases in chosen.items())
print(f"{sum(map(len, chosen.values()))} cases, {wrong} wrong")
