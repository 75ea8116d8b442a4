"""Shared by the Python tests and the benchmarks: exports the example model in any size, runs
fp8-run, and reads its output files."""

import atexit
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples" / "llama"))

# No cache by default: the tests and benchmarks are about compiling.
os.environ.setdefault("FP8_CACHE_DIR", "")

# XLA without optimizations. The arithmetic stays the same.
QUICK_XLA = "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
# Options of fp8-run.
quick_options = []


def compile_jax_quickly():
    """Makes JAX compile without optimizations from here on, which takes a fraction of the time, as lit does for every test.
    Call it before JAX starts."""
    add_xla_flags(QUICK_XLA)


def use_devices(number):
    """Makes JAX have so many CPU devices, unless another number is already set. Call it before JAX starts."""
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        add_xla_flags(f"--xla_force_host_platform_device_count={number}")


def add_xla_flags(flags):
    given = os.environ.get("XLA_FLAGS", "")
    if flags not in given:
        os.environ["XLA_FLAGS"] = f"{given} {flags}"


def compile_quickly():
    """Makes fp8-run compile without optimizations, too. This is for tests of what a step computes, not of the code that LLVM
    makes of it: the bits are the same."""
    quick_options[:] = ["--no-optimize"]
    compile_jax_quickly()


# A model of a few thousand parameters with everything that the example's graph has.
TINY = dict(width=32, layers=2, heads=2, ffn=48, batch=2, sequence=16, warmup_steps=5, schedule_steps=40)

FORTUNES = pathlib.Path("/usr/share/games/fortunes")


def fortunes():
    """Returns the text files of Debian's fortunes package."""
    files = sorted(f for f in FORTUNES.iterdir() if f.suffix not in (".dat", ".u8"))
    assert files, "expected the text of Debian's package fortunes"
    return files


def export_model(folder, **config):
    """Writes step.mlir, init.mlir and eval.mlir into folder; returns the Config."""
    import export

    cfg = export.Config(**config)
    export.write(cfg, pathlib.Path(folder))
    return cfg


def save_tree(path, **trees):
    """Saves arrays as safetensors, named by tree path as JAX names arguments:
    save_tree(file, params=params) has a tensor params['layers'][0]['wq']."""
    import jax
    import numpy as np
    from safetensors.numpy import save_file

    arrays = {}
    for root, tree in trees.items():
        for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            arrays[root + jax.tree_util.keystr(keys)] = np.array(leaf, order="C")
    save_file(arrays, str(path))


def load_tensors(path):
    """Returns all tensors of a safetensors file, including types that NumPy does not have. If there
    is an index beside the file, returns the tensors of all its files."""
    import struct

    index = pathlib.Path(f"{path}.index.json")
    if index.exists():
        files = sorted(set(json.loads(index.read_text())["weight_map"].values()))
        return {name: tensor for file in files for name, tensor in load_tensors(index.parent / file).items()}

    import ml_dtypes
    import numpy as np

    types = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16, "F8_E4M3": ml_dtypes.float8_e4m3fn,
             "F8_E5M2": ml_dtypes.float8_e5m2, "F8_E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "F8_E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
             "F8_E8M0": ml_dtypes.float8_e8m0fnu, "U8": np.uint8, "I32": np.int32, "U32": np.uint32, "I64": np.int64, "BOOL": np.bool_}  # fmt: skip
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    header = json.loads(data[8 : 8 + length])
    # The types that safetensors does not name.
    named = json.loads(header.pop("__metadata__", {}).get("fp8.dtypes", "{}"))
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = getattr(ml_dtypes, named[name]) if name in named else types[entry["dtype"]]
        tensors[name] = np.frombuffer(data[begin:end], dtype).reshape(entry["shape"])
    return tensors


def split_list(text):
    """Splits `text` at the commas that are outside of brackets and strings."""
    parts, depth, quoted, begin = [], 0, False, 0
    for i, c in enumerate(text):
        if c == '"':
            quoted = not quoted
        elif not quoted and c in "([{<":
            depth += 1
        elif not quoted and c in ")]}>" and text[i - 1] != "-":
            depth -= 1
        elif not quoted and depth == 0 and c == ",":
            parts.append(text[begin:i].strip())
            begin = i + 1
    return parts + [text[begin:].strip()] if text[begin:].strip() else parts


