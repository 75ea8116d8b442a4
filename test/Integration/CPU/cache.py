"""The cache on disk: a second start compiles nothing, another step compiles only the kernels that
it does not share, and results do not change, whatever happens to the cache."""

import os
import pathlib
import re
import subprocess
import sys

import fp8_testing as t

RUN, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
CACHE = FOLDER / "cache"
TEXT = FOLDER / "text.txt"
STEPS = 3


def command(model, out, *options):
    return [RUN, str(FOLDER / model / "step.mlir"), "--init", str(FOLDER / model / "init.mlir"), "--data", str(TEXT), "--steps", str(STEPS), "--threads", "1",
            "--out", str(FOLDER / out), *options]  # fmt: skip


def run(model, out, *options, **environment):
    """Returns the finished process, and how many kernels were compiled for step and init."""
    environment = {**os.environ, "FP8_CACHE_DIR": str(CACHE), **environment}
    result = subprocess.run(command(model, out, *options), capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    compiled = {}
    for line in result.stdout.splitlines():
        if match := re.match(r"(read|compiled) (\w+) .*? of (\d+) kernels", line):
            cached = re.search(r"; (\d+) kernels were in the cache", line)
            compiled[match[2]] = 0 if match[1] == "read" else int(match[3]) - (int(cached[1]) if cached else 0)
    return result, compiled


def state(out):
    return (FOLDER / out / f"checkpoint-{STEPS}.safetensors").read_bytes()


TEXT.write_bytes(b"".join(f.read_bytes() for f in t.fortunes())[:50000])
t.export_model(FOLDER / "small", **t.TINY)
t.export_model(FOLDER / "deeper", **{**t.TINY, "layers": 3})

# Without a cache, with an empty one, with a full one, and with a full one again.
_, compiled = run("small", "without", "--no-cache", "--recipe", "tensorwise")
assert not CACHE.exists() and compiled["step"] > 20 and compiled["init"] > 2, compiled
kernels = compiled["step"]
for out, expected in (("cold", compiled["init"]), ("warm", 0), ("again", 0)):
    _, compiled = run("small", out, "--recipe", "tensorwise")
    assert compiled["init"] == expected and (compiled["step"] == 0) == (out != "cold"), (out, compiled)
    assert state(out) == state("without"), out
    assert (FOLDER / out / "verdicts.json").read_bytes() == (FOLDER / "without" / "verdicts.json").read_bytes()

# --dump-ir writes the stages even when the step comes from the cache.
_, compiled = run("small", "dumped", "--recipe", "tensorwise", "--dump-ir", str(FOLDER / "ir"))
assert compiled["step"] == 0 and (FOLDER / "ir" / "step-llvm.mlir").exists(), compiled

# Another step shares kernels with this one: most of them if it has more layers of the same kind,
# and those outside of dots if it has another recipe.
_, compiled = run("deeper", "deeper", "--recipe", "tensorwise")
assert compiled["step"] < kernels / 3, (compiled, kernels)
run("deeper", "deeper-without", "--no-cache", "--recipe", "tensorwise")
assert state("deeper") == state("deeper-without")
_, compiled = run("small", "rowwise", "--recipe", "rowwise")
assert 0 < compiled["step"] < kernels, (compiled, kernels)
run("small", "rowwise-without", "--no-cache", "--recipe", "rowwise")
assert state("rowwise") == state("rowwise-without")

# A step with a changed option or an edited recipe is another step.
recipe = FOLDER / "own.yaml"
recipe.write_text("name: own\nforward:\n  activation: {format: f8E4M3FN, tile: tensor}\n  weight: {format: f8E4M3FN, tile: tensor}\n")
own = ["--recipe", str(recipe)]
run("small", "own", *own)
result, compiled = run("small", "own", *own, "--resume")
assert compiled["step"] == 0 and not result.stderr, result.stderr
recipe.write_text(recipe.read_text().replace("f8E4M3FN, tile: tensor}\n  weight", "f8E5M2, tile: tensor}\n  weight"))
result, compiled = run("small", "own", *own, "--resume")
assert "read step" not in result.stdout
assert re.fullmatch(r"warning: module or recipe are not those of the checkpoint \('recipe own \w+', this is 'recipe own \w+'\): .*\n", result.stderr), result.stderr

# Damaged entries are compiled and written again.
damages = [lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-200] + b"!" + data[-199:], lambda data: b"?" * len(data)]
for first in (0, 1):
    for i, file in enumerate(sorted(CACHE.iterdir())):
        file.write_bytes(damages[(first + i) % len(damages)](file.read_bytes()))
    _, compiled = run("small", "damaged", "--overwrite", "--recipe", "tensorwise")
    assert compiled["step"] == kernels and state("damaged") == state("without"), compiled
    _, compiled = run("small", "damaged", "--overwrite", "--recipe", "tensorwise")
    assert compiled["step"] == 0 and state("damaged") == state("without"), compiled

# Many processes fill one cache at the same time.
environment = {**os.environ, "FP8_CACHE_DIR": str(FOLDER / "shared")}
outs = [f"process-{i}" for i in range(3)]
processes = [subprocess.Popen(command("small", out, "--recipe", "tensorwise", "--quiet"), env=environment) for out in outs]
assert [process.wait() for process in processes] == [0] * 3
assert all(state(out) == state("without") for out in outs)
_, compiled = run("small", "after", "--recipe", "tensorwise", FP8_CACHE_DIR=str(FOLDER / "shared"))
assert compiled == {"init": 0, "step": 0} and state("after") == state("without"), compiled

# The cache stays within its bound; a run goes on without a cache that it cannot write.
run("small", "bounded", "--recipe", "delayed", FP8_CACHE_SIZE="300KB")
assert sum(file.stat().st_size for file in CACHE.iterdir()) <= 300_000
run("small", "read-only", "--recipe", "tensorwise", FP8_CACHE_DIR="/proc/none")
result = subprocess.run(command("small", "size"), capture_output=True, text=True, env={**environment, "FP8_CACHE_SIZE": "huge"})
assert result.returncode == 1 and result.stderr == "fp8-run: error: expected FP8_CACHE_SIZE to be a size like 500MB but got 'huge'\n", result.stderr
