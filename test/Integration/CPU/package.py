"""A package that fp8-run --emit-package writes trains as fp8-run does, bit for bit, with fp8-train,
with a program in C, and in one process with other packages."""

import ctypes
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import fp8_testing as t

RUN, TRAIN, CC = sys.argv[1:4]
SOURCE, BUILD, FOLDER = map(pathlib.Path, sys.argv[4:7])
MODEL = FOLDER / "model"
TEXT = FOLDER / "text.txt"
FILES = [str(MODEL / "step.mlir"), "--init", str(MODEL / "init.mlir"), "--eval", str(MODEL / "eval.mlir")]
RECIPE = ["--recipe", "coat", "--trace", "--export-weights", "unused"]  # the package then also has store, load, export, import and check
RUNNING = ["--data", str(TEXT), "--threads", "2"]


def call(*command, fails=None, **environment):
    """Runs a command and returns its stdout; with `fails` it must fail with that message."""
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**os.environ, **environment})
    if fails is None:
        assert result.returncode == 0, f"{command}: {result.stderr}"
        return result.stdout
    assert result.returncode not in (0, -11, -6, -4), result.returncode
    assert fails in result.stderr and result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def rows(out):
    """Returns the log without the columns that depend on time."""
    return [{key: value for key, value in row.items() if key not in ("seconds", "tokens_per_second")} for row in t.read_log(out)]


def same_run(a, b, checkpoint):
    assert rows(a) == rows(b), (a, b)
    for name in (checkpoint, "verdicts.json", "trace.jsonl"):
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    plans = [json.loads((out / "memory.json").read_text())["plan"] for out in (a, b)]
    assert plans[0] == plans[1]
    assert {f.name for f in a.iterdir()} == {f.name for f in b.iterdir()}


t.export_model(MODEL, **t.TINY)
TEXT.write_bytes(b"".join(f.read_bytes() for f in t.fortunes())[:50000])
package = FOLDER / "package"
print(call(RUN, *FILES, *RECIPE, "--emit-package", package))

# Runs ten steps, resumes, and runs ten more, once with the compiler and once with the package.
jit, packaged = FOLDER / "jit", FOLDER / "packaged"
for steps in (["--steps", "10", "--eval-every", "5"], ["--steps", "20", "--resume", "--export-weights", ""]):
    for out, command in ((jit, [RUN, *FILES, *RECIPE[:3]]), (packaged, [TRAIN, package, "--trace"])):
        steps[-1] = str(out) + "-weights" if steps[-2] == "--export-weights" else steps[-1]
        call(*command, *RUNNING, *steps, "--out", out)
    same_run(jit, packaged, f"checkpoint-{steps[1]}.safetensors")
for name in ("model.safetensors", "export.json"):
    assert (FOLDER / "jit-weights" / name).read_bytes() == (FOLDER / "packaged-weights" / name).read_bytes(), name

# Each tool resumes the other's run, without a warning.
crossed = FOLDER / "crossed"
call(RUN, *FILES, *RECIPE[:3], *RUNNING, "--steps", "10", "--eval-every", "5", "--out", crossed)
result = subprocess.run([TRAIN, package, "--trace", *RUNNING, "--steps", "20", "--resume", "--out", crossed], capture_output=True, text=True)
assert result.returncode == 0 and result.stderr == "", result.stderr
assert rows(crossed) == rows(jit)

# A package runs on ranks only if it was compiled for them.
call(TRAIN, package, *RUNNING, "--steps", "1", "--out", FOLDER / "ranks", "--data-parallel", fails="expected a step that was compiled for several ranks")
assert not (FOLDER / "ranks").exists()

# Training from a program in C.
program = FOLDER / "train"
call(CC, "-std=c99", "-Wall", "-Werror", f"-I{SOURCE}/include", f"{SOURCE}/examples/c/train.c", "-o", program,
     f"-L{BUILD}/lib", "-lfp8_runtime", f"-Wl,-rpath,{BUILD}/lib")  # fmt: skip
call(program, package, TEXT, FOLDER / "c", 10)
assert t.losses(t.read_log(FOLDER / "c")) == t.losses(t.read_log(jit))[:10]

