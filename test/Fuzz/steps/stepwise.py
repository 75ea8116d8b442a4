"""Each step of a run on its own: from the state that the run has before it, JAX gives the one after it.

Where a step amplifies rounding (a search that accepts what another play rejects, games
of two players in bf16), six steps take two plays as far apart as they like. What one
step does to the same state is asked of it here, and all steps together begin where
JAX's run does."""

import numpy as np

from .models import STEPS
from .module import number
from .reference import CHAOS, CHAOTIC_TIMES, PERTURBATIONS, SUM, TIMES, Failure, distance, tight


def check(module):
    export, log = module.reference.export, module.run("none")
    before = {path: export.initial[path] for path in export.replaced}
    for i in range(STEPS):
        checkpoint = module.checkpoint("none", i + 1)
        after = {path: checkpoint[module.names[path]] for path in export.replaced}
        check_step(module, i, before, after, log[i])
        before = after


def check_step(module, i, before, after, row):
    """That step i makes `after` of the arrays `before` and returns the scalars of `row`."""
    reference, export = module.reference, module.reference.export
    start, random = export.state_of(before), np.random.default_rng(3)
    results, state = export.advance(start, i)
    plays = [export.advance(reference.nudged(start, random), i) for _ in range(PERTURBATIONS)]
    plays = [(results, export.replaced_in(state)) for results, state in plays]
    for path, want in export.replaced_in(state).items():
        moved, off = distance(want, before[path]), distance(after[path], want)
        apart = max(distance(play[path], want) for _, play in plays)
        allowed = tight(reference, path, want, before[path], 1) + (CHAOTIC_TIMES if apart >= CHAOS * moved else TIMES) * apart
        if not off <= allowed:
            raise Failure("none-step", f"step {i + 1} alone: {path} ({module.names[path]}): {off:.2e} from JAX, moved {moved:.2e}, allowed {allowed:.2e}")
    for path in module.metrics():
        want, got = number(results[path]), module.scalars([row], path)[0]
        apart = max(distance(number(play[path]), want) for play, _ in plays)
        if not distance(got, want) <= SUM * np.abs(want) + TIMES * apart:
            raise Failure("none-step", f"step {i + 1} alone: {path}: expected {want} but got {got}, JAX's own are {apart:.1e} apart")
