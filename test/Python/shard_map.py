"""A step in jax.shard_map from Python, whose ranks hold parts of weights and moments: it has the bits of fp8-run on two ranks, and state is read and
saved as whole arrays.

    shard_map.py FP8_RUN FOLDER LAUNCHER           runs the tests
    shard_map.py --program NAME FOLDER [OPTION...] runs the program of a rank
"""

import json
import os
import pathlib
import sys
import unittest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"  # read when JAX starts

import fp8
import jax
import jax.numpy as jnp
import numpy as np
import optax
import ranks
from jax import lax
from jax.sharding import Mesh, PartitionSpec as P

STEPS, ROWS, WIDTH, HIDDEN, CLASSES = 4, 8, 32, 64, 16
OPTIMIZER = optax.adamw(1e-2)
SHAPES = {"in": (WIDTH, HIDDEN), "out": (HIDDEN, CLASSES), "bias": (CLASSES,)}
SPECS = {"in": P(None, "tensor"), "out": P("tensor"), "bias": P()}
# Both moments in FP8, with one scale each.
STORED = {"optimizer.min_elements": "1024", "optimizer.moment1.format": "f8E4M3FN", "optimizer.moment1.tile": "tensor",
          "optimizer.moment2.format": "f8E5M2", "optimizer.moment2.tile": "tensor"}  # fmt: skip


def initial():
    random = np.random.default_rng(0)
    params = {name: (random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32) for name, shape in SHAPES.items()}
    return {"params": params, "opt": jax.tree.map(np.asarray, OPTIMIZER.init(params))}


def batch(number, rows=ROWS):
    """Returns the rows of one rank."""
    random = np.random.default_rng(100 + number)
    return {"x": random.standard_normal((rows, WIDTH)).astype(np.float32), "y": random.standard_normal((rows, CLASSES)).astype(np.float32)}


def example():
    """Returns the batch of the step: the rows of both ranks."""
    return batch(0, 2 * ROWS)


def forward(params, x):
    return jax.nn.gelu(x @ params["in"]) @ params["out"]


def evaluation(state, batch):
    return jnp.mean(jnp.square(forward(state["params"], batch["x"]) + state["params"]["bias"] - batch["y"]))


def step_on(devices, data=1):
    """Returns a step that splits the first dot by columns and the second by rows over `devices`; between dots
    each device has its own rows."""
    mesh = Mesh(np.array(jax.devices()[: data * devices]).reshape(data, devices), ("data", "tensor"))

    def loss(params, batch):
        x = lax.all_gather(batch["x"], "tensor", axis=0, tiled=True)
        y = lax.psum_scatter(forward(params, x), "tensor", scatter_dimension=0, tiled=True) + params["bias"]
        return lax.pmean(jnp.mean(jnp.square(y - batch["y"])), ("data", "tensor"))

    def step(state, batch):
        value, grads = jax.value_and_grad(loss)(state["params"], batch)
        updates, opt = OPTIMIZER.update(grads, state["opt"], state["params"])
        return {"params": optax.apply_updates(state["params"], updates), "opt": opt}, {"loss": value}

    specs = jax.tree.map_with_path(lambda path, _: SPECS.get(getattr(path[-1], "key", None), P()), initial())
    return jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(specs, P(("data", "tensor"))), out_specs=(specs, P())))


def text_of_step():
    return jax.jit(step_on(2), keep_unused=True).lower(initial(), example()).as_text(debug_info=True)


def by_path(state):
    return {f"state{jax.tree_util.keystr(path)}": np.asarray(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]}


# ------------------------------------------------------------------- programs


def compiled(group, options, **more):
    given = dict(recipe="delayed" if "delayed" in options else "none", set=STORED if "stored" in options else None, group=group, zero=int("zero" in options), threads=1, **more)
    return fp8.compile(step_on(2), initial(), example(), evaluate=(evaluation, initial(), batch(0)), **given)


