"""Checks each step of a run alone: JAX computes the state after it from the run's state before it.

If a step amplifies rounding (a search that accepts what another run rejects, games
of two players in bf16), two runs may diverge arbitrarily in six steps. This check only
compares one step from the same state; all steps together start from
JAX's initial state."""

import numpy as np

from .models import STEPS
from .module import number
from . import optimizers
from .reference import CHAOS, CHAOTIC_TIMES, PERTURBATIONS, SUM, TIMES, TINY, Failure, distance, tight


def check(module):
    export, log = module.reference.export, module.run("none")
    before = {path: export.initial[path] for path in export.replaced}
    for i in range(STEPS):
        checkpoint = module.checkpoint("none", i + 1)
        after = {path: checkpoint[module.names[path]] for path in export.replaced}
        check_step(module, i, before, after, log[i])
        before = after


def check_step(module, i, before, after, row):
    """Checks that step i computes `after` from the arrays `before` and returns the scalars of
    `row`."""
    reference, export = module.reference, module.reference.export
    start, random = export.state_of(before), np.random.default_rng(3)
    results, state = export.advance(start, i)
    plays = [export.advance(reference.nudged(start, random), i) for _ in range(PERTURBATIONS)]
    plays = [(results, export.replaced_in(state)) for results, state in plays]
    for path, want in export.replaced_in(state).items():
        moved, off = distance(want, before[path]), distance(after[path], want)
        apart = max(distance(play[path], want) for _, play in plays)
        allowed = tight(reference, path, want, before[path], 1) + (CHAOTIC_TIMES if apart >= CHAOS * moved else TIMES) * apart
        if not off <= allowed and not few_flip(reference, after[path], want, moved, allowed):
            raise Failure("none-step", f"step {i + 1} alone: {path} ({module.names[path]}): {off:.2e} from JAX, moved {moved:.2e}, allowed {allowed:.2e}")
    for path in module.metrics():
        want, got = number(results[path]), module.scalars([row], path)[0]
        apart = max(distance(number(play[path]), want) for play, _ in plays)
        if not distance(got, want) <= SUM * np.abs(want) + TIMES * apart + TINY:
            raise Failure("none-step", f"step {i + 1} alone: {path}: expected {want} but got {got}, JAX's own are {apart:.1e} apart")


# If an optimizer steps by the sign of a gradient, rounding decides elements whose gradient is nearly zero.
FEW = 8


def few_flip(reference, got, want, moved, allowed):
    """Returns whether an optimizer that steps by signs goes the other way in a few elements alone."""
    off = np.abs(np.asarray(got, np.float64) - np.asarray(want, np.float64))
    flipped = off > allowed
    return reference.choices.optimizer in optimizers.SIGNED and flipped.sum() <= max(1, off.size / FEW) and off.max() <= 2 * moved + allowed
