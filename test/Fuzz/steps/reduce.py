"""Reduces a failing draw: tries the simplest option of each choice in turn."""

import pathlib
import shutil

from . import choices
from .check import check
from .reference import Failure


def failure(drawn, seed, folder, tools):
    """Returns the failure, or None."""
    try:
        check(drawn, seed, folder, tools)
    except Failure as error:
        return error
    return None


def reduce(drawn, seed, error, folder, tools):
    """Returns the simplest choices found with the same kind of failure, and that failure."""
    trial = pathlib.Path(folder) / "trial"
    # Seeds divisible by ten check more, so the reduction keeps the seed.
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
