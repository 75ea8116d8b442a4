"""What must hold of a step: see the top of random_steps.py."""

import json
import re
import subprocess

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
from exporting import Export, feeds
from stored_state import decode

from . import choices, containers, optimizers, rounding, sums, tasks
from .models import STEPS

# Presets that store state in less than f32.
STORED = {"fp8_lm", "scaling_fp8", "coat"}
# Presets whose scales are of earlier steps, and two bits of room in those.
DELAYED = {"delayed", "fp8_lm", "scaling_fp8"}
# So few that the logits of any draw are cut into slices of rows, if they can be.
SLICE_BYTES = 256
ROOM = [f"--set={key}.margin=2" for key in ("forward.activation", "dgrad.gradient", "wgrad.activation", "wgrad.gradient")]
PERTURBATIONS = 8
# How many times what JAX's own runs are apart.
TIMES = 3
ULPS = 4
# What random_steps.py leaves out of XLA's compiling.
OPTIMIZED = {"xla_backend_optimization_level": 3, "xla_llvm_disable_expensive_passes": False, "xla_cpu_use_fusion_emitters": True}
# They round what they keep to fewer bits.
ROUNDING = {"adam_bf16_moments", "hand_error_feedback"}


class Failure(Exception):
    """What went wrong, in a word that a reduction keeps, and in full."""

    def __init__(self, kind, text):
        super().__init__(f"{kind}: {text}")
        self.kind = kind


# ------------------------------------------------------------------- JAX's side


class Reference:
    """A draw in JAX: what it gives, and how far what else is the same in theory gives something else."""

    def __init__(self, drawn, seed):
        self.drawn, self.seed = drawn, seed
        self.choices = choices.settle(drawn)
        self.export = self.make(self.choices)
        self._moved, self._rounded, self._rounded_dots, self._optimized = [], [], None, None

    def make(self, c):
        export = Export(containers.make(c, tasks.make(c, self.seed), self.seed), c.donate == "yes", STEPS)
        export.text  # As it is before `widen`.
        sums.widen(export.lowered)
        return export

    def variant(self, **other):
        """The same draw with other choices."""
        return self.make(choices.settle({**self.drawn, **other}))

    def perturbed(self, count=PERTURBATIONS):
        """Plays of the step whose initial floats are a few ulps away, up or down, which is
        what a sum in another order or another exp changes. Where weights become bf16
        that would be lost: there they move by so much that one in 64 is rounded to
        another number, and so does one in 64 of what is bf16 already."""
        random = np.random.default_rng(1)
        half = self.choices.dtype != "f32" or self.choices.transform == "round_trip" or self.choices.optimizer in ROUNDING

        def nudge(x):
            if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
                return x
            x = np.asarray(x)
            if not jnp.issubdtype(x.dtype, jnp.floating) or x.ndim == 0:
                return x
            up = random.integers(0, 2, x.shape) == 1
            if x.dtype == np.float32:
                by = 2.0**-14 if half else ULPS * 2.0**-23
                return x * np.where(up, 1 + by, 1 - by).astype(np.float32)
            chosen = (random.integers(0, 64, x.shape) == 0) & (x != 0)
            return np.where(chosen, np.nextafter(x, np.where(up, np.inf, -np.inf).astype(x.dtype)), x)

        while len(self._moved) < count:
            self._moved.append(self.play(nudge))
        return self._moved

    def jumps(self):
        """Whether rounding decides in JAX what is one thing or another (the expert of a token, say): the
        losses of one play are far from those of most."""
        losses = np.array([[row[self.export.loss] for row in scalars] for scalars in (self.export.scalars, *(play[0] for play in self.perturbed()))], np.float64)
        off = np.max(np.abs(losses - np.median(losses, axis=0)), axis=1)
        return np.max(off) > JUMP * np.median(off)

    def rounded(self, count=4):
        """Plays of the step whose initial weights are rounded to E4M3, stochastically."""
        random = np.random.default_rng(2)

        def to_fp8(x):
            if jax.dtypes.issubdtype(x.dtype, jax.dtypes.prng_key):
                return x
            x = np.asarray(x)
            return to_e4m3(x.astype(np.float32), random).astype(x.dtype) if jnp.issubdtype(x.dtype, jnp.floating) and x.ndim > 1 else x

        while len(self._rounded) < count:
            self._rounded.append(self.play(to_fp8))
        return self._rounded

    def rounded_dots(self):
        """A play of the step whose dots read E4M3."""
        if self._rounded_dots is None:
            export = self.make(self.choices)
            rounding.round_dots(export.lowered)
            self._rounded_dots = export.played
        return self._rounded_dots

    def optimized(self):
        """The step's play as XLA compiles it by default, which sums in other orders."""
        if self._optimized is None:
            export = self.make(self.choices)
            export.compiled = export.lowered.compile(compiler_options=OPTIMIZED)
            self._optimized = export.played
        return self._optimized

    def play(self, change):
        """The step's play from its initial state with every array changed, but for keys."""
        is_key = lambda x: jnp.issubdtype(x.dtype, jax.dtypes.prng_key)
        return self.export.play(jax.tree.map(lambda x: x if is_key(x) else jnp.asarray(change(x)), self.export.state))


