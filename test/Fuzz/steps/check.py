"""Checks a step; random_steps.py describes the checks."""

import json
import re
import types

import fp8_testing as t
import jax.numpy as jnp
import numpy as np
from stored_state import decode

from . import choices, optimizers, recipes, stepwise
from .models import STEPS
from .module import RANDOM, Module, first_error, group, kind_of, number
from .reference import BF16, CHAOS_OF_SCALARS, CHAOTIC_TIMES, E4M3, SUM, TIMES, TINY, Failure, Reference, distance, diverges, tight, tolerance

# Presets that store state in less than f32.
STORED = {"fp8_lm", "scaling_fp8", "coat"}
# Presets with delayed scales, and options that give their scales two bits of headroom.
DELAYED = {"delayed", "fp8_lm", "scaling_fp8"}
ROOM = [f"{key}.margin" for key in ("forward.activation", "dgrad.gradient", "wgrad.activation", "wgrad.gradient")]


def traits(module, recipe):
    """Returns what checks need to know of a recipe (see recipes.traits)."""
    if recipe in module.recipes:
        return module.traits[recipe]
    return types.SimpleNamespace(stored=recipe in STORED, delayed=recipe in DELAYED, bits=BF16 if recipe == "bf16" else E4M3, coarse=[], unstable=[], slices=False)


def room(module, recipe):
    """Returns options that give delayed scales two bits of headroom."""
    lacks = lambda key: recipe in module.recipes and f"{key.split('.')[0]}:" not in module.recipes[recipe].read_text()
    return [f"--set={key}=2" for key in ROOM if not lacks(key)]


def check_pairs(module):
    """Checks that every argument is replaced by the same result as in JAX."""
    export = module.reference.export
    while True:
        more = [option for option in module.options if str(option).startswith(("--state=", "--role=", "--loss="))]
        explained = t.run([module.tools["run"], module.folder / "step.mlir", "--explain-signature", *module.options[:2], *more], check=False, timeout=module.timeout)
        # A step must be recognized as training; a module without names may be taken for a plain
        # function.
        if explained.returncode == 0 and not re.search(r"  state ", explained.stdout.partition("results:")[2]) and not more:
            argument, result = next(iter(export.replaced.items()))
            module.options.append(f"--state={module.names[argument]}={module.results[result]}")
        elif explained.returncode == 0 or not module.settle(explained.stderr):
            break
    if explained.returncode:
        raise Failure(f"none-{kind_of(explained)}", first_error(explained.stderr))
    text = explained.stdout
    arguments, results = ([line.split() for line in part.splitlines() if line.startswith("  ")]
                          for part in text.partition("arguments:\n")[2].split("results:\n"))  # fmt: skip
    got = {row[3]: i for i, row in enumerate(results) if row[2] == "state"}
    place = {path: i for i, path in enumerate(module.result_order)}
    want = {argument: place[result] for argument, result in export.replaced.items()}
    got = {argument: got.get(module.names[argument]) for argument in want}
    called = lambda at: "nothing" if at is None else f"{module.result_order[at]} ({results[at][0]})"
    # The loss may also be a metric, and the returned state of a step that rolls back.
    same = lambda i, j: i is not None and all(np.array_equal(row.get(module.result_order[i], 0), row.get(module.result_order[j], 1), equal_nan=True) for row in export.scalars)
    wrong = [
        f"{argument} ({module.names[argument]}) gets {called(got[argument])} in place of {called(at)}"
        for argument, at in want.items()
        if got[argument] != at and not same(got[argument], at)
    ]
    # Arguments that JAX does not replace must not be replaced here.
    alive = {name: path for path, name in module.names.items() if path not in want}
    wrong += [f"{alive[row[0]]} ({row[0]}) is replaced" for row in arguments if row[0] in alive and row[2] == "state"]
    if wrong:
        raise Failure("none-pairs", f"{len(wrong)} of {len(want)} pairs: " + "; ".join(wrong[:4]))


