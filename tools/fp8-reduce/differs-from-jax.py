#!/usr/bin/env python3
"""Exits with status 0 if the function of a module differs from what JAX computes: a check for fp8-reduce.

    fp8-reduce step.mlir --test tools/fp8-reduce/differs-from-jax.py --test-arg=--tolerance=1e-5 -o small.mlir

Both get the same random arguments (integers are 0 to 3). Status 1: they agree, all elements within TOLERANCE times the largest
magnitude of their array (0: bitwise); 2: one of them cannot run it. Requires JAX, with fp8-run and fp8-opt on PATH.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import ml_dtypes
import numpy as np
from jax.extend.backend import get_backend
from jaxlib import xla_client
from safetensors.numpy import load_file, save_file

TYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i1": np.bool_, "i8": np.int8, "i32": np.int32, "i64": np.int64, "ui8": np.uint8, "ui32": np.uint32, "ui64": np.uint64}  # fmt: skip


def leaves(path):
    """Returns paths and types of the arguments, and paths of the results, as the compiler reads them."""
    text = subprocess.run(["fp8-opt", path, "--fp8-import"], check=True, capture_output=True, text=True).stdout
    signature = re.search(r"func\.func public @\w+\((.*)\) (?:attributes .*)?\{$", text, re.MULTILINE)[1]
    arguments, _, results = signature.partition(") -> ")
    paths = lambda part: [found.replace('\\"', '"') for found in re.findall(r'fp8\.path = "((?:[^"\\]|\\.)*)"', part)]
    return list(zip(paths(arguments), re.findall(r"%\w+: tensor<([^>]*)>", arguments), strict=True)), paths(results)


def random_array(type, random):
    *shape, element = type.split("x")
    shape, dtype = [int(size) for size in shape], TYPES[element]
    whole = np.issubdtype(dtype, np.integer) or dtype is np.bool_
    return (random.integers(0, 4 if dtype is not np.bool_ else 2, shape) if whole else random.standard_normal(shape)).astype(dtype)


def in_jax(path, inputs):
    backend = get_backend("cpu")
    devices = xla_client.DeviceList(tuple(backend.local_devices()[:1]))
    program = backend.compile_and_load(pathlib.Path(path).read_text(), devices, xla_client.CompileOptions())
    return [np.asarray(result[0]) for result in program.execute_sharded([jax.device_put(array) for array in inputs]).disassemble_into_single_device_arrays()]


def in_fp8(path, inputs, names, results, entry, more):
    with tempfile.TemporaryDirectory() as folder:
        given = []
        if names:
            save_file(dict(zip(names, inputs, strict=True)), f"{folder}/in")
            given = ["--inputs", f"{folder}/in"]
        subprocess.run(["fp8-run", path, "--entry", entry, *given, "--outputs", f"{folder}/out", "--no-cache", *more], check=True, capture_output=True)
        arrays = load_file(f"{folder}/out")
    return [arrays[name] for name in results]


def differs(got, want, tolerance):
    if tolerance == 0:
        return got.tobytes() != want.tobytes()
    got, want = got.astype(np.float64), want.astype(np.float64)
    if np.any(np.isnan(got) != np.isnan(want)):
        return True
    both = np.isfinite(got) & np.isfinite(want)
    largest = np.max(np.abs(want[both]), initial=0)
    return bool(np.any(got[~both] != want[~both]) and not np.all(np.isnan(got[~both]))) or np.max(np.abs(got - want)[both], initial=0) > tolerance * largest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module")
    parser.add_argument("--tolerance", type=float, default=1e-5)
    parser.add_argument("--entry", default="main", help="the function (default: main)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--with", dest="more", action="append", default=[], metavar="OPTION", help="an option of fp8-run, such as --with=--recipe=tensorwise")
    args = parser.parse_args()
    try:
        arguments, results = leaves(args.module)
        random = np.random.default_rng(args.seed)
        inputs = [random_array(type, random) for _, type in arguments]
        want = in_jax(args.module, inputs)
        got = in_fp8(args.module, inputs, [name for name, _ in arguments], results, args.entry, args.more)
    except Exception as error:
        print(f"{args.module}: {error}", file=sys.stderr)
        return 2
    return 0 if any(differs(a, b, args.tolerance) for a, b in zip(got, want, strict=True)) else 1


if __name__ == "__main__":
    sys.exit(main())
