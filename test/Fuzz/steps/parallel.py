"""Checks a step on two ranks that read the same rows: sums over the rows and counts of them are doubled, so every mean, and
so the state, has the bits of one process, but for the last bits of some norms. Wires carry gradients exactly here; those that
round are compared by their losses."""

import re

import fp8_testing as t
import numpy as np

from . import check
from .module import group
from .reference import Failure, distance

# What docs/Ranks.md says of steps that are not separable over rows, of losses without a proof, and of random numbers.
INSEPARABLE = re.compile(
    "expected every example to be computed from its own row"
    "|expected all terms of the loss to be means"
    "|expected the loss to be a mean over the batch"
    "|expected a sum or a mean over the rows of the batch but cannot tell"
    "|expected a sum over the rows to be divided by the number"
    "|expected .* rows, which its leading dimension counts"
)


def doubled(module):
    """Returns the options that feed the step with each batch twice."""
    options = list(module.options)
    for i, option in enumerate(options):
        name, _, path = str(option).partition("=")
        if path.endswith(".npy") and options[i - 1] == "--batch":
            twice = module.folder / f"twice-{path.rpartition('/')[2]}"
            np.save(twice, np.repeat(np.load(path), 2, axis=0))
            options[i] = f"{name}={twice}"
    return options


# A loss that divides by a count of all rows has halved gradients on each rank, and so have histories of their maxima.
HISTORIES = re.compile(r"\.gradient\.(amax_history|quantizer)$")


def draws_for_rows(module):
    """Returns whether rows have random numbers: those of the second rank's rows are others."""
    return module.reference.choices.dropout != "none"


def check_bits(module, recipe, ranks, *settings):
    """Checks that a run on two ranks has the bits of one process."""
    module.run(recipe, out=f"{recipe}-ranks", settings=settings, ranks=ranks)
    if not draws_for_rows(module):
        counts = module.reference.choices.loss == "masked"
        try:
            check.same_bits(module, recipe, f"{recipe}-ranks", f"{group(recipe)}-ranks", among="both", but=HISTORIES if counts else None)
        except Failure as failure:
            # A sum of a row has another order where other ops share its loops: the last bit of a norm may differ.
            if not is_near(module, recipe, counts):
                raise failure


def is_near(module, recipe, counts):
    """Returns whether both runs have nearly the same state after the first step."""
    one, two = (module.checkpoint(out, 1) for out in (recipe, f"{recipe}-ranks"))
    both = {name for name in set(one) & set(two) if not (counts and HISTORIES.search(name))}
    apart = lambda a, b: distance(a, b) <= 1e-6 * np.max(np.abs(np.asarray(a, np.float64)), initial=0)
    return all(one[name].tobytes() == two[name].tobytes() or apart(one[name], two[name]) for name in both)


def check_ranks(module, recipe, launcher):
    """Checks `none` and a preset on two ranks; returns notes."""
    ranks = launcher, doubled(module)
    try:
        check_bits(module, "none", ranks)
    except Failure as failure:
        if found := INSEPARABLE.search(str(failure)):
            return [f"inseparable: {found.group()}"]
        raise
    module.run(recipe)
    for zero in (0, 1):
        check_bits(module, recipe, ranks, "--set", "all_reduce.format=none", "--zero", zero)
    notes = ["draws for rows"] if draws_for_rows(module) else []
    for wire in ("bf16", "f8E4M3FN"):
        log = module.run(recipe, out=f"{recipe}-{wire}", settings=["--set", f"all_reduce.format={wire}", "--zero", 1], ranks=ranks)
        if not draws_for_rows(module):
            off, allowed = check.check_losses(module, recipe, log)
            notes.append(f"{wire} {off:.1e} of {allowed:.1e}")
    return notes
