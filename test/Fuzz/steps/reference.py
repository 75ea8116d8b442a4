"""A draw in JAX: its results, how much theoretically equivalent variants differ from them, and the
tolerance for an array."""

import jax
import jax.numpy as jnp
import numpy as np
from exporting import Export

from . import choices, containers, rounding, sums, tasks
from .models import STEPS

PERTURBATIONS = 8
# The factor for the differences between JAX's own runs.
TIMES = 3
# XLA may add all elements of a mean one after another: for 1536 of them its f32 result is
# 1.7e-5 from f64.
SUM = 3e-5
# The smallest normal number of f32: XLA may flush smaller scalars to zero.
TINY = float(np.finfo(np.float32).tiny)
ULPS = 4
# The XLA options that random_steps.py disables.
OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False, "xla_cpu_use_fusion_emitters": True}
# With such losses the range of gradients exceeds that of narrow moments: if a second moment is flushed to
# zero and the first is not, an update is the gradient over epsilon.
HUGE = 1e9
# These round what they keep to fewer bits.
ROUNDING = {"adam_bf16_moments", "hand_error_feedback"}


class Failure(Exception):
    """A failure: its kind in one word, which a reduction keeps, and its description."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Reference:
    """A draw in JAX: its results, and how much theoretically equivalent variants differ from them."""

    def __init__(self, drawn, seed):
        self.drawn, self.seed = drawn, seed
        self.choices = choices.settle(drawn)
        self.export = self.make(self.choices)
        self._moved, self._rounded, self._rounded_dots, self._optimized = [], {}, None, None

    def make(self, c):
        export = Export(containers.make(c, tasks.make(c, self.seed), self.seed), c.donate == "yes", STEPS)
        export.text  # Keep the text from before `widen`.
        sums.widen(export.lowered)
        return export

    def variant(self, **other):
        """Returns the same draw with some other choices."""
        return self.make(choices.settle({**self.drawn, **other}))

    def nudged(self, state, random):
        """Returns the state with floats moved by a few ulps, up or down, like the effect of
        another order of summation or another exp. If weights become bf16 that would be
        lost: then they move by so much that one in 64 is rounded differently,
        and one in 64 of the bf16 values changes, too."""
        half = self.choices.dtype != "f32" or self.choices.transform == "round_trip" or self.choices.optimizer in ROUNDING

        def nudge(x):
            x = np.asarray(x)
            if not jnp.issubdtype(x.dtype, jnp.floating) or x.ndim == 0:
                return x
            up = random.integers(0, 2, x.shape) == 1
            if x.dtype == np.float32:
                by = 2.0**-14 if half else ULPS * 2.0**-23
                return x * np.where(up, 1 + by, 1 - by).astype(np.float32)
            chosen = (random.integers(0, 64, x.shape) == 0) & (x != 0)
            return np.where(chosen, np.nextafter(x, np.where(up, np.inf, -np.inf).astype(x.dtype)), x)

        return changed(state, nudge)

    def perturbed(self, count=PERTURBATIONS):
        """Returns runs of the step from perturbed initial states."""
        random = np.random.default_rng(1)
        while len(self._moved) < count:
            self._moved.append(self.export.play(self.nudged(self.export.state, random)))
        return self._moved

    def jumps(self):
        """Returns whether rounding decides between discrete alternatives in JAX (the expert of a token, for example): the
        losses of one run are far from those of most."""
        losses = np.array([[row[self.export.loss] for row in scalars] for scalars in (self.export.scalars, *(play[0] for play in self.perturbed()))], np.float64)
        off = np.max(np.abs(losses - np.median(losses, axis=0)), axis=1)
        return np.max(off) > JUMP * np.median(off)

    def rounded(self, count, bits):
        """Returns runs of the step with initial weights rounded stochastically to a number of significant bits."""
        random, runs = self._rounded.setdefault(bits, (np.random.default_rng(2), []))

        def round_weights(x):
            x = np.asarray(x)
            return round_to(x.astype(np.float32), bits, random).astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) and x.ndim > 1 else x

        while len(runs) < count:
            runs.append(self.export.play(changed(self.export.state, round_weights)))
        return runs[:count]

    def rounded_dots(self):
        """Returns a run of the step whose dots read E4M3."""
        if self._rounded_dots is None:
            export = self.make(self.choices)
            rounding.round_dots(export.lowered)
            self._rounded_dots = export.played
        return self._rounded_dots

    def optimized(self):
        """Returns a run of the step compiled with XLA's default options, which sums in other
        orders."""
        if self._optimized is None:
            export = self.make(self.choices)
            export.compiled = export.lowered.compile(compiler_options=OPTIMIZED)
            self._optimized = export.played
        return self._optimized


def changed(state, change):
    """Returns the state with every array changed, except for keys."""
    is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
    return jax.tree.map(lambda x: x if is_key(x) else jnp.asarray(change(x)), state)


# The significant bits of a type, with the leading one.
E4M3, BF16 = 4, 8


def round_to(x, bits, random):
    """Returns x with so many significant bits, rounded stochastically."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.floor(mantissa * 2**bits + random.random(x.shape)) / 2**bits, exponent)