def _enclosed(text, begin):
    """Returns the end of the parenthesis that opens at `begin`."""
    depth, quoted = 0, False
    for i in range(begin, len(text)):
        if text[i] == '"':
            quoted = not quoted
        elif not quoted and text[i] in "()":
            depth += 1 if text[i] == "(" else -1
            if depth == 0:
                return i
    raise ValueError("expected a closing parenthesis")


def main_arguments(text):
    """Returns the text of the arguments of main."""
    _, found, rest = text.partition("func.func public @main(")
    assert found, "expected a public function main"
    return rest[: _enclosed("(" + rest, 0) - 1]


def strip_names(text, seed=0, donated=True):
    """Returns a module, as `lower(...).as_text()` prints it, without informative names and with the
    arguments and results of main in random order; without `donated` also without donation. Also
    returns the old positions of the arguments in their new order, and those of the results."""
    import numpy as np

    assert "loc(" not in text, "expected a module printed without debug info"
    random = np.random.default_rng(seed)
    head, _, rest = text.partition("func.func public @main(")
    end = len(main_arguments(text))
    arguments, rest = split_list(rest[:end]), rest[end + 1 :]
    assert rest.startswith(" -> ("), f"expected results but got {rest[:40]}"
    end = _enclosed(rest, 4)
    results, rest = split_list(rest[5:end]), rest[end + 1 :]
    order = [int(i) for i in random.permutation(len(arguments))]
    result_order = [int(i) for i in random.permutation(len(results))]

    def strip(declaration):
        """Drops names from the attributes and renumbers the results in them."""
        typed, brace, attributes = declaration.partition(" {")
        kept = []
        for attribute in split_list(attributes.rpartition("}")[0]):
            name, _, value = attribute.partition(" = ")
            if name == "jax.result_info" or (not donated and name in ("tf.aliasing_output", "jax.buffer_donor")):
                continue
            if name == "tf.aliasing_output":
                attribute = f"{name} = {result_order.index(int(value.split(':')[0]))} : i32"
            kept.append(attribute)
        return typed + (f" {{{', '.join(kept)}}}" if kept else "")

    # JAX prints main first; its closing brace ends the body.
    body, _, others = rest.partition("\n  }\n")
    before, _, last = body.rpartition("\n    return ")
    values, types = (split_list(part) for part in last.split(" : "))
    permute = lambda parts, order: ", ".join(parts[i] for i in order)
    text = (
        f"{head}func.func public @main({permute([strip(a) for a in arguments], order)})"
        f" -> ({permute([strip(r) for r in results], result_order)}){before}"
        f"\n    return {permute(values, result_order)} : {permute(types, result_order)}\n  }}\n{others}"
    )
    return re.sub(r"^module @\w+", "module @m", text), order, result_order


