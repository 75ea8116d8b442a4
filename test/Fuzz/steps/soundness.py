"""Checks the checks themselves, in JAX alone:

- the step is the same for every container, order of results and donation;
- losses are finite, and trained arrays move;
- the tolerance of every array that moves is smaller than its movement, so that an
  array that does not move is found."""

import jax.numpy as jnp
import numpy as np

from .reference import Failure, Reference, distance, diverges, tolerance


def losses(export):
    return [float(row[export.loss]) for row in export.scalars]


def check(drawn, seed):
    reference = Reference(drawn, seed)
    export = reference.export
    other = reference.variant(container="dict", results="metrics_first", arguments="batch_first", donate="no", debug="yes")
    if losses(export) != losses(other):
        raise Failure("self-container", f"losses {losses(export)} and {losses(other)}")
    if diverges(export):
        return "diverges in JAX"
    blind = []
    for path, last in export.final.items():
        moved = distance(last, export.initial[path])
        if jnp.issubdtype(last.dtype, jnp.floating) and moved > 0 and not tolerance(reference, path) < moved:
            blind.append(path)
    # In bf16 small steps are within the rounding.
    if reference.choices.dtype == "f32" and len(blind) * 4 > len(export.final):
        raise Failure("self-blind", f"the tolerance of {len(blind)} of {len(export.final)} arrays is as large as what they move: {blind[:4]}")
    return f"{len(blind)} of {len(export.final)} arrays could stand still unseen"
