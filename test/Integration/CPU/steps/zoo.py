"""Training steps in many styles, exported from JAX:

    python zoo.py FP8_RUN FOLDER FAMILY... [--only STEP...] [--every-variant]

A family is a module beside this file; its steps are functions marked with
`@step` that return a Step. For each step this checks that

 1. `--recipe none` gives JAX's results within the step's bounds: the loss and
    all other scalars of each step, all state by path after JAX_STEPS steps, and
    other arrays that the step returns after one step;
 2. `--recipe tensorwise` accounts for every dot and trains as well;
 3. without names, with arguments and results in random order and without
    donation, the step has the same roles and trains the same.

Half of the steps are exported with donated arguments, half with debug info, and
a quarter trains without names; --every-variant exports each step in all four
ways and trains all of them without names.
"""

import argparse
import functools
import json
import pathlib
import re
import sys
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import families  # noqa: E402
import fp8_testing as t  # noqa: E402
import numpy as np  # noqa: E402
from exporting import Export, apart, feeds, read, to_numpy  # noqa: E402

t.compile_quickly()
STEPS, JAX_STEPS, STRIPPED_STEPS, LAST = 50, 20, 10, 10


# --------------------------------------------------------------------- checks


def train(fp8_run, folder, recipe, steps, options):
    every = ["--checkpoint-every", STRIPPED_STEPS, "--steps", steps, "--recipe", recipe]
    return t.train(fp8_run, folder, folder / recipe, *options, *every, "--overwrite", "--quiet")


def check_none(export, log, folder, name_of):
    """Compares every result of a run with JAX's; returns the largest differences of losses and of
    other results."""
    assert len(log) == STEPS, f"expected {STEPS} steps but got {len(log)}"
    worst = {"loss": 0.0}
    for row, want in zip(log, export.scalars):
        state = set(export.replaced.values())
        got = {export.loss: row["loss"], **row.get("metrics", {})}
        for path, value in want.items():
            if path in state:
                continue
            assert path in got, f"expected {path} in the log but got {sorted(got)}"
            value = np.asarray(value, np.float64)
            kind = "loss" if path == export.loss else path
            worst[kind] = max(worst.get(kind, 0.0), apart(np.float64(got[path] if got[path] is not None else np.nan), value))
    checkpoint = read(folder / "none" / f"checkpoint-{JAX_STEPS}.safetensors")
    for path, want in export.final.items():
        assert name_of(path) in checkpoint, f"expected {path} in the checkpoint but got {sorted(checkpoint)}"
        if not any(part in path for part in export.step.noise):
            worst[path] = apart(checkpoint[name_of(path)], want)
    loss = worst.pop("loss")
    other = max(worst, key=worst.get, default=None)
    assert loss <= export.step.loss_bound, (
        f"expected losses\n{[float(s[export.loss]) for s in export.scalars]}\nbut got\n{t.losses(log)[:JAX_STEPS]} ({loss:.1e} apart)"
    )
    assert not other or worst[other] <= export.step.bound, f"expected {other} within {export.step.bound} but got {worst[other]:.1e}"
    return loss, worst[other] if other else 0.0


def check_outputs(fp8_run, export, folder, name_of):
    """Compares the results of one call of the function with JAX's, by path."""
    from safetensors.numpy import save_file

    first = {path: to_numpy(leaf)[0] for path, leaf in export.data.items()}
    inputs = {name_of(path): np.array({**export.initial, **first}[path], order="C") for path in export.paths}
    save_file(inputs, str(folder / "inputs.safetensors"))
    t.run([fp8_run, folder / "step.mlir", "--entry", "main", "--inputs", folder / "inputs.safetensors",
           "--outputs", folder / "outputs.safetensors"])  # fmt: skip
    got = read(folder / "outputs.safetensors")
    for path, want in export.outputs.items():
        assert path in got, f"expected {path} among the outputs but got {sorted(got)}"
        assert apart(got[path], want) <= export.step.bound, f"expected {path} within {export.step.bound} but got {apart(got[path], want):.1e}"


def dots_of(text):
    """Returns the number of dots and convolutions of main, counted once for each call of their function."""
    functions = re.split(r"^  func\.func (?:public |private )?@", text, flags=re.M)[1:]
    bodies = {re.match(r'"[^"]*"|[\w.$-]+', f).group(): f for f in functions}
    count = lambda name: len(re.findall(r"stablehlo\.(?:dot_general|convolution)\b", bodies[name])) + sum(
        count(callee) for callee in re.findall(r'\bcall @("[^"]*"|[\w.$-]+)', bodies[name])
    )
    return count("main")


def check_dots(export, out):
    """Every dot of a run has a verdict, and what is left of convolutions is counted. Returns the
    verdicts and those of linear layers."""
    verdicts = json.loads((out / "verdicts.json").read_text())
    report, convolutions = verdicts["dots"], verdicts["convolutions"]
    for row in report:
        assert row["verdict"] == "fp8" or row["reason"], f"expected a reason in {row}"
    dots = dots_of(export.text) - export.step.repeated
    assert len(report) + convolutions == dots, f"expected {dots} dots and convolutions but got {len(report)} and {convolutions}"
    linear = [row for row in report if row["category"] == "linear"]
    roles = Counter(row["role"] for row in linear)
    got = tuple(roles[role] for role in ("forward", "dgrad", "wgrad"))
    want = export.step.linear
    want = (want,) * 3 if isinstance(want, int) else want
    others = Counter((row["category"], row["role"]) for row in report if row["category"] != "linear")
    assert want is None or got == want, f"expected {want} linear dots but got {got} and {dict(others)}"
    wgrads, want = {row["layer"] for row in linear if row["role"] == "wgrad"}, export.step.wgrads
    assert want is None or len(wgrads) == want, f"expected weight gradients of {want} layers but got those of {wgrads}"
    return report, linear