def to_e4m3(x, random):
    """x with three bits of mantissa, each element up or down by how near it is to either."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.floor(mantissa * 16 + random.random(x.shape)) / 16, exponent)


def distance(a, b):
    """The largest difference, infinite where one is finite and the other is not."""
    a, b = (np.asarray(x).astype(np.float64) for x in (a, b))
    if a.shape != b.shape:
        return np.inf
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if not np.isfinite(a[~same]).all() or not np.isfinite(b[~same]).all():
        return np.inf
    return float(np.max(np.abs(a - b), where=~same, initial=0))


def ulp(x):
    """One ulp of an array's largest entry, in its own type."""
    x = np.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.floating):
        return 0.0
    finite = np.abs(np.where(np.isfinite(x.astype(np.float64)), x.astype(np.float64), 0))
    return float(np.max(finite, initial=0)) * float(jnp.finfo(x.dtype).eps)


# ------------------------------------------------------------------ fp8's side


class Module:
    """The module of a draw with its values, in a folder."""

    def __init__(self, reference, folder, tools):
        self.reference, self.folder, self.tools, self.timeout = reference, folder, tools, tools["timeout"]
        c, export = reference.choices, reference.export
        folder.mkdir(parents=True, exist_ok=True)
        text, order, result_order = export.debug, range(len(export.paths)), range(len(export.results))
        if c.debug == "no":
            text = export.text
        if c.debug == "stripped":
            text, order, result_order = t.strip_names(export.text, reference.seed, donated=c.donate == "yes")
        (folder / "step.mlir").write_text(text)
        named = c.debug == "yes"
        self.names = {export.paths[old]: export.paths[old] if named else f"arg{new}" for new, old in enumerate(order)}
        self.results = {export.results[old]: f"result{new}" if c.debug == "stripped" else export.results[old] for new, old in enumerate(result_order)}
        self.result_order = [export.results[old] for old in result_order]
        self.options = feeds(folder, export, self.names.get)
        if c.logits == "sliced":
            self.options += ["--set", f"compute.logits_bytes={SLICE_BYTES}"]
        self.ambiguous = set()
        # LLVM's optimizations take long and change no bit, which check_threads checks.
        self.optimized = [] if reference.seed % 10 else ["none", reference.drawn["recipe"]]

    def run(self, recipe, threads=1, optimize=None, out=None, settings=()):
        """fp8-run's log; ambiguities of what has no names are settled and counted."""
        out = self.folder / (out or recipe)
        optimize = recipe in self.optimized if optimize is None else optimize
        more = ["--threads", threads, *([] if optimize else ["--no-optimize"]), *settings]
        fixed = [recipe, *more]
        while True:
            command = [self.tools["run"], self.folder / "step.mlir", *self.options, "--recipe", recipe, "--steps", STEPS,
                       "--checkpoint-every", 1, "--out", out, "--overwrite", "--quiet", *more]  # fmt: skip
            (self.folder / f"{out.name}.command").write_text(" ".join(map(str, command)) + "\n")
            try:
                result = t.run(command, check=False, timeout=self.timeout)
            except subprocess.TimeoutExpired:
                raise Failure(f"{group(recipe)}-hang", f"{fixed} after {self.timeout} s") from None
            if result.returncode == 0:
                return t.read_log(out)
            if not self.settle(result.stderr):
                raise Failure(f"{group(recipe)}-{kind_of(result)}", f"{fixed} exit {result.returncode}: {first_error(result.stderr)}")

    def settle(self, errors):
        """Adds the option that an ambiguity asks for."""
        export = self.reference.export
        for what in ("loss", "state"):
            if f"ambiguous {what}" in errors and what not in self.ambiguous and self.reference.choices.debug != "yes":
                self.ambiguous.add(what)
                if what == "loss":
                    self.options += [f"--loss={self.results[export.loss]}"]
                else:
                    for argument, result in export.replaced.items():
                        self.options += [f"--state={self.names[argument]}={self.results[result]}"]
                    self.options += [f"--role={self.names[path]}=frozen" for path in export.paths if path in export.initial and path not in export.replaced]
                return True
        return False


