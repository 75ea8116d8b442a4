"""Makes a failing function smaller."""

from .program import evaluate, prune


def reduce_case(program, fails, budget=120):
    """Reduces greedily: fewer results, then operations replaced by inputs."""
    best = program
    if not program.states:
        for result in program.results:
            small = prune(best)
            small.results = [result]
            small = prune(small)
            if fails(small):
                best = small
                break
    changed = True
    while changed and budget > 0:
        changed = False
        for index in reversed(range(len(best.lines))):
            name = best.lines[index][0]
            if not best.states and name in best.results:
                continue
            probe = prune(best)
            probe.results = [name]
            try:
                value = evaluate(probe, False)[0]
            except Exception:
                continue
            small = prune(best)
            small.lines = [l for l in best.lines if l[0] != name]
            small.inputs = {**best.inputs, name: value}
            small = prune(small)
            budget -= 1
            if budget > 0 and fails(small):
                best, changed = small, True
                break
    return best
