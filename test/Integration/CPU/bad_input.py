"""Whatever is wrong with the input, fp8-run prints one clear message and no stack
trace, exits with a non-zero code, and loses no data.

    python bad_input.py FP8_RUN FOLDER [CASE...]
"""

import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import time

import fp8_testing as t

case = t.Cases()


class Fixture:
    """A tiny exported model, a text, and the path of fp8-run."""

    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, folder
        folder.mkdir(parents=True, exist_ok=True)
        t.export_model(folder / "model", **t.TINY)
        self.step = folder / "model" / "step.mlir"
        self.init = folder / "model" / "init.mlir"
        self.text = t.write_text(folder / "text.txt")

    def path(self, name):
        return self.folder / name

    def command(self, out, **changes):
        options = {"step": self.step, "init": self.init, "data": self.text, "recipe": "tensorwise", "steps": 3}
        options.update(changes)
        command = [self.fp8_run, options.pop("step")]
        for name, value in options.items():
            if value is True:
                command.append(f"--{name.replace('_', '-')}")
            elif value is not None:
                command += [f"--{name.replace('_', '-')}", str(value)]
        return command + ["--out", str(self.folder / out)]

    def fails(self, *patterns, out="out", **changes):
        """Runs fp8-run and expects one error that matches every pattern."""
        result = t.run(self.command(out, **changes), check=False)
        check_failure(result, *patterns)
        return result

    def works(self, out="out", **changes):
        return t.run(self.command(out, **changes))


def check_failure(result, *patterns):
    everything = result.stdout + result.stderr
    shown = f"\n--- exit code {result.returncode}, stderr:\n{result.stderr[-3000:]}\n--- stdout:\n{result.stdout[-1500:]}"
    assert result.returncode > 0, "expected a positive exit code" + shown
    for trace in ("Stack dump", "PLEASE submit", "terminate called", "Assertion", "Sanitizer", "LLVM ERROR"):
        assert trace not in everything, f"expected no {trace!r}" + shown
    errors = re.findall(r"\berror:", everything)
    assert len(errors) == 1, f"expected one error but got {len(errors)}" + shown
    for pattern in patterns:
        assert re.search(pattern, result.stderr, re.I | re.S), f"expected {pattern!r} in stderr" + shown


def wait_for_rows(process, log):
    """Waits until a run has logged some steps."""
    deadline = time.time() + 120
    while time.time() < deadline and process.poll() is None:
        if log.exists() and log.read_text().count("\n") > 5:
            break
        time.sleep(0.1)
    assert process.poll() is None, process.communicate()


# ----------------------------------------------------------------- modules


@case
def malformed_mlir(f):
    bad = f.path("malformed.mlir")
    bad.write_text("func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n  return %nope : tensor<4xf32>\n}\n")
    f.fails(r"malformed\.mlir:2:\d+", step=bad)


@case
def not_mlir_at_all(f):
    f.fails(r"text\.txt:1:\d+", step=f.text)


@case
def missing_module(f):
    f.fails(r"no-such\.mlir", r"no such file", step=f.path("no-such.mlir"))
    f.fails(r"no-such\.mlir", r"no such file", step=f.path("no-such.mlir"), steps=None)


@case
def missing_files_are_noticed_before_the_compilation(f):
    name = f.path("no-such")
    for option in ({"init": f"{name}.mlir"}, {"init": f"{name}.safetensors"}, {"eval": f"{name}.mlir"}, {"data": name},
                   {"data": None, "batch": f"tokens={name}.npy"}, {"resume": True, "out": "no-such"}):  # fmt: skip
        result = f.fails(r"no-such", r"no such file|no checkpoint to resume from", no_cache=True, **option)
        assert "compiled" not in result.stdout, result.stdout


