"""Every preset on training steps in many styles, exported from JAX:

    python presets.py FP8_RUN FOLDER FAMILY... [--only STEP...] [--recipe RECIPE...]

Families and steps are those of zoo.py. For each step this checks that

 1. `--recipe none` gives JAX's losses and state;
 2. every other preset compiles and its losses stay near JAX's;
 3. the scales that a preset keeps from step to step have the dimensions that
    the step expects: one entry for each layer of a loop.
"""

import argparse
import functools
import json
import pathlib
import struct
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import families  # noqa: E402
import fp8_testing as t  # noqa: E402
import numpy as np  # noqa: E402
import zoo  # noqa: E402

STEPS = 4
PRESETS = sorted(path.stem for path in (HERE.parents[3] / "recipes").glob("*.yaml"))


def shapes(path):
    """Returns the shapes of all tensors of a safetensors file, whatever their format."""
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    return {name: tuple(entry["shape"]) for name, entry in header.items() if name != "__metadata__"}


def check_scales(expected, found):
    """Compares the shapes of the scales that a preset keeps; `expected` has shapes by parts of
    names."""
    kept = {name: shape for name, shape in found.items() if name.startswith("fp8.") and name.endswith(".quantizer")}
    for name, shape in kept.items():
        for part, want in expected.items():
            assert part not in name or shape == want, f"expected {name} of shape {want} but got {shape}"
    # Weights may have current scales while other tensors have delayed ones, and only some presets
    # smooth.
    for part in expected if kept else ():
        assert part.endswith((".weight", ".smooth")) or any(part in name for name in kept), f"expected a scale of {part} but got {sorted(kept)}"
    return len(kept)


def check(fp8_run, folder, name, step, donate, debug, recipes):
    folder.mkdir(parents=True, exist_ok=True)
    export = zoo.Export(step, donate, STEPS)
    (folder / "step.mlir").write_text(export.debug if debug else export.text)
    name_of = (lambda path: path) if debug else (lambda path: f"arg{export.paths.index(path)}")
    options = zoo.feeds(folder, export, name_of)
    want = [float(scalars[export.loss]) for scalars in export.scalars]
    report = []
    runs = [(recipe, ()) for recipe in recipes] + [run for run in export.step.settings.items() if run[0] in recipes]
    for recipe, settings in runs:
        changed = [word for setting in settings for word in ("--set", setting)]
        log = t.train(fp8_run, folder, folder / recipe, *options, "--steps", STEPS, "--recipe", recipe, *changed, "--overwrite", "--quiet")
        got = t.losses(log)
        checkpoint = folder / recipe / f"checkpoint-{STEPS}.safetensors"
        if recipe == "none":
            values = zoo.read(checkpoint)
            worst = {
                path: zoo.apart(values[name_of(path)], value)
                for path, value in export.final.items()
                if not any(part in path for part in export.step.noise)
            }
            path = max(worst, key=worst.get)
            assert worst[path] <= export.step.bound, f"none: expected {path} within {export.step.bound} but got {worst[path]:.1e}"
            assert zoo.apart(got, want) <= export.step.loss_bound, f"none: expected losses\n{want}\nbut got\n{got}"
            report.append(f"none {worst[path]:.1e} from JAX")
            continue
        gap = np.max(np.abs(np.subtract(got, want)))
        assert gap <= export.step.gap, f"{recipe}: expected losses within {export.step.gap} of\n{want}\nbut got\n{got}"
        try:
            kept = check_scales(export.step.scales if debug else {}, shapes(checkpoint))
        except AssertionError as error:
            raise AssertionError(f"{recipe}: {error}") from None
        report.append(f"{' '.join([recipe, *settings])} {gap:.4f}" + (f" ({kept} scales kept)" if kept else ""))
    print(f"{name}: {', '.join(report)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp8_run")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("family", nargs="+")
    parser.add_argument("--only", nargs="+", default=[], help="only these steps")
    parser.add_argument("--recipe", nargs="+", default=PRESETS, help="only these presets")
    args = parser.parse_args()

    def run(i, name, make):
        step = make()
        # Names are needed to match scales to tensors.
        check(args.fp8_run, args.folder / name, name, step, i % 2 == 0, bool(step.scales) or i % 3 == 0, args.recipe)

    families.run_checks((name, functools.partial(run, i, name, make)) for i, name, make in families.steps_of(args.family, args.only))


if __name__ == "__main__":
    main()
