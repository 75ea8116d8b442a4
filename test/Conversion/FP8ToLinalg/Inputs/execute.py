"""Compiles functions of fp8 ops with the stages that follow them, runs them and
compares them with an independent reference in NumPy and ml_dtypes: amax, scales and
payloads bit for bit, dots with float64 on the dequantized operands, with
|error| <= 1e-6 * sum |a b|."""
import argparse
import ctypes
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import ml_dtypes
import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(TESTS), str(TESTS / "Integration" / "CPU")]
from amx import request_tiles  # noqa: E402
from powers import power  # noqa: E402
from stochastic_rounding import mix_seed, random_numbers, round_by  # noqa: E402

FORMATS = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}
NAN_CODES = {"f8E4M3FN": 0x7F, "f8E5M2": 0x7E, "f8E4M3": 0x7C, "f8E4M3FNUZ": 0x80, "f8E5M2FNUZ": 0x80}
NUMPY = {"f32": np.float32, "f8E8M0FNU": np.uint8, "i64": np.int64, "i32": np.int32,
         "f16": np.float16, "bf16": ml_dtypes.bfloat16}
# A minimal runtime for a compiled schedule: see fp8_launch, fp8_launch_sets and fp8_operand in
# include/fp8-c/Runtime/GeneratedCode.h.
RUNTIME = """
#include <stdint.h>
struct step { char *arena, *scratch; char **external; };
void *fp8_operand(struct step *step, int64_t code) {
  return code >= 0 ? step->arena + code : step->external[~code];
}
void fp8_launch(struct step *step, int64_t number, void (*fn)(int64_t, void *const *, void *), int64_t tasks,
                const int64_t *codes, const int64_t *offsets, int64_t n) {
  void *operands[64];
  for (int64_t i = 0; i < n; ++i)
    operands[i] = (char *)fp8_operand(step, codes[i]) + (offsets ? offsets[i] : 0);
  for (int64_t task = 0; task < tasks; ++task)
    fn(task, operands, step->scratch);
}
void fp8_launch_sets(struct step *step, int64_t number, void (*fn)(int64_t, void *const *, void *), int64_t tasks,
                     const int64_t *codes, const int64_t *offsets, int64_t n, int64_t sets) {
  for (int64_t set = 0; set < sets; ++set)
    fp8_launch(step, number, fn, tasks, codes + set * n, offsets ? offsets + set * n : 0, n);
}
"""


class Step(ctypes.Structure):
    _fields_ = [("arena", ctypes.c_void_p), ("scratch", ctypes.c_void_p), ("external", ctypes.POINTER(ctypes.c_void_p))]


def aligned(size):
    memory = np.zeros(size + 64, np.uint8)
    return memory[-memory.ctypes.data % 64 :]


# The reference computes as the dialect's documentation says.


def largest(fmt):
    if fmt == "f16":
        return 65504.0
    return float(ml_dtypes.finfo(FORMATS[fmt]).max)


