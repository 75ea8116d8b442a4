"""Compiles lowered ops with upstream's loops and compares values.

usage: compare.py FP8_OPT WORK_DIR

Every case is a JAX function with example arguments. Its StableHLO goes through
`fp8-structure` and upstream's bufferization and loops into one shared object. Its
results are compared with JAX's or, for functions that XLA computes less accurately,
with NumPy's in f64. Integers must be equal, and floats within `ulps`.
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax

fp8_opt, work = sys.argv[1:3]
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)
# Takes the tools of the LLVM that mlir-translate belongs to.
tools = os.path.dirname(shutil.which("mlir-translate"))
rng = np.random.default_rng(0)
cases = []


def case(name, function, *args, ulps=0, atol=0.0, want=None):
    cases.append((name, function, [np.asarray(a) for a in args], ulps, atol, want))


def raw(name, body, reference, *args):
    """Adds a case in StableHLO's own text, for ops that JAX does not write."""
    cases.append((name, (body, reference), [np.asarray(a) for a in args], 0, 0.0, None))


def int_pow(x, y):
    if y < 0:
        return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)
    return (pow(x, y, 2**32) + 2**31) % 2**32 - 2**31


def total_order(x):
    bits = int(np.float32(x).view(np.int32))
    return bits if bits >= 0 else bits ^ 0x7FFFFFFF


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def i32(low, high, *shape):
    return rng.integers(low, high, shape).astype(np.int32)


special = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3e9, -3e9, 1e20, -1e20, 7.3, -7.3,
     np.inf, -np.inf, np.nan, 2147483648.0, -2147483648.0, 127.6, -128.5, 255.5, -0.9], np.float32)
a, b = [x.ravel() for x in np.meshgrid(special, special)]
ints = np.array([0, 1, -1, 2, -2, 3, 7, 31, 32, 33, 100, -100, 2**31 - 1, -(2**31), 12345, -54321], np.int32)
p, q = [x.ravel() for x in np.meshgrid(ints, ints)]

# XLA flushes subnormals to zero, so that NumPy is the reference.
tiny = np.array([1e-40, -1e-40, 3e-45, 1e-38, 1.0, -3e9, 0.0, 1e30], np.float32)
s, t = [x.ravel() for x in np.meshgrid(tiny, tiny)]
for name, ref in [("add", np.add), ("mul", np.multiply), ("div", np.divide), ("max", np.maximum)]:
    case("subnormal_" + name, getattr(lax, name), s, t, want=lambda x, y, ref=ref: ref(np.float32(x), np.float32(y)))
for name, ref in [("sign", np.sign), ("floor", np.floor), ("ceil", np.ceil)]:
    case("subnormal_" + name, getattr(lax, name), tiny, want=ref)

# Elementwise.
for name in ["add", "sub", "mul", "div", "max", "min", "rem"]:
    case("f32_" + name, getattr(lax, name), a, b)
    if name not in ("div", "rem"):
        case("i32_" + name, getattr(lax, name), p, q)
        case("ui32_" + name, getattr(lax, name), p.view(np.uint32), q.view(np.uint32))
for name in ["div", "rem"]:
    case("i32_" + name, getattr(lax, name), p, q)
    case("ui32_" + name, getattr(lax, name), p.view(np.uint32), q.view(np.uint32))
for name in ["shift_left", "shift_right_arithmetic", "shift_right_logical"]:
    case("i32_" + name, getattr(lax, name), p, q)
    case("ui32_" + name, getattr(lax, name), p.view(np.uint32), q.view(np.uint32))
for name in ["bitwise_and", "bitwise_or", "bitwise_xor"]:
    case("i32_" + name, getattr(lax, name), p, q)
    case("i1_" + name, getattr(lax, name), p > 0, q > 3)
for name in ["eq", "ne", "ge", "gt", "le", "lt"]:
    case("f32_" + name, getattr(lax, name), a, b)
    case("i32_" + name, getattr(lax, name), p, q)
    case("ui32_" + name, getattr(lax, name), p.view(np.uint32), q.view(np.uint32))
for name in ["bitwise_not", "population_count", "clz", "sign", "neg", "abs"]:
    case("i32_" + name, getattr(lax, name), ints)