# Two packages in one process, each with its own step, and their headers in one C file.
other = FOLDER / "other"
call(RUN, *FILES, "--recipe", "none", "--emit-package", other)
both = FOLDER / "both.c"
both.write_text("""#include "package/step.h"
#include "other/step.h"
#include <stdio.h>
int main(int argc, char **argv) {
  fp8_package *packages[2];
  fp8_train_options options[2] = {{0}, {0}};
  const char *files[1] = {argv[1]};
  (void)argc;
  for (int i = 0; i < 2; ++i) {
    if (fp8_package_open(argv[2 + i], &packages[i]) || fp8_package_options(packages[i], &options[i], NULL))
      return 1;
    options[i].data_files = files;
    options[i].num_data_files = 1;
    options[i].steps = 3;
    options[i].quiet = 1;
    options[i].out_dir = argv[4 + i];
  }
  for (int i = 0; i < 2; ++i)
    if (fp8_train(&options[i], NULL))
      return 2;
  fp8_package_close(packages[0]);
  options[1].overwrite = 1;
  if (fp8_train(&options[1], NULL))
    return 3;
  fp8_package_close(packages[1]);
  return OTHER_STEP_ARGUMENT_TOKENS < 0;
}
""")
call(CC, "-std=c99", "-Wall", "-Werror", f"-I{SOURCE}/include", f"-I{FOLDER}", both, "-o", program, f"-L{BUILD}/lib", "-lfp8_runtime", f"-Wl,-rpath,{BUILD}/lib")
call(program, TEXT, package, other, FOLDER / "two-a", FOLDER / "two-b")
call(RUN, *FILES, "--recipe", "none", *RUNNING, "--steps", "3", "--out", FOLDER / "none")
assert t.losses(t.read_log(FOLDER / "two-a")) == t.losses(t.read_log(jit))[:3]
assert t.losses(t.read_log(FOLDER / "two-b")) == t.losses(t.read_log(FOLDER / "none"))

# The library exports one symbol and needs only the C library.
symbols = call("nm", "-D", "--defined-only", package / "package.so").split()
version = re.search(r"#define FP8_ABI_VERSION (\d+)", (SOURCE / "include/fp8-c/Runtime/Status.h").read_text())[1]
assert symbols[2::3] == [f"fp8_package_v{version}"], symbols
needed = [line for line in call("readelf", "-d", package / "package.so").splitlines() if "NEEDED" in line]
assert all("[libc.so.6]" in line or "[libm.so.6]" in line for line in needed), needed

# A package also runs if the runtime's symbols are local to one library, as in Python.
runtime = ctypes.CDLL(BUILD / "lib" / "libfp8_runtime.so")
runtime.fp8_package_function.restype = ctypes.c_void_p
opened, initializer = ctypes.c_void_p(), ctypes.c_void_p()
assert runtime.fp8_package_open(str(package).encode(), ctypes.byref(opened)) == 0
function = ctypes.c_void_p(runtime.fp8_package_function(opened, b"init"))
assert runtime.fp8_step_create(function, 1, ctypes.byref(initializer)) == 0 and runtime.fp8_step_run(initializer) == 0
runtime.fp8_step_destroy(initializer)
runtime.fp8_package_close(opened)

# Each mistake gives a message of one line.
for options, message in (
    ([], "expected --steps N with N > 0"),
    (["--steps", "x"], "expected --steps to be a whole number but got 'x'"),
    (["--nothing"], "unknown command line argument '--nothing' (see --help)"),
    (["--no"], "unknown command line argument '--no' (see --help)"),
    (["--step"], "unknown command line argument '--step' (see --help)"),
    (["--out", ""], "expected --out DIR but got ''"),
    (["--steps"], "for the --steps option: requires a value (see --help)"),
    (["--steps", "1"], "no data for batch argument 'tokens'"),
):
    assert message in call(TRAIN, package, *options, fails=f"fp8-train: error: {message}")
run = ["--data", TEXT, "--steps", "1", "--out", FOLDER / "fails"]
call(TRAIN, other, *run, "--export-weights", FOLDER / "fails", fails="was emitted without --export-weights")
call(TRAIN, FOLDER / "jit", *run, fails="expected a package in")
text = (other / "manifest.json").read_text()
for damaged in (text.replace('"scratch_bytes": ', '"scratch_bytes": 0'), re.sub(r'("scratch_bytes": )\d+', r"\g<1>0", text)):
    (other / "manifest.json").write_text(damaged)
    call(TRAIN, other, *run, fails=f"expected '{other / 'manifest.json'}' to ")
