"""A random function as Python source, and its values in JAX."""

import re

import numpy as np


class Program:
    """Source lines over named inputs; `results` are names."""

    def __init__(self):
        self.inputs = {}  # name -> array
        self.lines = []  # (name, source, argument names)
        self.results = []
        self.states = []  # (input name, value name), for steps
        self.low_precision = False

    def source(self):
        text = f"def f({', '.join(self.inputs)}):\n"
        for name, source, _ in self.lines:
            text += f"  {name} = {source}\n"
        return text + f"  return ({', '.join(self.results)},)\n"


def prune(program):
    """Removes everything that no result needs."""
    needed = set(program.results)
    lines = []
    for line in reversed(program.lines):
        if line[0] in needed:
            lines.append(line)
            needed.update(re.findall(r"\b[xv]\d+\b", line[1]))
    states = {s for s, _ in program.states}
    small = Program()
    small.lines = lines[::-1]
    small.inputs = {n: a for n, a in program.inputs.items() if n in needed or n in states}
    small.results = program.results
    small.states = program.states
    small.low_precision = program.low_precision
    return small


def build(program, double):
    import jax
    import jax.numpy as jnp
    from jax import lax

    scope = {
        "jax": jax,
        "jnp": jnp,
        "lax": lax,
        "F": jnp.float64 if double else jnp.float32,
        "I": jnp.int32,
    }
    exec(program.source(), scope)  # the source is the generator's
    return scope["f"]


def evaluate(program, double, perturb=0.0, inputs=None):
    import jax

    arrays = []
    rng = np.random.default_rng(5)
    for array in (inputs or program.inputs).values():
        if array.dtype == np.float32 and double:
            array = array.astype(np.float64)
            if perturb:
                array = array * (1 + perturb * rng.choice([-1.0, 1.0], array.shape))
        arrays.append(array)
    with jax.enable_x64(double):
        key = "double" if double else "single"
        cache = program.__dict__.setdefault("compiled", {})
        if key not in cache:
            cache[key] = jax.jit(build(program, double))
        results = cache[key](*arrays)
        return [np.asarray(r) for r in results]
