"""Steps written with jax.shard_map whose weights and state are split over devices:
on four ranks as JAX trains on as many host devices.

    python shard_map_state.py FP8_RUN FOLDER LAUNCHER [CASE...]

Two devices share rows, two share weights. What is outside of shard_map, all of the
optimizer in some cases, sees whole tensors. Checkpoints hold whole tensors.
"""

import functools
import os
import pathlib
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
import optax
import shard_map
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from shard_map import BATCH, CLASSES, HIDDEN, STEPS, WIDTH, dense

MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "tensor"))
COLUMNS_AND_ROWS = {"in": P(None, "tensor"), "out": P("tensor")}
LAYERS = {"in": (WIDTH, HIDDEN), "out": (HIDDEN, CLASSES)}


def tensor(p, b):
    """Columns of the first dot, rows of the second."""
    y = lax.psum(jax.nn.gelu(b["x"] @ p["in"]) @ p["out"], "tensor")
    return lax.pmean(jnp.mean(jnp.square(y - b["y"])), "data")


def sequence(p, b):
    """Between dots each device has rows of its own."""
    x = lax.all_gather(b["x"], "tensor", axis=0, tiled=True)
    y = lax.psum_scatter(jax.nn.gelu(x @ p["in"]) @ p["out"], "tensor", scatter_dimension=0, tiled=True)
    return lax.pmean(jnp.mean(jnp.square(y - b["y"])), ("data", "tensor"))


def pipeline(p, b):
    """A stage a device; micro-batches go from one to the next in a loop."""
    index, stages = lax.axis_index("tensor"), MESH.shape["tensor"]
    micro = b["x"].reshape(2, -1, WIDTH)
    micro = jnp.concatenate([micro, jnp.zeros((stages - 1, *micro.shape[1:]), micro.dtype)])
    micro = lax.pcast(micro, "tensor", to="varying")

    def tick(carry, new):
        out = jnp.tanh(jnp.where(index == 0, new, carry) @ p["stages"][0])
        return lax.ppermute(out, "tensor", [(i, i + 1) for i in range(stages - 1)]), out

    _, outs = lax.scan(tick, jnp.zeros_like(micro[0]), micro)
    loss = jnp.mean(jnp.square(outs[stages - 1 :].reshape(-1, WIDTH) @ p["out"] - b["y"]))
    return lax.pmean(lax.psum(jnp.where(index == stages - 1, loss, 0.0), "tensor"), "data")


def two(p, b):
    """A shard_map for each dot; differentiated from outside."""
    first = jax.shard_map(jnp.matmul, mesh=MESH, in_specs=(P("data"), P(None, "tensor")), out_specs=P("data", "tensor"))
    second = jax.shard_map(
        lambda x, w: lax.psum(x @ w, "tensor"), mesh=MESH, in_specs=(P("data", "tensor"), P("tensor")), out_specs=P("data")
    )
    return jnp.mean(jnp.square(second(jax.nn.gelu(first(b["x"], p["in"])), p["out"]) - b["y"]))


SGD = optax.sgd(0.1, momentum=0.9)
# With a smaller epsilon Adam divides rounding by itself.
ADAMW = optax.adamw(1e-2, eps=1e-3)
OUTSIDE = optax.chain(optax.clip_by_global_norm(0.3), ADAMW)
STAGES = {"stages": (2, WIDTH, WIDTH), "out": (WIDTH, CLASSES)}
# Loss, shapes of parameters and how they are split, rows, optimizer (and where it is).
CASES = {
    "tensor": (tensor, LAYERS, COLUMNS_AND_ROWS, P("data"), SGD, "inside"),
    "tensor-adamw": (tensor, LAYERS, COLUMNS_AND_ROWS, P("data"), ADAMW, "inside"),
    "sequence": (sequence, LAYERS, COLUMNS_AND_ROWS, P(("data", "tensor")), ADAMW, "inside"),
    "pipeline": (pipeline, STAGES, {"stages": P("tensor"), "out": P()}, P("data"), SGD, "inside"),
    "outside": (tensor, LAYERS, COLUMNS_AND_ROWS, P("data"), OUTSIDE, "outside"),
    "two": (two, LAYERS, COLUMNS_AND_ROWS, None, OUTSIDE, "outside"),
}