def blocks(shape, tile):
    """Yields the slices of every tile, with the index of its scale."""
    extents = [n if t == "*" else min(t, n) for n, t in zip(shape, tile)]
    counts = [max(1, -(-n // e)) for n, e in zip(shape, extents)]
    for index in np.ndindex(*counts):
        yield index, tuple(slice(i * e, (i + 1) * e) for i, e in zip(index, extents))


def scale_shape(shape, tile):
    if all(t == "*" for t in tile):
        return ()
    return tuple(1 if t == "*" else -(-n // t) for n, t in zip(shape, tile))


def amax_of(x, tile):
    result = np.zeros(scale_shape(x.shape, tile) or (1,) * x.ndim, np.float32)
    for index, part in blocks(x.shape, tile):
        with np.errstate(invalid="ignore"):
            result[index] = np.max(np.abs(x[part]))  # np.max propagates NaN
    return result.reshape(scale_shape(x.shape, tile))


def scale_of(amax, rule, fmt, margin):
    """Returns (scale, quantizer) of one amax, in exact arithmetic where rounding would matter."""
    one = np.float32(1)
    if not np.isfinite(amax) or amax == 0:
        return one, one
    if rule == "exact":
        with np.errstate(over="ignore"):
            q = np.float32(np.float32(largest(fmt)) / amax) * np.float32(2.0**-margin)
        q = np.float32(min(q, np.finfo(np.float32).max))
        return one / q, q
    fraction, exponent = math.frexp(float(amax))
    top_fraction, top_exponent = math.frexp(largest(fmt))
    k = exponent - top_exponent
    if rule == "pow2" and fraction > top_fraction:
        k += 1
    k = min(max(k + margin, -126), 126)
    return np.float32(2.0**k), np.float32(2.0**-k)


def scales_of(amax, rule, fmt, margin):
    pairs = [scale_of(a, rule, fmt, margin) for a in amax.reshape(-1)]
    scale, quantizer = (np.array(p, np.float32).reshape(amax.shape) for p in zip(*pairs))
    return scale, quantizer


def spread(scale, shape, tile):
    """Returns the scale of every element."""
    scale = np.asarray(scale).reshape(scale_shape(shape, tile) or (1,) * len(shape))
    result = np.empty(shape, scale.dtype)
    for index, part in blocks(shape, tile):
        result[part] = scale[index]
    return result


def payload_of(x, quantizer, tile, fmt, overflow="saturate"):
    with np.errstate(over="ignore", invalid="ignore"):
        y = x * spread(quantizer, x.shape, tile)
        if overflow == "saturate":
            y = np.clip(y, np.float32(-largest(fmt)), np.float32(largest(fmt)))
            bad = ~np.isfinite(x)
        else:
            bad = np.isnan(y)
        codes = y.astype(FORMATS[fmt]).view(np.uint8).copy()
    codes[bad] = NAN_CODES[fmt]
    return codes


def dequantized(codes, scale, tile, fmt):
    return codes.view(FORMATS[fmt]).astype(np.float64) * spread(scale.astype(np.float64), codes.shape, tile)


# Programs.


def tensor(shape, element):
    return "tensor<" + "".join(f"{n}x" for n in shape) + element + ">"


def scaled(shape, fmt, tile, element="f32"):
    shape = "".join(f"{n}x" for n in shape)
    return f"!fp8.scaled<{shape}{fmt}, tile = [{', '.join(map(str, tile))}], scale = {element}>"


class Program:
    """Functions that are compiled together and called by name with arrays."""

    def __init__(self):
        self.text, self.results = "", {}

    def add(self, name, arguments, results, body):
        """`arguments` has (shape, element) of %0, %1, ...; `body` has lines, of which the last
        returns."""
        signature = ", ".join(f"%{i}: {tensor(*a)}" for i, a in enumerate(arguments))
        types = ", ".join(tensor(*r) for r in results)
        self.text += f"func.func @{name}({signature}) -> ({types}) {{\n{body}\n}}\n"
        self.results[name] = results

    def compile(self, compiler, directory):
        stem = os.path.join(directory, "program")
        # Each function is a module, because a schedule belongs to one function.
        functions = [f + "}\n" for f in self.text.split("\n}\n") if f.strip()]
        self.libraries = {}

        def run(command, text):
            result = subprocess.run(command, capture_output=True, text=True)
            if result.returncode:
                sys.exit(f"{' '.join(command)}\n{result.stderr}\n{text}")

        runtime = os.path.join(directory, "runtime")
        with open(runtime + ".c", "w") as f:
            f.write(RUNTIME)
        run(["clang", "-O1", "-fPIC", "-c", runtime + ".c", "-o", runtime + ".o"], RUNTIME)
        for name, function in zip(self.results, functions):
            path = f"{stem}-{name}"
            with open(path + ".mlir", "w") as f:
                f.write(function.replace(f"@{name}", "@main"))
            commands = [
                [compiler, path + ".mlir", "--fp8-structure", "--fp8-kernels", "--fp8-codegen", "-o", path + ".loops.mlir"],
                [compiler, path + ".loops.mlir", "--fp8-to-llvm", "-o", path + ".llvm.mlir"],
                ["mlir-translate", "--mlir-to-llvmir", "--allow-unregistered-dialect", path + ".llvm.mlir", "-o", path + ".ll"],
                ["opt", "-O2", "-mcpu=native", path + ".ll", "-o", path + ".bc"],
                ["llc", "-O2", "-mcpu=native", "-filetype=obj", "-relocation-model=pic", path + ".bc", "-o", path + ".o"],
                ["ld.lld", "-shared", path + ".o", runtime + ".o", "-o", path + ".so"],
            ]
            for command in commands:
                run(command, function)
                if command[0] == "mlir-translate":
                    # The runtime finds constants by their symbols.
                    text = pathlib.Path(path + ".ll").read_text()
                    pathlib.Path(path + ".ll").write_text(text.replace(" = private constant ", " = constant "))
            loops = open(path + ".loops.mlir").read()
            constants = re.findall(r"memref.global .*@(\w+) :.*fp8.number = (\d+)", loops)
            constants = [name for name, number in sorted(constants, key=lambda constant: int(constant[1]))]
            arena = int(re.search(r"arena_bytes = (\d+)", loops)[1])
            scratch = max(map(int, re.findall(r"fp8.scratch_bytes = (\d+)", loops)))
            self.libraries[name] = path + ".so", arena, scratch, constants
        return self

    def __call__(self, name, *arguments):
        path, arena_bytes, scratch_bytes, constants = self.libraries[name]
        arena, scratch = aligned(arena_bytes), aligned(scratch_bytes)
        arrays = [np.ascontiguousarray(a) for a in arguments]
        results = [np.zeros(s, NUMPY.get(e, np.uint8)) for s, e in self.results[name]]
        request_tiles()
        library = ctypes.CDLL(path)
        buffers = [a.ctypes.data for a in [*arrays, *results]]
        buffers += [ctypes.addressof(ctypes.c_char.in_dll(library, constant)) for constant in constants]
        external = (ctypes.c_void_p * len(buffers))(*buffers)
        library.fp8_entry(ctypes.byref(Step(arena.ctypes.data, scratch.ctypes.data, external)))
        return results


def nasty(rng, shape, kind):
    """Returns random f32 data, some of it adversarial."""
    x = rng.standard_normal(shape).astype(np.float32)
    if kind == "wide":
        x *= np.exp2(rng.integers(-20, 20, shape)).astype(np.float32)
    if kind == "outliers":
        x[rng.random(shape) < 1e-3] *= 1e4
    if kind == "subnormal":
        x *= np.float32(1e-40)
    if kind == "zeros":
        x[: shape[0] // 2] = 0
        x[:, shape[1] // 3 : 2 * shape[1] // 3] = -0.0
    if kind == "nonfinite":
        flat = x.reshape(-1)
        flat[rng.integers(0, x.size, 3)] = [np.nan, np.inf, -np.inf]
    return x


KINDS = ["plain", "wide", "outliers", "subnormal", "zeros", "nonfinite"]


def fail(message):
    sys.exit("wrong: " + message)


def same(name, got, want):
    got, want = np.asarray(got), np.asarray(want)
    a, b = (v.view(np.uint32) if v.dtype == np.float32 else v for v in (got, want))
    equal = (a == b) | ((got != got) & (want != want))
    if not equal.all():
        at = tuple(np.argwhere(~equal)[0])
        fail(f"{name}: {got[at]} instead of {want[at]} at {at}, {(~equal).sum()} of {equal.size}")


def quantize_body(value, shape, fmt, tile, rule, margin, element, overflow="saturate", tag=""):
    """Returns lines that measure, scale and quantize %value into %x{tag}."""
    small = tensor(scale_shape(shape, tile), "f32")
    scale = tensor(scale_shape(shape, tile), element)
    attr = "" if all(t == "*" for t in tile) else f" tile = [{', '.join(map(str, tile))}]"
    return f"""  %a{tag} = fp8.amax %{value}{attr} : {tensor(shape, "f32")} -> {small}
  %s{tag}, %q{tag} = fp8.compute_scale %a{tag} {{rule = #fp8.scale_rule<{rule}>, margin = {margin}, format = {fmt}}} : {small} -> {scale}
  %x{tag} = fp8.quantize %{value}, %s{tag}, %q{tag} rounding = nearest_even, overflow = {overflow}
      : {tensor(shape, "f32")} -> {scaled(shape, fmt, tile, element)}
"""


def quantize_cases():
    shape = (37, 352)
    tiles = [["*", "*"], [1, "*"], ["*", 1], [1, 128], [128, 128], [32, 128], [1, 32], [128, 1], [5, 48]]
    cases = []
    formats, rules = list(FORMATS), ["exact", "pow2", "ocp_floor"]
    for i, tile in enumerate(tiles):
        fmt, rule = formats[i % len(formats)], rules[(i + i // 3) % 3]
        element = "f32"
        if tile == [1, 32]:
            fmt, rule, element = "f8E4M3FN", "pow2", "f8E8M0FNU"
        cases.append((f"q{i}", shape, tile, fmt, rule, i % 3, element, "nan" if i == 4 else "saturate"))
    cases.append(("q9", (3, 20, 688), [1, 1, 128], "f8E5M2", "exact", 0, "f32", "saturate"))
    cases.append(("q10", (3, 20, 688), [1, "*", 1], "f8E4M3FN", "pow2", 0, "f32", "saturate"))
    return cases


def check_quantize(compiler, directory, rng):
    program = Program()
    for name, shape, tile, fmt, rule, margin, element, overflow in quantize_cases():
        small = scale_shape(shape, tile)
        body = quantize_body("0", shape, fmt, tile, rule, margin, element, overflow)
        body += f"""  %p, %u = fp8.unpack %x : {scaled(shape, fmt, tile, element)}
  %d = fp8.dequantize %x : {scaled(shape, fmt, tile, element)} -> {tensor(shape, "f32")}
  return %a, %s, %q, %p, %d : {tensor(small, "f32")}, {tensor(small, element)}, {tensor(small, "f32")}, {tensor(shape, fmt)}, {tensor(shape, "f32")}"""
        program.add(name, [(shape, "f32")],
                    [(small, "f32"), (small, element), (small, "f32"), (shape, fmt), (shape, "f32")], body)
    program.compile(compiler, directory)
    for name, shape, tile, fmt, rule, margin, element, overflow in quantize_cases():
        for kind in KINDS:
            x = nasty(rng, shape, kind)
            amax, scale, quantizer, payload, values = program(name, x)
            label = f"{name} {kind} {tile} {fmt} {rule}"
            want = amax_of(x, tile)
            same(label + " amax", amax, want)
            want_scale, want_quantizer = scales_of(want, rule, fmt, margin)
            if element == "f8E8M0FNU":
                scale = np.exp2(scale.astype(np.float32) - 127).astype(np.float32)
            same(label + " scale", scale, want_scale)
            same(label + " quantizer", quantizer, want_quantizer)
            codes = payload_of(x, want_quantizer, tile, fmt, overflow)
            same(label + " payload", payload, codes)
            with np.errstate(over="ignore", invalid="ignore"):
                want = codes.view(FORMATS[fmt]).astype(np.float32) * spread(want_scale, shape, tile)
            same(label + " dequantized", values, want)
            # A tensor with the scale of its own amax does not saturate: only the tile's amax has
            # the largest code.
            if rule != "ocp_floor" and kind not in ("nonfinite", "subnormal"):
                y = np.abs(x * spread(want_quantizer, shape, tile))
                if (y > largest(fmt) * (1 + 2e-7)).any():
                    fail(label + " saturates")


def dot_cases():
    """Returns (name, lhs letters, rhs letters, batch, dims, lhs (fmt, tile, rule, scale), rhs)
    tuples."""
    f32, e8 = "f32", "f8E8M0FNU"
    e4, e5 = "f8E4M3FN", "f8E5M2"
    return [
        ("rows", "mk", "kn", "", dict(m=37, n=48, k=352), (e4, [1, "*"], "exact", f32), (e4, ["*", 1], "exact", f32)),
        ("columns", "km", "nk", "", dict(m=40, n=33, k=70), (e5, ["*", 1], "pow2", f32), (e4, ["*", "*"], "exact", f32)),
        ("blocks", "mk", "kn", "", dict(m=37, n=150, k=352), (e4, [1, 128], "pow2", f32), (e4, [128, 128], "exact", f32)),
        ("blocks_t", "mk", "nk", "", dict(m=37, n=150, k=688), (e5, [1, 128], "exact", f32), (e4, [128, 128], "pow2", f32)),
        ("wgrad", "bkm", "bkn", "", dict(b=3, k=128, m=20, n=33), (e4, [1, 128, 1], "pow2", f32), (e4, [1, 128, 1], "pow2", f32)),
        ("mx", "mk", "nk", "", dict(m=21, n=40, k=96), (e4, [1, 32], "pow2", e8), (e5, [1, 32], "ocp_floor", e8)),
        ("mixed", "mk", "kn", "", dict(m=21, n=40, k=200), (e4, [1, 64], "pow2", f32), (e4, ["*", 1], "exact", f32)),
        ("batched", "bmk", "bkn", "b", dict(b=3, m=17, n=20, k=64), (e4, [1, 1, "*"], "exact", f32), (e4, [1, "*", 4], "pow2", f32)),
    ]


def check_dots(compiler, directory, rng, cases):
    program = Program()
    for name, lhs, rhs, batch, dims, left, right in cases:
        shapes = [tuple(dims[c] for c in letters) for letters in (lhs, rhs)]
        out = batch + "".join(c for c in lhs if c not in rhs) + "".join(c for c in rhs if c not in lhs)
        result = tuple(dims[c] for c in out)
        contracted = [c for c in lhs if c in rhs and c not in batch]
        body, types = "", []
        for i, (shape, (fmt, tile, rule, element)) in enumerate(zip(shapes, (left, right))):
            body += quantize_body(str(i), shape, fmt, tile, rule, 0, element, tag=f"_{i}")
            types.append(scaled(shape, fmt, tile, element))
        numbers = lambda chosen: " x ".join(str([letters.index(c) for c in chosen]) for letters in (lhs, rhs))
        batching = f"batching_dims = {numbers(batch)}, " if batch else ""
        body += f"""  %y = fp8.dot_general %x_0, %x_1, {batching}contracting_dims = {numbers(contracted)} {{accumulator = f32}}
      : ({types[0]}, {types[1]}) -> {tensor(result, "f32")}
  return %y : {tensor(result, "f32")}"""
        program.add(name, [(s, "f32") for s in shapes], [(result, "f32")], body)
    program.compile(compiler, directory)
    for name, lhs, rhs, batch, dims, left, right in cases:
        shapes = [tuple(dims[c] for c in letters) for letters in (lhs, rhs)]
        out = batch + "".join(c for c in lhs if c not in rhs) + "".join(c for c in rhs if c not in lhs)
        for kind in KINDS:
            operands, values = [], []
            for shape, (fmt, tile, rule, element) in zip(shapes, (left, right)):
                x = nasty(rng, shape, kind if not values or kind != "subnormal" else "plain")
                scale, quantizer = scales_of(amax_of(x, tile), rule, fmt, 0)
                operands.append(x)
                values.append(dequantized(payload_of(x, quantizer, tile, fmt), scale, tile, fmt))
            (got,) = program(name, *operands)
            spec = f"{lhs},{rhs}->{out}"
            with np.errstate(invalid="ignore"):
                want = np.einsum(spec, *values, optimize=True)
                bound = 1e-6 * np.einsum(spec, *map(np.abs, values), optimize=True)
                # Subnormal results have the absolute error of the smallest normal numbers.
                wrong = ~(np.abs(got - want) <= bound + 2.0**-140)
            # Non-finite elements affect exactly the results that depend on them.
            if (np.isfinite(got) != np.isfinite(want)).any() or (wrong & np.isfinite(want)).any():
                fail(f"{name} {kind}: error {np.nanmax(np.abs(got - want) / np.maximum(bound, 1e-300)):.3g} of the bound, "
                     f"{wrong.sum()} of {wrong.size}")


def check_layouts(compiler, directory, rng):
    """Layout ops transform payload and scale together."""
    shape, fmt, tile = (6, 20, 300), "f8E4M3FN", [1, 1, 128]
    program = Program()
    steps = [("slice", ", [1, 4, 128] to [5, 20, 300]", (4, 16, 172), tile),
             ("transpose", ", [2, 0, 1]", (172, 4, 16), [128, 1, 1]),
             ("reshape", "", (172, 64), [128, 1])]
    body, types = quantize_body("0", shape, fmt, tile, "pow2", 0, "f32", tag="_0"), [scaled(shape, fmt, tile)]
    for i, (op, attributes, new_shape, new_tile) in enumerate(steps):
        types.append(scaled(new_shape, fmt, new_tile))
        body += f"  %x_{i + 1} = fp8.{op} %x_{i}{attributes} : {types[-2]} -> {types[-1]}\n"
    body += f"""  %d = fp8.dequantize %x_3 : {types[-1]} -> {tensor((172, 64), "f32")}
  return %d : {tensor((172, 64), "f32")}"""
    program.add("layouts", [(shape, "f32")], [((172, 64), "f32")], body)
    program.compile(compiler, directory)
    x = nasty(rng, shape, "wide")
    scale, quantizer = scales_of(amax_of(x, tile), "pow2", fmt, 0)
    want = dequantized(payload_of(x, quantizer, tile, fmt), scale, tile, fmt).astype(np.float32)
    (got,) = program("layouts", x)
    same("layouts", got, np.ascontiguousarray(want[1:5, 4:20, 128:].transpose(2, 0, 1).reshape(172, 64)))


def neighbours(y, fmt):
    """Returns the codes' values on both sides of every y (both equal to y if y is such a value)."""
    values = np.arange(256, dtype=np.uint8).view(FORMATS[fmt]).astype(np.float64)
    values = np.unique(values[np.isfinite(values)])
    up = values[np.searchsorted(values, y)]
    down = values[np.searchsorted(values, y, side="right") - 1]
    return down, up


def check_stochastic(compiler, directory, rng):
    program, shape = Program(), (1000, 1000)
    for fmt in FORMATS:
        kind = scaled(shape, fmt, ["*", "*"])
        body = f"""  %seed = fp8.mix_seed %2, %3 : tensor<i32>
  %x = fp8.quantize %0, %1, %1 seed = %seed rounding = stochastic, overflow = saturate {{tensor = 3}}
      : {tensor(shape, "f32")} -> {kind}
  %p, %s = fp8.unpack %x : {kind}
  return %p : {tensor(shape, fmt)}"""
        program.add("s" + fmt, [(shape, "f32"), ((), "f32"), ((), "i64"), ((), "i32")], [(shape, fmt)], body)
    # The rounding is the same if the product is fused and the payload rearranged.
    kind, flat = scaled(shape, "f8E5M2", ["*", "*"]), scaled((500, 2000), "f8E5M2", ["*", "*"])
    program.add("fused", [(shape, "f32"), ((), "i64")], [(shape, "f8E5M2"), ((500, 2000), "f8E5M2")], f"""
  %one = arith.constant dense<1.0> : tensor<f32>
  %y = stablehlo.multiply %0, %0 : {tensor(shape, "f32")}
  %a = fp8.quantize %y, %one, %one seed = %1 rounding = stochastic, overflow = saturate : {tensor(shape, "f32")} -> {kind}
  %b = fp8.reshape %a : {kind} -> {flat}
  %p, %s = fp8.unpack %a : {kind}
  %q, %t = fp8.unpack %b : {flat}
  return %p, %q : {tensor(shape, "f8E5M2")}, {tensor((500, 2000), "f8E5M2")}""")
    program.add("alone", [(shape, "f32"), ((), "i64")], [(shape, "f8E5M2")], f"""
  %one = arith.constant dense<1.0> : tensor<f32>
  %a = fp8.quantize %0, %one, %one seed = %1 rounding = stochastic, overflow = saturate : {tensor(shape, "f32")} -> {kind}
  %p, %s = fp8.unpack %a : {kind}
  return %p : {tensor(shape, "f8E5M2")}""")
    program.compile(compiler, directory)
    x = nasty(rng, shape, "plain")
    first, second = program("fused", x, np.int64(4))
    same("stochastic, fused", first, program("alone", x * x, np.int64(4))[0])
    same("stochastic, reshaped", second.reshape(shape), first)
    one = np.float32(1)
    for fmt in FORMATS:
        def round(x, seed=0, step=0):
            (codes,) = program("s" + fmt, x, one, np.int64(seed), np.int32(step))
            return codes, codes.view(FORMATS[fmt]).astype(np.float64)

        # Only the two neighbours occur, in all binades and below them.
        x = nasty(rng, shape, "wide")
        x[0] = np.float32(largest(fmt)) * np.linspace(-1.1, 1.1, 1000, dtype=np.float32)
        codes, values = round(x, 1)
        down, up = neighbours(np.clip(x, -largest(fmt), largest(fmt)).astype(np.float64), fmt)
        if not ((values == down) | (values == up)).all():
            fail(f"stochastic {fmt}: outside of the bracket")
        same(f"stochastic {fmt}, again", round(x, 1)[0], codes)
        for other in [round(x, 2)[0], round(x, 1, 1)[0]]:
            if (other == codes).mean() > 0.99:
                fail(f"stochastic {fmt}: another seed gives the same roundings")
        # A million draws of one number: the mean is within 4 sigma of it, for all of them, and
        # along rows and columns as far as chance allows.
        for y in [1.1, -3.3, 0.7e-3, largest(fmt) * 0.97]:
            y = float(np.float32(y))
            _, values = round(np.full(shape, y, np.float32), 5)
            down, up = (float(v) for v in neighbours(np.float64(y), fmt))
            if up == down:
                continue
            sigma = math.sqrt((up - y) * (y - down))
            if abs(values.mean() - y) > 4 * sigma / 1000:
                fail(f"stochastic {fmt}: mean {values.mean()} of {y}, off by {abs(values.mean() - y) / sigma * 1000:.2f} sigma")
            for axis in (0, 1):
                z = (values.mean(axis) - y) / (sigma / math.sqrt(1000))
                if np.abs(z).max() > 5.5 or not 0.8 < z.std() < 1.2:
                    fail(f"stochastic {fmt}: rows or columns are not independent: {np.abs(z).max()}, {z.std()}")
        # Numbers that the format has do not change.
        exact = np.resize(np.arange(256, dtype=np.uint8), shape)
        exact = np.where(np.isfinite(exact.view(FORMATS[fmt]).astype(np.float32)), exact, 0).astype(np.uint8)
        same(f"stochastic {fmt} exact", round(exact.view(FORMATS[fmt]).astype(np.float32), 9)[0], exact)
        x[:] = 1
        x[1, 1:4] = [np.nan, np.inf, -np.inf]
        codes, _ = round(x)
        if not (codes[1, 1:4] == NAN_CODES[fmt]).all():
            fail(f"stochastic {fmt}: {codes[1, 1:4]} of NaN and infinities")


def check_accumulators(compiler, directory, rng):
    """Measures the accuracy that an accumulator of 14 bits loses at K = 4096, and that promotion
    regains."""
    program, shape, fmt = Program(), (32, 4096), "f8E4M3FN"
    cases = {"narrow": ("accumulator_bits = 14", ["*", "*"]),
             "promoted": ("accumulator_bits = 14, promote_every = 128", ["*", "*"]),
             "blocks": ("accumulator_bits = 14, promote_every = 128", [1, 128]),
             "wide": ("promote_every = 128", ["*", "*"])}
    for name, (accumulator, tile) in cases.items():
        body = "".join(quantize_body(str(i), shape, fmt, tile, "pow2", 0, "f32", tag=f"_{i}") for i in range(2))
        kind = scaled(shape, fmt, tile)
        body += f"""  %y = fp8.dot_general %x_0, %x_1, contracting_dims = [1] x [1] {{accumulator = f32, {accumulator}}}
      : ({kind}, {kind}) -> {tensor((32, 32), "f32")}
  return %y : {tensor((32, 32), "f32")}"""
        program.add(name, [(shape, "f32")] * 2, [((32, 32), "f32")], body)
    program.compile(compiler, directory)
    operands = [nasty(rng, shape, "plain") for _ in range(2)]
    for name, (accumulator, tile) in cases.items():
        values = []
        for x in operands:
            scale, quantizer = scales_of(amax_of(x, tile), "pow2", fmt, 0)
            values.append(dequantized(payload_of(x, quantizer, tile, fmt), scale, tile, fmt))
        want = values[0] @ values[1].T
        (got,) = program(name, *operands)
        error = math.sqrt(((got - want) ** 2).mean() / (want**2).mean())
        low, high = {"narrow": (3e-2, 5e-2), "promoted": (1e-5, 1e-3), "blocks": (1e-5, 1e-3), "wide": (0, 1e-6)}[name]
        if not low <= error <= high:
            fail(f"accumulator {name}: RMS error {error:.3g}, not in [{low}, {high}]")


def check_round(compiler, directory, rng):
    """fp8.round rounds to nearest even as ml_dtypes does, and stochastically with the random
    numbers."""
    program, shape = Program(), (37, 352)
    for element in ("bf16", "f16"):
        result = tensor(shape, element)
        program.add("n" + element, [(shape, "f32")], [(shape, element)], f"""
  %y = fp8.round %0 rounding = nearest_even : {tensor(shape, "f32")} -> {result}
  return %y : {result}""")
        program.add("s" + element, [(shape, "f32"), ((), "i64"), ((), "i32")], [(shape, element)], f"""
  %seed = fp8.mix_seed %1, %2 : tensor<i32>
  %y = fp8.round %0 seed = %seed rounding = stochastic {{tensor = 11}} : {tensor(shape, "f32")} -> {result}
  return %y : {result}""")
    program.compile(compiler, directory)
    for element in ("bf16", "f16"):
        for kind in KINDS:
            x = nasty(rng, shape, kind)
            x[3, :4] = np.array([1.0, -1.0, 0.999, 1.001], np.float32) * np.float32(ml_dtypes.finfo(NUMPY[element]).max)
            with np.errstate(over="ignore", invalid="ignore"):
                want = x.astype(NUMPY[element])
            same(f"round {element} {kind}", program("n" + element, x)[0].astype(np.float32), want.astype(np.float32))
            (got,) = program("s" + element, x, np.int64(5), np.int32(2))
            want = round_by(x, random_numbers(mix_seed(5, 2), 11, shape), NUMPY[element])
            same(f"round {element} {kind} stochastically", got.astype(np.float32), want.astype(np.float32))
            if kind == "plain" and (got == program("s" + element, x, np.int64(5), np.int32(3))[0]).mean() > 0.9:
                fail(f"round {element}: the next step gives the same roundings")


def check_f16(compiler, directory, rng):
    """A scaled payload in f16."""
    program, shape = Program(), (37, 352)
    kind = scaled(shape, "f16", ["*", "*"])
    for rule in ("exact", "pow2"):
        program.add(rule, [(shape, "f32")], [((), "f32"), (shape, "f16"), (shape, "f32")], f"""
  %a = fp8.amax %0 : {tensor(shape, "f32")} -> tensor<f32>
  %s, %q = fp8.compute_scale %a {{rule = #fp8.scale_rule<{rule}>, format = f16}} : tensor<f32> -> tensor<f32>
  %x = fp8.quantize %0, %s, %q rounding = nearest_even, overflow = saturate : {tensor(shape, "f32")} -> {kind}
  %p, %t = fp8.unpack %x : {kind}
  %d = fp8.dequantize %x : {kind} -> {tensor(shape, "f32")}
  return %t, %p, %d : tensor<f32>, {tensor(shape, "f16")}, {tensor(shape, "f32")}""")
    program.compile(compiler, directory)
    for rule in ("exact", "pow2"):
        for kind in KINDS[:-1]:
            x = nasty(rng, shape, kind)
            scale, payload, values = program(rule, x)
            want_scale, q = scale_of(np.abs(x).max(), rule, "f16", 0)
            want = np.clip(x * q, np.float32(-65504), np.float32(65504)).astype(np.float16)
            same(f"f16 {rule} {kind} scale", scale, want_scale)
            same(f"f16 {rule} {kind} payload", payload.view(np.uint16), want.view(np.uint16))
            same(f"f16 {rule} {kind} dequantized", values, want.astype(np.float32) * want_scale)


def expansion_of(x, tile, fmt):
    """Returns center and exponent of every tile, as COAT defines them, with roots and
    logarithms computed in f64 and rounded to f32."""
    f32 = np.float32
    shape = scale_shape(x.shape, tile) or (1,) * x.ndim
    center, exponent = np.ones(shape, f32), np.ones(shape, f32)
    bits = f32(16 * math.log2(largest(fmt) ** 2 / 2))
    for index, part in blocks(x.shape, tile):
        a = np.abs(x[part])
        if not np.isfinite(a).all() or not a.any():
            continue
        high, low = a.max(), a[a > 0].min()
        with np.errstate(divide="ignore", over="ignore"):
            ratio = np.float64(f32(high / low))
            steps = bits / f32(np.log2(ratio if np.isfinite(ratio) else np.float64(high) / np.float64(low)))
        k = np.floor(steps) / f32(16)
        if 0 < k < np.inf and np.log2(np.float64(high) / np.float64(low)) <= 254:
            center[index], exponent[index] = np.sqrt(high) * np.sqrt(low), k
    return center.reshape(scale_shape(x.shape, tile)), exponent.reshape(scale_shape(x.shape, tile))


def check_expansion(compiler, directory, rng):
    """Range expansion: groups of zeros, of one value, of one magnitude, and partial groups; and its
    gain over plain groups."""
    program, cases = Program(), [("e0", (24, 300), [1, 128]), ("e1", (24, 300), ["*", "*"]), ("e2", (700,), [128])]
    fmt = "f8E4M3FN"
    for name, shape, tile in cases:
        small, real = tensor(scale_shape(shape, tile), "f32"), tensor(shape, "f32")
        attr = "" if all(t == "*" for t in tile) else f" tile = [{', '.join(map(str, tile))}]"
        body = f"""  %h = fp8.amax %0{attr} : {real} -> {small}
  %l = fp8.amin %0{attr} : {real} -> {small}
  %c, %k = fp8.compute_expansion %h, %l {{format = {fmt}}} : {small}
  %w = fp8.expand_range %0, %c, %k{attr} : {real}, {small} -> {real}
""" + quantize_body("w", shape, fmt, tile, "exact", 0, "f32") + f"""  %p, %u = fp8.unpack %x : {scaled(shape, fmt, tile)}
  %d = fp8.dequantize %x : {scaled(shape, fmt, tile)} -> {real}
  %r = fp8.restore_range %d, %c, %k{attr} : {real}, {small} -> {real}
  return %l, %c, %k, %w, %p, %u, %r : {small}, {small}, {small}, {real}, {tensor(shape, fmt)}, {small}, {real}"""
        program.add(name, [(shape, "f32")], [(scale_shape(shape, tile), "f32")] * 3
                    + [(shape, "f32"), (shape, fmt), (scale_shape(shape, tile), "f32"), (shape, "f32")], body)
    program.compile(compiler, directory)
    for name, shape, tile in cases:
        for kind in KINDS + ["special"]:
            x = nasty(rng, shape if len(shape) > 1 else (1,) + shape, kind if kind != "special" else "plain").reshape(shape)
            if kind == "special":
                flat = x.reshape(-1)
                flat[:128], flat[128:256], flat[256:300] = 0, np.float32(-0.37), 0
                flat[270] = 3e-5
                if len(shape) > 1:
                    x[5, :128] = np.float32(1.0) + np.arange(128, dtype=np.float32) * np.float32(2**-23)
                    x[6, :128], x[6, 3], x[6, 4] = 0, 1e38, 1e-42
                    # Second moments down to the smallest number: their ratio exceeds f32.
                    spread_out = np.exp2(rng.uniform(-149, 0, 128)).astype(np.float32)
                    x[7, :128], x[7, 0], x[7, 1] = spread_out, 0.5, np.float32(2.0**-149)
                    x[8, :128], x[8, 0], x[8, 1] = spread_out * np.float32(1e20), 3e38, np.float32(2.0**-120)
            low, center, exponent, wide, payload, scale, values = program(name, x)
            label = f"{name} {kind}"
            with np.errstate(all="ignore"):
                want = np.full(scale_shape(shape, tile) or (1,) * x.ndim, np.inf, np.float32)
                for index, part in blocks(shape, tile):
                    a = np.abs(x[part])
                    want[index] = np.nan if np.isnan(a).any() else min(a[a > 0], default=np.float32(np.inf))
                same(label + " amin", low, want.reshape(scale_shape(shape, tile)))
                c, k = expansion_of(x, tile, fmt)
                same(label + " center", center, c)
                same(label + " exponent", exponent, k)
                if not ((k * 16 == np.floor(k * 16)) & (k > 0)).all():
                    fail(label + ": an exponent that is no multiple of 1/16")
                y = np.copysign(power(np.abs(x) / spread(c, shape, tile), spread(k, shape, tile)), x)
                same(label + " expanded", wide, y)
                s, q = scales_of(amax_of(y, tile), "exact", fmt, 0)
                codes = payload_of(y, q, tile, fmt)
                same(label + " payload", payload, codes)
                same(label + " scale", scale, s)
                d = codes.view(FORMATS[fmt]).astype(np.float32) * spread(s, shape, tile)
                roots = np.float32(1) / spread(k, shape, tile)
                r = np.copysign(power(np.abs(d), roots) * spread(c, shape, tile), d)
                same(label + " restored", values, r)
            if kind == "special" and not np.isfinite(values).all():
                fail(label + ": not finite")
            if kind == "special" and len(shape) > 1 and tile[0] == 1:
                # Each element is off by half a step of the format to the power of 1/k.
                for row, k in (7, 1 / 16), (8, 1 / 16):
                    if exponent[row, 0] != k:
                        fail(f"{label}: expected an exponent of {k} but got {exponent[row, 0]}")
                    off = np.abs(np.log2(values[row, :128].astype(np.float64) / x[row, :128]))
                    normal = wide[row, :128].astype(np.float64) / scale[row, 0] >= 2.0**-6
                    if off[normal].max() > np.log2(1 + 2.0**-4) / k + 1e-3:
                        fail(f"{label}: off by {off[normal].max()} octaves with k = {k}")
    # A moment's groups span about three binades more than the format represents well: expansion
    # loses little compared with plain groups.
    x = (rng.standard_normal((24, 300)) * np.exp(rng.standard_normal((24, 1)))).astype(np.float32)
    values = program("e0", x)[-1].astype(np.float64)
    s, q = scales_of(amax_of(x, [1, 128]), "exact", fmt, 0)
    plain = dequantized(payload_of(x, q, [1, 128], fmt), s, [1, 128], fmt)
    error = lambda got: math.sqrt((((got - x) / np.abs(x).max(1, keepdims=True)) ** 2).mean())
    if error(values) > 0.65 * error(plain):
        fail(f"expansion: error {error(values) / error(plain):.3f} of plain groups'")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("parts", nargs="+", choices=["quantize", "dots", "layouts", "stochastic", "accumulators", "storage"])
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as directory:
        if "quantize" in arguments.parts:
            check_quantize(arguments.compiler, directory, rng)
        if "dots" in arguments.parts:
            check_dots(arguments.compiler, directory, rng, dot_cases())
        if "layouts" in arguments.parts:
            check_layouts(arguments.compiler, directory, rng)
        if "stochastic" in arguments.parts:
            check_stochastic(arguments.compiler, directory, rng)
        if "accumulators" in arguments.parts:
            check_accumulators(arguments.compiler, directory, rng)
        if "storage" in arguments.parts:
            for check in (check_round, check_f16, check_expansion):
                check(arguments.compiler, directory, rng)
    print("all right")


main()