for name in ["sign", "neg", "abs", "floor", "ceil", "round", "is_finite"]:
    case("f32_" + name, getattr(lax, name), special)
case("round_even", lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN), special)
raw("i32_pow", "(%x: tensor<256xi32>, %y: tensor<256xi32>) -> tensor<256xi32> {"
    "%0 = stablehlo.power %x, %y : tensor<256xi32> return %0 : tensor<256xi32> }",
    lambda x, y: [[int_pow(int(u), int(v)) for u, v in zip(x, y)]], p, q)
raw("ui32_pow", "(%x: tensor<256xui32>, %y: tensor<256xui32>) -> tensor<256xui32> {"
    "%0 = stablehlo.power %x, %y : tensor<256xui32> return %0 : tensor<256xui32> }",
    lambda x, y: [np.array([pow(int(u), int(v), 2**32) for u, v in zip(x, y)], np.uint32)],
    p.view(np.uint32), q.view(np.uint32))
raw("total_order", "(%x: tensor<576xf32>, %y: tensor<576xf32>) -> tensor<576xi1> {"
    "%0 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<576xf32>, tensor<576xf32>) -> tensor<576xi1> "
    "return %0 : tensor<576xi1> }",
    lambda x, y: [np.array([total_order(u) < total_order(v) for u, v in zip(x, y)])], a, b)
raw("map", "(%x: tensor<5xf32>) -> tensor<5xf32> {"
    '%0 = "stablehlo.map"(%x) <{dimensions = array<i64: 0>}> ({ ^bb0(%a: tensor<f32>): '
    "%c = stablehlo.constant dense<2.0> : tensor<f32> %1 = stablehlo.multiply %a, %c : tensor<f32> "
    "stablehlo.return %1 : tensor<f32> }) : (tensor<5xf32>) -> tensor<5xf32> return %0 : tensor<5xf32> }",
    lambda x: [x * 2], f32(5))
case("select_scalar", lambda c, x, y: lax.select(c, x, y), np.bool_(True), a, b)
case("clamp_scalar", lambda l, x, h: lax.clamp(l, x, h), np.float32(-1), special, np.float32(2))
case("clamp_i32", lambda l, x, h: lax.clamp(l, x, h), np.int32(-3), ints, np.int32(30))
finite = special[np.isfinite(special)]
for to in ["int8", "uint8", "int32", "uint32", "int64", "bool", "float64", "bfloat16", "float16"]:
    case("f32_to_" + to, lambda x, to=to: lax.convert_element_type(x, jnp.dtype(to)), special)
    case("i32_to_" + to, lambda x, to=to: lax.convert_element_type(x, jnp.dtype(to)), ints)
    case("ui32_to_" + to, lambda x, to=to: lax.convert_element_type(x, jnp.dtype(to)), ints.view(np.uint32))
    case("i1_to_" + to, lambda x, to=to: lax.convert_element_type(x, jnp.dtype(to)), ints > 0)
    case("bf16_to_" + to, lambda x, to=to: lax.convert_element_type(x, jnp.dtype(to)),
         special.astype(ml_dtypes.bfloat16))
for to in ["float8_e4m3fn", "float8_e5m2"]:
    case("f32_to_" + to, lambda x, to=to: lax.convert_element_type(x, jnp.dtype(to)), f32(64) * 4)
case("bf16_add", lax.add, a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16))
case("bf16_mul", lax.mul, a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16))
case("reduce_precision", lambda x: lax.reduce_precision(x, 5, 10), np.concatenate([special, f32(500) * 1e4]))
case("reduce_precision_bf16", lambda x: lax.reduce_precision(x, 8, 7), np.concatenate([special, f32(500)]))
case("bitcast", lambda x: lax.bitcast_convert_type(x, jnp.uint32), special)
case("bitcast_narrow", lambda x: lax.bitcast_convert_type(x, jnp.uint8), f32(5))
case("bitcast_wide", lambda x: lax.bitcast_convert_type(x, jnp.float32), i32(0, 255, 6, 4).astype(np.uint8))
case("nextafter", lax.nextafter, np.where(np.abs(a) < 1e-38, np.float32(2), a), b)
wide = np.concatenate([f32(2000), f32(500) * 30])
for name, ref in [("exp", np.exp), ("log", np.log), ("tanh", np.tanh), ("sin", np.sin), ("cos", np.cos),
                  ("expm1", np.expm1), ("log1p", np.log1p), ("cbrt", np.cbrt), ("sqrt", np.sqrt),
                  ("rsqrt", lambda x: 1 / np.sqrt(x)), ("logistic", lambda x: 1 / (1 + np.exp(-x))),
                  ("erf", lambda x: np.vectorize(__import__("math").erf)(x)), ("square", np.square)]:
    case("f32_" + name, getattr(lax, name), wide, ulps=2, want=ref)