def distance(a, b):
    """Returns the largest difference; infinite if only one of two elements is finite."""
    a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
    if a.shape != b.shape:
        return np.inf
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(a[~same]).all() or not np.isfinite(b[~same]).all():
        return np.inf
    return float(np.max(np.abs(a - b), where=~same, initial=0))


def ulp(x):
    """Returns one ulp of an array's largest element, in its type."""
    x = np.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return 0.0
    finite = np.abs(np.where(np.isfinite(x.astype(np.float64)), x.astype(np.float64), 0))
    return float(np.max(finite, initial=0)) * float(jnp.finfo(x.dtype).eps)


FLUSHED = 64
VANISHED = 1e-30


def tight(reference, path, want=None, before=None, steps=STEPS):
    """Returns 1e-5 of an array's movement in these steps (by default JAX's whole run), plus half an ulp
    for each step, plus the smallest normal number for each of FLUSHED terms of a sum, since XLA may flush
    subnormals to zero. A scalar may be a sum (see SUM)."""
    if want is None:
        want, before = reference.export.final[path], reference.export.initial[path]
    if not jnp.issubdtype(want.dtype, jnp.floating):
        return 0.0
    moved = distance(want, before)
    least = SUM if want.ndim == 0 else 1e-5
    return least * (moved if np.isfinite(moved) else 0) + steps / 2 * (ulp(want) + difference_ulp(reference, path)) + FLUSHED * float(jnp.finfo(want.dtype).tiny)


# State that is a difference of other state has that state's ulp.
DIFFERENCES = (".diff_params_memory",)


def difference_ulp(reference, path):
    """Returns an ulp of the weights whose differences the array at `path` holds."""
    suffix = next((path.partition(name)[2] for name in DIFFERENCES if name in path), None)
    return 0.0 if suffix is None else max((ulp(x) for other, x in reference.export.final.items() if other.endswith(suffix)), default=0.0)


# If JAX's own runs differ from each other by as much as an array moves, rounding decides every
# element, and only the magnitude remains. That is a product of factors from every layer that the
# gradient has passed, which the runs do not share either: of eight runs the largest may be
# sixty times the smallest, in all arrays below such a factor.
# Rprop multiplies its step sizes by 1.2 or by a half, depending on the sign of a gradient:
# if rounding decides the sign of any element in JAX's runs, it may decide another element's here.
# A scalar is one number for each step: diverging runs may be close to each other by chance.
CHAOS, CHAOS_OF_SIGNS, CHAOS_OF_SCALARS, CHAOTIC_TIMES = 0.5, 0.1, 0.1, 10
# The losses of a run have jumped if they are this many times as far off as those of most.
JUMP = 8
SIGNS = (".step_sizes",)


def tolerance(reference, path, optimized=False):
    """Returns how far an array may be from JAX's; with `optimized`, from both of JAX's compilations of the
    step: an element whose gradient is nearly zero may be far off in only one of them."""
    want = reference.export.final[path]
    plays = [*reference.perturbed(), *([reference.optimized()] if optimized else [])]
    apart = max(distance(play[3][path], want) for play in plays)
    chaos = CHAOS_OF_SIGNS if any(name in path for name in SIGNS) else CHAOS
    chaotic = apart >= chaos * distance(want, reference.export.initial[path])
    return tight(reference, path) + (CHAOTIC_TIMES if chaotic or reference.jumps() else TIMES) * apart


def diverges(export):
    """Returns whether a loss is not finite or beyond HUGE, or a state array overflows: then rounding decides which
    elements do, and whether the derivative of a saturated activation is zero or a large product. Or all losses vanish:
    then gradients are subnormal, and XLA may flush what a step by their sign reads."""
    wide = lambda x: np.asarray(x).astype(np.float64)
    floats = [path for path, last in export.final.items() if jnp.issubdtype(last.dtype, jnp.floating)]
    overflows = any((np.isinf(wide(export.final[path])) & np.isfinite(wide(export.initial[path]))).any() for path in floats)
    losses = np.array([float(row[export.loss]) for row in export.scalars])
    return overflows or not (np.abs(losses) <= HUGE).all() or (np.abs(losses) <= VANISHED).all()