class Fixture(shard_map.Fixture):
    def build(self, name, random):
        loss, shapes, specs, rows, optimizer, where = CASES[name]
        params = {key: dense(random, *shape) for key, shape in shapes.items()}
        opt = optimizer.init(params)
        opt_specs = jax.tree.map_with_path(lambda path, _: specs.get(getattr(path[-1], "key", None), P()), opt)

        def update(params, opt, value, grads):
            updates, opt = optimizer.update(grads, opt, params)
            return optax.apply_updates(params, updates), opt, {"loss": value}

        grads = jax.value_and_grad(loss)
        if rows and where == "outside":
            grads = jax.shard_map(grads, mesh=MESH, in_specs=(specs, rows), out_specs=(P(), specs))

        def step(params, opt, batch):
            return update(params, opt, *grads(params, batch))

        if where == "inside":
            step = jax.shard_map(step, mesh=MESH, in_specs=(specs, opt_specs, rows), out_specs=(specs, opt_specs, P()))
        return params, opt, jax.jit(step)


def exact(name, *options_and_fixture):
    *options, fixture = options_and_fixture
    folder, want, state = fixture.prepare(name)
    shard_map.compare(*fixture.losses(folder, "none", *options), want, state)


def in_fp8(recipe, fixture):
    """Scales of a device's own parts."""
    folder, want, _ = fixture.prepare("tensor")
    losses, _ = fixture.losses(folder, recipe)
    apart = max(abs(a - b) for a, b in zip(losses, want, strict=True))
    assert 0 < apart <= 0.05 * want[0], f"expected losses near those of f32 but got {apart} apart"


def resumed(fixture):
    folder, want, state = fixture.prepare("tensor-adamw")
    for steps, option in ((3, "--overwrite"), (STEPS, "--resume")):
        done, out = fixture.run(folder, "none", steps=steps, options=(option, "--sharded-checkpoints"))
        assert done.returncode == 0, done.stderr[-3000:]
    parts = [path.stat().st_size for path in out.glob(f"checkpoint-{STEPS}-*.safetensors")]
    assert len(parts) == 4 and max(parts) <= 0.5 * sum(parts), f"expected a share of the state from each rank but got files of {parts} bytes"
    tensors = t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    for path, value in state.items():
        bound, off = 1e-6 * np.max(np.abs(value)), np.max(np.abs(tensors[path] - value))
        assert off <= bound, f"expected '{path}' to be within {bound} of JAX's but got {off}"


def automatic(fixture):
    """A jit with shardings and without shard_map."""
    folder, _, _ = fixture.prepare("two")
    shardings = NamedSharding(MESH, P("tensor")), NamedSharding(MESH, P("data"))
    step = jax.jit(lambda w, x: (w * jnp.mean(x @ w), jnp.mean(x @ w)), in_shardings=shardings)
    (folder / "step.mlir").write_text(step.lower(jnp.ones((WIDTH, 8)), jnp.ones((8, WIDTH))).as_text())
    done, _ = fixture.run(folder, "none")
    message = "a jit that is split over 4 devices automatically does not run on ranks: write the step in jax.shard_map"
    assert done.returncode != 0 and message in done.stderr, done.stderr[-2000:]


if __name__ == "__main__":
    assert BATCH % 4 == 0
    fixture = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    cases = {name: functools.partial(exact, name) for name in CASES}
    cases |= {recipe: functools.partial(in_fp8, recipe) for recipe in ("tensorwise", "delayed")}
    # Owners update what all ranks read as a whole; what they read parts of, all do.
    cases |= {f"{name}-zero": functools.partial(exact, name, "--zero", "1") for name in ("tensor-adamw", "outside")}
    cases |= {"resumed": resumed, "automatic": automatic}
    t.run_cases(cases, sys.argv[4:], fixture)
