"""A draw in fp8: its module and values in a folder, and the results of its runs."""

import re
import subprocess

import fp8_testing as t
import numpy as np
from exporting import feeds

from .models import STEPS
from .reference import Failure

# So small that the logits of any draw are cut into slices of rows, if possible.
SLICE_BYTES = 256


def number(value):
    """Returns a value of the log, which has no infinity: that is NaN there, too."""
    return np.float64(np.nan if value is None or not np.isfinite(value) else value)


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
        # Files of random recipes, and what they mean (recipes.traits), by name.
        self.recipes, self.traits = {}, {}
        # LLVM's optimizations take long and change no bits, which check_threads checks.
        self.optimized = [] if reference.seed % 10 else ["none", reference.drawn["recipe"]]

    def run(self, recipe, threads=1, optimize=None, out=None, settings=(), steps=STEPS, resume=False, ranks=None):
        """Runs fp8-run and returns its log; resolves and counts ambiguities of modules without
        names. `ranks` (a launcher and the options that feed the step): runs on two ranks."""
        out = self.folder / (out or recipe)
        optimize = recipe in self.optimized if optimize is None else optimize
        more = ["--threads", threads, *([] if optimize else ["--no-optimize"]), *settings]
        fixed = [recipe, *more]
        launcher, feeding = ranks or (None, self.options)
        while True:
            command = [self.tools["run"], self.folder / "step.mlir", *feeding, "--recipe", self.recipes.get(recipe, recipe), "--steps", steps,
                       "--checkpoint-every", 1, "--out", out, "--resume" if resume else "--overwrite", "--quiet", *more]  # fmt: skip
            command, environment = t.on_ranks(launcher, 2 if ranks else 1, command)
            (self.folder / f"{out.name}.command").write_text(" ".join(map(str, command)) + "\n")
            try:
                result = t.run(command, check=False, timeout=self.timeout, env=environment)
            except subprocess.TimeoutExpired:
                raise Failure(f"{group(recipe)}-hang", f"{fixed} after {self.timeout} s") from None
            if result.returncode == 0:
                return t.read_log(out)
            if not self.settle(result.stderr):
                raise Failure(f"{group(recipe)}-{kind_of(result)}", f"{fixed} exit {result.returncode}: {first_error(result.stderr)}")

    def settle(self, errors):
        """Adds the option that resolves an ambiguity; returns whether there was one."""
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

    def checkpoint(self, out, step):
        """Returns the arrays after a step of a run."""
        return t.load_tensors(self.folder / out / f"checkpoint-{step}.safetensors")

    def metrics(self):
        """Returns the paths of the scalars that a step returns and that are not state. If activations have
        underflowed, the loss is the same for every batch: then only the loss, since which output is
        the largest depends on the subnormals that XLA flushes to zero."""
        export = self.reference.export
        if len({float(row[export.loss]) for row in export.scalars}) == 1:
            return [export.loss]
        state = set(export.replaced.values())
        return [path for path in export.scalars[0] if path not in state]

    def loss_of(self, row):
        """Returns the value of a row for the loss of JAX's step: of several losses the compiler may have chosen
        another one."""
        return row.get("metrics", {}).get(self.results[self.reference.export.loss], row["loss"])

    def scalars(self, log, path):
        """Returns the values of the scalar at `path` in a run's log, one for each step."""
        export, name = self.reference.export, self.results[path]
        got = [self.loss_of(row) if path == export.loss else row.get("metrics", {}).get(name, "no") for row in log]
        if "no" in got:
            # A scalar that is returned twice is a metric under one of its names. Otherwise this scalar
            # was taken for the loss.
            twins = [self.results[other] for other in export.scalars[0] if all(row[other] == row[path] for row in export.scalars)]
            found = next((twin for twin in twins if all(twin in row.get("metrics", {}) for row in log)), None)
            got = [row["metrics"][found] if found else row["loss"] for row in log]
        return np.array([number(g) for g in got])


RANDOM = "random"


def group(recipe):
    return next((name for name in ("none", RANDOM) if recipe.startswith(name)), "preset")


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
