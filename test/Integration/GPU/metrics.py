"""Metrics arrive while a step still runs on the GPU, and the next step is launched before this one has ended. Logs,
checkpoints, errors and exit statuses are those of a GPU that has always finished, and of the CPU: where a loss is not
finite, where an alarm stops the run or skips a step, and where a checkpoint or an evaluation needs the state.

    python3 metrics.py FP8_RUN FOLDER DRIVER_DIR
"""

import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "CPU"))
import fp8_testing as t  # noqa: E402

t.compile_quickly()
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

fp8_run, folder, driver = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
folder.mkdir(parents=True, exist_ok=True)
STEPS, ROWS, WIDTH = 8, 4, 16
# A step that is longer behind its loss than before it: in `reverse` order, the loss arrives first if nothing makes it wait.
LATE = {"FP8_EMULATOR_LANDING": "late", "FP8_EMULATOR_ORDER": "reverse"}
EAGER = {"FP8_EMULATOR_LANDING": "early", "FP8_EMULATOR_ORDER": "forward"}


# The key of a step follows from its number; it is set before the step that is launched ahead.
def step(params, moment, key, x, y):
    x = jnp.where(jax.random.bernoulli(key, 0.8, x.shape), x, 0)

    def loss_of(params):
        return jnp.mean((x @ params["w"] - y) ** 2)

    loss, grads = jax.value_and_grad(loss_of)(params)
    moment = jax.tree.map(lambda m, g: 0.9 * m + g, moment, grads)
    params = jax.tree.map(lambda p, m: p - 0.01 * m, params, moment)
    return params, moment, {"loss": loss, "residual": jnp.max(jnp.abs(y))}


def evaluate(params, x, y):
    return {"loss": jnp.mean((x @ params["w"] - y) ** 2)}


random = np.random.default_rng(0)
params = {"w": jnp.zeros(WIDTH)}
x = random.normal(size=(STEPS, ROWS, WIDTH)).astype(np.float32)
y = random.normal(size=(STEPS, ROWS)).astype(np.float32)
(folder / "step.mlir").write_text(jax.jit(step).lower(params, params, jax.random.PRNGKey(0), x[0], y[0]).as_text(debug_info=True))
(folder / "eval.mlir").write_text(jax.jit(evaluate).lower(params, x[0], y[0]).as_text(debug_info=True))
t.save_tree(folder / "init.safetensors", params=params, moment=params)
np.save(folder / "x.npy", x)
np.save(folder / "y.npy", y)
large = y.copy()
large[3] *= 1e3
np.save(folder / "large.npy", large)
bad = y.copy()
bad[4, 1] = np.inf
np.save(folder / "bad.npy", bad)


def run(out, environment, *options, target="y", steps=STEPS, status=0):
    """Returns the run's rows, its checkpoints, its messages and the driver's counts."""
    command = [fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", "--recipe", "none", "--steps", steps, "--out", folder / out,
               "--batch", f"x={folder}/x.npy", "--batch", f"y={folder}/{target}.npy", *t.quick_options, *options]  # fmt: skip
    if environment is not None:
        command += ["--target", "nvptx:sm_89", "--gpu-image", "bitcode"]
    counts = folder / "counts"
    counts.unlink(missing_ok=True)
    variables = {**os.environ, "LD_LIBRARY_PATH": driver, "FP8_EMULATOR_COUNTS": str(counts), **(environment or {})}
    done = subprocess.run([str(word) for word in command], env=variables, capture_output=True, text=True)
    assert done.returncode == status, f"expected status {status} but got {done.returncode} of {command}:\n{done.stdout}\n{done.stderr}"
    rows = [json.loads(line) for line in (folder / out / "log.jsonl").read_text().splitlines()]
    for row in rows:
        del row["seconds"], row["tokens_per_second"]
    checkpoints = {path.name: {name: value.tobytes() for name, value in t.load_tensors(path).items()} for path in (folder / out).glob("checkpoint-*.safetensors")}
    errors = [line.replace(str(folder / out), "OUT") for line in done.stderr.splitlines() if "warning: " not in line or "compiled" not in line]
    return rows, checkpoints, errors, json.loads(counts.read_text()) if counts.exists() else {}


def numbers(rows):
    return np.array([float(row["loss"]) for row in rows])


def compare(what, overlaps, *options, **changes):
    """Compares a run whose steps end late with one whose steps end at once, and with the CPU's."""
    late, eager, cpu = (run(f"{what}-{name}", environment, *options, **changes) for name, environment in (("late", LATE), ("eager", EAGER), ("cpu", None)))
    assert late[:3] == eager[:3], f"{what}: expected the rows, checkpoints and messages\n{eager[0]}\n{eager[2]}\nbut got\n{late[0]}\n{late[2]}"
    assert late[1].keys() == cpu[1].keys(), f"{what}: expected checkpoints {list(cpu[1])} but got {list(late[1])}"
    assert len(late[0]) == len(cpu[0]) and np.allclose(numbers(late[0]), numbers(cpu[0]), rtol=1e-5, equal_nan=True), f"{what}: {cpu[0]}, {late[0]}"
    assert [row.get("alarms") for row in late[0]] == [row.get("alarms") for row in cpu[0]]
    assert late[2] == cpu[2], f"{what}: expected the messages\n{cpu[2]}\nbut got\n{late[2]}"
    assert eager[3]["overlaps"] == 0, eager[3]
    assert late[3]["overlaps"] == overlaps, f"{what}: expected {overlaps} steps that were launched before the one before had ended but got {late[3]}"
    print(f"{what}: {len(late[0])} rows, {sorted(late[1])}, {overlaps} steps launched ahead, status {changes.get('status', 0)}")
    return late


whole = compare("whole", STEPS - 1)
# The state is needed behind steps 3 and 6, so those that follow are not launched ahead.
compare("saved", STEPS - 3, "--checkpoint-every", 3)
compare("evaluated", STEPS - 3, "--eval", folder / "eval.mlir", "--eval-batch", f"x={folder}/x.npy", "--eval-batch", f"y={folder}/y.npy", "--eval-every", 3)
# Nothing is trained or saved behind step 5, whose loss is not finite.
rows, checkpoints, errors, _ = compare("not finite", 3, "--checkpoint-every", 4, target="bad", status=3)
assert len(rows) == 5 and list(checkpoints) == ["checkpoint-4.safetensors"], (rows, list(checkpoints))
assert "step 5: the loss is inf" in "\n".join(errors), errors
# An alarm ends the run with the state of its step; the run that resumes has the bits of one that did not stop.
stopped = compare("stopped", 3, "--alarm", "loss > 1e4 : stop", target="large", status=4)
assert list(stopped[1]) == ["checkpoint-4.safetensors"], list(stopped[1])
through = compare("through", STEPS - 1, target="large")
resumed = run("stopped-late", LATE, "--resume", target="large")
for row in resumed[0]:
    row.pop("alarms", None)
assert resumed[0] == through[0] and resumed[1]["checkpoint-8.safetensors"] == through[1]["checkpoint-8.safetensors"]
# The GPU keeps the state of a step that may be skipped, so the next one need not wait.
skipped = compare("skipped", STEPS - 1, "--alarm", "loss > 1e4 : skip", target="large")
assert [row["step"] for row in skipped[0] if row.get("skipped")] == [4], skipped[0]
