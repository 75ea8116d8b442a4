"""Runs the passes of the fp8 stage one by one, each on the text that the previous one
printed, and compares the result with the pipeline's. Usage:
passes.py FP8_OPT TEST_DIRECTORY_OF_THE_PASSES OUTPUT_DIRECTORY"""

import pathlib
import re
import subprocess
import sys

OPT, TESTS, OUT = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
STEPS = {
    "mlp": (TESTS / "Inputs/mlp.mlir", []),
    "gated-scan": (TESTS / "fp8-save-activations/Inputs/gated_scan.mlir", ["--fp8-import"]),
    "micro-batches": (TESTS / "fp8-store-state/Inputs/micro_batches.mlir", ["--fp8-import"]),
}
# Recipes that treat state and saved values differently, which matters in loops.
IN_LOOPS = ["coat", "delayed", "fp8_lm", "scaling_fp8"]
SETTINGS = ["set=optimizer.min_elements=1", "set=compute.saved=bf16", "set=gradients.format=f8E5M2", "set=rules=[]"]


def opt(source, *options):
    run = subprocess.run([OPT, source, *options], capture_output=True, text=True)
    assert run.returncode == 0, f"{source} {options}: {run.stderr}"
    return run.stdout


def passes_of(pipeline):
    """Returns the options of each pass in a pipeline, as --dump-pass-pipeline prints it."""
    text = re.fullmatch(r"builtin\.module\((.*)\)", pipeline.strip(), re.S)[1]
    parts, depth, begin = [], 0, 0
    for i, letter in enumerate(text + ","):
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and not depth:
            parts.append(text[begin:i].strip())
            begin = i + 1
    return [f"--pass-pipeline=builtin.module({part})" for part in parts]


def dump(options, source):
    run = subprocess.run([OPT, source, "--dump-pass-pipeline", "-o", "/dev/null", *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return re.search(r"^Pass Manager with .*?:\n(builtin.*)", run.stderr, re.M | re.S)[1]


def check(name, recipe, source):
    report = OUT / f"{name}.{recipe}.json"
    options = [f"--fp8-quantize=recipe={recipe} {' '.join(SETTINGS)} report={report}"]
    whole = opt(source, *options)
    reported = report.read_text()
    report.unlink()
    text = OUT / f"{name}.mlir"
    current = source
    for single in passes_of(dump(options, source)):
        # The report has the locations of dots.
        text.write_text(opt(current, single, "--mlir-print-debuginfo"))
        current = text
    assert opt(text) == whole, f"{name}, {recipe}: another module"
    assert report.read_text() == reported, f"{name}, {recipe}: another report"


recipes = sorted(path.stem for path in (TESTS / "../../../../recipes").glob("*.yaml"))
for name, (source, stage) in STEPS.items():
    imported = OUT / f"{name}.imported.mlir"
    imported.write_text(opt(source, *stage, "--mlir-print-debuginfo"))
    for recipe in recipes if name == "mlp" else IN_LOOPS:
        check(name, recipe, imported)
print(f"{len(recipes)} recipes")