def group(recipe):
    return recipe if recipe == "none" else "preset"


UNSUPPORTED = re.compile(r"is not supported by the fp8 importer|which does not run here|complex")


def kind_of(result):
    if result.returncode < 0 or result.returncode in (134, 136, 139) or "PLEASE submit a bug report" in result.stderr:
        return "crash"
    if UNSUPPORTED.search(result.stderr):
        return "unsupported"
    if "ambiguous" in result.stderr:
        return "ambiguous"
    if re.search(r"does not dominate|failed to verify|internal|'\w+\.\w+' op", result.stderr):
        return "verifier"
    return "error"


def first_error(text):
    lines = [line for line in text.splitlines() if "error" in line or "Assertion" in line] or text.splitlines()[:3]
    return re.sub(r"^\S+step.mlir:\d+:\d+: |^loc\(.*?\): ", "", " | ".join(lines[:2]))[:400]


# ---------------------------------------------------------------------- checks


def number(value):
    """A value of the log, which has no infinity: that is a NaN there, too."""
    return np.float64(np.nan if value is None or not np.isfinite(value) else value)


def tight(reference, path):
    """A thousandth of a percent of what an array moves, half an ulp for each step, and what is no
    normal number, which XLA may take for zero."""
    want = reference.export.final[path]
    if not jnp.issubdtype(want.dtype, jnp.floating):
        return 0.0
    moved = distance(want, reference.export.initial[path])
    return 1e-5 * (moved if np.isfinite(moved) else 0) + STEPS / 2 * (ulp(want) + difference_ulp(reference, path)) + float(jnp.finfo(want.dtype).tiny)


# State that is a difference of other state has an ulp of that.
DIFFERENCES = (".diff_params_memory",)


def difference_ulp(reference, path):
    """An ulp of the weights whose differences the array at `path` has."""
    suffix = next((path.partition(name)[2] for name in DIFFERENCES if name in path), None)
    return 0.0 if suffix is None else max((ulp(x) for other, x in reference.export.final.items() if other.endswith(suffix)), default=0.0)


# Where JAX's own runs are as far from each other as an array moves, rounding decides every
# number of it and all that is left of it is its size. That is a product of factors that
# the runs do not share either, of every layer that the gradient has come through: of eight runs
# the largest may be sixty times the smallest, and all arrays below such a factor have it.
# Rprop's step sizes are multiplied by 1.2 or by a half, as the sign of a gradient says:
# where any element's sign is one of rounding in JAX's runs, it may be another element's here.
# A scalar is one number of a step: the runs may be near each other by chance where they diverge.
CHAOS, CHAOS_OF_SIGNS, CHAOS_OF_SCALARS, CHAOTIC_TIMES = 0.5, 0.1, 0.1, 10
# Losses of a play that are so many times as far off as those of most have jumped.
JUMP = 8
SIGNS = (".step_sizes",)


def tolerance(reference, path, optimized=False):
    """How far an array may be from JAX's; with `optimized`, from both of what JAX makes of the
    step: an element whose gradient is nearly zero may be far in one of them alone."""
    want = reference.export.final[path]
    plays = [*reference.perturbed(), *([reference.optimized()] if optimized else [])]
    apart = max(distance(play[3][path], want) for play in plays)
    chaos = CHAOS_OF_SIGNS if any(name in path for name in SIGNS) else CHAOS
    chaotic = apart >= chaos * distance(want, reference.export.initial[path])
    return tight(reference, path) + (CHAOTIC_TIMES if chaotic or reference.jumps() else TIMES) * apart


