#!/usr/bin/env python3
"""Every elementwise operation on every type, at edge cases and random points.

    conformance_elementwise.py FP8_RUN FOLDER [--points N] [--table] [--only TYPE]

Integer results and correctly rounded floats must be exact: the references are
Python's integers and IEEE arithmetic. Functions are compared with their true
value (mpmath, 200 bits); --table prints the largest errors found, in units in
the last place. Larger values of --points search for larger errors.
"""

import argparse
import itertools
import sys

import mpmath
import numpy as np

from conformance_testing import *

mpmath.mp.prec = 200
inf, nan = float("inf"), float("nan")

# Largest error allowed, in units in the last place of the result's type.
BOUNDS = {"f32": 2.0, "bf16": 1.0, "f16": 1.0, "f64": 4.0}
# Near a root the rounding of the argument matters more than these bounds: there the unit is that of
# 1/4. In f64, Lanczos' series cancels.
ROOTS = {"lgamma", "digamma"}
F64_ROOTS_BOUND = 64.0
# 1 / (1 + exp(-x)) rounds three times. The largest error of a million points is at this one.
F32_LOGISTIC_BOUND, F32_LOGISTIC_WORST = 2.2, -3.449573


def bound_of(name, element):
    if name in ROOTS and element == "f64":
        return F64_ROOTS_BOUND
    return F32_LOGISTIC_BOUND if name == "logistic" and element == "f32" else BOUNDS[element]


def finfo(element):
    return ml_dtypes.finfo(DTYPES[element])


# Points -------------------------------------------------------------------------


def float_edges(element):
    info, dtype = finfo(element), DTYPES[element]
    tiny, least, big = float(info.tiny), float(info.smallest_subnormal), float(info.max)
    eps = float(info.eps)
    some = [0.0, least, 3 * least, tiny - least, tiny, 2 * tiny, 1.0, 1 - eps / 2, 1 + eps, 0.5, 0.25, 0.1]
    some += [1.5, 2.5, 3.5, 2.0, 3.0, 7.0, 0.49999997, np.pi / 2, np.pi, 3 * np.pi / 4, np.e, np.log(2.0), 10.0, F32_LOGISTIC_WORST]
    some += [22.0, 88.0, 100.0, 127.5, 709.0, 1000.5, 1 / eps, 0.5 / eps, 0.5 / eps + 0.5, 1e10, big, big / 2, inf]
    with np.errstate(all="ignore"):
        values = np.array(some).astype(dtype)
    return np.concatenate([values, -values, np.array([nan]).astype(dtype)])


def random_floats(element, count, rng):
    dtype = DTYPES[element]
    bits = rng.integers(0, 256, (count, dtype.itemsize), np.uint8).view(dtype).ravel()
    near = rng.standard_normal(count) * rng.choice([0.3, 1.0, 5.0, 40.0], count)
    with np.errstate(all="ignore"):
        return np.where(rng.random(count) < 0.4, bits, near.astype(dtype))


