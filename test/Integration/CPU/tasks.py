"""Kernels are divided into tasks for the number of threads, and no bit of a result depends on it.

    python tasks.py FP8_RUN FOLDER
"""

import pathlib
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import load_file, save_file

THREADS = (1, 4, 16, 64)


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=1, keepdims=True) + 1e-6)


# Each dot has several blocks of k, whatever the vectors. What follows it decides which of its
# loops can be divided.
FUNCTIONS = {
    "rows and columns": (lambda a, b: a @ b, (384, 2048), (2048, 1376)),
    "rows": (lambda a, b: ((c := a @ b), jnp.sum(c * c, axis=1)), (384, 2048), (2048, 1376)),
    "columns": (lambda a, b: ((c := a @ b), jnp.sum(c * c, axis=0)), (1024, 1376), (1376, 384)),
    "normalized rows": (lambda a, b: norm(a @ b), (520, 1376), (1376, 512)),
    "transposed": (lambda a, b: jnp.einsum("km,kn->nm", a, b), (2048, 344), (2048, 520)),
}


def check(fp8_run, folder, name, type):
    function, *shapes = FUNCTIONS[name]
    rng = np.random.default_rng(7)
    args = [jnp.asarray(rng.standard_normal(shape), type) for shape in shapes]
    module, inputs = folder / "module.mlir", folder / "inputs.safetensors"
    module.write_text(jax.jit(function).lower(*args).as_text())
    save_file({f"arg{i}": np.asarray(arg) for i, arg in enumerate(args)}, inputs)

    def results(threads):
        outputs = folder / f"outputs-{threads}.safetensors"
        t.run([fp8_run, module, "--entry", "main", "--inputs", inputs, "--outputs", outputs, "--threads", threads, "--quiet"])
        return {path: array.tobytes() for path, array in load_file(outputs).items()}

    one = results(THREADS[0])
    for threads in THREADS[1:]:
        assert results(threads) == one, f"{name}, {type}: expected the bits of one thread with {threads} threads"


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir()
    for name in FUNCTIONS:
        for type in ("float32", "bfloat16"):
            check(fp8_run, folder, name, type)


main()
