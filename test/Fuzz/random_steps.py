"""Random training steps, compared with JAX:

    python random_steps.py FP8_RUN FOLDER --seeds 0:200 [--set model=dense ...] [--jobs 2] [--keep] [--no-reduce]

A draw is a set of choices (steps/choices.py), each drawn independently from the
seed: model, its spelling, optimizer, wrappers, types, containers. For each draw:

 1. `--recipe none` computes JAX's state after six steps, every array of it, and
    every scalar of each step: within 1e-5 of an array's movement plus half an ulp
    for each step, or within three times the change of JAX's own results when its initial values move
    by four ulps, or by enough to change the rounding if the step computes in bf16, or when XLA compiles the step with
    default options; ten times if that change is as large as the array's movement. If a run is further off, each of
    its steps alone is compared with JAX's step from the run's state before it (steps/stepwise.py).
 2. The preset drawn for it (all presets in every tenth draw) compiles and runs; arrays that
    move in JAX move; losses are as close to JAX's as three times the deviation of JAX's own runs
    in bf16, and with rounded weights and dots, plus a floor (see steps/check.py).
 3. Every dot has a verdict.
 4. In every tenth draw one thread and three compute the same bits, and so does
    unoptimized code, which the other draws run.

With --recipes N, N random recipes (steps/recipes.py) take the place of the presets. Each is checked as a preset is, and
also: the printed recipe prints the same; a recipe that docs/Recipes.md forbids has a clear error; three threads, and
a run that is stopped and resumed, compute the same bits. The smallest recipe that fails is reduced/random-0.yaml.

With --ranks LAUNCHER (an mpirun) two ranks take the place of the presets' checks: see steps/parallel.py.

Failing draws are reduced (steps/reduce.py) to a line of --set options; their files
stay in FOLDER. Ambiguities of modules without names are counted.
"""

import argparse
import collections
import concurrent.futures
import multiprocessing
import os
import pathlib
import shlex
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CPU = HERE.parent / "Integration" / "CPU"
sys.path[:0] = [str(HERE), str(CPU), str(CPU / "steps")]
import fp8_testing  # noqa: E402

# XLA's compilation would take most of the time here. And bf16 is really bf16.
fp8_testing.compile_jax_quickly()
fp8_testing.add_xla_flags("--xla_allow_excess_precision=false")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from steps import choices, optimizers  # noqa: E402

choices.register("optimizer", optimizers.NAMES)

# Draws in one process: JAX's compiled code stays in its memory.
PART = 40


def options_of(texts):
    return dict(text.partition("=")[::2] for text in texts)


def seeds_of(text):
    """Returns the seeds of FROM:TO or of single numbers, several by commas."""
    parts = [part.partition(":") for part in text.split(",")]
    return [seed for begin, _, end in parts for seed in range(int(begin), int(end or int(begin) + 1))]


def one(seed, fixed, folder, tools, keep, reducing):
    """Checks one draw in this process; returns its line and the kind of its failure."""
    from steps import check, reference, soundness

    drawn, begin = choices.draw(seed, fixed), time.time()
    place = folder / f"{seed}"
    shutil.rmtree(place, ignore_errors=True)
    line, failed = "", ""
    try:
        line = soundness.check(drawn, seed) if tools["self"] else check.check(drawn, seed, place, tools)
    except reference.Failure as error:
        failed = error.kind
        line = f"{error}"
        if failed.endswith("-unsupported"):
            failed = ""
        elif reducing and failed != "generator" and not tools["self"]:
            line += "\n    " + reduced(drawn, seed, error, place, tools)
    except Exception as error:  # of JAX or of a check: the other draws go on
        failed, line = "exception", f"{type(error).__name__}: {error}".splitlines()[0]
    if not keep and not failed:
        shutil.rmtree(place, ignore_errors=True)
    status = f"FAIL {failed}" if failed else "ok"
    return seed, failed, f"{seed}: {status} [{choices.short(vars(choices.settle(drawn)))}] {line} ({time.time() - begin:.1f} s)"


