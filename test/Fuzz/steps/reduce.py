"""Reduces a failing draw: tries the simplest option of each choice in turn, and drops the keys of a random recipe."""

import pathlib
import shutil

from . import choices, recipes
from .check import check, check_recipe, in_jax
from .module import RANDOM, Module
from .reference import Failure


def failure(drawn, seed, folder, tools):
    """Returns the failure, or None."""
    try:
        check(drawn, seed, folder, tools)
    except Failure as error:
        return error
    return None


def without_keys(recipe, drawn, seed, error, folder, tools):
    """Returns the smallest recipe found with the same kind of failure in this step."""
    module, again = Module(in_jax(drawn, seed), folder, tools), True
    while again:
        again = False
        for candidate in recipes.smaller(recipe):
            if candidate == recipe or any(recipes.errors(candidate)) != any(recipes.errors(recipe)):
                continue
            try:
                check_recipe(module, RANDOM, candidate)
            except Failure as found:
                if found.kind == error.kind:
                    recipe, again = candidate, True
                    break
    return recipe


def reduce(drawn, seed, error, folder, tools):
    """Returns the simplest choices found with the same kind of failure, and that failure."""
    trial = pathlib.Path(folder) / "trial"
    if hasattr(error, "recipe"):
        tools = {**tools, "recipes": [without_keys(error.recipe, drawn, seed, error, trial, tools)]}
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
