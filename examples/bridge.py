"""Exchanges values between JAX and fp8-run, in both directions.

    import bridge
    bridge.save("init.safetensors", state=state)       # fp8-run STEP.mlir --init init.safetensors
    state = bridge.load("out/checkpoint-100.safetensors", state=state)

The keyword is the name of the step's parameter, its value any pytree: tensors have
JAX's names for the step's arguments, such as `state.params['w']`. Typed PRNG keys
are stored as their words, Python numbers with JAX's types (i32, f32, bool).

    python bridge.py FILE.safetensors                  # lists what a file holds
"""

import json
import os
import re
import sys
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np

# The names of types in safetensors.
DTYPES = {
    "BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "U16": np.uint16, "I16": np.int16, "U32": np.uint32, "I32": np.int32,
    "U64": np.uint64, "I64": np.int64, "F16": np.float16, "F32": np.float32, "F64": np.float64, "BF16": ml_dtypes.bfloat16,
    "F8_E4M3": ml_dtypes.float8_e4m3fn, "F8_E5M2": ml_dtypes.float8_e5m2,
}  # fmt: skip
DTYPES = {name: np.dtype(dtype) for name, dtype in DTYPES.items()}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


def read(path):
    """Returns the arrays of a safetensors file by name: a checkpoint, or any other file
    such as pretrained weights. For an index it reads all files of the set."""
    path = os.fspath(path)
    if path.endswith(".safetensors.index.json"):
        with open(path) as file:
            files = sorted(set(json.load(file)["weight_map"].values()))
        return {name: array for part in files for name, array in read(os.path.join(os.path.dirname(path), part)).items()}
    data = np.fromfile(path, np.uint8)
    size = int(data[:8].view("<u8")[0])
    header = json.loads(data[8 : 8 + size].tobytes())
    arrays = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            arrays[name] = data[begin:end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays


def write(path, arrays):
    """Writes arrays by name; wide types first, so that all are aligned."""
    header, offset = {}, 0
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    for name in order:
        array = arrays[name]
        if array.dtype not in NAMES:
            raise TypeError(f"{name}: expected one of {', '.join(map(str, NAMES))} but got {array.dtype}")
        header[name] = {"dtype": NAMES[array.dtype], "shape": array.shape, "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name in order:
            file.write(np.ascontiguousarray(arrays[name]).tobytes())


def is_key(leaf):
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def to_array(leaf):
    if is_key(leaf):
        leaf = jax.random.key_data(leaf)
    return np.asarray(leaf if hasattr(leaf, "dtype") else jnp.asarray(leaf))


def flatten(trees):
    """Returns (name, leaf) for every leaf, and the structure that reassembles them."""
    leaves, structure = jax.tree_util.tree_flatten_with_path(trees)
    # The outermost key is the parameter: 'state' instead of "['state']". Children of a class that is registered without keys have numbers.
    name = lambda path: path[0].key + re.sub(r"<flat index (\d+)>", r"\1", jax.tree_util.keystr(path[1:]))
    return [(name(path), leaf) for path, leaf in leaves], structure


def save(path, **trees):
    """Writes pytrees to a file that `--init` accepts."""
    write(path, {name: to_array(leaf) for name, leaf in flatten(trees)[0]})


def load(path, **trees):
    """Reads pytrees with the structure of the given ones. A leaf that is not in the file
    keeps its value: jit drops arguments that a step does not use."""
    arrays, leaves, absent = read(path), [], []
    named, structure = flatten(trees)
    for name, old in named:
        expected = to_array(old)
        if name not in arrays:
            absent.append(name)
            leaves.append(old)
            continue
        new = arrays[name]
        if (new.dtype, new.shape) != (expected.dtype, expected.shape):
            stored = "" if new.shape != expected.shape else ": if the recipe stores it so, fp8.compile(...).load_state reads it"
            raise ValueError(f"{path}: {name}: expected {expected.dtype}{list(expected.shape)} but got {new.dtype}{list(new.shape)}{stored}")
        if is_key(old):
            leaves.append(jax.random.wrap_key_data(jnp.asarray(new), impl=jax.random.key_impl(old)))
        else:
            leaves.append(jnp.asarray(new) if hasattr(old, "dtype") else type(old)(new))
    if len(absent) == len(named):
        raise ValueError(f"{path}: expected tensors like {absent[:3]} but got {list(arrays)[:3]}")
    if absent:
        warnings.warn(f"{path} lacks {len(absent)} of {len(named)} leaves, which stay as they are: {', '.join(absent[:5])}")
    trees = jax.tree_util.tree_unflatten(structure, leaves)
    return next(iter(trees.values())) if len(trees) == 1 else trees


if __name__ == "__main__":
    for name, array in read(sys.argv[1]).items():
        print(f"{name}  {NAMES[array.dtype]}{list(array.shape)}")