def reduced(drawn, seed, error, place, tools):
    from steps import reduce

    drawn, error = reduce.reduce(drawn, seed, error, place, tools)
    line = f"--seeds {seed}:{seed + 1} --set " + " ".join(f"{name}={value}" for name, value in drawn.items())
    (place / "reduced.txt").write_text(f"{line}\n{error}\n")
    return f"reduced: [{choices.short(vars(choices.settle(drawn)))}] {error}"


def count(number):
    """Prints how often each option is drawn, without running anything."""
    seen = collections.defaultdict(collections.Counter)
    for seed in range(number):
        for name, value in vars(choices.settle(choices.draw(seed))).items():
            seen[name][value] += 1
    missing = []
    for name, (options, _) in choices.CHOICES.items():
        print(f"{name}: " + ", ".join(f"{option} {seen[name][option]}" for option in options))
        missing += [f"{name}={option}" for option in options if not seen[name][option]]
    print(f"{len(missing)} never drawn{': ' if missing else ''}{', '.join(missing)}")
    return bool(missing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fp8_run", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", default="0:20", help="FROM:TO, or several by commas")
    parser.add_argument("--set", nargs="*", default=[], metavar="CHOICE=OPTION")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="keep the files of draws that pass")
    parser.add_argument("--no-reduce", action="store_true")
    parser.add_argument("--pairs", action="store_true", help="check only which result replaces which argument, which is quick")
    parser.add_argument("--none", action="store_true", help="check only 1.: that --recipe none computes JAX's state")
    parser.add_argument("--recipes", type=int, default=0, metavar="N", help="check N random recipes for each step instead of presets")
    parser.add_argument("--ranks", metavar="LAUNCHER", help="check two ranks, which this mpirun starts, instead of presets")
    parser.add_argument("--timeout", type=int, default=180, metavar="S", help="most seconds for a run of a program; sanitizers need more (default: 180)")
    parser.add_argument("--self-check", action="store_true", help="check the generator instead: see steps/soundness.py")
    parser.add_argument("--count", type=int, help="only count how often each option is drawn")
    parser.add_argument(
        "--also", action="append", default=[], metavar="OPTIONS", help="more draws in the same processes, with their own --seeds, --set, --pairs, --none or --self-check"
    )
    args = parser.parse_args()
    if args.count:
        sys.exit(count(args.count))

    found = shutil.which(args.fp8_run) or str(args.fp8_run)
    args.folder.mkdir(parents=True, exist_ok=True)
    draws = []
    for number, group in enumerate([args, *(parser.parse_args([str(found), str(args.folder), *shlex.split(options)]) for options in args.also)]):
        tools = {
            "run": found,
            "opt": str(pathlib.Path(found).parent / "fp8-opt"),
            "pairs": group.pairs,
            "none": group.none,
            "recipes": group.recipes,
            "ranks": group.ranks,
            "timeout": args.timeout,
            "self": group.self_check,
        }
        place = args.folder.resolve() / f"also-{number}" if number else args.folder.resolve()
        place.mkdir(exist_ok=True)
        draws += [(seed, options_of(group.set), place, tools, args.keep, not args.no_reduce) for seed in seeds_of(group.seeds)]
    failed, ambiguous, unsupported, diverges, begin = [], 0, 0, 0, time.time()
    for part in range(0, len(draws), PART * args.jobs):
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(args.jobs, mp_context=context) as pool:
            for done in concurrent.futures.as_completed([pool.submit(one, *draw) for draw in draws[part : part + PART * args.jobs]]):
                seed, kind, line = done.result()
                print(line, flush=True)
                ambiguous += "ambiguous " in line and not kind
                unsupported += "-unsupported" in line
                diverges += "diverges in JAX" in line
                if kind:
                    failed.append((seed, kind))
    kinds = collections.Counter(kind for _, kind in failed)
    print(
        f"{len(draws) - len(failed)} ok, {len(failed)} failed, {ambiguous} ambiguous without names, {unsupported} unsupported, {diverges} diverge in JAX ({time.time() - begin:.0f} s)"
    )
    if failed:
        print(f"failed: {dict(kinds)}, seeds {sorted(seed for seed, _ in failed)}")
        sys.exit(1)


if __name__ == "__main__":
    main()