def diverges(export):
    """Whether a loss is no number or a state array overflows: then rounding decides which do."""
    wide = lambda x: np.asarray(x).astype(np.float64)
    floats = [path for path, last in export.final.items() if jnp.issubdtype(last.dtype, jnp.floating)]
    overflows = any((np.isinf(wide(export.final[path])) & np.isfinite(wide(export.initial[path]))).any() for path in floats)
    return overflows or not all(np.isfinite(row[export.loss]) for row in export.scalars)


def check_pairs(module):
    """Every argument is replaced by the result that JAX puts in its place."""
    export = module.reference.export
    while True:
        more = [option for option in module.options if str(option).startswith(("--state=", "--role=", "--loss="))]
        explained = t.run([module.tools["run"], module.folder / "step.mlir", "--explain-signature", *module.options[:2], *more], check=False, timeout=module.timeout)
        # Training is asked of a step; of a module alone it says "function" of some.
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
    # The loss may be a metric and the state of a step that goes back, too.
    same = lambda i, j: i is not None and all(np.array_equal(row.get(module.result_order[i], 0), row.get(module.result_order[j], 1), equal_nan=True) for row in export.scalars)
    wrong = [f"{argument} ({module.names[argument]}) gets {called(got[argument])} in place of {called(at)}" for argument, at in want.items() if got[argument] != at and not same(got[argument], at)]
    # What JAX leaves as it is comes back as it came, if at all.
    alive = {name: path for path, name in module.names.items() if path not in want}
    wrong += [f"{alive[row[0]]} ({row[0]}) is replaced" for row in arguments if row[0] in alive and row[2] == "state"]
    if wrong:
        raise Failure("none-pairs", f"{len(wrong)} of {len(want)} pairs: " + "; ".join(wrong[:4]))


def check_none(module):
    """Every state array and every scalar as in JAX."""
    reference, export = module.reference, module.reference.export
    log = module.run("none")
    if len(log) != STEPS:
        raise Failure("none-steps", f"expected {STEPS} steps but got {len(log)}")
    state = set(export.replaced.values())
    for path in export.scalars[0]:
        if path in state:
            continue
        name, want = module.results[path], [row[path] for row in export.scalars]
        got = [loss_of(module, row) if path == export.loss else row.get("metrics", {}).get(name, "no") for row in log]
        if "no" in got:
            # What is returned twice is a metric under one name. Else another scalar is called the loss.
            twins = [module.results[other] for other in export.scalars[0] if all(row[other] == row[path] for row in export.scalars)]
            found = next((twin for twin in twins if all(twin in row.get("metrics", {}) for row in log)), None)
            got = [row["metrics"][found] if found else row["loss"] for row in log]
        got = np.array([number(g) for g in got])
        wanted = np.array([number(w) for w in want])
        finite = wanted[np.isfinite(wanted)]
        # (XLA may add up all elements of a mean one after another: with 1536 of them
        # its f32 is 1.7e-5 from f64.)
        bound = 3e-5 * np.max(np.abs(finite), initial=0) + 1e-5 * (np.ptp(finite) if finite.size else 0)
        off = distance(got, wanted)
        if not off <= bound:
            apart = lambda plays: max(distance([number(row[path]) for row in play[0]], wanted) for play in plays)
            allowance = lambda apart: (CHAOTIC_TIMES if apart >= CHAOS_OF_SCALARS * np.ptp(finite) or reference.jumps() else TIMES) * apart + bound
            allowed = allowance(apart(reference.perturbed()))
            if not off <= allowed:
                # What a search accepts may follow from the last bits of a sum.
                allowed = max(allowed, allowance(apart([reference.optimized()])))
            if not off <= allowed:
                raise Failure("none-scalar", f"{path}: expected {wanted.tolist()} but got {got.tolist()}, {off:.1e} apart, allowed {allowed:.1e}")
    checkpoint = t.load_tensors(module.folder / "none" / f"checkpoint-{STEPS}.safetensors")
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
    """Every dot of the imported step has its row."""
    imported = t.run([module.tools["opt"], "--fp8-import", module.folder / "step.mlir"], check=False, timeout=module.timeout)
    if imported.returncode:
        # It takes no options for what is ambiguous.
        if module.ambiguous and "ambiguous" in imported.stderr:
            return
        raise Failure("import", first_error(imported.stderr))
    dots = len(re.findall(r"stablehlo\.dot_general\b", imported.stdout))
    rows = len(json.loads((module.folder / recipe / "verdicts.json").read_text())["dots"])
    if rows != dots:
        raise Failure("verdicts", f"{recipe}: expected verdicts of {dots} dots but got {rows}")


