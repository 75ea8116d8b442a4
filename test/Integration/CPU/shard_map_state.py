"""Steps written with jax.shard_map whose weights and state are split over devices train
on four ranks as JAX does on as many host devices.

    python shard_map_state.py FP8_RUN FOLDER LAUNCHER [CASE...]

Two devices share rows, and two share weights. In some cases the whole optimizer is
outside of shard_map. A rank holds its part of weights and moments. Checkpoints hold
whole tensors, from which other meshes, or one process, resume.
"""

import functools
import json
import pathlib
import shutil
import sys

import fp8_testing as t

t.use_devices(4)

import jax
import jax.numpy as jnp
import numpy as np
import optax
import shard_map
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
from safetensors.numpy import load_file
from shard_map import BATCH, CLASSES, HIDDEN, STEPS, WIDTH, dense

MESH = Mesh(np.array(jax.devices()).reshape(2, 2), ("data", "tensor"))
COLUMNS_AND_ROWS = {"in": P(None, "tensor"), "out": P("tensor")}
LAYERS = {"in": (WIDTH, HIDDEN), "out": (HIDDEN, CLASSES)}


def tensor(p, b):
    """Splits the first dot by columns and the second by rows."""
    y = lax.psum(jax.nn.gelu(b["x"] @ p["in"]) @ p["out"], "tensor")
    return lax.pmean(jnp.mean(jnp.square(y - b["y"])), "data")


def alone(p, b):
    return jnp.mean(jnp.square(jax.nn.gelu(b["x"] @ p["in"]) @ p["out"] - b["y"]))


def constrained(p, b):
    """For a jit, which splits the rows of its batch. A normalization over the batch reads all rows."""
    x = jax.nn.gelu(b["x"] @ p["in"])
    x = lax.with_sharding_constraint(x - jnp.mean(x, 0), NamedSharding(MESH, P(("data", "tensor"))))
    return jnp.mean(jnp.square(x @ p["out"] - b["y"]))


def sequence(p, b):
    """Between dots each device has its own rows."""
    x = lax.all_gather(b["x"], "tensor", axis=0, tiled=True)
    y = lax.psum_scatter(jax.nn.gelu(x @ p["in"]) @ p["out"], "tensor", scatter_dimension=0, tiled=True)
    return lax.pmean(jnp.mean(jnp.square(y - b["y"])), ("data", "tensor"))


def pipeline(p, b):
    """Each device is a stage; micro-batches go from one stage to the next in a loop."""
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
    """Has a shard_map for each dot, and is differentiated from outside."""
    first = jax.shard_map(jnp.matmul, mesh=MESH, in_specs=(P("data"), P(None, "tensor")), out_specs=P("data", "tensor"))
    second = jax.shard_map(
        lambda x, w: lax.psum(x @ w, "tensor"), mesh=MESH, in_specs=(P("data", "tensor"), P("tensor")), out_specs=P("data")
    )
    return jnp.mean(jnp.square(second(jax.nn.gelu(first(b["x"], p["in"])), p["out"]) - b["y"]))


# Both moments in FP8, with one scale each.
STORED = [word for moment, form in (("moment1", "f8E4M3FN"), ("moment2", "f8E5M2"))
          for word in ("--set", f"optimizer.{moment}.format={form}", "--set", f"optimizer.{moment}.tile=tensor")]  # fmt: skip