def check_none(module):
    """Checks that every state array and every scalar equals JAX's."""
    reference, export = module.reference, module.reference.export
    log = module.run("none")
    if len(log) != STEPS:
        raise Failure("none-steps", f"expected {STEPS} steps but got {len(log)}")
    for path in module.metrics():
        got, wanted = module.scalars(log, path), np.array([number(row[path]) for row in export.scalars])
        finite = wanted[np.isfinite(wanted)]
        bound = SUM * np.max(np.abs(finite), initial=0) + 1e-5 * (np.ptp(finite) if finite.size else 0) + TINY
        off = distance(got, wanted)
        if not off <= bound:
            apart = lambda plays: max(distance([number(row[path]) for row in play[0]], wanted) for play in plays)
            allowance = lambda apart: (CHAOTIC_TIMES if apart >= CHAOS_OF_SCALARS * np.ptp(finite) or reference.jumps() else TIMES) * apart + bound
            allowed = allowance(apart(reference.perturbed()))
            if not off <= allowed:
                # The decisions of a search may depend on the last bits of a sum.
                allowed = max(allowed, allowance(apart([reference.optimized()])))
            if not off <= allowed:
                raise Failure("none-scalar", f"{path}: expected {wanted.tolist()} but got {got.tolist()}, {off:.1e} apart, allowed {allowed:.1e}")
    checkpoint = module.checkpoint("none", STEPS)
    worst = 0.0
    for path, want in export.final.items():
        name = module.names[path]
        if name not in checkpoint:
            raise Failure("none-missing", f"expected {path} ({name}) in the checkpoint but got {sorted(checkpoint)}")
        off = distance(checkpoint[name], want)
        if off <= tight(reference, path):
            continue
        allowed = tolerance(reference, path)
        if not off <= allowed:
            allowed = tolerance(reference, path, optimized=True)
        if not off <= allowed:
            moved = distance(want, export.initial[path])
            raise Failure("none-state", f"{path} ({name}): {off:.2e} from JAX, moved {moved:.2e}, allowed {allowed:.2e}")
        worst = max(worst, off / allowed)
    return worst


def check_verdicts(module, recipe):
    """Checks that every dot of the imported step has a verdict."""
    imported = t.run([module.tools["opt"], "--fp8-import", module.folder / "step.mlir"], check=False, timeout=module.timeout)
    if imported.returncode:
        # fp8-opt has no options to resolve ambiguities.
        if module.ambiguous and "ambiguous" in imported.stderr:
            return
        raise Failure("import", first_error(imported.stderr))
    dots = len(re.findall(r"stablehlo\.dot_general\b", imported.stdout))
    verdicts = json.loads((module.folder / recipe / "verdicts.json").read_text())["dots"]
    # A loss that needs all logits at once makes their slices again, in a second loop.
    again = sum(row["category"] == "head" and row["role"] == "forward" and bool(row["loops"]) for row in verdicts)
    rows = len(verdicts)
    if not dots <= rows <= dots + (again if module.reference.choices.logits == "sliced" or traits(module, recipe).slices else 0):
        raise Failure("verdicts", f"{recipe}: expected verdicts of {dots} dots but got {rows}")


def movement(first, last):
    return np.abs(np.asarray(last).astype(np.float64) - np.asarray(first).astype(np.float64))


# In narrow state, more than one in FEW elements of an array must move in JAX.
FEW = 100


def check_moves(module, recipe):
    """Checks that every array that moves in JAX between the first and the last step moves here in some step, too:
    steps by a sign may lead back to the first value. A search over losses may take no step at all if FP8 has made
    them coarse."""
    if module.reference.choices.optimizer in optimizers.SEARCHES:
        return
    export = module.reference.export
    one, *others = (module.checkpoint(recipe, i + 1) for i in range(STEPS))
    for path, last in export.final.items():
        # A scalar (a learning rate) may depend on the decisions of a search.
        if last.ndim == 0 or not jnp.issubdtype(last.dtype, jnp.floating) or not np.isfinite(last.astype(np.float64)).all():
            continue
        early, name = export.early[path], module.names[path]
        moved, size = movement(early, last), np.maximum(np.abs(last.astype(np.float64)), np.abs(early.astype(np.float64)))
        coarse = traits(module, recipe).stored or last.dtype != np.float32
        bound = np.maximum(size / 8, np.max(size, initial=0) / 64) if coarse else np.maximum(np.max(size, initial=0) * 1e-4, 1e-12)
        clear = moved > bound
        # If narrow state cannot resolve nearly all of an array, it says nothing about the rest. A single element
        # says nothing about an array: in a maximum of gradients it may be the only one that grows.
        if clear.sum() <= (clear.size / FEW if coarse else clear.size > 1):
            continue
        # A maximum of gradients moves where a later gradient is larger. FP8 changes the first gradient, so that
        # may be elsewhere or nowhere: in a maximum of clipped gradients few elements are still below the clip.
        # Adamax's maximum decays by a thousandth a step.
        before, after = early.astype(np.float64), last.astype(np.float64)
        grows = (after >= before - np.abs(before) / FEW).all()
        if grows and clear.sum() * 2 <= clear.size:
            continue
        # FP8 may send the tokens of an expert to another one, which then moves instead.
        routed = module.reference.choices.ffn.startswith("moe") and "['ffn']" in path
        enough = clear.sum() / 2 if clear.sum() * 4 > clear.size and not grows and not routed else 1
        if name not in others[-1]:
            raise Failure(f"{group(recipe)}-missing", f"{recipe}: expected {path} ({name}) in the checkpoint")
        # Payloads may stay the same if a tensor only grows, as an average does at first.
        before, *after = (decode(tensors, name).astype(np.float64) for tensors in (one, *others))
        changed = np.any([before != x for x in after], axis=0)
        if (changed & clear).sum() < enough:
            # A gradient that is zero except for rounding, such as a key's bias, moves only by
            # rounding.
            clear &= moved > tolerance(module.reference, path)
        changed &= clear
        if not coarse:
            # A clipped gradient does not change adamax's maximum; which few
            # elements are below the clip differs.
            changed |= np.any([movement(before, x) > bound for x in after], axis=0)
        if changed.sum() < min(enough, clear.sum() / 2):
            raise Failure(f"{group(recipe)}-still", f"{recipe}: {path} ({name}): {clear.sum()} of {clear.size} elements move in JAX but {changed.sum()} here")


