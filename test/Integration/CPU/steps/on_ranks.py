"""Training steps in jax.shard_map on as many ranks as they have devices, beside JAX:

    python on_ranks.py FP8_RUN FOLDER LAUNCHER FAMILY... [--only STEP...] [--recipe RECIPE...]

Families and steps are those of zoo.py, and LAUNCHER is an mpirun. For each step this
checks that

 1. `--recipe none` gives JAX's losses, metrics and state;
 2. the presets that the step names train near JAX's losses and account for every dot.
"""

import argparse
import functools
import os
import pathlib
import re
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE))

import fp8_testing as t  # noqa: E402

t.use_devices(4)

import families  # noqa: E402
import numpy as np  # noqa: E402
import presets  # noqa: E402
import zoo  # noqa: E402

STEPS = presets.STEPS


def train(fp8_run, launcher, ranks, folder, recipe, options):
    out = folder / recipe
    command, environment = t.on_ranks(launcher, ranks, [fp8_run, folder / "step.mlir", *options, "--steps", STEPS, "--threads", 1,
                                                        "--recipe", recipe, "--overwrite", "--quiet", "--out", out])  # fmt: skip
    done = t.run(command, check=False, timeout=300, env=environment)
    assert done.returncode == 0, f"{recipe}: expected exit code 0 but got {done.returncode}\n{done.stderr[-3000:]}"
    return t.read_log(out), out


def check_none(export, log, out):
    """Returns the largest difference of results and of state from JAX's."""
    worst, state = {}, set(export.replaced.values())
    for row, want in zip(log, export.scalars, strict=True):
        got = {export.loss: row["loss"], **row.get("metrics", {})}
        for path, value in want.items():
            if path not in state:
                worst[path] = max(worst.get(path, 0.0), zoo.apart(np.float64(got[path]), np.float64(value)))
    assert worst[export.loss] <= export.step.loss_bound, f"none: expected losses within {export.step.loss_bound} but got {worst[export.loss]:.1e}"
    values = t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    worst |= {path: zoo.apart(values[path], want) for path, want in export.final.items()}
    path = max(worst, key=worst.get)
    assert worst[path] <= export.step.bound, f"none: expected {path} within {export.step.bound} but got {worst[path]:.1e}"
    return f"none {worst[path]:.1e} from JAX at {path}"


def check(fp8_run, launcher, folder, name, make, recipes):
    folder.mkdir(parents=True, exist_ok=True)
    export = zoo.Export(make(), False, STEPS)
    (folder / "step.mlir").write_text(export.debug)
    ranks = int(re.search(r"mhlo.num_partitions = (\d+)", export.text).group(1))
    # A rank reads its rows of a batch; fp8-run counts these.
    export.data = {path: value.reshape(-1, *value.shape[2:]) for path, value in export.data.items()}
    options = zoo.feeds(folder, export, lambda path: path)
    want = [float(scalars[export.loss]) for scalars in export.scalars]
    report, failures = [], []
    for recipe in ("none", *export.step.presets):
        if recipe not in recipes:
            continue
        try:
            log, out = train(fp8_run, launcher, ranks, folder, recipe, options)
            if recipe == "none":
                report.append(check_none(export, log, out))
                continue
            gap = np.max(np.abs(np.subtract(t.losses(log), want)))
            assert 0 < gap <= export.step.gap, f"expected losses within {export.step.gap} of\n{want}\nbut got\n{t.losses(log)}"
            dots, linear = zoo.check_dots(export, out)
            fp8 = sum(row["verdict"] == "fp8" for row in dots)
            report.append(f"{recipe} {gap:.4f} ({fp8} of {len(dots)} dots FP8, {len(linear)} linear)")
        except AssertionError as error:
            failures.append(f"{recipe}: {error}")
    print(f"{name}: {', '.join(report)}", flush=True)
    assert not failures, "\n".join(failures)
    return export.step.presets


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp8_run")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("launcher")
    parser.add_argument("family", nargs="+")
    parser.add_argument("--only", nargs="+", default=[], help="only these steps")
    parser.add_argument("--recipe", nargs="+", default=presets.PRESETS, help="only these presets")
    args = parser.parse_args()

    steps = families.steps_of(args.family, args.only)
    families.run_checks(
        (name, functools.partial(check, args.fp8_run, args.launcher, args.folder / name, name, make, args.recipe)) for _, name, make in steps
    )


if __name__ == "__main__":
    main()
