"""Smooth-SwiGLU on two ranks that have half of a gated unit's channels each, compared
with one process that has all of them.

    python shard_map_smooth.py FP8_RUN FOLDER LAUNCHER [CASE...]

The second half of the linear branch is 64 times as large as the first: a rank with only
the first half would compute other factors of tokens.
"""

import functools
import json
import pathlib
import sys

import shard_map
from shard_map import CLASSES, HIDDEN, STEPS, WIDTH, dense, mean_of_all, part

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P
from safetensors.numpy import load_file

# The dots in front of the product are not quantized, so that the linear branches have the same
# bits.
RECIPE = """
name: smooth
forward:
  activation: {format: f8E4M3FN}
  weight: {format: f8E4M3FN}
dgrad:
  gradient: {format: f8E5M2}
  weight: {format: f8E4M3FN}
wgrad:
  activation: {format: f8E4M3FN}
  gradient: {format: f8E5M2}
rules:
""" + "".join(f"  - keep: {{path: \"params['{key}']\"}}\n" for key in ("in", "gate", "up", "out"))
SMOOTH = ("--set", "smooth_swiglu.granularity=token")
DOWN = "params['down']"


def unit(x, p, cut=lambda w, dim: w):
    return (jax.nn.silu(x @ cut(p["gate"], 1)) * (x @ cut(p["up"], 1))) @ cut(p["down"], 0)


def of_ranks(p, b):
    """Splits the gate and the linear branch by columns, and the down projection by rows."""
    x = lax.all_gather(b["x"] @ p["in"], "devices", axis=0, tiled=True)
    y = lax.psum_scatter(unit(x, p, part), "devices", scatter_dimension=0, tiled=True)
    return mean_of_all(jnp.square(y @ p["out"] - b["y"]))


def of_one(p, b):
    return jnp.mean(jnp.square(unit(b["x"] @ p["in"], p) @ p["out"] - b["y"]))


class Smoothing(shard_map.Fixture):
    def build(self, name, random):
        shapes = {"in": (WIDTH, WIDTH), "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH), "out": (WIDTH, CLASSES)}
        params = {key: dense(random, *shape) for key, shape in shapes.items()}
        params["up"][:, HIDDEN // 2 :] *= 64
        params["down"][HIDDEN // 2 :] /= 64
        optimizer = optax.sgd(3e-5)
        loss = {"ranks": of_ranks, "one": of_one}[name]

        def step(params, opt, batch):
            value, grads = jax.value_and_grad(loss)(params, batch)
            updates, opt = optimizer.update(grads, opt, params)
            return optax.apply_updates(params, updates), opt, {"loss": value}

        mesh = Mesh(np.array(jax.devices()), ("devices",))
        if name == "ranks":
            step = jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("devices")), out_specs=P())
        return params, optimizer.init(params), jax.jit(step)

    def both(self, *options, steps=STEPS):
        """Returns losses and folders of the ranks and of one process, and JAX's losses."""
        found = []
        self.folder.mkdir(parents=True, exist_ok=True)
        recipe = self.folder / "smooth.yaml"
        recipe.write_text(RECIPE)
        for name, ranks in (("ranks", shard_map.RANKS), ("one", 1)):
            folder, want, _ = self.prepare(name)
            done, out = self.run(folder, recipe, ranks, steps, options=("--overwrite", *options))
            assert done.returncode == 0, done.stderr[-3000:]
            losses = [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]
            found.append((losses, out))
        return *found, want


def first_tokens(folder):
    """Returns the first step's product and linear branch, of all tokens in f64."""
    p = {key.split("'")[1]: np.float64(value) for key, value in load_file(folder / "init.safetensors").items() if key.startswith("params")}
    x = np.float64(load_file(folder / "rows.safetensors")["x"][: shard_map.BATCH]) @ p["in"]
    gate, linear = x @ p["gate"], x @ p["up"]
    return gate / (1 + np.exp(-gate)) * linear, linear


def factors(linear):
    return np.exp2(np.ceil(np.log2(np.abs(linear).max(axis=-1) / 448)))


def current(fixture):
    """Rank 0 has the small half, and quantizes it with the factors that one process has."""
    (losses, out), (alone, _), want = fixture.both(*SMOOTH, "--trace")
    product, linear = first_tokens(fixture.folder / "ranks")
    half = np.abs(product[:, : HIDDEN // 2])
    expected = (half / factors(linear)[:, None]).max()
    other = (half / factors(linear[:, : HIDDEN // 2])[:, None]).max()
    row = json.loads((out / "trace.jsonl").read_text().splitlines()[0])
    amaxes = [each["amax"] for name, each in row["tensors"].items() if name.startswith(DOWN) and name.endswith("activation")]
    assert other > 16 * expected and amaxes, (other, expected, row)
    assert all(abs(amax - expected) <= 1e-4 * expected for amax in amaxes), f"expected amaxes of {expected} but got {amaxes}"
    travels = [each for each in json.loads((out / "verdicts.json").read_text())["collectives"] if each["what"] == "amax of tokens"]
    assert len(travels) == 1 and travels[0]["wire"] == "f32", travels
    near(losses, alone, want)


def delayed(fixture):
    """The state has the factor of every token, with the bits of one process."""
    options = (*SMOOTH, "--set", "smooth_swiglu.scaling=delayed")
    (_, out), (_, other), _ = fixture.both(*options, steps=1)
    _, linear = first_tokens(fixture.folder / "ranks")
    name = f"fp8.{DOWN}.smooth.quantizer"
    ours, theirs = (t.load_tensors(folder / "checkpoint-1.safetensors")[name].ravel() for folder in (out, other))
    assert np.array_equal(ours, theirs) and np.array_equal(1 / ours, factors(linear)), (ours, theirs, factors(linear))
    (losses, _), (alone, _), want = fixture.both(*options)
    near(losses, alone, want)


def channel(fixture):
    """A channel's factor needs only its own rank: nothing is sent for it."""
    (losses, out), (alone, _), want = fixture.both("--set", "smooth_swiglu.granularity=channel")
    assert "amax of" not in json.dumps(json.loads((out / "verdicts.json").read_text())["collectives"])
    near(losses, alone, want)


def near(losses, alone, want):
    """The ranks' losses differ from one process by at most four times its difference from JAX in
    f32."""
    gap = max(abs(a - b) for a, b in zip(alone, want, strict=True))
    apart = max(abs(a - b) for a, b in zip(losses, alone, strict=True))
    print(f"one process at most {gap:.2e} from f32, ranks at most {apart:.2e} from one process")
    assert 0 < gap <= 0.05 * want[0] and apart <= 4 * gap, (losses, alone, want)


if __name__ == "__main__":
    fixture = Smoothing(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    t.run_cases({"current": current, "delayed": delayed, "channel": channel}, sys.argv[4:], fixture)