def losses(scalars, export):
    return np.array([float(row[export.loss]) for row in scalars])


def loss_gap(module):
    """Returns how much bf16 changes JAX's losses, in one run or, if a step amplifies
    rounding, in any of eight runs with slightly different initial weights."""
    reference = module.reference
    if not hasattr(reference, "gap"):
        exact, half = (reference if reference.choices.dtype == dtype else Reference({**reference.drawn, "dtype": dtype}, reference.seed) for dtype in ("f32", "cast_inside"))
        want = losses(exact.export.scalars, exact.export)
        reference.gap = max(distance(losses(scalars, half.export), want) for scalars in (half.export.scalars, *(play[0] for play in half.perturbed())))
    return reference.gap


# A dot in FP8 rounds weights, activations and gradients: this adds noise like that of rounded
# weights three times. Of about sixty draws most were within 3 % of the largest loss, two-layer networks
# within 5 %; only steps that amplify rounding in JAX, too, were further off. `check_moves` finds
# trained arrays that do not move, so this check is for wrong gradients.
FLOOR, MOST = 0.05, 0.3
# Losses that grow by this factor run away: each step multiplies the error of the previous one.
RUNAWAY = 100


def runs_away(reference, scalars=None):
    """Returns whether JAX's losses run away."""
    export = reference.export
    want = losses(export.scalars if scalars is None else scalars, export)
    return not np.max(np.abs(want)) <= RUNAWAY * np.abs(want[0])


def leaps_away(module, recipe, failure):
    """Returns whether a run ended without a finite loss because losses run away in JAX, too, with exact or with rounded
    initial weights, or because its optimizer leaps: then the original step also ends like that when it starts from
    the run's last checkpoint."""
    if "the loss is" not in str(failure) and "the state is not finite" not in str(failure):
        return False
    reference = module.reference
    if runs_away(reference) or any(runs_away(reference, play[0]) for play in reference.rounded(16, E4M3)):
        return True
    if module.reference.choices.optimizer not in optimizers.LEAPING:
        return False
    checkpoints = sorted((module.folder / recipe).glob("checkpoint-*.safetensors"))
    if not checkpoints:
        return False
    try:
        module.run("none", out=f"{recipe}-none", settings=["--init", checkpoints[-1]])
    except Failure as again:
        return "the loss is" in str(again)
    return False


