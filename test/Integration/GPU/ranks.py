"""Two ranks, each with an emulated GPU, compared with two ranks on CPUs: the same bits
if a step has no dots, in shard_map too, and for a tiny Llama losses within the error of
dots. Ranks communicate through the host and through the NCCL of the tests, which also
fails on purpose.

    python3 ranks.py FP8_RUN WORK_DIR DRIVER_DIR TRANSPORT [all]

DRIVER_DIR has the emulator's libcuda.so.1, and its folder `nccl` a libnccl.so.2. TRANSPORT is the plugin of the unit tests,
which needs no MPI. `all` runs every recipe.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Integration/CPU"))
import fp8_testing as t  # noqa: E402

t.use_devices(2)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from safetensors.numpy import save_file  # noqa: E402

fp8_run, folder, driver, transport = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
everything = sys.argv[5:] == ["all"]
folder.mkdir(parents=True, exist_ok=True)
GPU = ["--target", "nvptx:sm_89", "--gpu-image", "bitcode"]


NCCL = {"LD_LIBRARY_PATH": f"{driver}/nccl:{driver}", "FP8_EMULATOR_DEVICES": "2", "FP8_GPU_COLLECTIVES": "nccl"}


def is_stopped(process):
    """Returns whether a signal has stopped a process that has not been waited for."""
    state = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state == "T"


def start(out, files, options, settings, ranks=2):
    """Starts one process for each rank; returns the output and exit status of each."""
    processes = []
    # (The path of a socket must be short.)
    with tempfile.TemporaryDirectory() as sockets:
        for rank in range(ranks):
            environment = {**os.environ, "LD_LIBRARY_PATH": driver, "FP8_EMULATOR_SEED": str(rank), "FP8_EMULATOR_LANDING": "random"}
            environment |= settings
            environment["TMPDIR"] = sockets
            environment["FP8_EMULATOR_COUNTS"] = f"{out}-counts-{rank}"
            environment["FP8_TRANSPORT"] = f"{transport}:dir={sockets},rank={rank},ranks={ranks}"
            command = [fp8_run, *files, "--out", out, "--threads", 1, "--data-parallel", *options]
            processes.append(subprocess.Popen([str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        ended = []
        for process in processes:
            if ended and is_stopped(process):
                process.kill()
            try:
                output = process.communicate(timeout=500)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                output = process.communicate()[0]
            ended.append((output, process.returncode))
        return ended


def run(out, files, *options, settings=None):
    shutil.rmtree(out, ignore_errors=True)
    for output, status in start(out, files, options, settings or {}):
        assert status == 0, f"expected exit code 0 but got {status}\n{output[-3000:]}"
    return [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]


def checkpoint(out):
    (path,) = {str(file).removesuffix(".index.json") for file in out.glob("checkpoint-*.safetensors*") if "-of-" not in file.name}
    return t.load_tensors(path)


def elementwise(kind=""):
    """Returns a step that scales and shifts columns, clipped by the norm of all gradients, without
    dots. "sharded" is a step in shard_map, whose rows are those of all ranks; "decides" skips the
    second of three updates; "stacks" has layers in a scan, whose stacks are large enough to be
    dealt in slices."""
    sharded, stacks = kind == "sharded", kind == "stacks"
    random = np.random.default_rng(0)
    columns = 2048 if stacks else 200
    shape = (5, columns) if stacks else columns
    params = {"scale": random.standard_normal(shape).astype(np.float32), "shift": np.zeros(shape, np.float32)}
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(1e-2))

    def layer(x, params):
        return x * params["scale"] + params["shift"], None

    def loss(params, batch):
        x, _ = (jax.lax.scan if stacks else lambda layer, x, params: layer(x, params))(layer, batch["x"], params)
        return jnp.mean(jnp.square(x - batch["y"]))

    def step(params, opt, batch):
        value, grads = jax.value_and_grad(loss)(params, batch)
        if sharded:
            value, grads = jax.lax.pmean((value, grads), "data")

        def update():
            updates, new = optimizer.update(grads, opt[0], params)
            return optax.apply_updates(params, updates), new

        count = opt[1]
        params, new = jax.lax.cond(count % 3 != 1, update, lambda: (params, opt[0])) if kind == "decides" else update()
        return params, (new, count + 1), {"loss": value, "norm": optax.global_norm(grads)}

    rows = {key: random.standard_normal((48, columns)).astype(np.float32) for key in ("x", "y")}
    opt = (optimizer.init(params), jnp.int32(0))
    batch = {key: value[: 8 if sharded else 4] for key, value in rows.items()}
    file = folder / f"{kind or 'elementwise'}.mlir"
    run = step
    if sharded:
        all_, parts = jax.sharding.PartitionSpec(), jax.sharding.PartitionSpec("data")
        run = jax.shard_map(step, mesh=jax.sharding.Mesh(np.array(jax.devices()), ("data",)), in_specs=(all_, all_, parts), out_specs=all_, check_vma=False)
    file.write_text(jax.jit(run).lower(params, opt, batch).as_text(debug_info=True))
    save_file(rows, folder / f"rows{columns}.safetensors")
    t.save_tree(folder / f"init{columns}.safetensors", params=params, opt=opt)
    feeds = [part for key in rows for part in ("--batch", f"batch['{key}']={folder / f'rows{columns}.safetensors'}:{key}")]
    return [file, "--init", folder / f"init{columns}.safetensors", *feeds, "--steps", 6]


def recipe(name, *all_reduce):
    path = folder / f"{name}.yaml"
    path.write_text("\n".join([f"name: {name}", *all_reduce, ""]))
    return path


# The bits of CPUs, whatever the wire format of gradients, and with shards of the state.
wires = {"exact": [], "bf16-wire": ["all_reduce: {format: bf16}"], "e4m3-wire": ["all_reduce: {format: f8E4M3FN}"], "e5m2-wire": ["all_reduce: {format: f8E5M2, tile: 1x128}"]}
cases = {name: ["--recipe", recipe(name, *lines)] for name, lines in wires.items()}
cases |= {"zero": [*cases["exact"], "--zero", 1], "sharded": cases["exact"], "decides": cases["exact"], "stacks": [*cases["exact"], "--zero", 1]}
cases |= {"stacks-e4m3": [*cases["e4m3-wire"], "--trace"], "stacks-e4m3-zero": [*cases["e4m3-wire"], "--zero", 1, "--trace"]}


def scales(out):
    """Returns what the trace says of the scales of gradients on the wire, step by step."""
    lines = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
    return [{name: row for name, row in line["tensors"].items() if name.startswith("gradient ")} for line in lines]


for name, options in cases.items():
    kind = name.partition("-")[0]
    files = elementwise(kind if kind in ("sharded", "decides", "stacks") else "")
    expected = run(folder / f"{name}-cpu", files, *options)
    got = run(folder / f"{name}-gpu", files, *options, *GPU)
    assert got == expected, f"{name}: expected losses {expected} but got {got}"
    want, found = checkpoint(folder / f"{name}-cpu"), checkpoint(folder / f"{name}-gpu")
    different = [path for path in want if want[path].tobytes() != found[path].tobytes()]
    assert want.keys() == found.keys() and len(want) > 5 and not different, f"{name}: expected the same state but got others for {different}"
    print(f"{name}: {len(got)} losses and {len(want)} tensors with the bits of CPUs")
    if "--trace" in options:
        want_scales = scales(folder / f"{name}-cpu")
        rows = [row for step in want_scales for row in step.values()]
        assert len(rows) == 12 and all(len(row[key]) == 5 for row in rows for key in ("mu", "mu_age", "saturation")), f"expected scales of two stacks but got {want_scales}"
        assert scales(folder / f"{name}-gpu") == want_scales, f"{name}: expected the trace {want_scales}"
    if name == "decides":
        counts = [json.loads((folder / f"{name}-gpu-counts-{rank}").read_text()) for rank in range(2)]
        assert all(each["branches"] == 4 and each["kernels"] == 0 for each in counts), f"expected graphs alone, of which 4 of 6 take a branch, but got {counts}"
    got = run(folder / f"{name}-nccl", files, *options, *GPU, settings=NCCL)
    found = checkpoint(folder / f"{name}-nccl")
    different = [path for path in want if want[path].tobytes() != found[path].tobytes()]
    assert got == expected and want.keys() == found.keys() and not different, f"{name}: expected NCCL's losses to be {expected} but got {got}, and others for {different}"
    if "--trace" in options:
        assert scales(folder / f"{name}-nccl") == want_scales, f"{name}: expected NCCL's trace to be {want_scales}"


# In the third of these steps the second rank has a NaN in its rows: what it sums, or exchanges, is NaN.
for kind in ("", "sharded"):
    files = elementwise(kind)
    bad = {key: value.copy() for key, value in t.load_tensors(folder / "rows200.safetensors").items()}
    bad["y"][21, 7] = np.nan
    save_file(bad, folder / "bad.safetensors")
    files = [str(word).replace("rows200.safetensors", "bad.safetensors") for word in files]
    for settings in ({}, NCCL):
        ended = start(folder / "bad", files, ["--recipe", "none", "--overwrite", *GPU], settings)
        told = [output for output, _ in ended if "rank 1 of 2 was the first with such a value, in its part of" in output and "of step 3;" in output]
        assert len(told) == 1 and [status for _, status in ended] == [3, 3], f"expected rank 1 to be named once but got {ended}"

# A profile names the transport, but runs kernels one by one. Both ranks have NCCL's library, since the lowest rank with a
# reason is named.
shared = {"LD_LIBRARY_PATH": NCCL["LD_LIBRARY_PATH"]}
for settings, expected in [(NCCL, "NCCL 2.27.3"), (shared, "the host, for rank 1: it shares its GPU with another rank")]:
    got = run(folder / "profiled", elementwise(), "--recipe", "none", "--profile", *GPU, settings=settings)
    carrier = json.loads((folder / "profiled" / "collectives.json").read_text())["carrier"]
    assert carrier == expected, f"expected '{expected}' to carry collectives but got '{carrier}'"


def fails(message, settings, *options):
    """Both ranks fail, and one of them prints this message."""
    ended = start(folder / "failed", elementwise(), ["--recipe", "none", "--overwrite", *GPU, *options], settings)
    told = sum(message in output for output, _ in ended)
    assert told == 1 and ended[0][1] == 1 and ended[1][1] != 0, f"expected '{message}' once but got {ended}"


fails("rank 1 of 2: its process has ended", NCCL | {"FP8_EMULATOR_NCCL": "1:kill:5"})
# (A rank that is slow to begin is no failure yet.)
fails("rank 1 of 2: no answer for 10 s", NCCL | {"FP8_EMULATOR_NCCL": "1:stop:5"}, "--rank-timeout", 10)
# A file of this name that is not a library hides a real one.
(folder / "libnccl.so.2").write_text("")
hidden = NCCL | {"LD_LIBRARY_PATH": f"{folder}:{driver}"}
fails("this rank cannot use it: ", hidden)
fails("rank 1 of 2: FP8_GPU_COLLECTIVES asks for NCCL, but this rank cannot use it: it shares its GPU", NCCL | {"FP8_EMULATOR_DEVICES": "1"})
fails("expected FP8_GPU_COLLECTIVES to be nccl or host but got 'mpi'", {"FP8_GPU_COLLECTIVES": "mpi"})

# In a model with dots the sums have another order.
t.export_model(folder, **t.TINY)
text = folder / "text.txt"
text.write_bytes(b"".join(f.read_bytes() for f in t.fortunes())[:20000])
files = [folder / "step.mlir", "--init", folder / "init.mlir", "--data", text, "--steps", 3]
recipes = ["none", "tensorwise", "delayed", "fp8_lm", "coat", "scaling_fp8"] if everything else ["none", "fp8_lm"]
for name in recipes:
    expected = run(folder / f"{name}-cpu", files, "--recipe", name)
    got = run(folder / f"{name}-gpu", files, "--recipe", name, *GPU)
    apart = max(abs(a - b) / abs(a) for a, b in zip(expected, got, strict=True))
    print(f"{name}: losses of {len(got)} steps {apart:.1e} apart")
    assert apart <= 1e-5, f"{name}: expected {expected} but got {got}"
