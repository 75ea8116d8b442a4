"""Ops whose indices depend on data or follow no affine formula: sort, top_k,
select_and_scatter, reduce_window, sums of padded values, gather, scatter,
elements of less than a byte, random bits, dots of all types. Compiled kernels must equal JAX, bit for bit unless a case has a bound.

    python3 irregular_ops.py FP8_RUN WORK_DIR [GROUP...]

A group is one function: all its cases run at once.
"""

import pathlib
import re
import sys

import fp8_testing
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from conformance_testing import exact, run_function
from jax import lax

fp8_testing.compile_jax_quickly()
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
fp8_run, work, chosen = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:]
rng = np.random.default_rng(0)
groups = {}
bf16 = ml_dtypes.bfloat16


def case(group, name, function, *args, bound=None, want=None):
    """Adds a case. `bound(*args)` limits the error of floats; without it results must equal those
    of JAX, or of `want`."""
    groups.setdefault(group, []).append((name, function, [np.asarray(a) for a in args], bound, want))


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def ints(low, high, *shape, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


negative_nan = np.array([0xFFC00000], np.uint32).view(np.float32)
odd = np.concatenate(
    [np.array([1, -0.0, np.nan, 0.0, np.inf, -np.inf, 1, 0.0, -0.0, np.nan, 3, -3], np.float32), negative_nan]
)

# Sorts: every length around a power of two, any dimension, ties, NaN and zeros.
for n in (1, 2, 3, 4, 5, 8, 13, 16, 17, 64, 100, 1000):
    case("sort", f"length {n}", lax.sort, f32(n))
case("sort", "special values", lax.sort, odd)
case("sort", "dimension 0", lambda x: lax.sort(x, dimension=0), f32(9, 4, 3))
case("sort", "dimension 1", lambda x: lax.sort(x, dimension=1), ints(-5, 5, 3, 20, 2))
# One thread of a GPU sorts all rows, each through the same buffer.
case("sort", "short rows", lambda x: jnp.argsort(x, axis=3, stable=True), ints(0, 9, 33, 17, 13, 3))
case("sort", "unit dimensions", lambda x: lax.sort(x, dimension=2), f32(1, 1, 7, 1))
case("sort", "empty", lambda x: lax.sort(x, dimension=1), f32(3, 0))
for dtype in (np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64, np.bool_, np.float16, bf16, np.float64):
    values = (rng.standard_normal(40) * 50).astype(np.int64).astype(dtype)
    case("sort", f"type {np.dtype(dtype)}", lax.sort, values)
    case("sort", f"argsort of {np.dtype(dtype)}", lambda x: jnp.argsort(x, descending=True), values)
case("sort", "values along", lambda k, x, y: lax.sort([k, x, y], num_keys=1), ints(0, 6, 50), f32(50), ints(0, 2, 50) > 0)
# JAX sorts the positions twice if it differentiates argsort.
case("sort", "one operand twice", lambda k, i: (lax.sort([k, i, i], num_keys=1)[1:], jnp.outer(i, i)), odd, np.arange(13))
case("sort", "one operand in two types", lambda k: lax.sort([-k, lax.iota(np.int32, 13), lax.iota(np.uint32, 13)], num_keys=1)[:2], odd)
case("sort", "one key twice", lambda k, x: lax.sort([k, k, x], num_keys=2), np.arange(13) % 3, odd)
case("sort", "two keys", lambda k, l, x: lax.sort([k, l, x], num_keys=2, dimension=0), ints(0, 3, 30, 4), f32(30, 4), ints(0, 99, 30, 4))
case("sort", "median", lambda x: jnp.median(x, axis=1), f32(5, 31))
case("sort", "searchsorted", lambda a, v: jnp.searchsorted(jnp.sort(a), v, method="sort"), f32(33), f32(9))
case("sort", "permutation", lambda k: jax.random.permutation(jax.random.wrap_key_data(k), 50), np.array([3, 9], np.uint32))
for k in (1, 3, 13):
    case("sort", f"top {k}", lambda x, k=k: lax.top_k(x, k), odd)
    case("sort", f"top {k} of bf16", lambda x, k=k: lax.top_k(x, k), odd.astype(bf16))
case("sort", "top 4 of rows", lambda x: lax.top_k(x, 4), ints(0, 7, 6, 3, 11))
case("sort", "top 4 of ui8", lambda x: lax.top_k(x, 4), ints(0, 255, 40, dtype=np.uint8))
# Few of many are selected, in any order of the elements; many are sorted.
for name, values in {"ties": ints(0, 30, 5, 1000), "rising": np.arange(2000).reshape(2, 1000), "falling": -np.arange(1000), "floats": f32(3, 1, 1000)}.items():
    for k in (1, 32, 100):
        case("sort", f"top {k} of 1000, {name}", lambda x, k=k: lax.top_k(x, k), values)
case("sort", "top of one", lambda x: lax.top_k(x, 1), f32(4, 1))

# Windows.
image = f32(2, 9, 8, 3)


def max_pool(x, window, stride, padding):
    return lax.reduce_window(x, -np.inf, lax.max, window, stride, padding)


def pooled(*shape):
    def gradient(x):
        return jax.grad(lambda y: jnp.sum(jnp.cos(max_pool(y, *shape))))(x)

    return gradient


near = lambda *args: 1e-6
case("window", "max pool 2x2", pooled((1, 2, 2, 1), (1, 2, 2, 1), "VALID"), image, bound=near)
case("window", "max pool 3x3", pooled((1, 3, 3, 1), (1, 2, 2, 1), "SAME"), image, bound=near)
case("window", "max pool 3x2 by 1", pooled((1, 3, 2, 1), (1, 1, 1, 1), "VALID"), image, bound=near)
case("window", "max pool by 4", pooled((1, 2, 2, 1), (1, 4, 3, 1), ((0, 0), (1, 1), (0, 2), (0, 0))), image, bound=near)
ties = np.round(image)
case("window", "ties", lambda x: jax.grad(lambda y: jnp.sum(max_pool(y, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") * x[..., :1]))(x), ties, bound=lambda x: 1e-5)


def select_and_scatter(select, scatter, window, strides, padding):
    def function(operand, source, init):
        return lax._select_and_scatter(operand, select, window, strides, padding, source, init, scatter) if hasattr(
            lax, "_select_and_scatter") else __import__("jax._src.lax.windowed_reductions", fromlist=["x"])._select_and_scatter(
            operand, select, window, strides, padding, source, init, scatter)

    return function


case("window", "least and product", select_and_scatter(lax.le, lax.mul, (2, 3), (1, 2), ((1, 0), (0, 1))),
     ints(-9, 9, 5, 6), ints(1, 4, 5, 3), np.int32(2))
case("window", "one window", select_and_scatter(lax.ge, lax.add, (5,), (1,), ((0, 0),)), ints(0, 9, 5), ints(1, 4, 1), np.int32(0))
case("window", "i8", select_and_scatter(lax.gt, lax.max, (3,), (2,), ((1, 1),)), ints(-9, 9, 9, dtype=np.int8),
     ints(1, 4, 5, dtype=np.int8), np.int8(-1))
case("window", "bf16", select_and_scatter(lax.ge, lax.add, (2, 2), (2, 2), ((0, 0), (0, 0))), f32(6, 4).astype(bf16),
     f32(3, 2).astype(bf16), bf16(0))
i7 = ints(-9, 9, 7, 6)
for name, spec in {
    "dilated base": dict(base_dilation=(2, 3), padding=((1, 2), (0, 1))),
    "dilated window": dict(window_dilation=(2, 1), padding=((2, 2), (1, 0))),
    "both dilated": dict(base_dilation=(3, 2), window_dilation=(2, 3), padding=((1, 1), (4, 0))),
    "negative padding": dict(padding=((-1, -2), (1, -1))),
    "negative padding of a dilated base": dict(base_dilation=(2, 2), padding=((-1, 0), (-2, -1))),
    # As many elements as before, of which half are holes.
    "dilated to the same size": dict(base_dilation=(2, 2), padding=((0, -6), (0, -5))),
    "strides": dict(window_strides=(3, 2), padding="SAME"),
}.items():
    spec = dict(window_strides=(1, 1)) | spec
    case("window", "reduce_window, " + name,
         lambda x, spec=spec: lax.reduce_window(x, np.int32(0), lax.add, (2, 3), **spec), i7)
case("window", "convolution dilated to the same size", lambda x, w: lax.conv_general_dilated(x, w, (1,), ((0, -6),), lhs_dilation=(2,)), f32(2, 3, 7), f32(4, 3, 1), bound=lambda *args: 1e-5)
# Simplifications move constants out of bodies.
case("window", "any body on ui32", lambda x: lax.reduce(x, np.uint32(0), lambda a, b: (a * np.uint32(31)) ^ b, (1,)), ints(0, 99, 3, 5, dtype=np.uint32))
case("window", "variadic reduce_window", lambda x, y: lax.reduce_window(
    (x, y), (np.float32(-np.inf), np.int32(-1)),
    lambda a, b: (lax.select(a[0] >= b[0], a[0], b[0]), lax.select(a[0] >= b[0], a[1], b[1])),
    (2, 3), (1, 2), "SAME"), f32(6, 9), ints(0, 99, 6, 9))
case("window", "cumulative", lambda x: (lax.cumsum(x, 1), lax.cumprod(x, 0), lax.cummax(x, 1, reverse=True), lax.cummin(x, 0)), i7)

# Longer sums are computed in blocks. Infinities reach later elements only.
for shape, dim in (((3, 700), 1), ((70, 6), 0), ((2, 33, 4), 1), ((4, 48), 1)):
    both = lambda x, dim=dim: (lax.cumsum(x, dim), lax.cumsum(x, dim, reverse=True))
    case("window", f"cumulative sums {shape}", both, ints(-99, 99, *shape, dtype=np.int32))
    case("window", f"cumulative sums of f32 {shape}", both, f32(*shape), bound=lambda *args: 1e-4)
infinite = ints(-9, 9, 5, 300, dtype=np.float32)
infinite[1, 40], infinite[2, 290], infinite[3, 7], infinite[3, 9] = np.inf, -np.inf, np.inf, -np.inf
case("window", "cumulative sums of infinities", lambda x: (lax.cumsum(x, 1), lax.cumsum(x, 1, reverse=True)), infinite)
case("window", "cumulative sums of bf16", lambda x: lax.cumsum(x.astype(jnp.float32), 1).astype(bf16) - lax.cumsum(x, 1), np.float32(rng.integers(-1, 2, (6, 400))).astype(bf16))


# Gradients of cumulative and associative scans along dimension 0.
def weighted(scan):
    weights = lambda y: jnp.cos(jnp.arange(y.size, dtype=jnp.float32)).reshape(y.shape)
    return jax.value_and_grad(lambda x: jnp.sum(scan(x) * weights(x)))


for name, scan in {
    "cummax": lambda x: lax.cummax(x, 0),
    "associative sum": lambda x: lax.associative_scan(jnp.add, x, axis=0),
    "associative product": lambda x: lax.associative_scan(jnp.multiply, 1 + 0.1 * jnp.sin(x), axis=0),
    "linear recurrence": lambda x: lax.associative_scan(lambda a, b: (a[0] * b[0], b[0] * a[1] + b[1]), (jnp.cos(x), x), axis=0)[1],
}.items():
    for shape in ((12, 20), (9, 1)):
        case("window", f"gradient of {name} {shape}", weighted(scan), f32(*shape), bound=lambda *args: 1e-5)

half = f32(6, 40).astype(bf16)
case("window", "argmax of bf16", lambda x: jnp.argmax(x, 1), half)
case("window", "max of bf16", lambda x: (jnp.max(x, 1), jnp.min(x, 0)), half)
case("window", "maximum over no dimension, times a tensor", lambda x, y: jnp.max(x) * y, np.array(1.5, np.float32), f32(4, 8))
case("window", "any of one flag, and a tensor", lambda x, y: jnp.where(jnp.any(x), y, 0), np.array(True), f32(4, 8))
case("window", "variadic reduce over no dimension", lambda x, y: lax.reduce(
    (x, y), (np.float32(0), np.int32(0)), lambda a, b: (a[0] + b[0], a[1] + b[1]), ()), f32(4, 8), ints(0, 9, 4, 8))
case("window", "pool of bf16", lambda x: lax.reduce_window(x, bf16(-np.inf), lax.max, (2, 3), (1, 2), "SAME"), half)
case("window", "any body on bf16", lambda x: lax.reduce(x, bf16(0), lambda a, b: lax.select(abs(a) > abs(b), a, b), (1,)), half)

# Sums of values that are padded with zeros, zeros of both signs among them.
def with_zeros(*shape, dtype=np.float32):
    kind = rng.random(shape)
    return np.where(kind < 0.2, 0.0, np.where(kind < 0.4, -0.0, 10 * f32(*shape))).astype(dtype)


def spread(x, axis, low, step, size, padding=0):
    """Returns `size` elements along an axis, with those of x `step` apart from `low` on."""
    edges = [(0, 0, 0)] * x.ndim
    edges[axis] = (low, size - 1 - low - (x.shape[axis] - 1) * step, step - 1)
    return lax.pad(x, np.asarray(padding, x.dtype), edges)


even_and_odd = lambda x, y: spread(x, 1, 0, 2, 7) + spread(y, 1, 1, 2, 7)
for dtype in (np.float32, np.float64, np.float16, bf16, np.int32, np.uint32, np.int8):
    case("padded", f"even and odd {np.dtype(dtype)}", even_and_odd, with_zeros(2, 4, 3, dtype=dtype), with_zeros(2, 3, 3, dtype=dtype))
case("padded", "inner sum that is read twice", lambda x, y: (lambda s: (s + spread(y, 1, 2, 2, 7), s))(even_and_odd(x, y)), with_zeros(2, 4, 3), with_zeros(2, 3, 3))
case("padded", "in a loop", lambda x, y: lax.fori_loop(0, 3, lambda i, s: s + even_and_odd(x, y), jnp.zeros((2, 7, 3), jnp.float32)), with_zeros(2, 4, 3), with_zeros(2, 3, 3))
case("padded", "even and odd of a row", lambda x, y: spread(x, 0, 0, 2, 8) + spread(y, 0, 1, 2, 8), with_zeros(4), with_zeros(4))
case("padded", "halves", lambda x, y: spread(x, 1, 0, 1, 9) + spread(y, 1, 4, 1, 9), with_zeros(3, 4), with_zeros(3, 5))
case("padded", "along two dimensions", lambda x, y: spread(x, 0, 1, 1, 4) + spread(y, 1, 2, 1, 5), with_zeros(3, 5), with_zeros(4, 3))
case("padded", "with ones", lambda x, y: spread(x, 0, 0, 1, 4, padding=1) + spread(y, 0, 1, 1, 4), with_zeros(3), with_zeros(3))
case("padded", "cut off", lambda x, y: lax.pad(x, np.float32(0), ((-1, 2, 0),)) + spread(y, 0, 1, 1, 4), with_zeros(3), with_zeros(3))
case("padded", "cut off to the same size", lambda x, y: lax.pad(x, np.float32(0), ((0, -1, 1), (0, 0, 0))) + y, with_zeros(2, 3), with_zeros(2, 3))
case("padded", "one value twice", lambda x: (lambda p: p + p)(spread(x, 0, 1, 2, 8)), with_zeros(3, 2))


def random_sum(number):
    """Adds up to six values in some order; most are padded along the same dimension."""
    axis, size = rng.integers(0, 3), rng.integers(1, 12)
    shape, pads, terms = rng.integers(1, 4, 3), [], []
    for _ in range(rng.integers(2, 7)):
        low, step, shape[axis] = 0, 1, size
        if rng.random() < 0.8:
            low, step = rng.integers(0, size), rng.choice([1, 1, 2, 2, 3])
            shape[axis] = rng.integers(1, (size - 1 - low) // step + 2)
        pads.append((low, step))
        terms.append(with_zeros(*shape))
    order = [int(rng.integers(0, 6)) for _ in terms[1:]]

    def add(*terms):
        values = [spread(x, axis, *pad, size) for x, pad in zip(terms, pads)]
        for at in order:
            values.append(values.pop(at % len(values)) + values.pop(0))
        return values[0]

    case("padded", f"random {number}", add, *terms)


for number in range(60):
    random_sum(number)

# Random bits.
states = {"2": np.array([0x123456789ABCDEF0, 0xFFFFFFFFFFFFFFFE], np.uint64), "4": np.array([1, 2, 0xFFFFFFFF, 4], np.uint32)}
for algorithm in lax.RandomAlgorithm:
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64):
        for shape in ((), (1,), (9,), (3, 5), (3, 4, 5), (2, 3), (1, 7), (0, 3)):
            for length, state in states.items():
                if length == "4" and shape != (9,):
                    continue
                case(f"random{algorithm.name[3:]}", f"{np.dtype(dtype)}{shape} of state {length}",
                     lambda s, a=algorithm, d=dtype, h=shape: lax.rng_bit_generator(s, h, d, a), state)
for impl in ("rbg", "unsafe_rbg", "threefry2x32"):
    key = jax.random.key_data(jax.random.key(7, impl=impl))
    wrap = lambda k, impl=impl: jax.random.wrap_key_data(k, impl=impl)
    case("keys", f"{impl} bits", lambda k, w=wrap: jax.random.bits(w(k), (5, 7), jnp.uint32), key)
    case("keys", f"{impl} split", lambda k, w=wrap: jax.random.key_data(jax.random.split(w(k), 3)), key)
    case("keys", f"{impl} fold_in", lambda k, w=wrap: jax.random.key_data(jax.random.fold_in(w(k), 11)), key)
    case("keys", f"{impl} uniform", lambda k, w=wrap: jax.random.uniform(w(k), (33,), jnp.float32), key)
    case("keys", f"{impl} bernoulli", lambda k, w=wrap: jax.random.bernoulli(w(k), 0.3, (50,)), key)
    case("keys", f"{impl} randint", lambda k, w=wrap: jax.random.randint(w(k), (20,), -5, 100, jnp.int32), key)

# Gathers and scatters.
table = ints(-99, 99, 10, 4, 6)


def gathered(dims, sizes, mode="clip"):
    return lambda t, i: lax.gather(t, i, dims, sizes, mode=mode)


G, S = lax.GatherDimensionNumbers, lax.ScatterDimensionNumbers
case("gather", "windows", gathered(G((0, 2), (1,), (1, 0)), (3, 1, 6)), table, ints(-3, 12, 5, 2))
case("gather", "filled", gathered(G((1,), (0, 2), (2, 0)), (1, 4, 1), "fill"), table, ints(-3, 12, 5, 2))
case("gather", "i64 indices", gathered(G((0, 1), (0,), (0,)), (1, 2, 6)), table, ints(-3, 12, 5, 1, dtype=np.int64))
case("gather", "large ui64", gathered(G((0, 1), (0,), (0,)), (1, 2, 6)), table, np.array([[2**63 + 1], [3], [2**64 - 1]], np.uint64))
case("gather", "i8 indices", gathered(G((0, 1), (0,), (0,)), (1, 4, 2)), table, ints(-3, 12, 5, 1, dtype=np.int8))
case("gather", "scalar index", lambda t, i: t[i], table, np.int32(7))
case("gather", "take along", lambda t, i: jnp.take_along_axis(t, i, 1), table, ints(-4, 4, 10, 3, 6))
case("gather", "under vmap", jax.vmap(lambda t, i: t[i, ::2]), table, ints(-4, 4, 10, 3))
case("gather", "bool mask", lambda t, i: jnp.where(i > 0, t[jnp.clip(i, 0, 9), 0, 0], 0), table, ints(-4, 4, 12))
for mode in ("clip", "drop"):
    for name, scatter in {"set": lax.scatter, "add": lax.scatter_add, "mul": lax.scatter_mul, "min": lax.scatter_min, "max": lax.scatter_max}.items():
        unique = np.array([[0, 1], [9, 3], [-1, 2], [5, 9], [3, 0]], np.int32) if mode == "drop" else np.array([[0, 1], [8, 3], [3, 2]], np.int32)
        where = unique if name == "set" else np.concatenate([unique, unique])
        case("scatter", f"{name}, {mode}", lambda t, i, u, s=scatter, m=mode: s(t, i, u, S((1,), (0, 1), (0, 1)), mode=m),
             table, where, ints(1, 4, len(where), 6))


# A scatter reads the values that it replaces.
order = rng.permutation(64).astype(np.int32)
case("scatter", "of itself", lambda a, b, p: (a * b).at[p].set(a * b), f32(64, 5), f32(64, 5), order)
case("scatter", "of itself, added", lambda x, p: (lambda h: h.at[p].add(h))(jnp.sin(x)), f32(64, 5), order, bound=lambda *args: 1e-6)
# Rows are read where they were computed, and anywhere.
case("gather", "of a flat view of what is read", lambda x, i: (lambda y: y + jnp.take(y, i))(jnp.sin(x)), f32(64, 5), ints(0, 320, 64, 5), bound=lambda *args: 1e-6)
case("gather", "branches that change a sign type", lambda p, a, b: jax.lax.cond(p[0] > 0, lambda a, b: a.astype(jnp.uint32), lambda a, b: b, a, b),
     np.array([1], np.int32), ints(-9, 9, 8, 4), ints(0, 9, 8, 4, dtype=np.uint32))


def scattered_windows(table, where, updates):
    """Updates the elements of a window that are inside, as the specification says; XLA skips such a window.
    """
    result = table.copy()
    for n, (at1, at0) in enumerate(where):
        for i in range(updates.shape[0]):
            for j in range(updates.shape[2]):
                if 0 <= at0 + i < table.shape[0] and 0 <= at1 < table.shape[1]:
                    result[at0 + i, at1, j] += updates[i, n, j]
    return result


case("scatter", "windows partly outside", lambda t, i, u: lax.scatter_add(t, i, u, S((0, 2), (1,), (1, 0)), mode="drop"),
     table, np.array([[1, 2], [3, 9], [0, -1], [1, 3]], np.int32), ints(-9, 9, 3, 4, 5), want=scattered_windows)
case("scatter", "clipped windows", lambda t, i, u: lax.scatter_add(t, i, u, S((0, 2), (1,), (1, 0)), mode="clip"), table,
     np.array([[1, 2], [3, 9], [0, -1], [7, 3]], np.int32), ints(-9, 9, 3, 4, 5))
case("scatter", "batches", lambda t, i, u: lax.scatter_add(t, i, u, S((), (1,), (1,), (0, 2), (0, 1)), mode="drop"),
     ints(0, 99, 3, 7, 5), ints(-2, 9, 3, 5, 4, 1), ints(1, 9, 3, 5, 4))
case("scatter", "unsigned indices", lambda t, i, u: t.at[i].add(u, mode="drop"), table[:, 0, 0], np.array([3, 200, 9], np.uint8), ints(1, 5, 3))
case("scatter", "i8 indices of a long row", lambda t, i, u: t.at[i].add(u), ints(0, 9, 100), ints(-50, 50, 9, dtype=np.int8), ints(1, 5, 9))
case("scatter", "one row", lambda t, u: t.at[-2].set(u), table, ints(0, 9, 4, 6))
case("scatter", "one element", lambda t, i, u: t.at[i, 2, 3].multiply(u), table, np.int32(4), np.int32(3))
case("scatter", "under vmap", jax.vmap(lambda t, i, u: t.at[i].add(u)), table, ints(-4, 4, 10, 3), ints(0, 9, 10, 3, 6))
case("scatter", "apply", lambda t, i: t.at[i].apply(lambda x: x * x + 1), table[:, 0, 0], np.array([1, 4, 7]))
case("scatter", "bf16", lambda t, i, u: t.at[i].add(u), f32(8).astype(bf16), np.array([1, 4, 7]), f32(3).astype(bf16))
case("scatter", "bool", lambda t, i: t.at[i].set(True), np.zeros(9, bool), np.array([1, 4, 7]))
case("scatter", "gradient of take", lambda t, i: jax.grad(lambda x: jnp.sum(jnp.take(x, i, axis=0) ** 2))(t), f32(9, 5),
     ints(0, 9, 20), bound=lambda t, i: 1e-4)
case("scatter", "segments", lambda x, i: jax.ops.segment_sum(x, i, 6), ints(0, 9, 40, 3), ints(-1, 7, 40))


# Dots.
def summed(l, r):
    """Returns 1e-6 of the sum of absolute products."""
    return 1e-6 * (np.abs(np.float64(l)) @ np.abs(np.float64(r)))


def dot(name, l, r, preferred=None, bound=None, precision=None):
    case("dot", name, lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), precision=precision,
                                                 preferred_element_type=preferred), l, r, bound=bound)


i8 = lambda *shape: ints(-128, 128, *shape, dtype=np.int8)
dot("i8 to i32", i8(5, 300), i8(300, 7), jnp.int32)
dot("ui8 to i32", ints(0, 256, 5, 300, dtype=np.uint8), i8(300, 7).view(np.uint8), jnp.int32)
dot("ui8 to ui32", ints(0, 256, 5, 300, dtype=np.uint8), ints(0, 256, 300, 7, dtype=np.uint8), jnp.uint32)
dot("i8 to i8", i8(5, 30), i8(30, 7))
dot("i64", ints(-(2**40), 2**40, 4, 9, dtype=np.int64), ints(-(2**40), 2**40, 9, 3, dtype=np.int64))
dot("i16 to i64", ints(-9999, 9999, 4, 90, dtype=np.int16), ints(-9999, 9999, 90, 3, dtype=np.int16), jnp.int64)
dot("bf16 to f32", f32(5, 70).astype(bf16), f32(70, 4).astype(bf16), jnp.float32, bound=summed)
dot("f16 to f32", f32(5, 70).astype(np.float16), f32(70, 4).astype(np.float16), jnp.float32, bound=summed)
double = lambda l, r: 1e-15 * (np.abs(np.float64(l)) @ np.abs(np.float64(r)))
dot("f64", f32(5, 70).astype(np.float64) / 3, f32(70, 4).astype(np.float64) / 3, bound=double)
dot("f32 to f64", f32(5, 70), f32(70, 4), jnp.float64, bound=double)
for precision in ("default", "highest", lax.DotAlgorithmPreset.F32_F32_F32):
    dot(f"precision {precision}", f32(5, 70), f32(70, 4), bound=summed, precision=precision)


# Elements of less than a byte. Loops and sorts keep them in memory, where every one has a byte; JAX has no f6 here.
steps = np.arange(-1024, 1024, dtype=np.float32) / 32
wide = np.concatenate([odd, steps, np.nextafter(steps, np.float32(np.inf)), np.nextafter(steps, np.float32(-np.inf))])


def in_loop(x, narrow):
    """Moves narrow elements in a loop whose number of iterations is not known."""
    return lax.fori_loop(0, jnp.int32(x[6]) + 2, lambda i, y: jnp.roll(y[::-1], 3), x.astype(narrow)).astype(x.dtype)


def rolled(x, narrow):
    y = np.where(np.isnan(x), np.float32(-0.0), x).astype(narrow)  # what XLA makes of NaN
    for _ in range(3):
        y = np.roll(y[::-1], 3)
    return y.astype(x.dtype)


def bits_of(x, narrow):
    """Converts integers, of which the low bits stay."""
    width = ml_dtypes.iinfo(narrow).bits
    low = np.int64(x) & (2**width - 1)
    return np.where((ml_dtypes.iinfo(narrow).min < 0) & (low >= 2 ** (width - 1)), low - 2**width, low).astype(np.int32)


for narrow in (ml_dtypes.float4_e2m1fn, ml_dtypes.float6_e2m3fn, ml_dtypes.float6_e3m2fn):
    case("narrow", f"{np.dtype(narrow)}", lambda x, n=narrow: in_loop(x, n), wide, want=lambda x, n=narrow: rolled(x, n))
for narrow in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.int2, ml_dtypes.uint2):
    name = str(np.dtype(narrow))
    case("narrow", f"sort of {name}", lambda x, n=narrow: jnp.sort(x.astype(n), axis=1).T.astype(jnp.int32), ints(-40, 40, 5, 33),
         want=lambda x, n=narrow: np.sort(bits_of(x, n), axis=1).T)
    case("narrow", f"sums of {name}", lambda x, n=narrow: lax.reduce(x.astype(n), np.zeros((), n), lax.add, (0,)).astype(jnp.int32)[::-1],
         ints(-40, 40, 33, 20), want=lambda x, n=narrow: bits_of(x.sum(0), n)[::-1])
    case("narrow", f"rows of {name}", lambda x, i, n=narrow: jnp.take(jnp.pad(x.astype(n)[:, ::2], ((1, 2), (0, 0)), constant_values=1), i, axis=0).astype(jnp.int32),
         ints(-40, 40, 9, 40), ints(0, 12, 6), want=lambda x, i, n=narrow: np.pad(bits_of(x[:, ::2], n), ((1, 2), (0, 0)), constant_values=1)[i])
    case("narrow", f"products of {name}", lambda x, y, n=narrow: lax.dot(x.astype(n), y.astype(n), preferred_element_type=jnp.int32),
         ints(-40, 40, 9, 33), ints(-40, 40, 33, 5), want=lambda x, y, n=narrow: bits_of(x, n) @ bits_of(y, n))


def text_of(function, args):
    text = jax.jit(function, keep_unused=True).lower(*args).as_text()
    return re.sub(r" \{jax\.result_info = \"[^\"]*\"\}", "", text)


def run(group, cases):
    """Returns the failures as text."""

    def together(*flat):
        flat, results = list(flat), []
        for _, function, args, _, _ in cases:
            results.append(function(*[flat.pop(0) for _ in args]))
        return results

    flat = [a for c in cases for a in c[2]]
    # XLA does not compile all of what is compared with another reference.
    known = all(want for *_, want in cases)
    want = [None] * len(cases) if known else jax.jit(together, keep_unused=True)(*flat)
    found = run_function(fp8_run, work / group, text_of(together, flat), {f"arg{i}": a for i, a in enumerate(flat)})
    if isinstance(found, str):
        return [f"{group}: {found}"]
    failures, next_result = [], 0
    for (name, _, args, bound, reference), result in zip(cases, want):
        if reference:
            result = reference(*args)
        for k, expected in enumerate(jax.tree.leaves(result)):
            expected = np.asarray(expected)
            got = found[f"result{next_result}"]
            next_result += 1
            got = got.view(expected.dtype) if got.dtype != expected.dtype else got
            wrong = None
            if bound is None:
                wrong = exact(expected, *args)(got)
            elif got.shape != expected.shape:
                wrong = f"expected shape {expected.shape} but got {got.shape}"
            else:
                error = np.abs(got.astype(np.float64) - expected.astype(np.float64))
                if not np.all(error <= bound(*args)):
                    wrong = f"off by {error.max()}"
            if wrong:
                failures.append(f"{group}, {name}, result {k}: {wrong}")
    return failures


def f64_accumulation():
    """Runs a dot whose sums cancel, with accumulation in f64, an algorithm that JAX does not write
    for CPUs."""
    l, r = f32(5, 7) * 1e4, f32(7, 4)
    l[:, 1], r[1] = -l[:, 0], r[0]
    text = """func.func public @main(%x: tensor<5x7xf32>, %y: tensor<7x4xf32>) -> tensor<5x4xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = f64, rhs_precision_type = f64, accumulation_type = f64, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<5x7xf32>, tensor<7x4xf32>) -> tensor<5x4xf32>
  return %0 : tensor<5x4xf32>
}
"""
    found = run_function(fp8_run, work / "f64_accumulation", text, {"arg0": l, "arg1": r})
    if isinstance(found, str):
        return [f"f64 accumulation: {found}"]
    wrong = exact((np.float64(l) @ np.float64(r)).astype(np.float32))(found["result0"])
    return [f"f64 accumulation: {wrong}"] if wrong else []


work.mkdir(parents=True, exist_ok=True)
failures, count = [], 0
if not chosen:
    failures += f64_accumulation()
for group, cases in groups.items():
    if chosen and group not in chosen:
        continue
    failures += run(group, cases)
    count += len(cases)
print("\n".join(failures))
print(f"{count} cases, {len(failures)} failures")
sys.exit(bool(failures))