def check_losses(module, recipe, log):
    """Checks that losses differ from JAX's by at most 5 % of the largest loss, or three times the change of JAX's own
    losses when it computes in bf16, reads E4M3 in its dots, or rounds its initial weights to E4M3 (to bf16 for the recipe
    `bf16`): a step that amplifies rounding permits no tighter bound. Losses need only be finite if that bound exceeds the
    losses themselves, if losses run away, if an optimizer divides by an earlier gradient, or if a search over losses
    chooses the step, since FP8 changes its choice. Delayed scales clip values that grow in this step: if that
    is the cause, two bits of headroom bring the losses close."""
    reference = module.reference
    want = losses(reference.export.scalars, reference.export)
    got = np.array([number(module.loss_of(row)) for row in log])
    if not np.isfinite(want).all():
        return 0.0, 0.0
    off, size = distance(got, want), np.max(np.abs(want))
    allowed = FLOOR * size + TINY
    what = traits(module, recipe)
    bits = what.bits

    def rounded_gap(count):
        return max(distance(losses(play[0], reference.export), want) for play in reference.rounded(count, bits))

    if what.coarse and np.isfinite(got).all():
        return off / size, np.inf
    if off > allowed and bits < BF16:
        allowed = max(allowed, TIMES * rounded_gap(4))
    if off > allowed:
        allowed = max(allowed, TIMES * loss_gap(module))
    if off > allowed and bits < BF16:
        allowed = max(allowed, TIMES * 2 ** (E4M3 - bits) * distance(losses(reference.rounded_dots()[0], reference.export), want))
    if off > allowed:
        # A fifth run sometimes exceeds the largest of four runs.
        allowed = max(allowed, TIMES * rounded_gap(16))
    optimizer = reference.choices.optimizer
    if (allowed > size or runs_away(reference) or optimizers.searches(optimizer) or optimizer in optimizers.LEAPING) and np.isfinite(got).all():
        return off / size, allowed / size
    if off > allowed and what.delayed:
        roomy = module.run(recipe, out=f"{recipe}-room", settings=room(module, recipe))
        if distance([number(module.loss_of(row)) for row in roomy], want) <= allowed:
            return off / size, off / size
    if not off <= allowed:
        raise Failure(f"{group(recipe)}-loss", f"{recipe}: expected losses {want.round(5).tolist()} but got {got.round(5).tolist()}, {off:.2e} apart, allowed {allowed:.2e}")
    return off / size, allowed / size


def check_threads(module, recipe):
    """Checks that three threads with unoptimized code compute the same bits as one thread with
    optimized code."""
    module.run(recipe, threads=3, optimize=False, out=f"{recipe}-3")
    one, three = (module.checkpoint(out, STEPS) for out in (recipe, f"{recipe}-3"))
    for name in one:
        if one[name].tobytes() != three[name].tobytes():
            raise Failure("threads", f"{recipe}: {name} differs between one thread, optimized, and three, not optimized")


# A run ended with NaN or infinity.
NOT_FINITE = "the loss is (nan|inf|-inf)|is not finite"
# A run of six steps equals this many and a resumed rest.
HALF = STEPS // 2
# Rules and paths that fit no part of this step are errors, too.
UNFIT = re.compile(r"decides about no dot|names layers by number|matches none")
# FILE:LINE:COLUMN of a recipe, and what is expected of it.
CLEAR = re.compile(r"\.yaml:\d+:\d+: .*(expected|need|missing key)")


def same_bits(module, recipe, other, kind, among=None, but=None):
    """Checks that two runs end with the same bits; `among`: in the arrays that both have; `but`: except in those whose names match."""
    one, two = (module.checkpoint(out, STEPS) for out in (recipe, other))
    both = {name for name in set(one) & set(two) if not (but and but.search(name))}
    differ = sorted(name for name in both if one[name].tobytes() != two[name].tobytes())
    if among != "both":
        differ += sorted(set(one) ^ set(two))
    if differ:
        raise Failure(kind, f"{len(differ)} of {len(one)} arrays differ from those of {other}: {', '.join(differ[:4])}")


def check_text(module, drawn, file):
    """Checks what fp8-run says of a recipe: the printed one prints the same, and contradictions have clear errors.
    Returns whether it is legal."""
    show = lambda path: t.run([module.tools["run"], "--recipe", path, "--print-recipe"], check=False, timeout=module.timeout)
    first, wrong = show(file), list(recipes.errors(drawn))
    if wrong:
        if first.returncode != 1 or not CLEAR.search(first.stderr) or first.stderr.count("error:") != 1:
            raise Failure("random-message", f"exit {first.returncode} with {sorted(wrong[0])}: {first_error(first.stderr or first.stdout)}")
        return False
    if first.returncode:
        raise Failure("random-illegal", f"exit {first.returncode}: {first_error(first.stderr)}")
    printed = file.with_suffix(".printed.yaml")
    printed.write_text(first.stdout)
    if show(printed).stdout != first.stdout:
        raise Failure("random-print", "the printed recipe prints differently")
    return True


