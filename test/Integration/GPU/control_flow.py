"""Decisions of a step at run time: whether an update is skipped, the trip count of a
loop, and many micro-batches. On the emulated driver all of it is one graph, during
which no call of the driver waits. It has the bits of the CPU and of a run in which
the host reads the conditions.

    python3 control_flow.py FP8_RUN WORK_DIR DRIVER_DIR
"""

import json
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Integration/CPU"))
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402
from conformance_testing import run_function  # noqa: E402
from jax import lax  # noqa: E402

fp8_run, work, driver = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
work.mkdir(parents=True, exist_ok=True)
jax.config.update("jax_platforms", "cpu")
rng = np.random.default_rng(0)
adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2))
optimizer = optax.apply_if_finite(adam, 3)
several = optax.MultiSteps(adam, 2)


def loss_of(w, x):
    # (No dot, because its sums would have another order.)
    return ((x * w).sum(-1) ** 2).mean()


def step_of(optimizer):
    def step(w, state, x):
        loss, gradient = jax.value_and_grad(loss_of)(w, x)
        updates, state = optimizer.update(gradient, state, w)
        return optax.apply_updates(w, updates), state, loss

    return step


def skips(w, state, x):
    """A branch skips the update if gradients are not finite."""
    loss, gradient = jax.value_and_grad(loss_of)(w, x)

    def update():
        updates, new = adam.update(gradient, state[0], w)
        return optax.apply_updates(w, updates), (new, state[1])

    w, state = lax.cond(jnp.isfinite(gradient).all(), update, lambda: (w, (state[0], state[1] + 1)))
    return w, state, loss


def accumulates(w, x):
    """Accumulates gradients of more micro-batches than a graph has room for."""

    def micro(carry, batch):
        index, sums = carry
        loss, gradient = jax.value_and_grad(loss_of)(w, batch)
        return (index + 1, sums + gradient), loss * index

    (count, sums), losses = lax.scan(micro, (0, jnp.zeros_like(w)), x)
    return w - 0.1 * sums / count, losses


def halves(n, x):
    """A loop whose trip count is an argument, and that may end on a value."""

    def outer(carry):
        i, x, steps = carry
        x, steps = lax.while_loop(lambda c: jnp.abs(c[0]).max() > 1, lambda c: (c[0] * 0.5, c[1] + 1), (x + i, steps))
        return i + 1, x, steps

    return lax.while_loop(lambda c: c[0] < n, outer, (0, x, 0))


def run(name, function, args, *flags, checked=False):
    lowered = jax.jit(function, keep_unused=True).lower(*args)
    leaves = {f"arg{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(args))}
    counts = work / "counts"
    counts.unlink(missing_ok=True)
    os.environ.update(LD_LIBRARY_PATH=driver, FP8_EMULATOR_COUNTS=str(counts))
    os.environ.pop("FP8_GPU_CHECK", None)
    if checked:
        os.environ["FP8_GPU_CHECK"] = "1"
    got = run_function(fp8_run, work / name, lowered.as_text(), leaves, flags)
    assert not isinstance(got, str), f"{name}: {got}"
    return got, json.loads(counts.read_text()) if flags else None


def check(name, function, *args, flags=()):
    gpu = ("--target", "nvptx:sm_89", "--gpu-image", "bitcode", *flags)
    expected, _ = run(name, function, args)
    got, counts = run(name, function, args, *gpu)
    host, host_counts = run(name, function, args, *gpu, checked=True)
    for key, value in expected.items():
        for other, what in ((got, "the graph"), (host, "the host's conditions")):
            assert value.tobytes() == other[key].tobytes(), f"{name}, {key}: expected {value} but got with {what} {other[key]}"
    assert counts["graphs"] == 1 and counts["kernels"] == 0, f"{name}: expected one graph but got {counts}"
    assert host_counts["graphs"] == 0 and host_counts["kernels"] > 0, f"{name}: {host_counts}"
    # Constants are loaded before the run; the host waits for results after it.
    print(f"{name}: {counts}")
    return counts


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


w, x = f32(24), f32(6, 24)
nan = x * np.float32(np.nan)
check("finite", step_of(optimizer), w, optimizer.init(w), x)
check("not-finite", step_of(optimizer), w, optimizer.init(w), nan)
taken = check("taken", skips, w, (adam.init(w), jnp.int32(0)), x)
skipped = check("skipped", skips, w, (adam.init(w), jnp.int32(0)), nan)
assert taken["branches"] == skipped["branches"] == 1, (taken, skipped)
collected = several.init(w)
for part in ("first", "second"):
    check(part, step_of(several), w, collected, x)
    collected = step_of(several)(w, collected, x)[1]
batches = f32(700, 3, 24)
scanned = check("micro-batches", accumulates, w, batches, flags=("--gpu-expand", 500))
expanded = check("expanded", accumulates, w, batches)
assert scanned["iterations"] == 700 and expanded["iterations"] == 0, (scanned, expanded)
looped = check("loops", halves, np.int32(5), f32(4, 7) * 10)
assert looped["iterations"] > 5, looped
none = check("no-iteration", halves, np.int32(0), f32(4, 7) * 10)
assert none["iterations"] == 0, none
# The number of waits does not depend on what the step decides.
assert taken["waits"] == skipped["waits"] and looped["waits"] == none["waits"]