def loop(folder, options):
    """Runs a loop of calls, and everything that reads its state."""
    with fp8.Group() as group:
        step8, state, losses = compiled(group, options), initial(), []
        for number in range(STEPS):
            state, metrics = step8(state, batch(number * group.size + group.rank))
            losses.append(float(metrics["loss"]))
        assert step8._functions.is_dealt == ("zero" in options)
        weight = state["params"]["in"]
        assert weight.shape == SHAPES["in"]
        expect(RuntimeError, "call step8.gather(state) on all ranks", lambda: np.asarray(weight))
        expect(BufferError, "of which each has a part", lambda: np.from_dlpack(weight))
        if "zero" not in options:
            np.from_dlpack(state["params"]["bias"])
        kept = fp8.copy(state)
        step8.gather(state)
        np.savez(folder / f"{group.rank}.npz", **by_path(state))
        step8.gather(kept)
        assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(state), strict=True))
        again = jax.tree.map(np.asarray, state)
        values = {"losses": losses, "heldout": fp8.evaluate(step8, state, batches=[batch(number) for number in range(5)])["heldout_loss"]}
        step8.save_state(folder / "saved.safetensors", state)
        fp8.export_weights(step8, folder / "weights", state)
        states = [state, kept, *(step8.load_state(folder / file, state) for file in ("saved.safetensors", f"fp8-run/checkpoint-{STEPS}.safetensors.index.json"))]
        values["next"] = [float(step8(each, batch(group.rank))[1]["loss"]) for each in states]
        expect(RuntimeError, "which a later step has replaced", lambda: np.asarray(weight))
        # A step can begin from the state that was read.
        values["anew"] = float(step8(again, batch(group.rank))[1]["loss"])
        (folder / f"{group.rank}.json").write_text(json.dumps(values))


def of_text(folder, options):
    """Compiles the module's text, and loads a package of its step."""
    with fp8.Group() as group:
        step8, state, losses = fp8.compile(folder / "step.mlir", recipe="none", group=group, threads=1), initial(), []
        for number in range(STEPS):
            state, metrics = step8(state, batch(number * group.size + group.rank))
            losses.append(float(metrics["loss"]))
        step8.save_state(folder / "text.safetensors", state)
        if group.rank == 0:
            step8.save(folder / "package")
        group.gather()
        loaded = fp8.load(folder / "package", threads=1, group=group)
        assert float(loaded(initial(), batch(group.rank))[1]["loss"]) == losses[0]
        (folder / f"{group.rank}.text.json").write_text(json.dumps(losses))


def trained(folder, options):
    """Trains with fp8.Trainer, in two parts."""
    with fp8.Group() as group:
        step8 = compiled(group, options)
        for begin, end in ((0, 2), (2, STEPS)):
            trainer = fp8.Trainer(step8, folder / "run", progress=False, checkpoint_every=1, held_out=[batch(number) for number in range(5)])
            trainer.fit(initial(), map(batch, range(begin * group.size, 100)), end, resume=True)


def continued(folder, options):
    """fp8.Trainer resumes a run of fp8-run."""
    with fp8.Group() as group:
        fp8.Trainer(compiled(group, options), folder / "fp8-run", progress=False).fit(initial(), map(batch, range(100)), STEPS + 1, resume=True)


def shared(folder, options):
    """Two ranks hold the same part with different values, which is an error."""
    with fp8.Group() as group:
        step8, state = fp8.compile(step_on(2, data=2), initial(), batch(0, 4 * ROWS), recipe="none", group=group, threads=1), initial()
        step8(state, batch(group.rank))
        if group.rank == 3:
            state["params"]["out"][-1, 0] += 1
        message = "rank 3 of 4 has another state['params']['out'] than rank 1"
        expect(fp8.RankError, message, lambda: step8(state, batch(group.rank)))


def expect(kind, text, function):
    try:
        function()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(f"expected {kind.__name__}: {text}")


# ---------------------------------------------------------------------- tests


class Case(ranks.Case):
    def program(self, name, *options):
        return [sys.executable, __file__, "--program", name, self.folder, *options]