def check_recipe(module, name, drawn):
    """Checks a random recipe; returns a note."""
    file = module.folder / f"{name}.yaml"
    file.write_text(recipes.text(drawn))
    if not check_text(module, drawn, file):
        return f"{name} illegal"
    module.recipes[name], module.traits[name] = file, recipes.traits(drawn)
    try:
        log = module.run(name)
    except Failure as failure:
        if UNFIT.search(str(failure)) and failure.kind == "random-error":
            return f"{name} unfit"
        if leaps_away(module, name, failure) or (traits(module, name).unstable and re.search(NOT_FINITE, str(failure))):
            return f"{name} leaps away"
        raise
    check_verdicts(module, name)
    module.run(name, threads=3, out=f"{name}-threads")
    same_bits(module, name, f"{name}-threads", "random-threads")
    module.run(name, out=f"{name}-resumed", steps=HALF)
    module.run(name, out=f"{name}-resumed", resume=True)
    same_bits(module, name, f"{name}-resumed", "random-resume")
    for what, twin in recipes.twins(drawn):
        other = f"{name}-{what}"
        module.recipes[other] = file.with_name(f"{other}.yaml")
        module.recipes[other].write_text(recipes.text(twin))
        module.run(other)
        same_bits(module, name, other, "random-twin", among="both")
    off, allowed = check_losses(module, name, log)
    if off <= MOST and not traits(module, name).coarse:
        check_moves(module, name)
    return f"{name} {off:.1e} of {allowed:.1e}"


def check_recipes(module, seed, tools):
    """Checks random recipes: those of tools["recipes"], or so many drawn ones; returns notes. The failure has its recipe."""
    given, notes, failures = tools["recipes"], [], []
    drawn = given if isinstance(given, list) else [recipes.draw(f"{seed}/{i}") for i in range(given)]
    for i, recipe in enumerate(drawn):
        try:
            notes.append(check_recipe(module, f"{RANDOM}-{i}", recipe))
        except Failure as failure:
            if failure.kind.endswith("-unsupported"):
                notes.append(f"{RANDOM}-{i} unsupported")
                continue
            failure.recipe = recipe
            failures.append(failure)
    if failures:
        failures[0].args = (" | ".join(map(str, failures)),)
        raise failures[0]
    return notes


def flushes_norms(reference):
    """Returns whether an optimizer divides a gradient by its norm, and the square of a norm is subnormal, so that XLA
    flushes it to zero."""
    sizes = [np.max(np.abs(x.astype(np.float64)), initial=0) for x in reference.export.final.values() if jnp.issubdtype(x.dtype, jnp.floating)]
    return reference.choices.optimizer in optimizers.SCALE_FREE and any(0 < size <= np.sqrt(TINY) for size in sizes)


def in_jax(drawn, seed):
    try:
        return Reference(drawn, seed)
    except Exception as error:  # JAX rejects the generator's step.
        raise Failure("generator", f"{type(error).__name__}: {str(error)[:1500]}") from error


def check(drawn, seed, folder, tools):
    """Checks one draw; returns a line about it."""
    reference = in_jax(drawn, seed)
    if tools["pairs"]:
        module = Module(reference, folder, tools)
        check_pairs(module)
        return " and ".join(["ambiguous", *sorted(module.ambiguous)]) + " " if module.ambiguous else "pairs"
    if diverges(reference.export) or flushes_norms(reference):
        return "diverges in JAX"
    module = Module(reference, folder, tools)
    try:
        notes = [f"none {check_none(module):.2f}"]
    except Failure as failure:
        if failure.kind not in ("none-state", "none-scalar"):
            raise
        # Wrong pairs may be the reason.
        check_pairs(module)
        try:
            stepwise.check(module)
        except Failure as step:
            raise Failure(failure.kind, f"{failure} ({step})") from step
        notes = ["none step by step"]
    if tools["none"]:
        return notes[0]
    if tools["ranks"]:
        from . import parallel  # which checks bits and losses as this module does

        return ", ".join([*notes, *parallel.check_ranks(module, drawn["recipe"], tools["ranks"])])
    if tools["recipes"]:
        return ", ".join([*notes, *check_recipes(module, seed, tools)])
    presets = choices.CHOICES["recipe"][0] if seed % 10 == 0 else [drawn["recipe"]]
    for recipe in presets:
        try:
            log = module.run(recipe)
        except Failure as failure:
            if not leaps_away(module, recipe, failure):
                raise
            notes.append(f"{recipe} leaps away")
            continue
        check_verdicts(module, recipe)
        off, allowed = check_losses(module, recipe, log)
        # Runs that diverge from JAX's, as JAX's own with rounded weights do, move other elements.
        if off <= MOST:
            check_moves(module, recipe)
        notes.append(f"{recipe} {off:.1e} of {allowed:.1e}")
    if seed % 10 == 0:
        check_threads(module, drawn["recipe"])
    if module.ambiguous:
        notes.append("ambiguous " + " and ".join(sorted(module.ambiguous)))
    return ", ".join(notes)