# What says more about a manifest that was written by hand, which has no sum.
manifest = {key: value for key, value in json.loads(text).items() if key != "manifest_crc32"}
(other / "manifest.json").write_text(json.dumps({**manifest, "abi": 99}))
call(TRAIN, other, *run, fails=f"expected a package for version {manifest['abi']} of the runtime but got one for 99")
place = f"'{other / 'manifest.json'}': expected "
(other / "manifest.json").write_text(json.dumps({**manifest, "texts": None}))
call(TRAIN, other, *run, fails=f"{place}'texts' to be a list but got null")
first = manifest["functions"][0]
(other / "manifest.json").write_text(json.dumps({**manifest, "functions": [{**first, "arguments": [{"name": None}]}]}))
call(TRAIN, other, *run, fails=f"{place}'functions[0].arguments[0].name' to be a string but got null")
inputs = [{**argument, "dtype": "F31"} for argument in first["arguments"]]
(other / "manifest.json").write_text(json.dumps({**manifest, "functions": [{**first, "arguments": inputs}]}))
call(TRAIN, other, *run, fails=f"{place}'functions[0].arguments[0].dtype' to be a dtype but got 'F31'")
inputs = [{**argument, "shape": [-1]} for argument in first["arguments"]]
(other / "manifest.json").write_text(json.dumps({**manifest, "functions": [{**first, "arguments": inputs}]}))
call(TRAIN, other, *run, fails=f"'{other / 'manifest.json'}': argument '{inputs[0]['name']}' has no valid type")
(other / "manifest.json").write_text(json.dumps({**manifest, "functions": [{k: v for k, v in first.items() if k != "arena_bytes"}]}))
call(TRAIN, other, *run, fails=f"{place}'functions[0].arena_bytes' but it is missing")
(other / "manifest.json").write_text(json.dumps(manifest))
plan = (other / "memory.json").read_text()
(other / "memory.json").write_text(plan[: len(plan) // 2])
call(TRAIN, other, *run, fails=f"expected '{other / 'memory.json'}' to be JSON but it is not, at byte ")
(other / "memory.json").write_text(plan)
whole = (other / "package.so").read_bytes()
(other / "package.so").write_bytes(whole[: len(whole) // 2])
call(TRAIN, other, *run, fails="bytes but got")
(other / "package.so").write_bytes(whole[:5000] + b"?" + whole[5001:])
call(TRAIN, other, *run, fails="it is damaged")

# What cannot be printed is an error, and nothing that is printed gets into a file of the run.
with open("/dev/full", "w") as full:
    for options in (["--print-recipe"], ["--help"], [*RUNNING, "--steps", "1", "--verdicts", "--out", FOLDER / "full"]):
        result = subprocess.run([TRAIN, str(package), *map(str, options)], stdout=full, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 1 and re.fullmatch("fp8-train: error: cannot write to the standard output.*\n", result.stderr), result
assert (FOLDER / "full" / "checkpoint-1.safetensors").exists()
for tool in ([TRAIN, package], [RUN, *FILES, *RECIPE[:3]]):
    run = [*tool, *RUNNING, "--steps", "3", "--out", FOLDER / "closed", "--overwrite"]
    call("bash", "-c", 'exec "$@" <&- >&-', "bash", *run)
    assert t.losses(t.read_log(FOLDER / "closed")) == t.losses(t.read_log(jit))[:3]
    # The reader of a pipe may end before the run does.
    shutil.rmtree(FOLDER / "closed")
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([*map(str, run)], stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert result.returncode == 1 and "error: cannot write to the standard output" in result.stderr, result
    assert (FOLDER / "closed" / "checkpoint-3.safetensors").exists()

# A linker alone is enough; without any linker an older package stays as it is.
linkers = FOLDER / "linkers"
linkers.mkdir()
(linkers / "ld").symlink_to(shutil.which("ld"))
call(RUN, *FILES, "--recipe", "none", "--emit-package", other, PATH=str(linkers))
call(TRAIN, other, *RUNNING, "--steps", "3", "--out", FOLDER / "linked")
assert rows(FOLDER / "linked") == rows(FOLDER / "none")
(linkers / "ld").unlink()
call(RUN, *FILES, "--emit-package", other, fails="expected a linker on PATH (cc, clang-22, ld.lld or ld) but found none", PATH=str(linkers))
call(TRAIN, other, *RUNNING, "--steps", "3", "--out", FOLDER / "linked", "--overwrite")
assert not list(other.glob("*tmp*")), list(other.iterdir())
# A run's files are not replaced.
call(RUN, *FILES, "--emit-package", FOLDER / "linked", fails="expected another directory for the package than '")
# Nor are a package's.
before = {path.name: path.read_bytes() for path in package.iterdir()}
call(TRAIN, package, *RUNNING, "--steps", "1", "--out", package, "--overwrite", fails="expected another directory for the run than '")
call(TRAIN, package, *RUNNING, "--steps", "1", "--out", FOLDER / "exported", "--export-weights", package, fails="expected another directory for the weights than '")
assert {path.name: path.read_bytes() for path in package.iterdir()} == before