def movement(first, last):
    return np.abs(np.asarray(last).astype(np.float64) - np.asarray(first).astype(np.float64))


# Of an array in narrow state more than one element in so many must move in JAX.
FEW = 100


def check_moves(module, recipe):
    """No array stands still that moves in JAX from the first step to the last. A search over
    losses may take no step at all where FP8 has made these coarse."""
    if module.reference.choices.optimizer in optimizers.SEARCHES:
        return
    export = module.reference.export
    one, six = (t.load_tensors(module.folder / recipe / f"checkpoint-{i}.safetensors") for i in (1, STEPS))
    for path, last in export.final.items():
        # A number (a learning rate) may be what a search decides.
        if last.ndim == 0 or not jnp.issubdtype(last.dtype, jnp.floating) or not np.isfinite(last.astype(np.float64)).all():
            continue
        early, name = export.early[path], module.names[path]
        moved, size = movement(early, last), np.maximum(np.abs(last.astype(np.float64)), np.abs(early.astype(np.float64)))
        coarse = recipe in STORED or last.dtype != np.float32
        bound = np.maximum(size / 8, np.max(size, initial=0) / 64) if coarse else np.maximum(np.max(size, initial=0) * 1e-4, 1e-12)
        clear = moved > bound
        # Narrow state that cannot resolve nearly all of an array says nothing about the rest, and one
        # element nothing about an array: of a largest gradient so far it may be the only one that grows.
        if clear.sum() <= (clear.size / FEW if coarse else clear.size > 1):
            continue
        # A largest gradient so far moves where a later one is larger, which is elsewhere once FP8 has
        # changed the first, or nowhere. Of a maximum of clipped gradients few elements are still below
        # the clip then.
        grows = (last.astype(np.float64) >= early.astype(np.float64)).all()
        if grows and clear.sum() * 2 <= clear.size:
            continue
        enough = clear.sum() / 2 if clear.sum() * 4 > clear.size and not grows else 1
        if name not in six:
            raise Failure("preset-missing", f"{recipe}: expected {path} ({name}) in the checkpoint")
        # Payloads stay where a tensor only grows, as an average does at first.
        before, after = (decode(tensors, name).astype(np.float64) for tensors in (one, six))
        changed = before != after
        if (changed & clear).sum() < enough:
            # A gradient that is zero but for rounding, of a key's bias, moves with it.
            clear &= moved > tolerance(module.reference, path)
        changed &= clear
        if not coarse:
            # A clipped gradient leaves adamax's maximum where it was; which few
            # elements were below the clip differs.
            changed |= movement(before, after) > bound
        if changed.sum() < min(enough, clear.sum() / 2):
            raise Failure("preset-still", f"{recipe}: {path} ({name}): {clear.sum()} of {clear.size} elements move in JAX but {changed.sum()} here")


def losses(scalars, export):
    return np.array([float(row[export.loss]) for row in scalars])


def loss_gap(module):
    """What computing in bf16 changes in JAX's losses, in one run or, where a step amplifies
    rounding, in any of eight whose initial weights are nearly the same."""
    reference = module.reference
    if not hasattr(reference, "gap"):
        exact, half = (reference if reference.choices.dtype == dtype else Reference({**reference.drawn, "dtype": dtype}, reference.seed) for dtype in ("f32", "cast_inside"))
        want = losses(exact.export.scalars, exact.export)
        reference.gap = max(distance(losses(scalars, half.export), want) for scalars in (half.export.scalars, *(play[0] for play in half.perturbed())))
    return reference.gap


# A dot in FP8 rounds weights, activations and gradients: that is noise like that of rounded
# weights three times. Of about sixty draws most were within 3 % of the largest loss, two-layer networks
# within 5 %; further were only steps that rounding changes more in JAX, too. A
# trained array that stands still is found by `check_moves`, so this is for gradients that go elsewhere.
FLOOR, MOST = 0.05, 0.3
# Losses that grow so many times run away, each step by a multiple of what was off in the one before.
RUNAWAY = 1000


def loss_of(module, row):
    """A row's value of what JAX's step calls the loss: of several losses the compiler may call another one so."""
    return row.get("metrics", {}).get(module.results[module.reference.export.loss], row["loss"])


