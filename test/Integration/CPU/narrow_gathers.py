"""Values that a step gathers from several ranks are sent in the type in which they are read: payloads, or bf16.

    python narrow_gathers.py FP8_RUN FOLDER LAUNCHER [CASE...]

Rows of all devices (sequence parallelism) and weights that are split over several devices are
gathered in front of dots. Each case runs a step twice: as it is, and with the largest gathered
entry as a metric, so that another op reads the value and it is sent whole. Losses and parameters
of both have the same bits, and those of `none` equal JAX's.
"""

import functools
import json
import pathlib
import sys

import shard_map
from shard_map import Fixture, compare, dense, mean_of_all, part

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

# With this batch a rank's part is not small.
shard_map.BATCH = BATCH = 64
WIDTH, HIDDEN, CLASSES = shard_map.WIDTH, 256, shard_map.CLASSES
gather = functools.partial(lax.all_gather, axis_name="devices", tiled=True)


def parameters(random):
    return {"in": dense(random, WIDTH, HIDDEN), "mid": dense(random, HIDDEN, HIDDEN), "out": dense(random, HIDDEN, CLASSES)}


def rows(p, b):
    """A dot that is split by columns on the rows of all devices, then a dot that is split by rows.
    """
    x = gather(jax.nn.gelu(b["x"] @ p["in"]), axis=0)
    h = jax.nn.gelu(x @ part(p["mid"], 1)) @ part(p["out"], 0)
    return lax.psum_scatter(h, "devices", scatter_dimension=0, tiled=True), x


def positions(p, b):
    """The same where rows are sequences of which another device has the second half."""
    x = jax.nn.gelu(b["x"] @ p["in"]).reshape(-1, 4, HIDDEN)
    x = gather(x, axis=1)
    h = (jax.nn.gelu(x @ part(p["mid"], 1)) @ part(p["out"], 0)).reshape(-1, 2, 4, CLASSES)
    return lax.psum_scatter(h, "devices", scatter_dimension=1, tiled=True).reshape(-1, CLASSES), x


def weights(p, b):
    """Weights that are gathered for one dot only."""
    mid = gather(part(p["mid"], 0), axis=0)
    return jax.nn.gelu(jax.nn.gelu(b["x"] @ p["in"]) @ mid) @ p["out"], mid


def columns(p, b):
    """Weights whose columns are split over several devices."""
    mid = gather(part(p["mid"], 1), axis=1)
    return jax.nn.gelu(jax.nn.gelu(b["x"] @ p["in"]) @ mid) @ p["out"], mid


CASES = {f.__name__: f for f in (rows, positions, weights, columns)}
# The type in which the input of the dot with `mid` is sent if only the dot reads it.
WIRES = {"none": "f32", "bf16": "bf16"} | dict.fromkeys(("tensorwise", "rowwise", "blockwise", "delayed", "mxfp8"), "f8E4M3FN")
# Here a tile of consecutive tokens has tokens of several devices, so that the input is sent whole.
WHOLE = ("positions-blockwise",)


class Gathering(Fixture):
    def build(self, name, random):
        case, _, probe = name.partition("-")

        def loss(p, b):
            y, gathered = CASES[case](p, b)
            return mean_of_all(jnp.square(y - b["y"])), lax.pmax(jnp.max(lax.stop_gradient(gathered)), "devices")

        optimizer = optax.sgd(0.3, momentum=0.9)

        def step(params, opt, batch):
            (value, largest), grads = jax.value_and_grad(loss, has_aux=True)(params, batch)
            updates, opt = optimizer.update(grads, opt, params)
            return optax.apply_updates(params, updates), opt, {"loss": value} | ({"largest": largest} if probe else {})

        mesh = Mesh(np.array(jax.devices()), ("devices",))
        jitted = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("devices")), out_specs=P()))
        params = parameters(random)
        return params, optimizer.init(params), jitted


def wires(out, elements):
    rows = json.loads((out / "verdicts.json").read_text())["collectives"]
    return [row for row in rows if row["what"] == "all_gather" and np.prod(row["shape"]) == elements]


def check(name, fixture):
    case, recipe = name.split("-")
    folder, want, state = fixture.prepare(case)
    probed, _, _ = fixture.prepare(f"{case}-probe")
    options = ("--trace",) if recipe == "delayed" else ()
    losses, out = fixture.losses(folder, recipe, *options)
    whole, beside = fixture.losses(probed, recipe, *options)
    if recipe == "none":
        compare(losses, out, want, state)
    assert losses == whole, f"expected {whole} but got {losses}"
    ours, theirs = (t.load_tensors(o / f"checkpoint-{shard_map.STEPS}.safetensors") for o in (out, beside))
    for path, value in theirs.items():
        assert np.array_equal(ours[path], value), f"expected the same bits of {path}"
    elements = HIDDEN * (HIDDEN // 2 if case in ("weights", "columns") else BATCH // 2)
    got, read = wires(out, elements), wires(beside, elements)
    wire = "f32" if name in WHOLE else WIRES[recipe]
    assert got and all((row["from"], row["wire"]) == ("f32", wire) for row in got), f"expected {wire} but got {got}"
    assert [row["wire"] for row in read] == ["f32"], f"expected what is read as a metric to travel whole but got {read}"
    assert read[0]["reason"].startswith("not narrower: read by stablehlo."), read


if __name__ == "__main__":
    fixture = Gathering(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    recipes = {"rows": WIRES, "positions": ("tensorwise", "blockwise"), "weights": ("none", "bf16", "rowwise"), "columns": ("tensorwise", "mxfp8")}
    cases = {f"{case}-{recipe}": functools.partial(check, f"{case}-{recipe}") for case in CASES for recipe in recipes[case]}
    t.run_cases(cases, sys.argv[4:], fixture)