def integer_edges(element):
    dtype = DTYPES[element]
    info = np.iinfo(dtype)
    bits = info.bits
    some = {0, 1, 2, 3, 5, 7, 10, bits - 1, bits, bits + 1, 100, info.max, info.max - 1, info.max // 2, info.max // 3}
    some |= {-1, -2, -3, -7, -bits, -100, info.min, info.min + 1, 1 << (bits - 2)}
    return np.array(sorted(v for v in some if info.min <= v <= info.max), dtype)


def random_integers(element, count, rng):
    dtype = DTYPES[element]
    bits = rng.integers(0, 256, (count, dtype.itemsize), np.uint8).view(dtype).ravel()
    return np.where(rng.random(count) < 0.3, bits % np.array(13, dtype), bits).astype(dtype)


def unary_points(element, count, rng):
    if element == "i1":
        return np.array([False, True])
    if element in F8:
        return np.arange(256, dtype=np.uint8).view(DTYPES[element])
    if element in FLOATS:
        return np.concatenate([float_edges(element), random_floats(element, count, rng)])
    return np.concatenate([integer_edges(element), random_integers(element, count, rng)])


def binary_points(element, count, rng):
    if element == "i1":
        edges = np.array([False, True])
        more = edges[:0]
    elif element in F8:
        edges = np.arange(0, 256, 5, dtype=np.uint8).view(DTYPES[element])
        more = rng.integers(0, 256, 2 * count, np.uint8).view(DTYPES[element])
    elif element in FLOATS:
        edges = float_edges(element)
        edges = np.concatenate([edges[::3], edges[[1, 6, 20, 37, -1]]])
        more = random_floats(element, 2 * count, rng)
    else:
        edges = integer_edges(element)
        more = random_integers(element, 2 * count, rng)
    x, y = (np.ravel(v) for v in np.meshgrid(edges, edges))
    half = len(more) // 2
    return np.concatenate([x, more[:half]]), np.concatenate([y, more[half:]])


# References ---------------------------------------------------------------------


def wrapped(values, element):
    """Returns Python integers modulo the type's width."""
    if element == "i1":
        return np.array([bool(v & 1) for v in values])
    info = np.iinfo(DTYPES[element])
    mask = (1 << info.bits) - 1
    return np.array([((int(v) - int(info.min)) & mask) + int(info.min) for v in values], DTYPES[element])


def integers(function, element, *arrays):
    return wrapped([function(*map(int, row)) for row in zip(*arrays)], element)


def int_divide(x, y):
    return -1 if y == 0 else abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def int_remainder(x, y):
    return x if y == 0 else x - y * int_divide(x, y)


def int_power(bits):
    def power(x, y):
        if y >= 0:
            return pow(x, y, 1 << bits)
        return {1: 1, -1: -1 if y % 2 else 1}.get(x, 0)

    return power


def shift(kind, bits, signed):
    mask = (1 << bits) - 1

    def function(x, n):
        n &= mask  # the amount is unsigned
        if kind == "left":
            return x << n if n < bits else 0
        if kind == "logical":
            return (x & mask) >> n if n < bits else 0
        x &= mask
        x -= (x >> (bits - 1)) << bits
        return x >> min(n, bits - 1)

    return function


def in_double(function, element, *arrays):
    """Computes in f64 and rounds once: f64 has more than twice the bits of every narrower type."""
    with np.errstate(all="ignore"):
        if element in ("f32", "f64"):
            return function(*arrays).astype(DTYPES[element])
        return function(*(a.astype(np.float64) for a in arrays)).astype(DTYPES[element])


def maximum(x, y):
    zeros = (x == 0) & (y == 0)
    both = np.where(np.signbit(x) & np.signbit(y), -0.0, 0.0)
    return np.where(zeros, both, np.maximum(x, y))


def minimum(x, y):
    return -maximum(-x, -y)


def away(x):
    whole = np.trunc(x)
    return np.where(np.isfinite(x), np.copysign(whole + (np.abs(x - whole) >= 0.5) * np.sign(x), x), x)


def total_order(x):
    """Returns the ranks of floats in the total order, from their bits."""
    unsigned = x.view(f"u{x.dtype.itemsize}").astype(object)
    sign = 1 << (8 * x.dtype.itemsize - 1)
    return np.array([-(int(b) - sign) - 1 if int(b) & sign else int(b) for b in unsigned], object)


def reduce_precision(x, exponent, mantissa):
    """Computes the reference from the definition of rounding, with ties to even."""
    bias = (1 << (exponent - 1)) - 1

    def one(v):
        if not np.isfinite(v) or v == 0:
            return v
        m, e = np.frexp(abs(v))  # in [0.5, 1)
        scaled = np.ldexp(m, mantissa + 1)
        scaled = np.rint(scaled)  # ties to even
        rounded = np.ldexp(scaled, int(e) - mantissa - 1)
        if rounded < 2.0 ** (1 - bias):
            rounded = 0.0
        if rounded >= 2.0 ** (bias + 1):
            rounded = inf
        return np.copysign(rounded, v)

    return np.array([one(float(v)) for v in x])


mp = mpmath.mp


def mp_lgamma(x):
    if x <= 0 and x == mp.floor(x):
        return mp.inf
    return mp.log(abs(mp.gamma(x))) if abs(x) < 50 else mp.re(mp.loggamma(x)) if x > 0 else (
        mp.log(mp.pi / abs(mp.sinpi(x))) - mp.loggamma(1 - x)
    )


def mp_digamma(x):
    if x <= 0 and x == mp.floor(x):
        return mp.nan
    return mp.digamma(x) if x > -50 else mp.digamma(1 - x) - mp.pi * mp.cospi(x) / mp.sinpi(x)


def mp_power(x, y):
    if x < 0 and y != mp.floor(y):
        return mp.nan
    magnitude = abs(x)
    exponent = y * mp.log(magnitude)
    if abs(exponent) > 2000:
        r = mp.mpf(10) ** 2000 if exponent > 0 else mp.mpf(10) ** -2000
    else:
        r = mp.exp(exponent)
    return -r if x < 0 and y % 2 == 1 else r


def mp_erfinv(x):
    """Refines a value in f64 with Newton's method, on the side where nothing cancels."""
    from scipy import special

    a = abs(x)
    if a < 0.5:
        y = mp.mpf(float(special.erfinv(float(a)))) if a > 1e-300 else a * mp.sqrt(mp.pi) / 2
        for _ in range(3):
            y -= (mp.erf(y) - a) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    else:
        y = mp.mpf(float(special.erfcinv(float(1 - a))))
        for _ in range(3):
            y += (mp.erfc(y) - (1 - a)) * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
    return y if x > 0 else -y


def between(low, high, function):
    return lambda x: function(x) if low <= x <= high else mp.nan


def saturating(function, limit=2000):
    """Clamps the argument of exp and similar functions: beyond the limit the result overflows or
    underflows in every type."""
    return lambda x: function(max(min(x, mp.mpf(limit)), mp.mpf(-limit)))


def numpy_power(x, y):
    return np.float_power(x, y)


# The true values for finite nonzero arguments, and the values at 0, infinity and NaN.
FUNCTIONS = {
    "stablehlo.exponential": (saturating(mp.exp), np.exp),
    "stablehlo.exponential_minus_one": (saturating(mp.expm1), np.expm1),
    "stablehlo.log": (between(0, inf, mp.log), np.log),
    "stablehlo.log_plus_one": (between(-1, inf, lambda x: mp.log1p(x) if x > -1 else -mp.inf), np.log1p),
    "stablehlo.logistic": (saturating(lambda x: 1 / (1 + mp.exp(-x))), lambda x: 1 / (1 + np.exp(-x))),
    "stablehlo.sine": (mp.sin, np.sin),
    "stablehlo.cosine": (mp.cos, np.cos),
    "stablehlo.tan": (mp.tan, np.tan),
    "stablehlo.tanh": (saturating(mp.tanh), np.tanh),
    "stablehlo.cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), np.cbrt),
    "stablehlo.rsqrt": (between(0, inf, lambda x: 1 / mp.sqrt(x)), lambda x: 1 / np.sqrt(x)),
    "chlo.erf": (saturating(mp.erf, 100), lambda x: np.where(np.isinf(x), np.sign(x), x)),
    "chlo.erfc": (saturating(mp.erfc, 100), lambda x: np.where(np.isnan(x), x, 1 - np.sign(x))),
    "chlo.erf_inv": (between(-1, 1, lambda x: mp.sign(x) * mp.inf if abs(x) == 1 else mp_erfinv(x)),
                     lambda x: np.where(np.isinf(x), np.nan, x)),
    "chlo.lgamma": (mp_lgamma, lambda x: np.where(np.isnan(x), x, np.inf)),
    "chlo.digamma": (mp_digamma, lambda x: np.where(x == 0, -np.copysign(np.inf, x), np.where(x > 0, x, np.nan))),
    "chlo.asin": (between(-1, 1, mp.asin), np.arcsin),
    "chlo.acos": (between(-1, 1, mp.acos), np.arccos),
    "chlo.atan": (mp.atan, np.arctan),
    "chlo.sinh": (saturating(mp.sinh), np.sinh),
    "chlo.cosh": (saturating(mp.cosh), np.cosh),
    "chlo.tan": (mp.tan, np.tan),
    "chlo.asinh": (lambda x: mp.sign(x) * mp.asinh(abs(x)), np.arcsinh),
    "chlo.acosh": (between(1, inf, mp.acosh), np.arccosh),
    "chlo.atanh": (between(-1, 1, lambda x: mp.sign(x) * (mp.inf if abs(x) == 1 else (mp.log1p(abs(x)) - mp.log1p(-abs(x))) / 2)),
                   np.arctanh),
    "stablehlo.power": (mp_power, numpy_power),
    "stablehlo.atan2": (mp.atan2, np.arctan2),
}  # fmt: skip

# From this value on, f64 rounds to infinity.
OVERFLOW = mpmath.mpf(2) ** 1024 - mpmath.mpf(2) ** 970

worst = {}  # (function, element) -> (error in units, arguments)


def true_values(function, special, arrays):
    """Returns the true value as a sum of two f64; `high` is infinite or NaN where the value is."""
    high, low = [], []
    with np.errstate(all="ignore"):
        doubles = [a.astype(np.float64) for a in arrays]
    with np.errstate(all="ignore"):
        specials = np.asarray(special(*doubles), np.float64)
    for row, known in zip(zip(*doubles), specials):
        if all(np.isfinite(v) and v != 0 for v in row):
            value = function(*(mp.mpf(v) for v in row))
            if mp.isnan(value) or mp.isinf(value):
                high.append(float(value))
                low.append(0.0)
            elif abs(value) >= OVERFLOW:
                high.append(float(mp.sign(value)) * inf)
                low.append(0.0)
            else:
                high.append(float(value))
                low.append(float(value - mp.mpf(high[-1])))
        else:
            high.append(known)
            low.append(0.0)
    return np.array(high), np.array(low)


def unit_in_last_place(value, element):
    info = finfo(element)
    with np.errstate(all="ignore"):
        magnitude = np.clip(np.abs(value), float(info.tiny), float(info.max))
    return np.exp2(np.floor(np.log2(magnitude)) - info.nmant)


def near(name, element, high, low, arrays):
    """Checks that results are within the type's bound of the true value. An overflow counts as the
    power of two after the largest number."""
    info = finfo(element)
    limit = inf if element == "f64" else 2.0**info.maxexp
    bound = bound_of(name, element)

    def check(got):
        wide = got.astype(np.float64)
        special = ~np.isfinite(high) | ((high == 0) & (low == 0) & (name not in ROOTS))
        with np.errstate(all="ignore"):
            unit = unit_in_last_place(high, element)
            if name in ROOTS:
                unit = np.maximum(unit, 0.25 * float(info.eps))
            true = np.clip(high, -limit, limit)
            error = np.abs((np.clip(wide, -limit, limit) - true) - np.where(true == high, low, 0)) / unit
            error = np.where(special, 0, error)
            error = np.where(np.isnan(error), inf, error)
        at = int(np.argmax(error))
        key = (name, element)
        if key not in worst or error[at] > worst[key][0]:
            worst[key] = (float(error[at]), [a[at] for a in arrays])
        wrong = error > bound
        wrong |= special & ~same(wide, high)
        return first_wrong(wrong, got, high, arrays)

    return check


# Tables -------------------------------------------------------------------------


def unary(module, name, array, want):
    element = name_of(array.dtype)
    label = f"{name} {element}"
    text = name + " {0} : {types}" + (" -> {out}" if name.startswith("chlo") else "")
    module.op(label, text, [array], array.shape, element, exact(want, array))


def binary(module, name, x, y, want):
    element = name_of(x.dtype)
    module.op(f"{name} {element}", name + " {0}, {1} : {out}", [x, y], x.shape, element, exact(want, x, y))


def compares(module, x, y):
    element = name_of(x.dtype)
    kind = "UNSIGNED" if element in UNSIGNED + ["i1"] else "SIGNED" if element in SIGNED else "FLOAT"
    ranks = [(kind, x, y)]
    if element in FLOATS:
        ranks.append(("TOTALORDER", total_order(x), total_order(y)))
    if element in F8:
        ranks[0] = (kind, x.astype(np.float32), y.astype(np.float32))
    directions = {"EQ": np.equal, "NE": np.not_equal, "GE": np.greater_equal, "GT": np.greater, "LE": np.less_equal,
                  "LT": np.less}  # fmt: skip
    for (how, l, r), (direction, function) in itertools.product(ranks, directions.items()):
        module.op(
            f"compare {direction} {how} {element}",
            f"stablehlo.compare {direction}, {{0}}, {{1}}, {how} : ({{types}}) -> {{out}}",
            [x, y], x.shape, "i1", exact(function(l, r).astype(bool), x, y),
        )  # fmt: skip


def selects(module, x, y, rng):
    element = name_of(x.dtype)
    mask = rng.random(x.shape) < 0.5
    module.op(f"select {element}", "stablehlo.select {0}, {1}, {2} : {types}".replace("{types}", "tensor<%dxi1>, {out}" % len(x)),
              [mask, x, y], x.shape, element, exact(np.where(mask, x, y), x, y))  # fmt: skip
    for flag in (True, False):
        module.op(f"select scalar {element}", "stablehlo.select {0}, {1}, {2} : tensor<i1>, {out}",
                  [np.array(flag), x, y], x.shape, element, exact(x if flag else y, x, y))  # fmt: skip


def integer_ops(module, element, count, rng):
    x, y = binary_points(element, count, rng)
    one = unary_points(element, count, rng)
    is_bool = element == "i1"
    bits = 1 if is_bool else np.iinfo(DTYPES[element]).bits
    mask = (1 << bits) - 1
    signed = element in SIGNED
    binaries = {
        "maximum": max,
        "minimum": min,
        "and": lambda a, b: a & b,
        "or": lambda a, b: a | b,
        "xor": lambda a, b: a ^ b,
        "add": (lambda a, b: a | b) if is_bool else (lambda a, b: a + b),
        "multiply": lambda a, b: a * b,
    }
    unaries = {"not": lambda a: ~a}
    if not is_bool:
        binaries |= {
            "subtract": lambda a, b: a - b,
            "divide": int_divide,
            "remainder": int_remainder,
            "power": int_power(bits),
            "shift_left": shift("left", bits, signed),
            "shift_right_logical": shift("logical", bits, signed),
            "shift_right_arithmetic": shift("arithmetic", bits, signed),
        }
        unaries |= {
            "popcnt": lambda a: bin(a & mask).count("1"),
            "count_leading_zeros": lambda a: bits - (a & mask).bit_length(),
            "negate": lambda a: -a,
            "sign": lambda a: (a > 0) - (a < 0),
            "abs": abs,
        }
        if not signed:
            del unaries["abs"], unaries["sign"]
    for name, function in binaries.items():
        binary(module, "stablehlo." + name, x, y, integers(function, element, x, y))
    for name, function in unaries.items():
        unary(module, "stablehlo." + name, one, integers(function, element, one))
    compares(module, x, y)
    selects(module, x, y, rng)
    if not is_bool:
        low, high = np.roll(x, 1), np.roll(y, 5)
        module.op(f"clamp {element}", "stablehlo.clamp {0}, {1}, {2} : {out}", [low, x, high], x.shape, element,
                  exact(np.minimum(np.maximum(low, x), high), low, x, high))  # fmt: skip
        unary(module, "chlo.square", one, integers(lambda a: a * a, element, one))


def exact_float_ops(module, element, count, rng):
    x, y = binary_points(element, count, rng)
    one = unary_points(element, count, rng)
    binaries = {
        "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
        "remainder": np.fmod, "maximum": maximum, "minimum": minimum,
    }  # fmt: skip
    unaries = {
        "abs": np.abs, "negate": np.negative, "ceil": np.ceil, "floor": np.floor, "sqrt": np.sqrt,
        "round_nearest_even": np.rint, "round_nearest_afz": away,
        "sign": lambda v: np.where((v == 0) | np.isnan(v), v, np.copysign(1.0, v)),
    }  # fmt: skip
    for name, function in binaries.items():
        binary(module, "stablehlo." + name, x, y, in_double(function, element, x, y))
    for name, function in unaries.items():
        unary(module, "stablehlo." + name, one, in_double(function, element, one))
    unary(module, "chlo.square", one, in_double(np.square, element, one))
    wide = one.astype(np.float64)
    tests = {
        "stablehlo.is_finite": np.isfinite, "chlo.is_inf": np.isinf,
        "chlo.is_pos_inf": np.isposinf, "chlo.is_neg_inf": np.isneginf,
    }  # fmt: skip
    for name, function in tests.items():
        text = name + (" {0} : ({types}) -> {out}" if name.startswith("stablehlo") else " {0} : {types} -> {out}")
        module.op(f"{name} {element}", text, [one], one.shape, "i1", exact(function(wide), one))
    compares(module, x, y)
    selects(module, x, y, rng)
    low, high = np.roll(x, 1), np.roll(y, 5)
    module.op(f"clamp {element}", "stablehlo.clamp {0}, {1}, {2} : {out}", [low, x, high], x.shape, element,
              exact(in_double(lambda a, b, c: minimum(maximum(a, b), c), element, low, x, high), low, x, high))  # fmt: skip
    scalars = [np.array(-1.5).astype(DTYPES[element]), np.array(2.0).astype(DTYPES[element])]
    shapes = f"tensor<{element}>, {{out}}, tensor<{element}>"
    module.op(f"clamp scalar {element}", "stablehlo.clamp {0}, {1}, {2} : (" + shapes + ") -> {out}",
              [scalars[0], x, scalars[1]], x.shape, element,
              exact(in_double(lambda v: minimum(maximum(-1.5, v), 2.0), element, x), x))  # fmt: skip
    own = finfo(element)
    own_exponent = own.bits - 1 - own.nmant
    smallest = -int(own.minexp)
    for exponent, mantissa in [(5, 10), (8, 7), (4, 3), (5, 2), (8, 23), (3, 1), (11, 52), (2, 1)]:
        if mantissa >= own.nmant and exponent >= own_exponent:
            continue  # more bits than the type has
        want = reduce_precision(wide, min(exponent, 11), min(mantissa, 52))
        # If all exponent bits are kept, subnormal numbers keep their last place.
        keeps = (1 << (exponent - 1)) - 2 >= smallest
        with np.errstate(all="ignore"):
            module.op(f"reduce_precision e{exponent}m{mantissa} {element}",
                      f"stablehlo.reduce_precision {{0}}, format = e{exponent}m{mantissa} : {{types}}",
                      [one], one.shape, element, subnormals_apart(want.astype(one.dtype), one, keeps))  # fmt: skip
    # NaN stays NaN even if no mantissa bit distinguishes it from infinity.
    module.op(f"reduce_precision e5m0 {element}", "stablehlo.reduce_precision {0}, format = e5m0 : {types}",
              [one], one.shape, element, nan_where(np.isnan(wide), one))  # fmt: skip
    after = next_after(x, y)
    if element not in F8:
        module.op(f"next_after {element}", "chlo.next_after {0}, {1} : {types} -> {out}", [x, y], x.shape, element,
                  exact(after, x, y))  # fmt: skip


def subnormals_apart(want, array, keeps_exponent):
    """Compares all but subnormal numbers if all exponent bits are kept: these keep their place
    value."""
    skip = np.zeros(array.shape, bool)
    if keeps_exponent:
        skip = np.abs(array.astype(np.float64)) < float(ml_dtypes.finfo(array.dtype).tiny)

    def check(got):
        return first_wrong(~same(got, want) & ~skip, got, want, [array])

    return check


def nan_where(want, array):
    """Checks only that results are NaN where `want` is: some formats have no infinity."""

    def check(got):
        return first_wrong(want & ~np.isnan(got.astype(np.float64)), got, np.where(want, np.nan, 0), [array])

    return check


def next_after(x, y):
    """Steps the bits, which are ordered like floats of one sign."""
    bits = x.view(f"i{x.dtype.itemsize}").copy()
    with np.errstate(all="ignore"):
        wide_x, wide_y = x.astype(np.float64), y.astype(np.float64)
        up = (wide_y > wide_x) == (wide_x > 0)
        moved = np.where(up, bits + 1, bits - 1).astype(bits.dtype).view(x.dtype)
        least = np.copysign(float(ml_dtypes.finfo(x.dtype).smallest_subnormal), wide_y).astype(x.dtype)
        moved = np.where(wide_x == 0, least, moved)
        moved = np.where(wide_x == wide_y, y, moved)
        return np.where(np.isnan(wide_x) | np.isnan(wide_y), np.array(nan).astype(x.dtype), moved).astype(x.dtype)


def functions(module, element, count, rng):
    x, y = binary_points(element, count, rng)
    keep = rng.random(len(x)) < 0.5
    x, y = x[keep], y[keep]
    one = unary_points(element, 2 * count, rng)
    unit = (rng.uniform(-1, 1, count)).astype(DTYPES[element])
    for name, (function, special) in FUNCTIONS.items():
        short = name.split(".")[1]
        arrays = [x, y] if short in ("power", "atan2") else [one]
        if short in ("erf_inv", "asin", "acos", "atanh", "log_plus_one"):
            arrays = [np.concatenate([one, unit])]
        high, low = true_values(function, special, arrays)
        text = name + " " + ", ".join("{%d}" % i for i in range(len(arrays)))
        text += " : {types} -> {out}" if name.startswith("chlo") else " : {out}"
        module.op(f"{name} {element}", text, arrays, arrays[0].shape, element, near(short, element, high, low, arrays))


def f8_functions(module, element):
    """Checks every value: the result is the true value rounded once."""
    one = unary_points(element, 0, None)
    for name in ["exponential", "log", "tanh", "logistic", "sine", "rsqrt", "cbrt"]:
        function, special = FUNCTIONS["stablehlo." + name]
        high, _ = true_values(function, special, [one])
        with np.errstate(all="ignore"):
            want = high.astype(DTYPES[element])
        module.op(f"{name} {element}", f"stablehlo.{name} {{0}} : {{types}}", [one], one.shape, element, exact(want, one))


def round_to(value, element):
    """Returns an integer rounded to a float of the type, to nearest, ties to even."""
    info = finfo(element)
    bits = info.nmant + 1
    drop = max(abs(value).bit_length() - bits, 0)
    kept, rest = abs(value) >> drop, abs(value) & ((1 << drop) - 1)
    half = (1 << drop) >> 1
    kept += rest > half or (drop > 0 and rest == half and kept & 1)
    rounded = float(kept) * 2.0**drop
    return -rounded if value < 0 else rounded


def round_to_odd(x):
    """Returns f64 as f32, with an odd last bit if inexact, so that rounding it again to fewer bits
    gives the same as rounding once."""
    nearest = x.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.view(np.int32)
    truncated = bits - (np.abs(back) > np.abs(x))
    return np.where(np.isnan(x) | (back == x), nearest, (truncated | 1).view(np.float32))


def converted(array, to):
    source, dtype = name_of(array.dtype), DTYPES[to]
    with np.errstate(all="ignore"):
        if array.dtype.kind in "biu":
            if to == "i1":
                return array != 0
            if dtype.kind in "iu":
                return wrapped([int(v) for v in array], to)
            # Rounds to the type's own precision first; the result is exact in f64.
            return np.array([round_to(int(v), to) for v in array], np.float64).astype(dtype)
        wide = array.astype(np.float64)
        if to == "i1":
            return wide != 0
        if dtype.kind in "iu":
            info = np.iinfo(dtype)
            return np.array([0 if np.isnan(v) else info.max if v >= float(info.max) else info.min if v <= info.min
                             else int(v) for v in wide], dtype)  # fmt: skip
        if source == "f64" and to in F8 + ["bf16"]:
            wide = round_to_odd(array)  # ml_dtypes rounds twice, through f32
        return wide.astype(dtype)


def halfway(element, rng):
    """Returns f64 values at, just above and just below the midpoints of neighbours in a type, where
    rounding twice is wrong."""
    dtype = DTYPES[element]
    count = 60
    bits = rng.integers(0, 256, (count, dtype.itemsize), np.uint8).view(dtype).ravel()
    up = (bits.view(f"u{dtype.itemsize}") + np.array(1, f"u{dtype.itemsize}")).view(dtype)
    with np.errstate(all="ignore"):
        middle = (bits.astype(np.float64) + up.astype(np.float64)) / 2
    middle = middle[np.isfinite(middle)]
    return np.concatenate([middle, np.nextafter(middle, inf), np.nextafter(middle, -inf)])


def converts(module, count, rng):
    targets = list(DTYPES)
    for source in DTYPES:
        array = unary_points(source, count, rng)
        if source in ("f64", "f32"):
            more = [halfway(t, rng) for t in F8 + ["f16", "bf16"] + (["f32"] if source == "f64" else [])]
            with np.errstate(all="ignore"):
                array = np.concatenate([array, *(m.astype(array.dtype) for m in more)])
        if source in ("i64", "ui64", "i32", "ui32"):
            bits = np.iinfo(array.dtype).bits
            ties = [(1 << (bits - 2)) + (1 << (bits - 2 - p)) + d for p in (4, 8, 9, 11, 12, 24, 25, 53, 54) for d in (-1, 0, 1)
                    if p < bits - 2]  # fmt: skip
            array = np.concatenate([array, np.array(ties, array.dtype)])
        for to in targets:
            if to == "f8E8M0FNU" and source != "f8E8M0FNU" and array.dtype.kind in "biu":
                continue  # rounding to powers of two is tested from f32
            if to == "f8E8M0FNU" and source in ("f32", "f64", "bf16"):
                # For values that are subnormal in f32, ml_dtypes does not round to nearest.
                with np.errstate(all="ignore"):
                    array = array[~(np.abs(array.astype(np.float64)) < 2.0**-126) | (array == 0)]
            module.op(f"convert {source} to {to}", "stablehlo.convert {0} : ({types}) -> {out}", [array], array.shape, to,
                      exact(converted(array, to), array))  # fmt: skip


def bitcasts(module, rng):
    widths = {e: d.itemsize for e, d in DTYPES.items() if e != "i1"}
    for source, to in itertools.product(widths, widths):
        if source == to or (source in F8 and to in F8 and rng.random() < 0.7):
            continue
        ratio = widths[source] / widths[to]
        shape = (6,) if ratio >= 1 else (6, int(1 / ratio))
        array = rng.integers(0, 256, shape + (widths[source],), np.uint8).view(DTYPES[source])[..., 0]
        array = np.ascontiguousarray(array)
        if ratio > 1:
            want = array.view(DTYPES[to]).reshape(6, int(ratio))
        else:
            want = np.ascontiguousarray(array).view(DTYPES[to]).reshape(6)
        bits = f"u{widths[to]}"

        def check(got, want=want, bits=bits, array=array):
            wrong = got.view(bits) != want.view(bits)
            return first_wrong(wrong, got.view(bits), want.view(bits), [array])

        module.op(f"bitcast_convert {source} to {to}", "stablehlo.bitcast_convert {0} : ({types}) -> {out}", [array],
                  want.shape, to, check)  # fmt: skip


def modules(count, only):
    rng = np.random.default_rng(3)
    for element in DTYPES:
        if only and element not in only:
            continue
        module = Module("elementwise_" + element)
        if element == "f8E8M0FNU":
            continue  # a type of scales, which is only converted
        if element in F8:
            exact_float_ops(module, element, count, rng)
            f8_functions(module, element)
        elif element in FLOATS:
            exact_float_ops(module, element, count, rng)
            functions(module, element, count, rng)
        else:
            integer_ops(module, element, count, rng)
        yield module
    if not only or "convert" in only:
        module = Module("converts")
        converts(module, count, rng)
        yield module
        module = Module("bitcasts")
        bitcasts(module, rng)
        yield module


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp8_run")
    parser.add_argument("folder")
    parser.add_argument("--points", type=int, default=150)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    results, failures = 0, []
    for module in modules(options.points, options.only):
        results += len(module.results)
        failures += module.run(options.fp8_run, options.folder)
    if options.table:
        for (name, element), (error, at) in sorted(worst.items()):
            print(f"{name:24} {element:5} {error:8.3f}  at {', '.join(map(repr, at))}")
    print("\n".join(failures))
    print(f"{results} operations, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