def leaps_away(module, recipe, failure):
    """Whether a run ended without a finite loss because its optimizer leaps: from the run's last checkpoint
    the step as it is ends like that, too."""
    if module.reference.choices.optimizer not in optimizers.LEAPING or "the loss is" not in str(failure):
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
    """Losses as near to JAX's as 5 % of the largest loss, or three times what JAX's own
    losses change when its initial weights are rounded to E4M3, it computes in bf16 or its dots read E4M3: of a step that amplifies
    what is rounded nothing else can be asked. Where that is more than the losses themselves, where they run away, where an optimizer
    divides by an earlier gradient, and where a search over losses chooses the step, which FP8 makes
    choose another, they need only be finite. Scales of earlier steps clip what grows in this one: where that is
    what is off, two bits of room bring it near."""
    reference = module.reference
    want = losses(reference.export.scalars, reference.export)
    got = np.array([number(loss_of(module, row)) for row in log])
    if not np.isfinite(want).all():
        return 0.0, 0.0
    off, size = distance(got, want), np.max(np.abs(want))
    allowed = FLOOR * size
    if off > allowed and recipe != "bf16":
        allowed = max(allowed, TIMES * max(distance(losses(play[0], reference.export), want) for play in reference.rounded(4)))
    if off > allowed:
        allowed = max(allowed, TIMES * loss_gap(module))
    if off > allowed and recipe != "bf16":
        allowed = max(allowed, TIMES * distance(losses(reference.rounded_dots()[0], reference.export), want))
    if off > allowed and recipe != "bf16":
        # The largest of four runs is what a fifth one exceeds now and then.
        allowed = max(allowed, TIMES * max(distance(losses(play[0], reference.export), want) for play in reference.rounded(16)))
    optimizer = reference.choices.optimizer
    runs_away = size > RUNAWAY * np.abs(want[0])
    if (allowed > size or runs_away or optimizers.searches(optimizer) or optimizer in optimizers.LEAPING) and np.isfinite(got).all():
        return off / size, allowed / size
    if off > allowed and recipe in DELAYED:
        roomy = module.run(recipe, out=f"{recipe}-room", settings=ROOM)
        if distance([number(loss_of(module, row)) for row in roomy], want) <= allowed:
            return off / size, off / size
    if not off <= allowed:
        raise Failure("preset-loss", f"{recipe}: expected losses {want.round(5).tolist()} but got {got.round(5).tolist()}, {off:.2e} apart, allowed {allowed:.2e}")
    return off / size, allowed / size


def check_threads(module, recipe):
    """Three threads and code that is not optimized give the bits of one thread and optimized code."""
    module.run(recipe, threads=3, optimize=False, out=f"{recipe}-3")
    one, three = (t.load_tensors(module.folder / out / f"checkpoint-{STEPS}.safetensors") for out in (recipe, f"{recipe}-3"))
    for name in one:
        if one[name].tobytes() != three[name].tobytes():
            raise Failure("threads", f"{recipe}: {name} differs between one thread, optimized, and three, not optimized")


def check(drawn, seed, folder, tools):
    """Checks one draw; returns a line about it."""
    try:
        reference = Reference(drawn, seed)
    except Exception as error:  # JAX's own complaint of the generator's step.
        raise Failure("generator", f"{type(error).__name__}: {str(error)[:1500]}") from error
    if tools["pairs"]:
        module = Module(reference, folder, tools)
        check_pairs(module)
        return " and ".join(["ambiguous", *sorted(module.ambiguous)]) + " " if module.ambiguous else "pairs"
    if diverges(reference.export):
        return "diverges in JAX"
    module = Module(reference, folder, tools)
    try:
        worst = check_none(module)
    except Failure as failure:
        if failure.kind in ("none-state", "none-scalar"):
            # The reason, if this is it.
            check_pairs(module)
        raise
    if tools["none"]:
        return f"none {worst:.2f}"
    presets = choices.CHOICES["recipe"][0] if seed % 10 == 0 else [drawn["recipe"]]
    notes = [f"none {worst:.2f}"]
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
        # Runs that went elsewhere, as JAX's do when its weights are rounded, move other things.
        if off <= MOST:
            check_moves(module, recipe)
        notes.append(f"{recipe} {off:.1e} of {allowed:.1e}")
    if seed % 10 == 0:
        check_threads(module, drawn["recipe"])
    if module.ambiguous:
        notes.append("ambiguous " + " and ".join(sorted(module.ambiguous)))
    return ", ".join(notes)
