"""The power that range expansion computes, in NumPy: the same operations in f32 as in the
compiler's Powers.cpp (`approximatePow32`), so that payloads can be compared bit for bit. How far it
is from the true power is a matter of unittests/Math."""

import numpy as np

F32 = np.float32
LOG2 = [1.442694902420044, -0.7213471531867981, 0.48092252016067505, -0.3607212007045746, 0.28765666484832764,
        -0.23851943016052246, 0.2173794060945511, -0.2103034108877182, 0.1254124790430069]  # fmt: skip
EXP2 = [1.0, 0.6931471824645996, 0.24022650718688965, 0.055504102259874344, 0.009618038311600685, 0.0013333935057744384,
        0.00015466756303794682, 1.5196153981378302e-05]  # fmt: skip


def fma(a, b, c):
    """Returns a b + c for arrays of f32, rounded once. The product is exact in f64, and if the sum
    is not, its last bit is set: then the second rounding goes the way of the first."""
    product, c = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    toward = np.where(error > 0, np.inf, -np.inf)
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0) & even
    return np.where(inexact, np.nextafter(total, toward), total).astype(F32)


def horner(x, coefficients):
    total = np.full_like(x, F32(coefficients[-1]))
    for coefficient in coefficients[-2::-1]:
        total = fma(total, x, np.full_like(x, F32(coefficient)))
    return total


def log2(x):
    tiny = x < F32(2.0**-126)
    bits = np.where(tiny, x * F32(2.0**23), x).view(np.int32)
    exponent = (bits - F32(0.5**0.5).view(np.int32)) >> 23
    mantissa = (bits - (exponent << 23)).view(F32)
    whole = exponent.astype(F32) - np.where(tiny, F32(23), F32(0))
    f = mantissa - F32(1)
    result = np.where(x == 0, F32(-np.inf), fma(f, horner(f, LOG2), whole))
    return np.where(x < F32(np.inf), result, x).astype(F32)


def exp2(x):
    x = np.where(x < F32(-151), F32(-151), x)
    x = np.where(x > F32(129), F32(129), x)
    whole = np.rint(x)
    n = np.where(np.isnan(whole), F32(0), whole).astype(np.int32)
    half = n >> 1
    scale = lambda n: ((n + 127) << 23).astype(np.int32).view(F32)
    return horner(x - whole, EXP2) * scale(half) * scale(n - half)


def power(x, y):
    """Returns x^y for magnitudes x and finite y > 0, in f32."""
    x, y = np.broadcast_arrays(np.asarray(x, F32), np.asarray(y, F32))
    with np.errstate(all="ignore"):
        return exp2(log2(np.ascontiguousarray(np.atleast_1d(x))) * y).reshape(x.shape)