SGD = optax.sgd(0.1, momentum=0.9)
# With a smaller epsilon Adam would divide by rounding errors.
ADAMW = optax.adamw(1e-2, eps=1e-3)
OUTSIDE = optax.chain(optax.clip_by_global_norm(0.3), ADAMW)
STAGES = {"stages": (2, WIDTH, WIDTH), "out": (WIDTH, CLASSES)}
# The loss, the shapes of parameters and how they are split, how rows are split, the optimizer and
# where it is.
CASES = {
    "tensor": (tensor, LAYERS, COLUMNS_AND_ROWS, P("data"), SGD, "inside"),
    "tensor-adamw": (tensor, LAYERS, COLUMNS_AND_ROWS, P("data"), ADAMW, "inside"),
    "sequence": (sequence, LAYERS, COLUMNS_AND_ROWS, P(("data", "tensor")), ADAMW, "inside"),
    "pipeline": (pipeline, STAGES, {"stages": P("tensor"), "out": P()}, P("data"), SGD, "inside"),
    "outside": (tensor, LAYERS, COLUMNS_AND_ROWS, P("data"), OUTSIDE, "outside"),
    "two": (two, LAYERS, COLUMNS_AND_ROWS, None, OUTSIDE, "outside"),
    "jit": (constrained, LAYERS, {}, P(("data", "tensor")), OUTSIDE, "jit"),
    "split jit": (constrained, LAYERS, {"out": P("tensor")}, P("data"), OUTSIDE, "jit"),
}
# The step of "tensor-adamw" for other numbers of ranks.
OTHERS = {"on-two": Mesh(np.array(jax.devices()[:2]).reshape(1, 2), ("data", "tensor")), "on-one": None}


class Fixture(shard_map.Fixture):
    def build(self, name, random):
        mesh = OTHERS.get(name, MESH)
        loss, shapes, specs, rows, optimizer, where = CASES["tensor-adamw" if name in OTHERS else name]
        if mesh is None:
            loss, where = alone, "outside"
        params = {key: dense(random, *shape) for key, shape in shapes.items()}
        opt = optimizer.init(params)
        opt_specs = jax.tree.map_with_path(lambda path, _: specs.get(getattr(path[-1], "key", None), P()), opt)

        def update(params, opt, value, grads):
            updates, opt = optimizer.update(grads, opt, params)
            return optax.apply_updates(params, updates), opt, {"loss": value}

        grads = jax.value_and_grad(loss)
        if rows and where == "outside" and mesh:
            grads = jax.shard_map(grads, mesh=mesh, in_specs=(specs, rows), out_specs=(P(), specs))

        def step(params, opt, batch):
            return update(params, opt, *grads(params, batch))

        if where == "inside":
            step = jax.shard_map(step, mesh=mesh, in_specs=(specs, opt_specs, rows), out_specs=(specs, opt_specs, P()))
        if where == "jit":
            split = {key: NamedSharding(mesh, specs.get(key, P())) for key in params}
            return params, opt, jax.jit(step, in_shardings=(split, None, NamedSharding(mesh, rows)))
        return params, opt, jax.jit(step)


def exact(name, *options_and_fixture):
    *options, fixture = options_and_fixture
    folder, want, state = fixture.prepare(name)
    shard_map.compare(*fixture.losses(folder, "none", *options), want, state)


def in_fp8(recipe, fixture):
    """Scales are of a device's own parts."""
    folder, want, _ = fixture.prepare("tensor")
    losses, _ = fixture.losses(folder, recipe)
    apart = max(abs(a - b) for a, b in zip(losses, want, strict=True))
    assert 0 < apart <= 0.05 * want[0], f"expected losses near those of f32 but got {apart} apart"