def write_text(path, size=20000):
    """Writes deterministic English-like text that depends on no other file."""
    words = "the model predicts each byte of a text from those before it and learns with every step".split()
    state, out = 1, []
    while sum(map(len, out)) + len(out) < size:
        state = (state * 1103515245 + 12345) % 2**31
        out.append(words[state // 65536 % len(words)])
    pathlib.Path(path).write_text(" ".join(out)[:size])
    return path


def run(command, check=True, timeout=600, **kwargs):
    """Runs a command; without `check`, the caller judges failures."""
    command = [str(part) for part in command]
    if any(pathlib.Path(part).name == "fp8-run" for part in command):
        command += quick_options
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **kwargs)
    if check and result.returncode != 0:
        print(" ".join(command), result.stdout[-3000:], result.stderr[-3000:], sep="\n", file=sys.stderr)
        raise SystemExit(f"expected exit code 0 but got {result.returncode}")
    return result


@functools.cache
def launcher_environment():
    """Returns what a launcher needs to run as root, and beside others. Open MPI's removes the folder of its sessions at its end if it
    is empty, although another launcher may be about to use it (open-mpi/ompi#8510): every process has its own folder here."""
    sessions = tempfile.mkdtemp(prefix="fp8-")
    atexit.register(shutil.rmtree, sessions, ignore_errors=True)
    return {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": sessions}


def launched(launcher, ranks, command):
    """Returns the command that runs a command on several ranks, and its environment. One rank needs no launcher."""
    if ranks > 1:
        oversubscribe = ["--oversubscribe"] if "openmpi" in str(launcher) else []
        command = [launcher, *oversubscribe, "-n", ranks, *command]
    return [str(part) for part in command], os.environ | launcher_environment()


def on_ranks(launcher, ranks, command):
    """Does the same for a command of fp8-run or fp8-train."""
    return launched(launcher, ranks, [*command, "--data-parallel"] if ranks > 1 else command)


class Cases(dict):
    """The cases of a test by name. With `case = Cases()`, `@case` adds a function under its name."""

    def __call__(self, function):
        name = function.__name__
        assert name not in self, f"expected one case for each name but got two named {name}"
        self[name] = function
        return function


def run_cases(cases, names, fixture, before=lambda: None):
    """Runs the cases with these names, or all cases; a failure does not stop the others."""
    names, failed = names or list(cases), []
    for name in names:
        before()
        begin = time.time()
        try:
            cases[name](fixture)
            print(f"PASS {name} ({time.time() - begin:.1f} s)")
        except (AssertionError, SystemExit, OSError, subprocess.SubprocessError) as error:
            failed.append(name)
            print(f"FAIL {name}: {error}")
    if failed:
        sys.exit(f"{len(failed)} of {len(names)} cases failed: {' '.join(failed)}")


def train(fp8_run, model, out, *args, **kwargs):
    """Runs fp8-run on an exported model; returns its log as a list of dicts."""
    result = run([fp8_run, pathlib.Path(model) / "step.mlir", *args, "--out", out], **kwargs)
    (pathlib.Path(out) / "stdout.txt").write_text(result.stdout)
    return read_log(out)


def read_log(out):
    """Returns the steps' rows of log.jsonl."""
    rows = [json.loads(line) for line in (pathlib.Path(out) / "log.jsonl").read_text().splitlines()]
    return [row for row in rows if "step" in row]


def losses(log):
    return [float(row["loss"]) for row in log if "loss" in row]


def metric(log, name):
    """Returns a metric's values, whatever the root of its path: grad_norm may be
    result[2]['grad_norm']."""
    values = []
    for row in log:
        columns = {**row.get("metrics", {}), "loss": row["loss"]}
        keys = [key for key in columns if key == name or key.endswith(f"['{name}']") or key.endswith(f".{name}")]
        assert len(keys) == 1, f"expected one column for {name} but got {keys} of {sorted(columns)}"
        values.append(float(columns[keys[0]]))
    return values


def heldout(out):
    """Returns the last held-out loss of a run."""
    values = [float(row["heldout_loss"]) for row in read_log(out) if "heldout_loss" in row]
    assert values, f"expected a held-out loss in {out}/log.jsonl"
    return values[-1]


def step_seconds(log):
    """Returns the time of each step, logging included."""
    ends = [0.0] + [row["seconds"] for row in log]
    return [end - begin for begin, end in zip(ends, ends[1:])]


def report(out):
    """Returns compile time and memory of a run."""
    out = pathlib.Path(out)
    compiled = re.search(r"compiled step in ([0-9.]+) s", (out / "stdout.txt").read_text())
    memory = json.loads((out / "memory.json").read_text())
    step = memory["step"]
    return {
        "compile_seconds": float(compiled.group(1)) if compiled else None,
        "argument_bytes": step["arguments"] + step["results"],
        "temporary_bytes": step["arena_planned"] + step["scratch"],
        "arena_planned": step["arena_planned"],
        "arena_reserved": step["arena_reserved"],
        "arena_touched": step["arena_touched"],
        "peak_rss": memory["peak_rss"],
    }