class SameBits(Case):
    """Python agrees with fp8-run on two ranks."""

    def fp8_run(self, options):
        """Returns the losses, and the state after the last step."""
        import fp8_testing

        fp8_testing.save_tree(self.folder / "init.safetensors", state=initial())
        (self.folder / "step.mlir").write_text(text_of_step())
        feeds, rows = [], [batch(number) for number in range(2 * STEPS)]
        for key in ("x", "y"):
            np.save(self.folder / f"{key}.npy", np.concatenate([each[key] for each in rows]))
            feeds += ["--batch", f"batch['{key}']={self.folder / key}.npy"]
        sets = [word for pair in (STORED.items() if "stored" in options else ()) for word in ("--set", "=".join(pair))]
        self.by_mpi([ranks.FP8_RUN, self.folder / "step.mlir", "--init", self.folder / "init.safetensors", *feeds, "--data-parallel", *sets,
                     *(["--zero", 1] if "zero" in options else []),
                     "--recipe", "delayed" if "delayed" in options else "none", "--steps", STEPS, "--threads", 1,
                     "--out", self.folder / "fp8-run", "--quiet"])  # fmt: skip
        checkpoint = self.folder / "fp8-run" / f"checkpoint-{STEPS}.safetensors"
        self.assertTrue(checkpoint.with_name(checkpoint.name + ".index.json").exists())
        return fp8_testing.losses(fp8_testing.read_log(self.folder / "fp8-run")), fp8_testing.load_tensors(checkpoint)

    def assert_same_state(self, found, want):
        self.assertEqual(sorted(found), sorted(want))
        same = lambda a, b: a.shape == b.shape and a.tobytes() == b.tobytes()
        self.assertEqual([path for path in want if not same(want[path], found[path])], [])

    def compare(self, *options):
        import fp8_testing

        losses, state = self.fp8_run(options)
        self.assertEqual(len(set(losses)), STEPS)
        self.assertEqual("state['opt'][0].mu['in'].scale" in state, "stored" in options)
        self.by_mpi(self.program("loop", *options))
        values = [json.loads((self.folder / f"{rank}.json").read_text()) for rank in (0, 1)]
        self.assertEqual(values[0], values[1])
        self.assertEqual(ranks.bits(values[0]["losses"]), ranks.bits(losses))
        self.assertEqual(len(set(values[0]["next"])), 1, values[0])
        if "delayed" not in options:
            # (Amax histories begin empty, and moments are rounded again.)
            self.assertEqual(values[0]["anew"], values[0]["next"][0])
        self.assert_same_state(fp8_testing.load_tensors(self.folder / "saved.safetensors"), state)
        read = {path: np.float32(state[path]) * state[f"{path}.scale"] if f"{path}.scale" in state else state[path] for path in by_path(initial())}
        for rank in (0, 1):
            self.assert_same_state(np.load(self.folder / f"{rank}.npz"), read)
        exported = fp8_testing.load_tensors(self.folder / "weights" / "model.safetensors")
        for name in SHAPES:
            (found,) = (value for path, value in exported.items() if path.split(".")[-1] == name)
            self.assertEqual(found.tobytes(), state[f"state['params']['{name}']"].tobytes())
        params = {name: read[f"state['params']['{name}']"] for name in SHAPES}
        want = np.mean([float(evaluation({"params": params}, batch(number))) for number in range(5)])
        self.assertLess(abs(values[0]["heldout"] - want), (1e-2 if "delayed" in options else 1e-5) * want)

        self.by_mpi(self.program("trained", *options))
        lines = [json.loads(line) for line in (self.folder / "run" / "log.jsonl").read_text().splitlines()]
        self.assertEqual(ranks.bits(line["loss"] for line in lines), ranks.bits(losses))
        self.assertEqual(lines[-1]["heldout_loss"], values[0]["heldout"])
        self.assert_same_state(fp8_testing.load_tensors(self.folder / "run" / f"checkpoint-{STEPS}.safetensors"), state)

        self.by_mpi(self.program("continued", *options))
        lines = fp8_testing.read_log(self.folder / "fp8-run")
        self.assertEqual([line["step"] for line in lines], list(range(1, STEPS + 2)))
        self.assertEqual(lines[-1]["loss"], values[0]["next"][0])
        return losses, state

    def test_as_it_is(self):
        import fp8_testing

        losses, state = self.compare()
        self.by_mpi(self.program("of_text"))
        for rank in (0, 1):
            self.assertEqual(ranks.bits(json.loads((self.folder / f"{rank}.text.json").read_text())), ranks.bits(losses))
        self.assert_same_state(fp8_testing.load_tensors(self.folder / "text.safetensors"), state)

    def test_moments_stored_in_fp8(self):
        self.compare("delayed", "stored")

    def test_what_is_whole_is_dealt(self):
        self.compare("zero")


class Ranks(Case):
    def test_parts_that_ranks_share(self):
        self.by_mpi(self.program("shared"), ranks=4)

    def test_another_number_of_ranks(self):
        message = "expected 2 ranks, which the step was written for, but got 1"
        step8 = compiled(None, [], data_parallel=True)
        with self.assertRaisesRegex(ValueError, message):
            step8(initial(), batch(0))
        with self.assertRaisesRegex(ValueError, message):
            step8.load_state(self.folder / "none.safetensors", initial())
        step8.save(self.folder / "package")
        with fp8.Group() as group:
            with self.assertRaisesRegex(ValueError, message):
                fp8.load(self.folder / "package", group=group)


if __name__ == "__main__":
    if sys.argv[1] == "--program":
        program, folder, *options = sys.argv[2:]
        globals()[program](pathlib.Path(folder), options)
    else:
        ranks.FP8_RUN, ranks.FOLDER, ranks.LAUNCHER = sys.argv[1:4]
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Integration" / "CPU"))
        pathlib.Path(ranks.FOLDER).mkdir(parents=True)
        unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