def check_tensorwise(export, log, none, folder):
    """Every dot has a verdict, linear ones are FP8, and the loss is as good."""
    report, linear = check_dots(export, folder / "tensorwise")
    in_loops = sum(bool(row["loops"]) for row in report)
    assert not in_loops or "stablehlo.while" in export.text, f"expected no dot in a loop but got {in_loops}"
    for row in report:
        assert bool(row["loops"]) == any("in a loop" in note or "in loops" in note for note in row["notes"]), f"expected a note of the loop in {row}"
    for row in linear:
        assert row["verdict"] == "fp8" or "loop" in row["reason"], f"expected a linear dot in FP8 but got {row}"
    last = lambda log: np.mean(t.losses(log)[-LAST:])
    gap = abs(last(log) - last(none))
    assert gap <= export.step.gap, f"expected tensorwise within {export.step.gap} nats of {last(none):.4f} but got {last(log):.4f}"
    fp8 = sum(row["verdict"] == "fp8" for row in report)
    return gap, f"{fp8} of {len(report)} dots FP8, {in_loops} in loops"


def signature(fp8_run, module):
    """Returns the roles of arguments and the uses of results, in order, with positions instead of
    names."""
    text = t.run([fp8_run, module, "--explain-signature"]).stdout
    arguments, results = (
        [line.split() for line in part.splitlines() if line.startswith("  ")]
        for part in text.partition("arguments:\n")[2].split("results:\n")
    )
    position = {row[0]: i for i, row in enumerate(arguments)}
    return [row[2] for row in arguments], [(row[2], position.get(row[3]) if row[2] == "state" else None) for row in results]


def check_stripped(fp8_run, export, none, folder, name_of, train_too):
    """Without names and in another order the step has the same roles and trains the same."""
    text, order, result_order = t.strip_names(export.text, seed=len(export.paths), donated=False)
    folder_of = folder / "stripped"
    folder_of.mkdir(exist_ok=True)
    (folder_of / "step.mlir").write_text(text)
    roles, results = signature(fp8_run, folder / "step.mlir")
    want = [roles[old] for old in order], [(kind, kind == "state" and order.index(arg)) for kind, arg in (results[old] for old in result_order)]
    got = signature(fp8_run, folder_of / "step.mlir")
    got = got[0], [(kind, kind == "state" and arg) for kind, arg in got[1]]
    assert got == want, f"without names: expected roles and results\n{want}\nbut got\n{got}"
    if not train_too:
        return
    names = {export.paths[old]: f"arg{new}" for new, old in enumerate(order)}
    log = train(fp8_run, folder_of, "none", STRIPPED_STEPS, feeds(folder_of, export, names.get))
    got, want = t.losses(log), t.losses(none)[:STRIPPED_STEPS]
    assert apart(got, want) <= 1e-6, f"without names: expected losses\n{want}\nbut got\n{got}"
    named, stripped = (read(f / "none" / f"checkpoint-{STRIPPED_STEPS}.safetensors") for f in (folder, folder_of))
    for path in export.replaced:
        assert names[path] in stripped, f"without names: expected {path} in the checkpoint as {names[path]} but got {sorted(stripped)}"
        difference = apart(stripped[names[path]], named[name_of(path)])
        assert difference <= 1e-5, f"without names: expected {path} as before but got {difference:.1e}"


def check(fp8_run, folder, name, make, donate, debug, train_stripped):
    folder.mkdir(parents=True, exist_ok=True)
    export = Export(make(), donate, JAX_STEPS)
    (folder / "step.mlir").write_text(export.debug if debug else export.text)
    name_of = (lambda path: path) if debug else (lambda path: f"arg{export.paths.index(path)}")
    options = feeds(folder, export, name_of)
    none = train(fp8_run, folder, "none", STEPS, options)
    loss, others = check_none(export, none, folder, name_of)
    if export.has_outputs():
        check_outputs(fp8_run, export, folder, name_of)
    assert t.losses(none)[-1] < t.losses(none)[0], f"expected the loss to fall but got {t.losses(none)}"
    tensorwise = train(fp8_run, folder, "tensorwise", STEPS, [*options, "--fail-on-fallback"])
    gap, dots = check_tensorwise(export, tensorwise, none, folder)
    check_stripped(fp8_run, export, none, folder, name_of, train_stripped)
    falls = f"{t.losses(none)[0]:.3f} -> {np.mean(t.losses(none)[-LAST:]):.3f}"
    variant = f"{'donated' if donate else 'kept'}, {'debug info' if debug else 'no debug info'}"
    print(f"{name}: loss {falls}, from JAX {loss:.1e}, others {others:.1e}, tensorwise {gap:.4f} nats, {dots}; {variant}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp8_run")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("family", nargs="+")
    parser.add_argument("--only", nargs="+", default=[], help="only these steps")
    parser.add_argument("--every-variant", action="store_true", help="export each step with and without donation and debug info")
    args = parser.parse_args()

    def checks():
        for i, name, make in families.steps_of(args.family, args.only):
            every = [(donate, debug) for donate in (True, False) for debug in (True, False)]
            for donate, debug in every if args.every_variant else [every[i % 4]]:
                train_stripped = args.every_variant or i % 4 == 0
                yield name, functools.partial(check, args.fp8_run, args.folder / name, name, make, donate, debug, train_stripped)

    families.run_checks(checks())


if __name__ == "__main__":
    main()
