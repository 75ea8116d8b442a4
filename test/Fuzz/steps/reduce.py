"""A failing draw made smaller: each choice in turn at its simplest."""

import pathlib
import shutil

from . import choices
from .check import check
from .reference import Failure


def failure(drawn, seed, folder, tools):
    """What fails, or None."""
    try:
        check(drawn, seed, folder, tools)
    except Failure as error:
        return error
    return None


def reduce(drawn, seed, error, folder, tools):
    """The simplest choices found with the same kind of failure, and that failure."""
    trial = pathlib.Path(folder) / "trial"
    # Seeds divisible by ten check more: a failure found there is looked for there.
    for name in choices.CHOICES:
        options = choices.CHOICES[name][0]
        if drawn[name] == options[0]:
            continue
        candidate = {**drawn, name: options[0]}
        found = failure(candidate, seed, trial, tools)
        if found is not None and found.kind == error.kind:
            drawn, error = candidate, found
    shutil.rmtree(trial, ignore_errors=True)
    again = failure(drawn, seed, pathlib.Path(folder) / "reduced", tools)
    return drawn, again or error