case("pow", lax.pow, np.abs(wide), np.roll(wide, 7), ulps=2, want=np.power)
case("atan2", lax.atan2, wide, np.roll(wide, 7), ulps=2, want=np.arctan2)
from scipy import special as sp
case("erf_inv", lax.erf_inv, rng.uniform(-1, 1, 3000).astype(np.float32), ulps=2, want=sp.erfinv)
case("erf_inv_edge", lax.erf_inv, np.array([1, -1, 0.99999994, 1e-30, 0, -0.9999], np.float32), ulps=2,
     want=sp.erfinv)
# Near a root the rounding of an f32 argument changes the result by more than 2 ulp.
for name, ref in [("lgamma", sp.gammaln), ("digamma", sp.psi)]:
    points = np.concatenate([wide, special[special > -np.inf], [3e4, -0.0, 1.0, 2.0, np.inf]]).astype(np.float32)
    case(name, getattr(lax, name), points[~(np.abs(ref(points.astype(np.float64))) < 1e-2)], ulps=2, want=ref)
case("erfc", lax.erfc, wide, ulps=2, want=sp.erfc)

# Moves.
x3 = f32(3, 4, 5)
case("transpose", lambda x: lax.transpose(x, (2, 0, 1)), x3)
case("broadcast", lambda x: lax.broadcast_in_dim(x, (2, 3, 4, 5), (1, 3)), f32(3, 5))
case("broadcast_one", lambda x: lax.broadcast_in_dim(x, (4, 3, 5), (0, 2)), f32(4, 1))
case("broadcast_scalar", lambda x: lax.broadcast_in_dim(x, (4, 3), ()), np.float32(3))
case("slice", lambda x: lax.slice(x, (0, 1, 1), (3, 4, 5), (2, 1, 2)), x3)
case("reverse", lambda x: lax.rev(x, (0, 2)), x3)
for shape in [(60,), (12, 5), (3, 20), (5, 4, 3), (1, 3, 1, 4, 5), (6, 10), (2, 30), (3, 2, 2, 5)]:
    case("reshape_" + "x".join(map(str, shape)), lambda x, shape=shape: lax.reshape(x, shape), x3)
case("reshape_to_scalar", lambda x: lax.reshape(x, ()), f32(1, 1))
case("reshape_from_scalar", lambda x: lax.reshape(x, (1, 1)), np.float32(2))
case("concatenate", lambda x, y, z: lax.concatenate([x, y, z], 1), f32(3, 2), f32(3, 1), f32(3, 4))
case("concatenate_shared", lambda x, y: (lax.concatenate([x, y], 0), lax.concatenate([y, x], 0)), f32(2, 3), f32(2, 3))
case("pad", lambda x: lax.pad(x, np.float32(7), ((1, 2, 0), (0, 3, 2))), f32(3, 4))
case("pad_negative", lambda x: lax.pad(x, np.float32(7), ((-1, 2, 0), (2, -1, 1), (-2, -1, 2))), x3)
case("pad_value", lambda x, v: lax.pad(x, v, ((1, 1, 0), (1, 1, 0))), f32(2, 2), np.float32(5))
case("iota", lambda: (lax.broadcasted_iota(jnp.float32, (3, 4), 1), lax.broadcasted_iota(jnp.uint8, (3, 4), 0),
                      lax.broadcasted_iota(jnp.bfloat16, (3, 4), 1), lax.broadcasted_iota(jnp.int64, (3, 4), 0)))
case("constant", lambda: (jnp.asarray(np.arange(6, dtype=np.uint32).reshape(2, 3)), jnp.asarray([True, False])))

