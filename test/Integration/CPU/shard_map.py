"""Steps written with jax.shard_map on several ranks train as JAX does on as many host
devices.

    python shard_map.py FP8_RUN FOLDER LAUNCHER [CASE...]

Weights are whole on every device and rows are split. Each case communicates in its
own way: it sums gradients, gathers features from all devices, splits dots by columns
and rows, exchanges heads, or runs stages of a pipeline. With `none` losses are within
1e-6 of JAX's, and parameters within 1e-6 of the largest entry of each, for SGD and for
AdamW with an epsilon above the rounding error, by which Adam would divide otherwise.
"""

import functools
import json
import os
import pathlib
import sys

os.environ["JAX_PLATFORMS"] = "cpu"

import fp8_testing as t

t.use_devices(2)

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P
from safetensors.numpy import save_file

t.compile_quickly()
RANKS = jax.device_count()
BATCH, STEPS, WIDTH, HIDDEN, CLASSES, LENGTH, HEADS = 8, 5, 32, 64, 16, 8, 4


def dense(random, *shape):
    return (random.standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)


def part(x, dim):
    """Returns this device's part of a value that is whole on all devices."""
    size = x.shape[dim] // RANKS
    return lax.dynamic_slice_in_dim(x, lax.axis_index("devices") * size, size, dim)


def mean_of_all(x):
    return lax.pmean(jnp.mean(x), "devices")


def data(random):
    """Data parallelism: gradients of the mean over all devices."""
    params = {"in": dense(random, WIDTH, HIDDEN), "out": dense(random, HIDDEN, CLASSES)}
    return params, lambda p, b: mean_of_all(jnp.square(jax.nn.gelu(b["x"] @ p["in"]) @ p["out"] - b["y"]))


def contrastive(random):
    """Compares every row with the rows of all devices."""
    params = {"x": dense(random, WIDTH, CLASSES), "y": dense(random, CLASSES, CLASSES)}

    def loss(p, b):
        ours, theirs = b["x"] @ p["x"], lax.all_gather(b["y"] @ p["y"], "devices", axis=0, tiled=True)
        rows = lax.axis_index("devices") * len(ours) + jnp.arange(len(ours))
        logp = jax.nn.log_softmax(ours @ theirs.T / CLASSES**0.5)
        return -mean_of_all(jnp.take_along_axis(logp, rows[:, None], -1))

    return params, loss


def tensor(random):
    """Splits the first dot by columns and the second by rows, on the rows of all devices."""
    params = {"in": dense(random, WIDTH, HIDDEN), "out": dense(random, HIDDEN, CLASSES)}

    def loss(p, b):
        x = lax.all_gather(b["x"], "devices", axis=0, tiled=True)
        parts = jax.nn.gelu(x @ part(p["in"], 1)) @ part(p["out"], 0)
        y = lax.psum_scatter(parts, "devices", scatter_dimension=0, tiled=True)
        return mean_of_all(jnp.square(y - b["y"]))

    return params, loss


