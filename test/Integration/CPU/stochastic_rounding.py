"""The random numbers of stochastic rounding, in NumPy: a hash of seed, step, loop iterations,
tensor and element (see fp8.mix_seed and fp8.quantize)."""

import math

import ml_dtypes
import numpy as np


def mix64(x):
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = ((x ^ x >> shift) * factor) % 2**64
    return x ^ x >> 31


def mix_seed(seed, counter):
    return mix64(mix64(seed % 2**64) ^ (counter + 1) * 0x9E3779B97F4A7C15 % 2**64)


def random_numbers(seed, tensor, shape):
    """Returns the random numbers of the elements of a tensor, in [0, 1)."""
    key = mix_seed(seed, tensor)
    x = np.arange(math.prod(shape), dtype=np.uint32) ^ np.uint32(key % 2**32)
    x = (x ^ x >> np.uint32(17)) * np.uint32(0xED5AD4BB)
    x = ((x ^ x >> np.uint32(11)) + np.uint32(key >> 32)) * np.uint32(0xAC4C1B51)
    x = (x ^ x >> np.uint32(15)) * np.uint32(0x31848BAB)
    x = x ^ x >> np.uint32(14)
    return ((x >> np.uint32(8)).astype(np.float64) * 2.0**-24).reshape(shape)


def round_by(x, random, dtype):
    """Rounds the magnitude of x up if the random number is below the fraction between its
    neighbours, otherwise down. Beyond the largest number the result is infinity. Subnormals of
    f16 have the upper 20 bits of the random number."""
    info, x = ml_dtypes.finfo(dtype), x.astype(np.float64)
    exponent = np.frexp(np.abs(x))[1] - 1
    if dtype == np.float16:
        random = np.where(exponent < info.minexp, np.floor(random * 2.0**20) * 2.0**-20, random)
    exponent = np.maximum(exponent, int(info.minexp))
    distance = np.exp2(exponent - int(info.nmant))
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.abs(x) / distance
        whole = np.floor(steps)
        whole += random < steps - whole
        return np.copysign(whole * distance, x).astype(np.float32).astype(dtype)