# Reductions.
big = f32(6, 7, 8)
case("reduce_sum", lambda x: lax.reduce(x, np.float32(0), lax.add, (1,)), big, ulps=16)
case("reduce_sum_all", lambda x: lax.reduce(x, np.float32(0), lax.add, (0, 1, 2)), big, atol=1e-4)
case("reduce_max", lambda x: lax.reduce(x, np.float32(-np.inf), lax.max, (0, 2)), big)
case("reduce_max_nan", lambda x: lax.reduce(x, np.float32(-np.inf), lax.max, (0,)), special)
case("reduce_ui8", lambda x: lax.reduce(x, np.uint8(0), lax.max, (0,)), np.array([3, 200, 100], np.uint8))
case("reduce_and", lambda x: lax.reduce(x, np.bool_(True), lax.bitwise_and, (1,)), big[0] > -1)
case("reduce_init", lambda x, i: lax.reduce(x, i, lax.add, (0,)), i32(0, 9, 4, 3), np.int32(100))
case("reduce_bf16", lambda x: lax.reduce(x, ml_dtypes.bfloat16(0), lax.add, (0,)),
     np.abs(f32(600, 2)).astype(ml_dtypes.bfloat16), ulps=1, want=lambda x: x.astype(np.float64).sum(0))
case("argmax", lambda x: lax.argmax(x, 1, jnp.int32), big[0])
case("reduce_variadic", lambda x, y: lax.reduce((x, y), (np.float32(0), np.int32(1)),
                                               lambda u, v: (u[0] + v[0], u[1] * v[1]), (0,)),
     f32(5, 3), i32(1, 4, 5, 3), ulps=8)
case("cumsum", lambda x: lax.cumsum(x, 0), i32(-9, 9, 9, 4))
case("reduce_window", lambda x: lax.reduce_window(x, np.float32(-np.inf), lax.max, (1, 3, 3), (1, 2, 2), "SAME"), big)
case("reduce_window_dilated", lambda x: lax.reduce_window(
    x, np.float32(0), lax.add, (2, 2), (1, 2), ((1, 0), (0, 2)), (2, 1), (1, 2)), big[0], ulps=8)

# Dots.
def dot(name, lhs, rhs, contract, batch=((), ()), preferred=None):
    case("dot_" + name, lambda l, r: lax.dot_general(l, r, (contract, batch), preferred_element_type=preferred),
         lhs, rhs, atol=1e-5)

dot("nn", f32(5, 6), f32(6, 7), ((1,), (0,)))
dot("nt", f32(5, 6), f32(7, 6), ((1,), (1,)))
dot("tn", f32(6, 5), f32(6, 7), ((0,), (0,)))
dot("batch", f32(2, 5, 3, 6), f32(6, 2, 7, 3), ((3,), (0,)), ((0, 2), (1, 3)))
dot("two", f32(4, 3, 5), f32(3, 4, 6), ((0, 1), (1, 0)))
dot("outer", f32(4), f32(3), ((), ()))
dot("vector", f32(4), f32(4), ((0,), (0,)))
dot("free2", f32(2, 3, 4), f32(5, 4, 6), ((2,), (1,)))
dot("int", i32(-5, 5, 3, 4), i32(-5, 5, 4, 2), ((1,), (0,)))
dot("i8", i32(-99, 99, 3, 4).astype(np.int8), i32(-99, 99, 4, 2).astype(np.int8), ((1,), (0,)), preferred=jnp.int32)
dot("bf16", f32(3, 4).astype(ml_dtypes.bfloat16), f32(4, 2).astype(ml_dtypes.bfloat16), ((1,), (0,)),
    preferred=jnp.float32)
case("dot_transposed", lambda x, y: lax.transpose(lax.dot_general(x, y, (((0,), (0,)), ((), ()))), (1, 0)),
     f32(6, 5), f32(6, 7), atol=1e-5)
case("transposed_dot", lambda x, y: lax.dot_general(lax.transpose(x, (1, 0)), y, (((1,), (0,)), ((), ()))),
     f32(6, 5), f32(6, 7), atol=1e-5)
case("convolution", lambda x, k: lax.conv_general_dilated(
    x, k, (2, 1), ((1, 2), (0, 1)), (1, 2), (2, 1), ("NHWC", "HWIO", "NHWC"), feature_group_count=2),
     f32(2, 6, 5, 4), f32(3, 2, 2, 6), atol=1e-5)