def heads(random):
    """Exchanges some rows of all heads for all rows of some heads, and back."""
    params = {"in": dense(random, WIDTH, HIDDEN), "mix": dense(random, BATCH, BATCH), "out": dense(random, HIDDEN, CLASSES)}

    def loss(p, b):
        x = (b["x"] @ p["in"]).reshape(-1, HEADS, HIDDEN // HEADS)
        x = lax.all_to_all(x, "devices", split_axis=1, concat_axis=0, tiled=True)
        x = jax.nn.gelu(jnp.einsum("rs,shd->rhd", p["mix"], x))
        x = lax.all_to_all(x, "devices", split_axis=0, concat_axis=1, tiled=True)
        return mean_of_all(jnp.square(x.reshape(-1, HIDDEN) @ p["out"] - b["y"]))

    return params, loss


def pipeline(random):
    """Each device is a stage; micro-batches go from one stage to the next in a loop."""
    params = {"stages": dense(random, RANKS, WIDTH, WIDTH), "out": dense(random, WIDTH, CLASSES)}
    forward = [(i, i + 1) for i in range(RANKS - 1)]

    def loss(p, b):
        x, y = (lax.all_gather(b[key], "devices", axis=0, tiled=True) for key in ("x", "y"))
        micro = x.reshape(4, -1, WIDTH)
        micro = jnp.concatenate([micro, jnp.zeros((RANKS - 1, *micro.shape[1:]), x.dtype)])
        weight, index = part(p["stages"], 0)[0], lax.axis_index("devices")

        def tick(carry, new):
            out = jnp.tanh(jnp.where(index == 0, new, carry) @ weight)
            return lax.ppermute(out, "devices", forward), out

        _, outs = lax.scan(tick, jnp.zeros_like(micro[0]), micro)
        last = outs[RANKS - 1 :].reshape(-1, WIDTH) @ p["out"]
        return lax.psum(jnp.where(index == RANKS - 1, jnp.mean(jnp.square(last - y)), 0.0), "devices")

    return params, loss


CASES = {"data": data, "contrastive": contrastive, "tensor": tensor, "heads": heads, "pipeline": pipeline}


class Fixture:
    def __init__(self, fp8_run, folder, launcher):
        self.fp8_run, self.folder, self.launcher = fp8_run, folder, launcher

    def build(self, name, random):
        """Returns the parameters, the state of the optimizer and the step."""
        case, _, algorithm = name.partition("-")
        params, loss = CASES[case](random)
        update = optax.adamw(1e-2, eps=1e-3) if algorithm == "adamw" else optax.sgd(0.3, momentum=0.9)
        optimizer = optax.chain(optax.clip_by_global_norm(0.3), update)

        def step(params, opt, batch):
            value, grads = jax.value_and_grad(loss)(params, batch)
            updates, opt = optimizer.update(grads, opt, params)
            return optax.apply_updates(params, updates), opt, {"loss": value}

        mesh = Mesh(np.array(jax.devices()), ("devices",))
        jitted = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("devices")), out_specs=P()))
        return params, optimizer.init(params), jitted

    def prepare(self, name):
        """Writes the step, its initial values and rows; returns the folder and JAX's results."""
        random = np.random.default_rng(0)
        params, opt, jitted = self.build(name, random)
        folder = self.folder / name
        rows = {"x": random.standard_normal((BATCH * STEPS, WIDTH)).astype(np.float32)}
        rows["y"] = random.standard_normal((BATCH * STEPS, CLASSES)).astype(np.float32)
        folder.mkdir(parents=True, exist_ok=True)
        t.save_tree(folder / "init.safetensors", params=params, opt=opt)
        save_file(rows, folder / "rows.safetensors")
        losses = []
        for i in range(STEPS):
            batch = {key: value[i * BATCH : (i + 1) * BATCH] for key, value in rows.items()}
            if i == 0:
                (folder / "step.mlir").write_text(jitted.lower(params, opt, batch).as_text(debug_info=True))
            params, opt, metrics = jitted(params, opt, batch)
            losses.append(float(metrics["loss"]))
        state = {f"params['{key}']": np.asarray(value) for key, value in params.items()}
        return folder, losses, state

    def run(self, folder, recipe, ranks=RANKS, steps=STEPS, options=("--overwrite",), program=None, step=None):
        out = folder / pathlib.Path(recipe).stem
        feeds = [word for key in ("x", "y") for word in ("--batch", f"batch['{key}']={folder / 'rows.safetensors'}:{key}")]
        words = [] if program else ["--recipe", recipe]
        command = [program or self.fp8_run, step or folder / "step.mlir", "--init", folder / "init.safetensors", *feeds, *words,
                   "--steps", steps, "--threads", 1, "--out", out, *options]  # fmt: skip
        command, environment = t.on_ranks(self.launcher, ranks, command)
        done = t.run(command, check=False, timeout=300, env=environment)
        return done, out

    def losses(self, folder, recipe, *options):
        done, out = self.run(folder, recipe, options=("--overwrite", *options))
        assert done.returncode == 0, f"expected exit code 0 but got {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-3000:]}"
        rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        return [row["loss"] for row in rows], out


def exact(name, fixture):
    folder, want, state = fixture.prepare(name)
    compare(*fixture.losses(folder, "none"), want, state)


def compare(losses, out, want, state):
    assert len(losses) == STEPS and want[0] > 0
    for i, (a, b) in enumerate(zip(losses, want, strict=True)):
        assert abs(a - b) <= 1e-6 * abs(b), f"step {i}: expected a loss of {b} but got {a}"
    tensors = t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    for path, value in state.items():
        bound, off = 1e-6 * np.max(np.abs(value)), np.max(np.abs(tensors[path] - value))
        assert off <= bound, f"expected '{path}' to be within {bound} of JAX's but got {off}"


def in_fp8(recipe, fixture):
    """Scales are of a device's own values; amaxes in histories are of all devices."""
    folder, want, _ = fixture.prepare("tensor")
    losses, _ = fixture.losses(folder, recipe)
    apart = max(abs(a - b) for a, b in zip(losses, want, strict=True))
    assert 0 < apart <= 0.02 * want[0], f"expected losses near those of f32 but got {apart} apart"


def alone(fixture):
    folder, _, _ = fixture.prepare("data")
    done, _ = fixture.run(folder, "none", 1)
    assert done.returncode != 0 and "expected at least 2 ranks, which the step was written for, but got 1" in done.stderr, done.stderr[-2000:]


if __name__ == "__main__":
    fixture = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    cases = {name: functools.partial(exact, name) for case in CASES for name in (case, f"{case}-adamw")}
    cases |= {recipe: functools.partial(in_fp8, recipe) for recipe in ("tensorwise", "delayed")}
    cases["alone"] = alone
    t.run_cases(cases, sys.argv[4:], fixture)