@case
def unsupported_op(f):
    bad = f.path("unsupported.mlir")
    bad.write_text(
        'func.func public @main(%arg0: tensor<4x4xf32> loc("x")) -> tensor<4x4xf32> {\n'
        '  %0 = "stablehlo.cholesky"(%arg0) : (tensor<4x4xf32>) -> tensor<4x4xf32> loc("model.py":7:3)\n'
        "  return %0 : tensor<4x4xf32>\n}\n"
    )
    f.fails(r"stablehlo\.cholesky", r"model\.py:7:3|unsupported\.mlir:2", r"StableHLOSubset\.md", step=bad)


@case
def step_without_a_loss(f):
    bad = f.path("lossless.mlir")
    bad.write_text(
        """func.func public @main(%arg0: tensor<4xf32> loc("p['w']"), %arg1: tensor<4xf32> loc("x"))
    -> (tensor<4xf32> {jax.result_info = "result[0]['w']"}) {
  %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
    )
    f.fails(r"\bloss\b", step=bad)


# ----------------------------------------------------------------- recipes


@case
def wrong_recipe_name(f):
    f.fails(r"tensorwize", r"tensorwise", recipe="tensorwize")


@case
def wrong_recipe_key(f):
    bad = f.path("bad.yaml")
    bad.write_text("name: bad\nforwards:\n  activation: {format: f8E4M3FN, tile: tensor, scale: exact, scaling: current}\n")
    f.fails(r"bad\.yaml:2:\d+", r"forwards", r"\bforward\b", recipe=bad)


@case
def wrong_recipe_value(f):
    bad = f.path("value.yaml")
    text = (t.ROOT / "recipes" / "tensorwise.yaml").read_text().replace("f8E5M2", "f8E5M3", 1)
    bad.write_text(text)
    f.fails(r"value\.yaml:\d+:\d+", r"f8E5M3", r"f8E5M2", recipe=bad)


# -------------------------------------------------------------------- data


@case
def missing_data(f):
    f.fails(r"no-such\.txt", r"no such file", data=f.path("no-such.txt"))


@case
def empty_data(f):
    empty = f.path("empty.txt")
    empty.write_text("")
    f.fails(r"empty\.txt", r"empty", data=empty)


@case
def short_data(f):
    short = f.path("short.txt")
    short.write_text("short")
    f.fails(r"17|16", data=short)


@case
def no_data(f):
    f.fails(r"--data", data=None, out="no-data")


@case
def tokens_outside_the_vocabulary(f):
    t.export_model(f.path("ascii"), **{**t.TINY, "vocab": 120})
    f.text.with_name("z.txt").write_text("zebra \x7f " * 500)
    f.fails(r"120", r"122|127", step=f.path("ascii") / "step.mlir", init=f.path("ascii") / "init.mlir", data=f.path("z.txt"))


# ------------------------------------------------------------- safetensors


def checkpoint(f):
    """Returns the checkpoint of a short run, which is made once."""
    path = f.path("good") / "checkpoint-3.safetensors"
    if not path.exists():
        f.works(out="good")
    assert path.exists(), f"expected {path} but got {os.listdir(path.parent)}"
    return path.read_bytes()


@case
def truncated_safetensors(f):
    data = checkpoint(f)
    for name, size in (("cut-data", len(data) - 100), ("cut-header", 50), ("cut-length", 5), ("cut-all", 0)):
        path = f.path(f"{name}.safetensors")
        path.write_bytes(data[:size])
        f.fails(rf"{name}\.safetensors", init=path)


@case
def lying_safetensors(f):
    data = checkpoint(f)
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    name = next(n for n in header if n != "__metadata__" and header[n]["shape"])

    def write(path, header, length=None):
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data[8 + len(json.dumps(header)) :])

    def changed(**fields):
        return {**header, name: {**header[name], **fields}}

    begin, end = header[name]["data_offsets"]
    lies = {
        "shape": changed(shape=[d * 2 for d in header[name]["shape"]]),
        "negative": changed(shape=[-1] + header[name]["shape"][1:]),
        "huge": changed(shape=[2**62, 2**62]),
        "offsets": changed(data_offsets=[begin, end + 2**40]),
        "backwards": changed(data_offsets=[end, begin]),
        "dtype": changed(dtype="F33"),
    }
    for kind, lie in lies.items():
        path = f.path(f"lie-{kind}.safetensors")
        write(path, lie)
        f.fails(rf"lie-{kind}\.safetensors", init=path)
    path = f.path("lie-length.safetensors")
    write(path, header, length=2**60)
    f.fails(r"lie-length\.safetensors", init=path)
    path = f.path("lie-json.safetensors")
    path.write_bytes(struct.pack("<Q", 9) + b'{"a": [}}' + data[-64:])
    f.fails(r"lie-json\.safetensors", init=path)


@case
def misshaped_initial_values(f):
    t.export_model(f.path("wide"), **{**t.TINY, "width": 64})
    path = f.path("init.safetensors")
    path.write_bytes(checkpoint(f))
    # Missing, extra and mis-shaped entries are listed together.
    result = f.fails(r"embed", step=f.path("wide") / "step.mlir", init=path)
    assert result.stderr.count("embed") >= 1 and "head" in result.stderr, result.stderr


@case
def checkpoint_of_another_model(f):
    f.works(out="resume")
    t.export_model(f.path("wide"), **{**t.TINY, "width": 64})
    before = sorted(os.listdir(f.path("resume")))
    f.fails(r"checkpoint of another model", out="resume", steps=6, resume=True,
            step=f.path("wide") / "step.mlir", init=f.path("wide") / "init.mlir")  # fmt: skip
    assert sorted(os.listdir(f.path("resume"))) == before, "the earlier run's files changed"


@case
def output_of_an_earlier_run_stays(f):
    f.works(out="twice")
    before = (f.path("twice") / "checkpoint-3.safetensors").read_bytes()
    result = f.fails(r"earlier run", r"resume", out="twice", no_cache=True)
    assert "compiled" not in result.stdout, result.stdout
    assert (f.path("twice") / "checkpoint-3.safetensors").read_bytes() == before


@case
def own_recipe_in_the_directory(f):
    """The run writes the effective one to this name."""
    own = f.path("own") / "recipe.yaml"
    own.parent.mkdir()
    own.write_text("# mine\n" + (t.ROOT / "recipes" / "tensorwise.yaml").read_text())
    before = own.read_bytes()
    f.fails(r"expected no '.*own/recipe\.yaml', which the run would replace", out="own", recipe=own)
    assert own.read_bytes() == before
    # That of an earlier run says the same.
    f.works(out="own", recipe=own, overwrite=True)
    f.works(out="own", recipe=own, steps=4, resume=True)


# ---------------------------------------------------------------- training


@case
def nan_loss(f):
    """A large learning rate makes the run diverge; the last good checkpoint stays."""
    t.export_model(f.path("hot"), **{**t.TINY, "learning_rate": 1e38, "warmup_steps": 6})
    f.fails(r"step \d+: ", r"not finite|first non-finite value: \S+ is ", r"last checkpoint is", out="nan", steps=20, checkpoint_every=1, recipe="none",
            step=f.path("hot") / "step.mlir", init=f.path("hot") / "init.mlir")  # fmt: skip
    left = sorted(f.path("nan").glob("checkpoint-*.safetensors"), key=lambda p: int(p.stem.split("-")[1]))
    assert left, "expected the last good checkpoint to stay"
    import numpy as np
    from safetensors.numpy import load_file

    for name, value in load_file(left[-1]).items():
        assert np.isfinite(value).all(), f"{left[-1].name}: {name} is not finite"


@case
def checkpoint_of_nan(f):
    """fp8-run writes no such checkpoint, but another program may."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    path = f.path("poisoned") / "checkpoint-3.safetensors"
    path.parent.mkdir()
    path.write_bytes(checkpoint(f))
    with safe_open(path, "numpy") as file:
        tensors, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()
    name = next(name for name, value in tensors.items() if value.dtype == "float32" and value.ndim == 2)
    tensors[name][:] = float("nan")
    save_file(tensors, path, metadata)
    result = f.fails(r"step \d: .* is -?nan", out="poisoned", steps=6, resume=True)
    expected = rf"warning: \S+checkpoint-3\.safetensors is not finite: {re.escape(name)}\[0, 0\] is -?nan"
    assert re.search(expected, result.stderr), result.stderr
    f.fails(rf"^warning: the initial values are not finite: {re.escape(name)}\[0, 0\] is -?nan\n", r"step \d: .* is -?nan", init=path)


@case
def ctrl_c(f):
    """An interrupt lets the step finish and writes the checkpoint; a resumed run ends where an
    uninterrupted run does."""
    command = [str(part) for part in f.command("ctrl-c", steps=100000)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    log = f.path("ctrl-c") / "log.csv"
    wait_for_rows(process, log)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode > 0, f"expected a positive exit code but got {process.returncode}\n{stdout}{stderr}"
    assert "Stack dump" not in stderr, stderr
    saved = list(f.path("ctrl-c").glob("checkpoint-*.safetensors"))
    assert len(saved) == 1, f"expected one checkpoint but got {saved}\n{stderr}"
    step = int(saved[0].stem.split("-")[1])
    more = step + 3
    f.works(out="ctrl-c", steps=more, resume=True)
    f.works(out="straight", steps=more)
    a, b = (t.losses(t.read_log(f.path(out))) for out in ("ctrl-c", "straight"))
    assert a == b, f"{a}\n{b}"


# ------------------------------------------------------------ command line


@case
def resume_that_ends_before_the_checkpoint(f):
    f.works(out="before")
    f.fails(r"at least 3 steps", r"but got 2", out="before", steps=2, resume=True)


@case
def other_recipe_on_resume(f):
    """Another recipe is allowed on resume, but gives a warning, even with --quiet."""
    f.works(out="recipe")
    result = f.works(out="recipe", steps=4, resume=True, recipe="none", quiet=True)
    assert re.fullmatch(r"warning: module or recipe .*\n", result.stderr), result.stderr


@case
def verdicts_of_an_earlier_run_stay(f):
    f.works(out="kept")
    before = (f.path("kept") / "verdicts.json").read_bytes()
    f.fails(r"earlier run", out="kept", recipe="none")
    assert (f.path("kept") / "verdicts.json").read_bytes() == before


@case
def evaluation_as_step(f):
    f.fails(r"no argument is replaced by a result", step=f.path("model") / "eval.mlir")


@case
def initializer_as_evaluation(f):
    f.fails(r"evaluation .*expected a loss", eval=f.init)


@case
def numbers_out_of_range(f):
    f.fails(r"--threads .*0 to 4096 but got -1", threads=-1)
    f.fails(r"--eval-every .*but got -1", eval_every=-1)
    f.fails(r"expected --eval EVAL\.mlir with --eval-every", eval_every=5)
    f.fails(r"--holdout .*but got 1\.5", holdout=1.5)
    f.fails(r"--rank-timeout .*but got -1", rank_timeout=-1)
    f.fails(r"--steps .*but got 0", steps=0)


@case
def numbers_that_are_none(f):
    """The message is fp8's own, in one line."""
    for option, value in (("steps", "abc"), ("seed", -1), ("threads", 1.5), ("holdout", "x"), ("eval_every", "")):
        result = f.fails(rf"expected --{option.replace('_', '-')} to be a .*number.* but got '{value}'", **{option: value})
        assert result.stderr.count("\n") == 1, result.stderr


@case
def options_that_need_others(f):
    f.fails(r"--eval EVAL.mlir with --eval-data", eval_data=f.text)
    f.fails(r"both", resume=True, overwrite=True)
    f.fails(r"--batch KEY=VALUE but got 'foo'", batch="foo")
    f.fails(r"expected --target nvptx:GPU with --gpu-image", gpu_image="ptx")
    f.fails(r"expected --data-parallel with --loss-reduction", loss_reduction="mean")
    f.fails(r"expected --entry with --inputs", inputs=f.text)
    f.fails(r"expected no --data with --entry", entry="main", outputs=f.folder / "outputs.safetensors")
    f.fails(r"expected no --outputs with --emit-package", entry="main", outputs=f.folder / "o.safetensors", emit_package=f.path("p"), data=None, steps=None)
    f.fails(r"expected data for the batch argument 'tokens' \(fp8-run: --data FILE... or --batch tokens=FILE\)", data=None, out="no-data")
    f.fails(r"expected --data FILE.* with --holdout", batch="x=x.npy", data=None, holdout=0.2)


@case
def options_of_steps_with_a_function(f):
    """A function that is run once has no state, no evaluation, no seed and no ranks."""
    once = [f.fp8_run, f.step, "--entry", "main", "--outputs", f.path("once.safetensors")]
    for option in ("init=x", "eval=x", "batch=x=x", "eval-batch=x=x", "resume", "out=x", "seed=3", "trace", "data-parallel", "global-batch=2", "zero=1", "global-amax",
                   "export-weights=x", "export-format=f32"):  # fmt: skip
        name = option.split("=")[0]
        check_failure(t.run([*once, f"--{option}"], check=False), f"expected no --{name} with --entry")
    # Where a step is explained or emitted, --entry says which one it is.
    t.run([f.fp8_run, f.step, "--entry", "main", "--init", f.init, "--explain-signature"])


@case
def texts_that_are_empty(f):
    for option in ("init", "eval", "loss", "loss-reduction", "entry", "inputs", "outputs", "dump-ir", "export-weights", "emit-package"):
        f.fails(f"expected --{option} \\S+ but got ''", **{option: ""})


@case
def archives_of_arrays(f):
    """An .npz is neither text nor a safetensors file."""
    import numpy as np

    np.savez(f.path("a.npz"), x=np.zeros(4096, np.int32))
    f.fails(r"a\.npz.* expected text, .*but got \.npz, which is not supported", data=f.path("a.npz"))
    f.fails(r"a\.npz.* such as \.npz, which is not supported", init=f.path("a.npz"))


@case
def directory_that_is_a_link_to_nothing(f):
    f.path("dangling").symlink_to("nowhere")
    f.fails(r"cannot create directory '.*dangling': it is a link to nothing", out="dangling")


@case
def targets_that_are_none(f):
    """Also on a machine without a GPU, where a run would go to the CPU."""
    f.fails("expected an NVIDIA GPU of sm_89, .* but got 'sm_99'", target="nvptx:sm_99")
    f.fails("expected 'cublaslt' or .* but got 'fast'", target="nvptx:sm_90a,fast")


@case
def step_before_after_and_missing(f):
    """The step may follow a list of files."""
    options = ["--init", f.init, "--steps", 1, "--out", f.path("order"), "--overwrite"]
    t.run([f.fp8_run, *options, "--data", f.text, f.step])
    t.run([f.fp8_run, "--overwrite", "--data", f.text, "--init", f.init, "--steps", 1, "--out", f.path("order"), f.step])
    check_failure(t.run([f.fp8_run, *options, "--data", f.text], check=False), r"expected STEP\.mlir")
    check_failure(t.run([f.fp8_run, f.step, f.init, *options], check=False), r"expected one STEP\.mlir")


@case
def step_from_a_pipe(f):
    """A pipe can be read only once, yet the fingerprint of the step is needed too."""
    t.run(f.command("pipe", step="/dev/stdin"), input=f.step.read_text())
    result = f.works(out="pipe", steps=4, resume=True)
    assert "warning" not in result.stderr, result.stderr


@case
def directory_of_the_ir_is_made(f):
    f.works(out="dumped", steps=1, dump_ir=f.path("ir") / "deep")
    assert (f.path("ir") / "deep" / "step-fp8.mlir").exists()


@case
def names_with_percent_signs(f):
    """LLVM takes each of them for a random digit in the name of a temporary file."""
    f.path("5%s").mkdir()
    f.works(out="5%s/run", steps=1, dump_ir=f.path("5%s") / "ir%", emit_package=f.path("5%s") / "%p")
    assert (f.path("5%s") / "%p" / "manifest.json").exists()
    left = sorted(path.name for path in f.path("5%s").iterdir())
    assert left == ["%p", "ir%"], left


@case
def no_place_for_temporary_files(f):
    nowhere = {**os.environ, "TMPDIR": str(f.path("nowhere"))}
    for option in ({"emit_package": f.path("temporary")}, {"report": True}):
        result = subprocess.run([*map(str, f.command("temporary", steps=1, **option))], capture_output=True, text=True, env=nowhere)
        check_failure(result, r"temporary \w+ in '.*nowhere' \(set TMPDIR\): No such file or directory")
    percent = f.path("100%s")
    percent.mkdir()
    t.run(f.command("temporary", emit_package=f.path("temporary-package")), env={**os.environ, "TMPDIR": str(percent)})
    assert not list(percent.iterdir()), list(percent.iterdir())


def limited(command, blocks):
    """Runs a command that may only write files of so many KiB: as on a full disk."""
    return t.run(["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", *command], check=False)


@case
def files_that_do_not_fit(f):
    """What is written in part is removed, and the program that cannot write says so."""
    dumped = limited(f.command("limited", dump_ir=f.path("limited-ir")), 1)
    check_failure(dumped, "cannot write '.*limited-ir/.*mlir': File too large")
    assert not list(f.path("limited-ir").iterdir()), list(f.path("limited-ir").iterdir())
    package = limited(f.command("limited", emit_package=f.path("limited-package")), 8)
    check_failure(package, "cannot write '.*': File too large")
    with open("/dev/full", "w") as full:
        for command in (f.command("limited", print_recipe=True), f.command("limited", explain_signature=True), [pathlib.Path(f.fp8_run).with_name("fp8-opt"), f.step]):
            result = subprocess.run([*map(str, command)], stdout=full, stderr=subprocess.PIPE, text=True)
            assert result.returncode == 1 and "cannot write" in result.stderr and "LLVM ERROR" not in result.stderr, result


@case
def two_runs_in_one_directory(f):
    """The second one ends before it changes a file."""
    command = f.command("shared", steps=100000)
    first = subprocess.Popen([*map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        log = f.path("shared") / "log.csv"
        wait_for_rows(first, log)
        f.fails("another run writes to '.*shared'", out="shared", overwrite=True)
        f.fails("another run writes to '.*shared'", out="shared", resume=True)
        assert first.poll() is None, first.stderr.read()
    finally:
        first.kill()
        first.wait()
    f.works(out="shared", overwrite=True)


@case
def narrow_sums_across_tiles(f):
    """A narrow partial sum ends where a scale changes, whatever the recipe says of its length."""
    narrow = {"recipe": "mxfp8", "set": "forward.accumulator.bits=14"}
    f.works(out="narrow", steps=1, **narrow)
    text = t.run([f.fp8_run, "--print-recipe", "--recipe", "mxfp8", "--set", "forward.accumulator={bits: 14, promote: 64}"], check=False)
    check_failure(text, "expected 'forward.accumulator' to have a 'promote' that divides the 32 elements of a tile .* but got 64")


@case
def reduction_of_the_loss(f):
    """It is said of the step, not of its initializer and its evaluation."""
    parallel = {"data_parallel": True, "eval": f.path("model") / "eval.mlir", "steps": 1}
    f.works(out="reduction", loss_reduction="mean", **parallel)
    f.fails(r"expected loss-reduction=mean, because the loss", loss_reduction="sum", **parallel)


@case
def unwanted_fallback(f):
    f.works(out="fallback", fail_on_fallback=True)


@case
def unknown_option(f):
    result = t.run(f.command("out", stepz=3), check=False)
    assert result.returncode > 0 and "stepz" in result.stderr and "--steps" in result.stderr, result.stderr


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    fixture = Fixture(fp8_run, folder)
    t.run_cases(case, sys.argv[3:], fixture, before=lambda: shutil.rmtree(folder / "out", ignore_errors=True))


main()
