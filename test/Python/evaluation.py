"""fp8.evaluate, fp8.export_weights and Step.cost agree with fp8-run."""

import gc
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import steps
from safetensors.numpy import load_file, save_file

import fp8

FP8_RUN = sys.argv.pop(1)
COUNT = 3  # held-out batches


def loss(state, batch):
    out = steps.forward(state[0], batch["x"])
    return {"loss": jnp.mean((out - batch["y"]) ** 2), "size": jnp.mean(jnp.abs(out))}


def held_out():
    return [steps.batch(100 + i) for i in range(COUNT)]


def leaves(root, tree):
    return {root + jax.tree_util.keystr(path): np.array(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}


class BesideFP8Run(unittest.TestCase):
    """A run of three steps, and the same steps in Python."""

    @classmethod
    def setUpClass(cls):
        name = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.folder = folder = pathlib.Path(name)
        cls.batch, state = steps.batch(), steps.state()
        for name, function in (("step", steps.tupled), ("eval", loss)):
            (folder / f"{name}.mlir").write_text(jax.jit(function, keep_unused=True).lower(state, cls.batch).as_text(debug_info=True))
        save_file(leaves("state", state), folder / "init.safetensors")
        feeds = []
        for i, (path, leaf) in enumerate(leaves("batch", cls.batch).items()):
            np.save(folder / f"{i}.npy", leaf[None])
            feeds += ["--batch", f"{path}={folder / str(i)}.npy"]
        rows = [leaves("batch", batch) for batch in held_out()]
        for i, path in enumerate(rows[0]):
            np.save(folder / f"eval{i}.npy", np.stack([row[path] for row in rows]))
            feeds += ["--eval-batch", f"{path}={folder / f'eval{i}'}.npy"]
        subprocess.run([FP8_RUN, folder / "step.mlir", "--init", folder / "init.safetensors", "--eval", folder / "eval.mlir", *feeds,
                        "--recipe", "scaling_fp8", "--steps", "3", "--out", folder / "out", "--quiet",
                        "--export-weights", folder / "weights", "--export-format", "f8E4M3FN"], check=True)  # fmt: skip
        cls.step = fp8.compile(steps.tupled, state, cls.batch, recipe="scaling_fp8", evaluate=loss)
        for _ in range(3):
            state, _ = cls.step(state, cls.batch)
        cls.state = state

    def test_evaluate(self):
        line = json.loads((self.folder / "out" / "log.jsonl").read_text().splitlines()[-1])
        before = np.array(self.state[0]["in"])
        got = fp8.evaluate(self.step, self.state, batches=held_out())
        self.assertEqual(got["heldout_loss"], line["heldout_loss"])
        self.assertEqual(got["heldout_metrics"], line["heldout_metrics"])
        self.assertEqual(got["batches"], COUNT)
        # The state is unchanged; state that was read from a file, or given as arrays, can be
        # evaluated too.
        np.testing.assert_array_equal(np.asarray(self.state[0]["in"]), before)
        loaded = self.step.load_state(self.folder / "out" / "checkpoint-3.safetensors", self.state)
        self.assertEqual(fp8.evaluate(self.step, loaded, batches=iter(held_out())), got)
        plain = jax.tree.map(np.asarray, self.state)
        other = fp8.evaluate(self.step, plain, batches=held_out())
        self.assertLess(abs(other["heldout_loss"] - got["heldout_loss"]), 0.02 * got["heldout_loss"])

    def test_signals(self):
        """The program's handlers run while it evaluates, and what they raise ends it; what it ignores does nothing."""

        def leave(number, _):
            raise SystemExit(number)

        def evaluate_until(number):
            sender = threading.Timer(0.2, os.kill, (os.getpid(), number))
            sender.start()
            while sender.is_alive():
                fp8.evaluate(self.step, self.state, batches=many)

        # Python ignores what a handler raises within a callback of the garbage collector; JAX has one.
        gc.disable()
        self.addCleanup(gc.enable)
        many, got = held_out() * 50, []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self.addCleanup(signal.signal, number, signal.getsignal(number))
                signal.signal(number, lambda number, _: got.append(number))
                evaluate_until(number)
                self.assertEqual(got.pop(), number)
                signal.signal(number, signal.SIG_IGN)
                evaluate_until(number)
                signal.signal(number, leave)
                with self.assertRaises(SystemExit):
                    evaluate_until(number)

    def test_losses_of_parts(self):
        """Of several results named so, the loss is the one with the shortest path; the others have longer names."""

        def step(state, batch):
            state, metrics = steps.tupled(state, batch)
            return state, {**metrics, "a": {"loss": jnp.mean(batch["x"])}}

        def parts(state, batch):
            return {**loss(state, batch), "a": {"loss": jnp.float32(7)}}

        compiled = fp8.compile(step, steps.state(), self.batch, recipe="none", evaluate=parts)
        got = fp8.evaluate(compiled, steps.state(), batches=held_out())
        self.assertNotEqual(got["heldout_loss"], 7)
        self.assertEqual(got["heldout_metrics"]["result['a']['loss']"], 7)
        rules = ["loss > 0 : warn", "result[1]['loss'] > 0 : warn", "a.loss > 1e6 : warn"]
        trainer = fp8.Trainer(compiled, self.folder / "parts", progress=False, alarms=rules)
        with self.assertWarns(fp8.AlarmWarning):
            trainer.fit(steps.state(), [self.batch], 1)
        (line,) = (json.loads(text) for text in (self.folder / "parts" / "log.jsonl").read_text().splitlines())
        self.assertEqual([text.split(" is ")[0] for text in line["alarms"]], ["step 1: loss", "step 1: result[1]['loss']"])

    def test_export(self):
        out = self.folder / "own"
        fp8.export_weights(self.step, out, self.state, format="f8E4M3FN", batches=held_out())
        for name in ("model.safetensors", "export.json"):
            self.assertEqual((out / name).read_bytes(), (self.folder / "weights" / name).read_bytes(), name)
        # A state that was loaded from a checkpoint keeps the step's number.
        loaded = self.step.load_state(self.folder / "out" / "checkpoint-3.safetensors", self.state)
        fp8.export_weights(self.step, out, loaded, format="f8E4M3FN", batches=held_out())
        self.assertEqual((out / "export.json").read_bytes(), (self.folder / "weights" / "export.json").read_bytes())
        fp8.export_weights(self.step, out, loaded, format="f32", number=7)
        manifest = json.loads((out / "export.json").read_text())
        self.assertEqual((manifest["step"], manifest["format"]), (7, "f32"))
        self.assertNotIn("heldout_loss", manifest)
        weights = load_file(out / "model.safetensors")
        self.assertEqual(len(weights), 4)
        with self.assertRaisesRegex(fp8.CompileError, "expected an export format f32, bf16 or f8E4M3FN but got 'f16'"):
            fp8.export_weights(self.step, out, self.state, format="f16")
        with self.assertRaises(OSError):
            fp8.export_weights(self.step, self.folder / "step.mlir" / "below", self.state)

    def test_a_loss_without_a_name(self):
        """Which of several scalars is the loss must not depend on the order of their names in silence."""
        scalars = lambda state, batch: {"accuracy": jnp.float32(0.5), "xent": steps.tupled(state, batch)[1]["loss"]}
        with self.assertWarnsRegex(fp8.CompileWarning, r"that is called loss but got result\['accuracy'\], result\['xent'\]: result\['accuracy'\] is taken for it"):
            fp8.compile(steps.tupled, steps.state(), steps.batch(), recipe="none", evaluate=scalars)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for one in (
                lambda state, batch: scalars(state, batch)["xent"],
                lambda state, batch: (scalars(state, batch)["xent"], {"accuracy": 0.5}),
                lambda state, batch: {"a": jnp.float32(1), "loss": scalars(state, batch)["xent"]},
                lambda state, batch: {"labels": batch["x"][0], "xent": scalars(state, batch)["xent"]},
            ):
                fp8.compile(steps.tupled, steps.state(), steps.batch(), recipe="none", evaluate=one)

    def test_wrong_batches(self):
        evaluate = lambda *state, **data: fp8.evaluate(self.step, *state, **data)
        short = {**steps.batch(), "x": jnp.ones((31, 48))}
        with self.assertRaisesRegex(TypeError, r"batch\['x'\]: expected float32\[32,48\] but got float32\[31,48\]"):
            evaluate(self.state, batches=[short])
        with self.assertRaisesRegex(TypeError, r"expected batch\['weights'\]\['unused'\], batch\['x'\], batch\['y'\] but got batch\['x'\]"):
            evaluate(self.state, batches=[{"x": steps.batch()["x"]}])
        with self.assertRaisesRegex(ValueError, "expected held-out batches but got none"):
            evaluate(self.state, batches=[])
        with self.assertRaisesRegex(ValueError, r"expected held-out batches, or held-out text \(data, eval_data\), but got neither"):
            evaluate(self.state)
        for held, text in ((held_out, "but got a function"), ({"seed": 3}, "but got neither")):
            with self.assertRaisesRegex((TypeError, ValueError), f"held_out: expected .* {text}"):
                fp8.Trainer(self.step, self.folder / "none", held_out=held)
        for error, text, data in (
            (ValueError, "expected seed to be 0 or more but got -1", {"seed": -1}),
            (ValueError, "expected seed to be at most 18446744073709551615 but got 18446744073709551616", {"seed": 2**64}),
            (ValueError, "expected a held-out fraction below 1", {"holdout": math.nan}),
        ):
            with self.assertRaisesRegex(error, text):
                evaluate(self.state, batches=held_out(), **data)
        with self.assertRaisesRegex(TypeError, "expected number to be an integer but got 1.5"):
            fp8.export_weights(self.step, self.folder / "none", self.state, number=1.5)
        with self.assertRaisesRegex(TypeError, "expected the arguments that hold state, of state, batch, but got none"):
            evaluate(batches=held_out())
        for call in (lambda: fp8.evaluate(steps.tupled, self.state, batches=held_out()), lambda: fp8.export_weights(steps.tupled, self.folder / "none", self.state)):
            with self.assertRaisesRegex(TypeError, "expected a step that fp8.compile or fp8.load has returned but got function"):
                call()
        plain = fp8.compile(steps.tupled, steps.state(), self.batch, recipe="none")
        with self.assertRaisesRegex(ValueError, "expected a step with an evaluation"):
            fp8.evaluate(plain, steps.state(), batches=held_out())
        with self.assertRaisesRegex(ValueError, "expected a step with an evaluation for the held-out data"):
            fp8.export_weights(plain, self.folder / "none", steps.state(), batches=held_out())

    def test_packages(self):
        self.step.save(self.folder / "package")
        loaded = fp8.load(self.folder / "package")
        self.assertEqual(loaded.cost, self.step.cost)
        state = loaded.load_state(self.folder / "out" / "checkpoint-3.safetensors", self.state)
        self.assertEqual(fp8.evaluate(loaded, state, batches=held_out()), fp8.evaluate(self.step, self.state, batches=held_out()))
        with self.assertRaisesRegex(ValueError, "expected a package that exports bf16 but got one for none"):
            fp8.export_weights(loaded, self.folder / "none", state, format="bf16")
        (self.folder / "package" / "trees.json").write_text('{"roots": [')
        with self.assertRaisesRegex(ValueError, r"trees\.json: expected JSON but got "):
            fp8.load(self.folder / "package")
        # A package of an fp8-run that exports weights.
        subprocess.run([FP8_RUN, self.folder / "step.mlir", "--init", self.folder / "init.safetensors", "--eval", self.folder / "eval.mlir", "--recipe", "scaling_fp8",
                        "--export-weights", "-", "--export-format", "bf16", "--emit-package", self.folder / "exporting", "--quiet"], check=True)  # fmt: skip
        exporting = fp8.load(self.folder / "exporting")
        state = exporting.load_state(self.folder / "out" / "checkpoint-3.safetensors", self.state)
        for name, step, current in (("one", exporting, state), ("two", self.step, self.state)):
            fp8.export_weights(step, self.folder / name, current, format="bf16", batches=held_out())
        for name in ("model.safetensors", "export.json"):
            self.assertEqual((self.folder / "one" / name).read_bytes(), (self.folder / "two" / name).read_bytes(), name)


class Evaluations(unittest.TestCase):
    def test_arguments_of_its_own(self):
        """The evaluation takes parameters alone, by path, with another batch size; or it is a
        module; values agree with JAX's."""
        state, batch = steps.state(), steps.batch()
        small = {name: value[:8] for name, value in batch.items() if name != "weights"}

        def error(params, batch):
            return jnp.mean((steps.forward(params, batch["x"]) - batch["y"]) ** 2)

        text = jax.jit(error).lower(state[0], small).as_text(debug_info=True)
        for evaluation in ((error, state[0], small), text):
            step = fp8.compile(steps.tupled, state, batch, recipe="none", evaluate=evaluation)
            current, _ = step(state, batch)
            got = fp8.evaluate(step, current, batches=[small, small])
            self.assertEqual(got["heldout_metrics"], {})
            np.testing.assert_allclose(got["heldout_loss"], error(jax.tree.map(jnp.asarray, current[0]), small), rtol=1e-5)

    def test_without_a_loss(self):
        vector = lambda state, batch: batch["y"][:, 0] * loss(state, batch)["loss"]
        text = jax.jit(vector).lower(steps.state(), steps.batch()).as_text(debug_info=True)
        for evaluation in (vector, text):
            with self.assertRaisesRegex(fp8.CompileError, r"expected an evaluation that returns a loss, a floating-point scalar, but got result.*: F32\[32\]"):
                fp8.compile(steps.tupled, steps.state(), steps.batch(), recipe="delayed", evaluate=evaluation)

    def test_errors_name_the_evaluation(self):
        with self.assertRaisesRegex(fp8.CompileError, r"evaluation\.py:\d+:\d+: stablehlo.real is not supported"):
            fp8.compile(steps.tupled, steps.state(), steps.batch(), recipe="none", evaluate=lambda state, batch: jnp.fft.fft(batch["x"]).real.mean())
        with self.assertRaisesRegex(TypeError, "expected example arguments with the evaluation"):
            fp8.compile("module {\n}", evaluate=loss)


class Costs(unittest.TestCase):
    def test_cost(self):
        step = fp8.compile(steps.tupled, steps.state(), steps.batch(), recipe="none")
        cost = step.cost
        # Forward and weight gradients of four layers, and input gradients of all layers but the
        # first.
        sizes = [array.size for array in steps.parameters().values()]
        self.assertEqual(cost["dot_flops"], 2 * 32 * (3 * sum(sizes) - sizes[0]))
        self.assertEqual(cost["dot_flops"], sum(2 * d["batch"] * d["m"] * d["n"] * d["k"] for d in step.verdicts))
        self.assertTrue(cost["exact"])
        self.assertGreater(cost["flops"], cost["dot_flops"])
        for key in ("flops", "dot_flops", "bytes"):
            self.assertEqual(cost[key], sum(launch["runs"] * launch[key] for launch in cost["launches"]))
        # Parameters and both moments are read and written.
        self.assertGreater(cost["bytes"], 6 * 4 * sum(sizes))
        step(steps.state(), steps.batch())
        state, _ = step(steps.state(), steps.batch())
        step.profile()
        step(state, steps.batch())
        self.assertEqual(sorted(row["name"] for row in step.profile(on=False)), sorted(launch["name"] for launch in cost["launches"]))


if __name__ == "__main__":
    unittest.main()
