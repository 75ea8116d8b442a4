"""Converts between NumPy's types and the runtime's, and checks arguments: arrays, counts and paths."""

import functools
import operator
import os
import sys
from collections.abc import Mapping

import numpy as np

# By the runtime's names, which are those of safetensors.
_NUMPY = {
    "BOOL": "bool", "U8": "uint8", "I8": "int8", "U16": "uint16", "I16": "int16", "U32": "uint32", "I32": "int32",
    "U64": "uint64", "I64": "int64", "F16": "float16", "F32": "float32", "F64": "float64",
}  # fmt: skip
_ML_DTYPES = {
    "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn", "F8_E5M2": "float8_e5m2", "F8_E8M0": "float8_e8m0fnu", "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz", "float8_e4m3": "float8_e4m3", "float8_e3m4": "float8_e3m4", "float8_e4m3b11fnuz": "float8_e4m3b11fnuz",
}  # fmt: skip
# The bits that are all set in the values that are not finite, and in no others.
_NOT_FINITE = {
    "F8_E4M3": 0x7F, "F8_E5M2": 0x7C, "F8_E8M0": 0xFF, "float8_e4m3": 0x78, "float8_e3m4": 0x70,
    "F16": 0x7C00, "BF16": 0x7F80, "F32": 0x7F800000, "F64": 0x7FF0000000000000,
}  # fmt: skip
# The only code that is not finite where others have its bits, too.
_NAN = {"F8_E4M3FNUZ": 0x80, "F8_E5M2FNUZ": 0x80, "float8_e4m3b11fnuz": 0x80}
# The types to which JAX narrows NumPy's default types unless 64 bits are enabled.
_NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


@functools.cache
def numpy_dtype(name):
    """Returns NumPy's dtype for a runtime type such as "F32"."""
    known = {**_NUMPY, **_ML_DTYPES}
    if name not in known:
        raise TypeError(f"expected a type that NumPy has, one of {', '.join(known)}, but got {name or 'another one'}")
    return dtype_called(known[name])


def dtype_called(name):
    """Returns the dtype with a name of NumPy or ml_dtypes: "float32", "bfloat16"."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, name))


def typed(data, info, shape=None):
    """Returns bytes as an array with the type of `info` (a TensorInfo), and with its shape or `shape`."""
    return data.view(numpy_dtype(info.dtype)).reshape(info.shape if shape is None else shape)


def bytes_of(array):
    """Returns the bytes of an array, in row-major order, as an array."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def first_not_finite(data, dtype):
    """Returns the index of the first element that is NaN or infinite, in an array's bytes of a runtime type; None without one."""
    bits = _NAN.get(dtype, _NOT_FINITE.get(dtype))
    if bits is None:
        return None
    codes = data.view(f"u{numpy_dtype(dtype).itemsize}")
    bits = codes.dtype.type(bits)
    size = 1 << 16  # elements at a time: what is computed about them stays in the cache
    for begin in range(0, len(codes), size):
        part = codes[begin : begin + size]
        found = (part if dtype in _NAN else part & bits) == bits
        if found.any():
            return begin + int(found.argmax())
    return None


def is_jax(value):
    """Returns whether a value is an array of JAX, or one that it traces."""
    return type(value).__module__.startswith("jax")


def is_traced(value):
    """Returns whether a value is one that JAX traces, which has no numbers."""
    return is_jax(value) and isinstance(value, sys.modules["jax"].core.Tracer)


def is_key(value):
    """Returns whether a value is a typed key of jax.random."""
    return is_jax(value) and "key<" in str(getattr(value, "dtype", ""))


def expect_generator(value, generator, path):
    """Raises TypeError if a value is a typed key of another random number generator, whose data may have the same type."""
    if is_key(value) and (name := str(value.dtype._impl.name)) != generator:
        raise TypeError(f"{path}: expected a key of {generator} but got one of {name}")


def _holds(dtype, number):
    """Returns whether a type has room for a Python number: as in JAX, floats are no integers and numbers no bools."""
    if type(number) is bool:
        return True
    if dtype.kind in "iu":
        return type(number) is int and np.iinfo(dtype).min <= number <= np.iinfo(dtype).max
    return dtype.kind != "b"


def _narrows(value, native, dtype):
    """Returns whether JAX takes a value of the type `native` as one of `dtype`: any while 64 bits are off, then those of weak types."""
    if _NARROWED.get(native.name) != dtype.name:
        return False
    jax = sys.modules.get("jax")  # Without it, its default applies.
    return jax is None or not jax.config.jax_enable_x64 or getattr(value, "weak_type", False)


def given(value, shape, dtype, path):
    """Returns `value`, anything array-like, as an array of this shape and type; raises a TypeError with its path if it does not match.

    Python numbers take the expected type if it has room for them; 64-bit arrays are narrowed as JAX narrows them, which it does not with
    jax_enable_x64.
    """
    if type(value) in (bool, int, float):
        if tuple(shape) or not _holds(dtype, value):
            raise TypeError(f"{path}: expected {describe(shape, dtype)} but got the {type(value).__name__} {value}")
        return np.array(value, dtype)
    if is_traced(value):
        raise TypeError(f"{path}: expected an array but got what JAX traces in place of one: a compiled step is called outside of jax.jit, jax.grad and the like")
    if is_key(value):
        import jax

        value = jax.random.key_data(value)
    if isinstance(value, np.ma.MaskedArray):  # NumPy would show what the mask hides.
        raise TypeError(f"{path}: expected an array without a mask but got a masked array: choose the masked values, as by value.filled(0)")
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise TypeError(f"{path}: expected {describe(shape, dtype)} but got a {type(value).__name__}, which has no numbers")
    native = array.dtype.newbyteorder("=")
    if not (native == dtype or _narrows(value, native, dtype)) or array.shape != tuple(shape):
        raise TypeError(f"{path}: expected {describe(shape, dtype)} but got {describe(array.shape, array.dtype)}")
    return array.astype(dtype, copy=False)


def given_batch(value, info, rank, path):
    """Returns `value` as an array that feeds a step's argument; of the rows of all ranks, those of this one."""
    dtype = numpy_dtype(info.dtype)
    if not info.parts or np.shape(value) != info.whole_shape:
        return given(value, info.shape, dtype, path)
    whole = given(value, info.whole_shape, dtype, path)
    return whole[tuple(slice(begin, begin + size) for begin, size in zip(info.parts[rank], info.shape))]


def expect_batches(batches):
    """Raises TypeError for what cannot be several batches, such as a batch."""
    has_items = hasattr(type(batches), "__iter__") or hasattr(type(batches), "__getitem__")
    if not has_items or isinstance(batches, Mapping | str | bytes):
        raise TypeError(f"expected batches in an iterable, such as a list, but got a {type(batches).__name__}")


def count(name, value, most=None):
    """Returns an argument that is a number of things; raises TypeError for anything but an integer, and ValueError below 0 or above `most`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"expected {name} to be an integer but got {value!r}") from None
    if number < 0:
        raise ValueError(f"expected {name} to be 0 or more but got {number}")
    if most is not None and number > most:
        raise ValueError(f"expected {name} to be at most {most} but got {number}")
    return number


def path_text(path):
    """Returns the path of a file as a text; raises TypeError for anything that is no path, and ValueError for bytes that are not UTF-8."""
    text = os.fsdecode(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"expected a path in UTF-8 but got {path!r}") from None
    return text


def describe(shape, dtype):
    """Returns, for example, float32[8,128]."""
    return f"{np.dtype(dtype).name}[{','.join(map(str, shape))}]"
