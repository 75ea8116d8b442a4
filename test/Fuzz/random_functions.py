#!/usr/bin/env python3
"""Random JAX functions, compiled by fp8-run and compared with JAX.

    random_functions.py --fp8-run build/bin/fp8-run --seeds 0:500
    random_functions.py --fp8-run build/bin/fp8-run --seeds 0:200 --steps-only
    random_functions.py --fp8-run build/bin/fp8-run --seeds 17 --show

A case is a seed: a DAG of JAX operations with inputs, printed as Python
source (`--show`). The reference is the same source in float64; JAX's own float32
result and a perturbed evaluation tell how much float32 arithmetic may change.
Results of 1 and 2 threads must be bitwise equal. Every fourth
seed (all with --steps-only) is a training step whose state is updated in place:
by shifted, reversed or transposed reads of itself, swapped with another state, or
read after it is written; three steps run and the checkpoint is compared.

A failing case is reduced (unless --no-reduce): as many operations as possible
are replaced by inputs. The result is printed and kept in --keep DIR. By hand,
run some hundreds of seeds with --jobs 2, and large cases alone with
--seeds 5000:5500:5; CI runs the few cases of
random-functions.test.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor

os.environ.setdefault("JAX_PLATFORMS", "cpu")
from functions.comparison import Mismatch, check
from functions.generator import Generator
from functions.program import prune
from functions.reduction import reduce_case


def run_seed(job):
    seed, options = job
    step = options.steps_only or (seed % 4 == 3 and not options.functions_only)
    program = prune(Generator(seed, step).generate())
    if options.show:
        print(program.source())
    with tempfile.TemporaryDirectory() as directory:

        def failure(candidate):
            try:
                check(candidate, options.fp8_run, directory)
            except Mismatch as mismatch:
                return str(mismatch)
            except subprocess.TimeoutExpired:
                return "does not end within 300 s"
            return None

        try:
            message = failure(program)
        except Exception as error:  # a case that JAX itself rejects
            return seed, "invalid", f"{type(error).__name__}: {error}"[:300]
        if message is None:
            return seed, "ok", ""
        if options.reduce:
            kind = message.split(":")[0][:12]

            def fails(candidate):
                try:
                    found = failure(candidate)
                except Exception:
                    return False
                return found is not None and found[:12].startswith(kind[:8])

            program = reduce_case(program, fails)
            message = failure(program) or message
            if options.keep:
                folder = os.path.join(options.keep, str(seed))
                subprocess.run(["rm", "-rf", folder])
                subprocess.run(["cp", "-r", directory, folder])
        shapes = {n: (a.dtype.name, a.shape) for n, a in program.inputs.items()}
        states = f"states {program.states}\n" if program.states else ""
        return seed, "FAIL", f"{message}\n{shapes}\n{states}{program.source()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fp8-run", required=True, type=os.path.abspath)
    parser.add_argument("--seeds", default="0:100", help="N, FROM:TO or FROM:TO:STEP")
    parser.add_argument("--steps-only", action="store_true")
    parser.add_argument("--functions-only", action="store_true")
    parser.add_argument("--show", action="store_true", help="print the source")
    parser.add_argument("--no-reduce", dest="reduce", action="store_false")
    parser.add_argument("--keep", type=os.path.abspath, help="folder for failing cases")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    bounds = [int(bound) for bound in options.seeds.split(":")]
    seeds = range(*bounds) if len(bounds) > 1 else bounds
    counts = {"ok": 0, "invalid": 0, "FAIL": 0}
    jobs = [(seed, options) for seed in seeds]
    if options.jobs == 1:
        results = map(run_seed, jobs)
    else:
        results = ProcessPoolExecutor(options.jobs).map(run_seed, jobs)
    for seed, verdict, text in results:
        counts[verdict] += 1
        if verdict != "ok":
            print(f"seed {seed}: {verdict}: {text}", flush=True)
    print(f"{counts['ok']} ok, {counts['FAIL']} failed, {counts['invalid']} invalid")
    return 1 if counts["FAIL"] or counts["invalid"] else 0


if __name__ == "__main__":
    sys.exit(main())