case("convolution_batch_groups", lambda x, k: lax.conv_general_dilated(
    x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"), batch_group_count=2),
     f32(4, 6, 5, 3), f32(3, 3, 3, 4), atol=1e-5)

# Gathers and scatters.
table = f32(10, 4)
where = np.array([[3], [-2], [9], [25], [0]], np.int32)
rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
case("gather_rows", lambda t, i: lax.gather(t, i, rows, (1, 4), mode="clip"), table, where)
case("gather_ui", lambda t, i: lax.gather(t, i, rows, (1, 4), mode="clip"), table, np.abs(where).astype(np.uint8))
case("gather_window", lambda t, i: lax.gather(t, i, lax.GatherDimensionNumbers((0, 2), (), (1, 0)), (3, 2), mode="clip"),
     table, np.array([[0, 1], [3, 8], [1, -4]], np.int32))
case("gather_batch", lambda t, i: lax.gather(
    t, i, lax.GatherDimensionNumbers((), (1,), (1,), (0,), (0,)), (1, 1), mode="clip"), table, i32(0, 4, 10, 3, 1))
for name, scatter in [("add", lax.scatter_add), ("set", lax.scatter), ("max", lax.scatter_max), ("mul", lax.scatter_mul)]:
    indices = np.unique(where, axis=0) if name == "set" else np.concatenate([where, where])
    case("scatter_" + name, lambda t, i, u, scatter=scatter: scatter(
        t, i, u, lax.ScatterDimensionNumbers((1,), (0,), (0,)), mode="drop"), table, indices, f32(len(indices), 4),
         ulps=4)
case("scatter_window", lambda t, i, u: lax.scatter_add(
    t, i, u, lax.ScatterDimensionNumbers((1, 2), (), (0, 1)), mode="drop"), table,
     np.array([[0, 1], [4, 2], [7, 0]], np.int32), f32(3, 3, 2), ulps=4)
case("scatter_batch", lambda t, i, u: lax.scatter_add(
    t, i, u, lax.ScatterDimensionNumbers((), (1,), (1,), (0,), (0,)), mode="drop"), table, i32(-1, 5, 10, 3, 1),
     f32(10, 3), ulps=4)
case("scatter_one", lambda t, i, u: lax.scatter(
    t, i, u, lax.ScatterDimensionNumbers((), (0, 1), (0, 1)), mode="drop"), table, np.array([3, 2], np.int32),
     np.float32(9))
case("scatter_row", lambda t, i, u: lax.scatter(
    t, i, u, lax.ScatterDimensionNumbers((0,), (0,), (0,)), mode="drop"), table, np.array([3], np.int32), f32(4))
case("dynamic_slice", lambda x, i, j: lax.dynamic_slice(x, (i, j), (3, 2)), table, np.int32(8), np.int32(-1))
case("dynamic_update_slice", lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), table, f32(3, 2),
     np.int32(9), np.int32(1))
case("dynamic_update_row", lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), table, f32(1, 4),
     np.int32(4), np.int32(1))
case("dynamic_update_one", lambda x, u, i, j: lax.dynamic_update_slice(x, u, (i, j)), table, f32(1, 1),
     np.int32(4), np.int32(1))


def text_of(i, function, args):
    if isinstance(function, tuple):
        return "func.func @case%d%s" % (i, function[0])
    text = jax.jit(function).lower(*args).as_text()
    if "func.func private" in text:  # main only calls it
        text = re.sub(r"func.func public @main.*?\n  }\n", "", text, flags=re.S)
        text = re.sub(r"func.func private @\w+", "func.func @main", text)
    inner = text[text.index("func.func"):text.rindex("}")]
    inner = re.sub(r"@([A-Za-z_][\w.]*)", lambda m: "@case%d" % i if m[1] == "main" else "@case%d_%s" % (i, m[1]), inner)
    # Removes attributes of the module's signature that nothing here reads.
    return re.sub(r" \{jax\.result_info = \"[^\"]*\"\}", "", inner)


os.makedirs(work, exist_ok=True)
source = os.path.join(work, "all.mlir")
with open(source, "w") as f:
    f.write("\n".join(text_of(i, c[1], c[2]) for i, c in enumerate(cases)))