def in_parts(name, fixture):
    """A rank holds its part of weights and moments, and gathers none of them."""
    folder, _, _ = fixture.prepare(name)
    _, out = fixture.losses(folder, "none")
    specs = CASES[name][2]
    arguments = sum(-(-4 * BATCH // 4 * width // 64) * 64 for width in (WIDTH, CLASSES))
    for path, value in load_file(folder / "init.safetensors").items():
        parts = 2 if any(f"['{key}']" in path and spec != P() for key, spec in specs.items()) else 1
        arguments += -(-value.nbytes // parts // 64) * 64
    got = json.loads((out / "memory.json").read_text())["step"]["arguments"]
    assert got == arguments, f"expected arguments of {arguments} bytes but got {got}"
    travels = [row["what"] for row in json.loads((out / "verdicts.json").read_text())["collectives"]]
    assert travels and "all_gather" not in travels, f"expected no all_gather but got {travels}"


def evaluated(fixture):
    """Evaluations and exports see whole weights."""
    folder, _, state = fixture.prepare("tensor-adamw")
    shapes = {key: jnp.zeros(shape, jnp.float32) for key, shape in LAYERS.items()}
    batch = {"x": jnp.zeros((BATCH, WIDTH)), "y": jnp.zeros((BATCH, CLASSES))}
    evaluate = jax.jit(lambda params, batch: {"loss": alone(params, batch)})
    (folder / "eval.mlir").write_text(evaluate.lower(shapes, batch).as_text(debug_info=True))
    rows = folder / "rows.safetensors"
    feeds = [word for key in ("x", "y") for word in ("--eval-batch", f"batch['{key}']={rows}:{key}")]
    options = ("--eval", folder / "eval.mlir", *feeds, "--export-weights", folder / "weights")
    _, out = fixture.losses(folder, "none", *options)
    held = [row["heldout_loss"] for row in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if "heldout_loss" in row]
    want = float(alone({key: state[f"params['{key}']"] for key in LAYERS}, load_file(rows)))
    assert len(held) == 1 and abs(held[0] - want) <= 1e-5 * want, f"expected a held-out loss of {want} but got {held}"
    exported, saved = load_file(folder / "weights" / "model.safetensors"), t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    for key in LAYERS:
        (found,) = (value for name, value in exported.items() if key in name)
        assert np.array_equal(found, saved[f"params['{key}']"]), f"expected the export to have the bits of {key}"


def moved(fixture):
    """Runs on other numbers of ranks resume where four ranks stopped, and four ranks resume theirs.
    """
    folder, want, state = fixture.prepare("tensor-adamw")
    done, first = fixture.run(folder, "none", steps=3)
    assert done.returncode == 0, done.stderr[-3000:]
    for name, ranks in (("on-two", 2), ("on-one", 1)):
        other, _, _ = fixture.prepare(name)
        shutil.rmtree(other / "none", ignore_errors=True)
        shutil.copytree(first, other / "none")
        done, out = fixture.run(other, "none", ranks, steps=4, options=("--resume",))
        assert done.returncode == 0, done.stderr[-3000:]
        back = fixture.folder / f"back-{name}"
        shutil.copytree(folder, back, ignore=shutil.ignore_patterns("none"))
        shutil.copytree(out, back / "none")
        done, out = fixture.run(back, "none", options=("--resume",))
        assert done.returncode == 0, done.stderr[-3000:]
        rows = [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]
        shard_map.compare(rows, out, want, state)


def packaged(fixture):
    """A package has the parts too; another number of ranks is an error."""
    folder, want, state = fixture.prepare("tensor-adamw")
    t.run([fixture.fp8_run, folder / "step.mlir", "--recipe", "none", "--data-parallel", "--emit-package", folder / "package"])
    shutil.rmtree(folder / "none", ignore_errors=True)
    train = dict(program=fixture.fp8_run.replace("fp8-run", "fp8-train"), step=folder / "package")
    done, out = fixture.run(folder, "none", options=("--overwrite",), **train)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]
    shard_map.compare(rows, out, want, state)
    done, _ = fixture.run(folder, "none", 2, options=("--overwrite",), **train)
    assert done.returncode != 0 and "expected 4 ranks, which the step was written for, but got 2" in done.stderr, done.stderr[-2000:]


def stored(name, fixture):
    """Moments in FP8: all parts have the scale of the whole, which the checkpoint stores. A run can
    begin from such a file as from values in f32."""
    folder, want, _ = fixture.prepare(name)
    options = ("--set", "optimizer.min_elements=1024", *STORED)
    losses, out = fixture.losses(folder, "none", *options)
    assert max(abs(a - b) for a, b in zip(losses, want, strict=True)) <= 0.02 * want[0], f"expected losses near {want} but got {losses}"
    tensors = t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    kinds = {"mu": ("float8_e4m3fn", 448), "nu": ("float8_e5m2", 57344)}
    for path, value in tensors.items():
        for kind, (dtype, largest) in kinds.items():
            if f".{kind}[" in path and not path.endswith(".scale") and value.size >= 1024:
                assert value.dtype.name == dtype and tensors[f"{path}.scale"].size == 1, (path, value.dtype)
                assert np.abs(np.float32(value)).max() == largest, f"expected the largest entry of all parts to have the largest code of {path}"
    names = [path for path in tensors if path.endswith(".scale")]
    assert len(names) == 4, f"expected scales of four moments but got {names}"
    rows = json.loads((out / "verdicts.json").read_text())["collectives"]
    assert "all_gather" not in [row["what"] for row in rows] and sum(row["what"].startswith("amax") for row in rows) == 4, rows
    # The four ranks round their parts of the stored values once.
    done, again = fixture.run(folder, "none", steps=STEPS + 1, options=("--resume", *options))
    assert done.returncode == 0, done.stderr[-3000:]


def grouped(expand, fixture):
    """Groups of 128 along the last dimension are stored as by one process, with the ranges of groups as in COAT
    if they are expanded. No group of 'out' is split over ranks; groups of 'in' would be, so that it stays in f32."""
    options = ["--set", "optimizer.min_elements=1024", *(word.replace("tile=tensor", "tile=1x128") for word in STORED)]
    if expand:
        options += [word for moment in ("moment1", "moment2") for word in ("--set", f"optimizer.{moment}.expand=true")]
    found = []
    for name, ranks in (("tensor-adamw", 4), ("on-one", 1)):
        folder, _, _ = fixture.prepare(name)
        done, out = fixture.run(folder, "none", ranks, 1, options=("--overwrite", *options))
        assert done.returncode == 0, done.stderr[-3000:]
        found.append(t.load_tensors(out / "checkpoint-1.safetensors"))
        done, _ = fixture.run(folder, "none", ranks, 2, options=("--resume", *options))
        assert done.returncode == 0, done.stderr[-3000:]
    parts, whole = found
    for kind in ("mu", "nu"):
        path = f"opt[0].{kind}['out']"
        assert parts[path].dtype == whole[path].dtype and parts[path].dtype.itemsize == 1, (parts[path].dtype, whole[path].dtype)
        (ours, theirs), (a, b) = ([each[p] for each in found] for p in (path, f"{path}.scale"))
        # The range of a group, which its scale follows, depends on its smallest element.
        near = lambda a, b: a.shape == b.shape == (HIDDEN, 1) and np.all(np.abs(a - b) <= (1e-3 if expand else 1e-4) * np.abs(b))
        assert near(a, b), (a, b)
        # Gradients are summed in another order, which changes few codes, by one step.
        assert np.mean(ours == theirs) > 0.98, f"expected the codes of one process for {path} but got {np.mean(ours == theirs)} of them"
        for suffix in (".center", ".exponent") if expand else ():
            a, b = (each[path + suffix] for each in found)
            assert near(a, b), (path + suffix, a, b)
        assert parts[f"opt[0].{kind}['in']"].dtype == np.float32


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


def refused(fixture):
    """A jit without shard_map that splits its weights is refused."""
    folder, _, _ = fixture.prepare("split jit")
    done, _ = fixture.run(folder, "none")
    message = "expected a jit to split nothing but the rows of its batch over devices, to run on ranks, but it splits"
    assert done.returncode != 0 and message in done.stderr, done.stderr[-2000:]


if __name__ == "__main__":
    assert BATCH % 4 == 0
    fixture = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    cases = {name: functools.partial(exact, name) for name in CASES if name != "split jit"}
    cases |= {recipe: functools.partial(in_fp8, recipe) for recipe in ("tensorwise", "delayed")}
    # With ZeRO owners update the weights that are whole on all ranks; all ranks update their parts
    # of split ones.
    cases |= {f"{name}-zero": functools.partial(exact, name, "--zero", "1") for name in ("tensor-adamw", "outside")}
    cases |= {f"{name}-parts": functools.partial(in_parts, name) for name in ("tensor-adamw", "outside", "pipeline")}
    cases |= {f"{name}-stored": functools.partial(stored, name) for name in ("tensor-adamw", "outside")}
    cases |= {"resumed": resumed, "grouped": functools.partial(grouped, False), "expanded": functools.partial(grouped, True), "evaluated": evaluated, "moved": moved, "packaged": packaged, "refused": refused}
    t.run_cases(cases, sys.argv[4:], fixture)