lowered = os.path.join(work, "all.llvm.mlir")
subprocess.run(
    [fp8_opt, source, "--fp8-structure", "--fp8-expand-math", "--fp8-expand-casts",
     "--one-shot-bufferize=bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map",
     "--convert-linalg-to-loops", "--fold-memref-alias-ops", "--expand-strided-metadata", "--lower-affine",
     "--convert-scf-to-cf", "--llvm-request-c-wrappers", "--convert-to-llvm", "--reconcile-unrealized-casts",
     "-o", lowered], check=True)
ll = os.path.join(work, "all.ll")
subprocess.run(["mlir-translate", "--mlir-to-llvmir", lowered, "-o", ll], check=True)
library = os.path.join(work, "all.so")
subprocess.run([os.path.join(tools, "clang"), "-O1", "-march=native", "-shared", "-fPIC", "-Wno-override-module",
                ll, "-o", library, "-lm"], check=True)
compiled = ctypes.CDLL(library)


def descriptor(rank):
    class Descriptor(ctypes.Structure):
        _fields_ = [("base", ctypes.c_void_p), ("data", ctypes.c_void_p), ("offset", ctypes.c_int64)] + (
            [("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)] if rank else [])
    return Descriptor


def pass_array(array):
    d = descriptor(array.ndim)()
    d.base = d.data = array.ctypes.data
    for i in range(array.ndim):
        d.sizes[i] = array.shape[i]
        d.strides[i] = array.strides[i] // array.itemsize
    return d


def take_array(d, shape, dtype):
    count = int(np.prod(shape))
    raw = ctypes.string_at(d.data, count * dtype.itemsize)
    return np.frombuffer(raw, dtype, count).reshape(shape)


failures = 0
for i, (name, function, args, ulps, atol, want) in enumerate(cases):
    if isinstance(function, tuple):
        expected = [np.asarray(e, args[0].dtype if np.asarray(e).dtype != bool else bool) for e in function[1](*args)]
    else:
        expected = jax.jit(function)(*args)
    expected = [np.asarray(e) for e in jax.tree.leaves(expected)]
    args = [np.array(arg, order="C") for arg in args]
    descriptors = [pass_array(arg) for arg in args]
    ranks = [descriptor(e.ndim) for e in expected]
    result = type("Result", (ctypes.Structure,), {"_fields_": [("r%d" % k, r) for k, r in enumerate(ranks)]})()
    getattr(compiled, "_mlir_ciface_case%d" % i)(ctypes.byref(result), *map(ctypes.byref, descriptors))
    for k, e in enumerate(expected):
        got = take_array(getattr(result, "r%d" % k), e.shape, e.dtype)
        if e.dtype == bool or np.issubdtype(e.dtype, np.integer):
            good = np.array_equal(got, e)
        else:
            kind = e.dtype
            reference = e.astype(np.float64)
            if want:
                with np.errstate(all="ignore"):
                    reference = np.asarray(want(*[arg.astype(np.float64) for arg in args]))
                with np.errstate(all="ignore"):
                    e = reference.astype(kind)
            with np.errstate(all="ignore"):
                unit = np.maximum(np.abs(np.spacing(np.abs(e).astype(kind)).astype(np.float64)), 0)
                error = np.abs(got.astype(np.float64) - reference)
                close = (got == e) | (np.isnan(got) & np.isnan(e)) | (error <= ulps * unit + atol)
            # Subnormal results that XLA flushes to zero are right.
            flushed = float(ml_dtypes.finfo(kind).tiny)
            close |= (e == 0) & (np.abs(got.astype(np.float64)) < flushed) & (kind != np.float64)
            good = bool(np.all(close))
        if not good:
            failures += 1
            wrong = ~(close if e.dtype.kind not in "iub" else got == e)
            print("%s: result %d differs in %d of %d elements, got %s, want %s, inputs %s" % (
                name, k, wrong.sum(), wrong.size, got[wrong][:4], e[wrong][:4],
                [arg[wrong][:4] for arg in args if arg.shape == wrong.shape]))
print("%d cases, %d failures" % (len(cases), failures))
sys.exit(failures != 0)
