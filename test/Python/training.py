"""fp8.Trainer: logs, checkpoints, resuming, and what ends a run early."""

import csv
import gc
import io
import json
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import warnings
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import steps
from safetensors.numpy import save_file

import fp8
from fp8 import report_page
from fp8.state import Memory
from fp8.trainer import metadata_of

FP8_RUN = sys.argv.pop(1)


def batches(count=100, begin=0):
    return (steps.batch(i) for i in range(begin, count))


def same(batch):
    return batch


def spoiled(state, batch):
    """A step with a finite loss whose gradient the batch can spoil, and with the best loss so far."""
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch["x"] @ w) ** 2))(state["w"])
    return {"w": state["w"] - 0.1 * batch["factor"] * gradient, "best": jnp.minimum(state["best"], loss) + batch["reset"]}, {"loss": loss}


def spoiled_state():
    return {"w": np.ones((32, 32), np.float32), "best": np.float32(np.inf)}


def spoiled_batch(factor=1, reset=0):
    return {"x": np.ones((32, 32), np.float32), "factor": np.float32(factor), "reset": np.float32(reset)}


class Training(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state = steps.state()
        cls.step = fp8.compile(steps.tupled, cls.state, steps.batch(), recipe="coat")

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.out = self.folder / "run"

    def trainer(self, out=None, **options):
        return fp8.Trainer(self.step, out or self.out, progress=False, **options)

    def lines(self, out=None):
        return [json.loads(line) for line in ((out or self.out) / "log.jsonl").read_text().splitlines()]

    def test_a_run(self):
        seen = []
        state = self.trainer(checkpoint_every=2, keep_checkpoints=2, log=seen.append).fit(self.state, batches(), 7)
        lines = self.lines()
        self.assertEqual([line["step"] for line in lines], list(range(1, 8)))
        self.assertEqual([line["loss"] for line in lines], [line["loss"] for line in seen])
        self.assertEqual(list(lines[0]["metrics"]), ["result[1]['norm']"])
        self.assertEqual(int(state[1][1][0].count), 7)
        self.assertEqual(sorted(path.name for path in self.out.iterdir()),
                         ["checkpoint-6.safetensors", "checkpoint-7.safetensors", "log.csv", "log.jsonl", "memory.json", "preset.yaml", "recipe.yaml", "verdicts.json"])  # fmt: skip
        rows = (self.out / "log.csv").read_text().splitlines()
        self.assertEqual(rows[0], "step,loss,seconds,result[1]['norm']")
        self.assertEqual([float(row.split(",")[1]) for row in rows[1:]], [line["loss"] for line in lines])
        # An iterable may end earlier.
        self.trainer(self.out.parent / "short").fit(self.state, batches(3), 7)
        self.assertEqual(len(self.lines(self.out.parent / "short")), 3)

    def test_resuming_is_one_long_run(self):
        long = self.trainer(self.folder / "long").fit(self.state, batches(), 6)
        self.trainer().fit(self.state, batches(), 4)
        lines = self.lines()
        lines[-1]["seconds"] = 1000.0
        with open(self.out / "log.jsonl", "w") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))
            file.write('{"step": 5, "loss": 0, "metrics": {}}\n{"step": 6, "lo')  # as if the run was killed
        with self.assertRaisesRegex(FileExistsError, "expected no earlier run"):
            self.trainer().fit(self.state, batches(), 6)
        trainer = self.trainer()
        again = trainer.fit(self.state, batches(begin=4), 6, resume=True)
        self.assertEqual([line["loss"] for line in self.lines()], [line["loss"] for line in self.lines(self.folder / "long")])
        self.assertEqual([line["seconds"] >= 1000 for line in self.lines()], [False] * 3 + [True] * 3)
        for one, two in zip(jax.tree.leaves(long), jax.tree.leaves(again), strict=True):
            self.assertEqual(np.asarray(one).tobytes(), np.asarray(two).tobytes())
        self.assertEqual((self.out / "checkpoint-6.safetensors").read_bytes(), (self.folder / "long" / "checkpoint-6.safetensors").read_bytes())
        # No step is left to take.
        trainer.fit(self.state, batches(), 6, resume=True)
        self.trainer().fit(self.state, batches(), 2, overwrite=True)
        self.assertEqual(len(self.lines()), 2)

    def test_one_run_in_a_directory(self):
        def others():
            for batch in batches():
                with self.assertRaisesRegex(BlockingIOError, "another run writes to"):
                    self.trainer().fit(self.state, batches(), 1, overwrite=True)
                yield batch

        self.trainer().fit(self.state, others(), 2)
        self.assertEqual(len(self.lines()), 2)
        self.trainer().fit(self.state, batches(), 1, overwrite=True)

    def test_processes_that_load_data(self):
        """They are forked during a run, of which they keep nothing: neither its lock nor what it does with signals."""
        pools, before = [], signal.getsignal(signal.SIGTERM)

        def loaded(first, count):
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # JAX's about forks
                pools.append(multiprocessing.get_context("fork").Pool(1))
            self.assertEqual(pools[-1].map(signal.getsignal, [signal.SIGTERM]), [before])
            self.assertNotEqual(signal.getsignal(signal.SIGTERM), before)
            yield from pools[-1].imap(same, jax.tree.map(np.asarray, list(batches(first + count, first))))

        self.trainer().fit(self.state, loaded(0, 2), 2)
        self.trainer().fit(self.state, loaded(2, 2), 4, resume=True)
        self.assertEqual(len(self.lines()), 4)
        for pool in pools:
            pool.terminate()
            pool.join()

    def test_resuming_passes_over_a_damaged_checkpoint(self):
        whole = self.trainer(self.folder / "whole").fit(self.state, batches(), 5)
        self.trainer(checkpoint_every=2).fit(self.state, batches(), 4)
        newest = self.out / "checkpoint-4.safetensors"
        newest.write_bytes(newest.read_bytes()[:-1])
        trainer = self.trainer()
        with self.assertWarnsRegex(UserWarning, "passing over a damaged checkpoint: .*checkpoint-4"):
            self.assertEqual(trainer.taken, 2)
        with warnings.catch_warnings(action="ignore"):
            resumed = trainer.fit(self.state, batches(begin=2), 4, resume=True)
        resumed = self.trainer().fit(self.state, batches(begin=4), 5, resume=True)
        for one, two in zip(jax.tree.leaves(resumed), jax.tree.leaves(whole), strict=True):
            self.assertEqual(np.asarray(one).tobytes(), np.asarray(two).tobytes())
        # It does not count among those to keep, whatever its bytes are.
        (self.out / "checkpoint-5.safetensors").write_bytes(b"no tensors")
        with warnings.catch_warnings(action="ignore"):
            self.trainer(checkpoint_every=1, keep_checkpoints=1).fit(self.state, batches(begin=2), 4, resume=True)
        self.assertEqual(self.trainer()._checkpoints(), [4, 5])

    def test_files_of_others_stay(self):
        self.out.mkdir(parents=True)
        (self.out / "log.txt").write_text("mine")
        for _ in range(2):
            self.trainer().fit(self.state, batches(), 1, overwrite=True)
        self.assertEqual((self.out / "log.txt").read_text(), "mine")
        own = self.folder / "own" / "recipe.yaml"
        own.parent.mkdir()
        own.write_text("name: mine\n")
        with self.assertRaisesRegex(FileExistsError, "expected no '.*recipe.yaml', which the run would replace"):
            self.trainer(own.parent).fit(self.state, batches(), 1)
        self.assertEqual(own.read_text(), "name: mine\n")
        package = self.folder / "package"
        self.step.save(package)
        before = {path.name: path.read_bytes() for path in package.iterdir()}
        with self.assertRaisesRegex(FileExistsError, "expected another directory for the run than that of a package"):
            self.trainer(package).fit(self.state, batches(), 1, overwrite=True)
        self.assertEqual({path.name: path.read_bytes() for path in package.iterdir()}, before)

    def test_mistakes_remove_no_earlier_run(self):
        self.trainer().fit(self.state, batches(), 2)
        before = {path.name: path.read_bytes() for path in self.out.iterdir()}

        def failing():
            raise RuntimeError("no data")
            yield

        for state, data, error in ((self.state[:1], batches(), "."), (self.state, None, "but got a NoneType"), (self.state, failing(), "no data")):
            with self.assertRaisesRegex((TypeError, ValueError, RuntimeError), error):
                self.trainer().fit(state, data, 3, overwrite=True)
            self.assertEqual({path.name: path.read_bytes() for path in self.out.iterdir()}, before)
        (self.out / "checkpoint-2.safetensors").write_bytes(b"no tensors")
        with self.assertRaisesRegex(ValueError, "got damaged ones only"), warnings.catch_warnings(action="ignore"):
            self.trainer().fit(self.state, batches(), 3, resume=True)
        self.assertEqual(len(self.lines()), 2)

    def test_a_checkpoint_of_another_state(self):
        trainer = self.trainer()
        state = trainer.fit(self.state, batches(), 2)
        edited = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), state)
        self.assertFalse(np.asarray(self.step.load_state(trainer.checkpoint(edited), self.state)[0]["in"]).any())
        with self.assertRaisesRegex(TypeError, "expected an array that can be written"):
            np.add.at(state[0]["in"], 0, 1)

    def test_resuming_with_another_recipe_warns(self):
        self.trainer().fit(self.state, batches(), 2)
        other = fp8.compile(steps.tupled, self.state, steps.batch(), recipe="coat", set={"compute.logits_bytes": 4096})
        with self.assertWarnsRegex(UserWarning, "checkpoint-2.safetensors was written with the recipe 'coat' with other keys"):
            fp8.Trainer(other, self.out, progress=False).fit(self.state, batches(begin=2), 3, resume=True)
        with warnings.catch_warnings(action="error"):
            fp8.Trainer(other, self.out, progress=False).fit(self.state, batches(begin=3), 4, resume=True)

    def test_what_ends_early_leaves_a_checkpoint(self):
        for error in (KeyboardInterrupt, OSError):
            with self.subTest(error):

                def failing(error=error):
                    yield from batches(3)
                    raise error("the data")

                out = self.folder / error.__name__
                with self.assertRaisesRegex(error, "the data"):
                    self.trainer(out).fit(self.state, failing(), 9)
                self.assertTrue((out / "checkpoint-3.safetensors").exists())
                self.trainer(out).fit(self.state, batches(begin=3), 5, resume=True)
                self.assertEqual([line["step"] for line in self.lines(out)], [1, 2, 3, 4, 5])

    def test_ctrl_c_during_a_step(self):
        """Python raises the interrupt when the native step is over: the step counts, though its result is not returned."""

        class Interrupted:
            def __init__(self, native):
                self.native = native

            def __getattr__(self, name):
                return getattr(self.native, name)

            def run(self):
                self.native.run()
                if self.native.runs == 3:
                    raise KeyboardInterrupt

        begin = Memory.__init__

        def begin_interrupted(memory, *args):
            begin(memory, *args)
            memory.native = Interrupted(memory.native)

        with unittest.mock.patch.object(Memory, "__init__", begin_interrupted), self.assertRaises(KeyboardInterrupt):
            self.trainer().fit(self.state, batches(), 9)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2, 3])
        resumed = self.trainer().fit(self.state, batches(begin=3), 5, resume=True)
        whole = self.trainer(self.folder / "whole").fit(self.state, batches(), 5)
        for one, two in zip(jax.tree.leaves(resumed), jax.tree.leaves(whole), strict=True):
            self.assertEqual(np.asarray(one).tobytes(), np.asarray(two).tobytes())

    def test_signals_that_end_a_program_leave_a_checkpoint(self):
        def ending(number):
            yield from batches(3)
            os.kill(os.getpid(), number)
            yield from batches()

        # (The tests themselves may run under nohup.)
        for number in (signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, number, signal.signal(number, signal.SIG_DFL))
        before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        for number in before:
            out = self.folder / number.name
            with self.assertRaises(SystemExit) as ended:
                self.trainer(out).fit(self.state, ending(number), 9)
            self.assertEqual(ended.exception.code, 128 + number)
            self.assertTrue((out / "checkpoint-3.safetensors").exists())
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.trainer(self.folder / "nohup").fit(self.state, ending(signal.SIGHUP), 9)
        self.assertEqual(signal.getsignal(signal.SIGTERM), before[signal.SIGTERM])

    def test_signals_within_callbacks_of_the_garbage_collector(self):
        """Python ignores what their handlers raise there; the run ends after the step."""

        def collected(*_):
            gc.callbacks.remove(collected)
            os.kill(os.getpid(), signal.SIGTERM)

        def ending():
            yield from batches(3)
            gc.callbacks.append(collected)
            gc.collect()
            yield from batches()

        self.addCleanup(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, signal.SIG_DFL))
        with unittest.mock.patch("sys.unraisablehook") as ignored, self.assertRaises(SystemExit) as ended:
            self.trainer().fit(self.state, ending(), 9)
        self.assertIs(ignored.call_args.args[0].exc_type, SystemExit)
        self.assertEqual(ended.exception.code, 128 + signal.SIGTERM)
        self.assertEqual(len(self.lines()), 4)
        self.assertTrue((self.out / "checkpoint-4.safetensors").exists())

    def test_ctrl_c_during_an_evaluation(self):
        evaluated = fp8.compile(steps.tupled, self.state, steps.batch(), recipe="none", evaluate=lambda state, batch: steps.tupled(state, batch)[1])
        trainer = fp8.Trainer(evaluated, self.out, progress=False, held_out=[steps.batch()], evaluate_every=2)
        with unittest.mock.patch("fp8.trainer.evaluate", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            trainer.fit(self.state, batches(), 9)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2])
        self.assertTrue((self.out / "checkpoint-2.safetensors").exists())
        self.assertEqual((self.out / "log.csv").read_text().splitlines()[2].split(",")[2], "")

    def test_other_states_of_the_step(self):
        """What else the step trains meanwhile does not get into the checkpoint."""

        def failing():
            other, _ = self.step(self.state, steps.batch(50))
            for i in range(3):
                other, _ = self.step(other, steps.batch(50))
                yield steps.batch(i)
            raise OSError("the data")

        with self.assertRaises(OSError):
            self.trainer().fit(self.state, failing(), 9)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2, 3])
        saved = self.step.load_state(self.out / "checkpoint-3.safetensors", self.state)
        self.assertEqual(int(saved[1][1][0].count), 3)

    def test_where_to_begin(self):
        trainer = self.trainer()
        self.assertEqual(trainer.taken, 0)
        with self.assertRaisesRegex(RuntimeError, "expected fit to have begun"):
            trainer.checkpoint(self.state)
        trainer.fit(self.state, batches(), 3)
        everything = list(batches(5))
        trainer = self.trainer()
        trainer.fit(self.state, everything[trainer.taken :], 5, resume=True)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2, 3, 4, 5])

    def test_batches_that_are_tuples(self):
        """A tuple is the step's last arguments, or the only one if that is such a tuple."""

        def named(state, batch):
            return steps.tupled(state, {"x": batch.params, "y": batch.opt})

        def spread(state, x, y):
            return steps.tupled(state, {"x": x, "y": y})

        x, y = (steps.batch()[key] for key in "xy")
        pair, losses = steps.Pair(x, y), set()
        evaluate_named, evaluate_spread = (lambda state, batch: named(state, batch)[1]["loss"]), (lambda state, x, y: spread(state, x, y)[1]["loss"])
        for step, evaluate, example, batch in (
            (named, evaluate_named, (pair,), pair),
            (spread, evaluate_spread, (x, y), (x, y)),
            (spread, evaluate_spread, (x, y), pair),
        ):
            out = self.folder / str(len(list(self.folder.iterdir())))
            compiled = fp8.compile(step, self.state, *example, recipe="none", evaluate=evaluate)
            fp8.Trainer(compiled, out, progress=False, held_out=[batch]).fit(self.state, [batch], 1)
            line = self.lines(out)[0]
            losses.add((line["loss"], line["heldout_loss"]))
        self.assertEqual(len(losses), 1)

    def test_counts(self):
        for name in ("checkpoint_every", "keep_checkpoints", "evaluate_every", "trace_every"):
            with self.assertRaisesRegex(ValueError, f"expected {name} to be 0 or more but got -1"):
                self.trainer(**{name: -1})
            with self.assertRaisesRegex(TypeError, f"expected {name} to be an integer but got 0.5"):
                self.trainer(**{name: 0.5})
        for steps_, error in ((2.5, TypeError), ("3", TypeError), (-1, ValueError)):
            with self.assertRaisesRegex(error, f"expected steps to be .* but got {steps_!r}"):
                self.trainer().fit(self.state, batches(), steps_)
        self.assertFalse(self.out.exists())

    def test_a_batch_that_does_not_fit(self):
        """It is told before an earlier run goes, and leaves nothing that would be in the way of the next try."""
        wrong = jax.tree.map(lambda x: x[1:], steps.batch())
        for given, text in (
            ([wrong], r"batch\['weights'\]\['unused'\]: expected float32\[32,3\] but got float32\[31,3\]|batch\['x'\]: expected .*"),
            (steps.batch(), "expected batches in an iterable, such as a list, but got a dict"),
            (steps.batch, "expected batches in an iterable, such as a list, but got a function"),
        ):
            with self.assertRaisesRegex(TypeError, text):
                self.trainer().fit(self.state, given, 2)
        self.trainer().fit(self.state, batches(), 2)
        with self.assertRaisesRegex(TypeError, "but got float32"):
            self.trainer().fit(self.state, [wrong], 2, overwrite=True)
        self.assertEqual(len(self.lines()), 2)
        self.assertTrue((self.out / "checkpoint-2.safetensors").exists())

    def test_rules_are_texts(self):
        for alarms in ([3], 3):
            with self.assertRaisesRegex(TypeError, "expected alarms to be texts but got 3"):
                self.trainer(alarms=alarms)

    def test_what_the_step_lacks(self):
        """It is reported before training, not when it is needed first."""
        with self.assertRaisesRegex(ValueError, "expected a step with an evaluation"):
            self.trainer(held_out=[steps.batch()])
        with self.assertRaisesRegex(ValueError, "expected held_out, the batches of the evaluation, for evaluate_every"):
            self.trainer(evaluate_every=2)
        with self.assertRaisesRegex(ValueError, "expected a step with a trace for trace_every but got one without"):
            self.trainer(trace_every=2)
        with self.assertRaisesRegex(TypeError, "expected a step that fp8.compile or fp8.load made but got function"):
            fp8.Trainer(steps.tupled, self.out)

    def test_nonfinite(self):
        def poisoned():
            yield from batches(2)
            yield {**steps.batch(), "y": jnp.full((32, 8), jnp.nan)}

        with self.assertRaisesRegex(FloatingPointError, "step 3: expected a finite loss but got nan"):
            self.trainer(checkpoint_every=1).fit(self.state, poisoned(), 9)
        self.assertEqual(self.lines()[-1]["loss"], "nan")
        self.assertFalse((self.out / "checkpoint-3.safetensors").exists())
        self.trainer().fit(self.state, batches(begin=2), 4, resume=True)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2, 3, 4])

    def test_state_that_is_not_finite(self):
        """It is not saved, and does not replace what can be continued from."""
        compiled = fp8.compile(spoiled, spoiled_state(), spoiled_batch(), recipe="tensorwise")

        def failing():
            yield from (spoiled_batch(), spoiled_batch(np.inf))
            raise OSError("the data")

        text = r"step 2: expected a finite state but got state\['w'\]\[0, 0\] = -?inf; the last checkpoint is .*checkpoint-1.safetensors"
        for name, data in (("last", [spoiled_batch(), spoiled_batch(np.inf)]), ("more", [spoiled_batch(), spoiled_batch(np.inf), spoiled_batch()])):
            trainer = fp8.Trainer(compiled, self.folder / name, progress=False, checkpoint_every=1, keep_checkpoints=1)
            with self.assertRaisesRegex(FloatingPointError, text):
                trainer.fit(spoiled_state(), data, len(data))
            self.assertEqual([path.name for path in trainer.out.glob("checkpoint-*")], ["checkpoint-1.safetensors"])
        with self.assertRaisesRegex(FloatingPointError, "expected a finite state .*; no checkpoint had been written"):
            fp8.Trainer(compiled, self.folder / "none", progress=False).fit(spoiled_state(), [spoiled_batch(np.inf)], 1)
        # The reason for which training ends stays the first one.
        with self.assertRaisesRegex(OSError, "the data") as caught:
            fp8.Trainer(compiled, self.folder / "data", progress=False).fit(spoiled_state(), failing(), 9)
        self.assertRegex(caught.exception.__notes__[0], "step 2: expected a finite state")
        self.assertEqual(list((self.folder / "data").glob("checkpoint-*")), [])
        unchecked = fp8.Trainer(compiled, self.folder / "unchecked", progress=False, stop_on_nonfinite=False)
        unchecked.fit(spoiled_state(), [spoiled_batch(np.inf)], 1)
        self.assertTrue((unchecked.out / "checkpoint-1.safetensors").exists())

    def test_state_that_begins_infinite(self):
        """The best loss so far is infinite at first, and may become so again, also in a run that continues."""
        compiled = fp8.compile(spoiled, spoiled_state(), spoiled_batch(), recipe="tensorwise")
        self.assertEqual(fp8.Trainer(compiled, self.out, progress=False, checkpoint_every=1).fit(spoiled_state(), [], 1)["best"], np.inf)
        for end in (1, 2, 3):
            again = spoiled_batch(reset=np.float32(np.inf if end == 3 else 0))
            fp8.Trainer(compiled, self.out, progress=False, checkpoint_every=1).fit(spoiled_state(), [again], end, resume=True)
        saved = compiled.load_state(self.out / "checkpoint-3.safetensors", spoiled_state())
        self.assertEqual(saved["best"], np.inf)

    def test_resuming_passes_over_damaged_lines(self):
        """As fp8-run does."""
        self.trainer(checkpoint_every=2).fit(self.state, batches(), 2)
        for name in ("log.jsonl", "log.csv"):
            whole = (self.out / name).read_bytes()
            (self.out / name).write_bytes(whole + b'{garbage\n3\n"text"\n{"step": "1"}\n\xff\n1x,2\n')
        self.trainer().fit(self.state, batches(begin=2), 4, resume=True)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2, 3, 4])
        self.assertEqual([row.split(",")[0] for row in (self.out / "log.csv").read_text().splitlines()], ["step", "1", "2", "3", "4"])

    def test_resuming_without_a_whole_log(self):
        """Rows that log.jsonl lacks are in log.csv, as for fp8-run; those that both lack are lost, and no others."""
        self.trainer(checkpoint_every=2).fit(self.state, batches(), 4)
        names, (first, *rest) = ("log.jsonl", "log.csv"), self.lines()
        whole = {name: (self.out / name).read_text() for name in names}
        cut = {name: text[: text.index("\n4,") if name == "log.csv" else len(text) // 2] for name, text in whole.items()}
        for kept, steps_kept in (
            ({"log.csv": whole["log.csv"]}, [1, 2, 3, 4]),
            ({"log.jsonl": whole["log.jsonl"]}, [1, 2, 3, 4]),
            ({"log.jsonl": whole["log.jsonl"].rstrip("\n")}, [1, 2, 3, 4]),
            ({"log.jsonl": cut["log.jsonl"], "log.csv": whole["log.csv"]}, [1, 2, 3, 4]),
            (cut, [1, 2]),
            ({"log.jsonl": whole["log.jsonl"], "log.csv": "\0" * 200000 + "\n"}, [1, 2, 3, 4]),
            ({"log.jsonl": '{"step": 1, "metrics": 3}\n' + whole["log.jsonl"] + json.dumps({**first, "loss": 0}) + "\n"}, [1, 2, 3, 4]),
            ({}, []),
        ):
            with self.subTest(str(kept)):
                for name in names:
                    (self.out / name).unlink()
                    if name in kept:
                        (self.out / name).write_text(kept[name])
                for name in self.out.glob("checkpoint-6.*"):
                    name.unlink()
                self.trainer().fit(self.state, batches(begin=4), 6, resume=True)
                self.assertEqual(self.lines()[:-2], [line for line in (first, *rest) if line["step"] in steps_kept])
                rows = [row.split(",")[0] for row in (self.out / "log.csv").read_text().splitlines()]
                self.assertEqual(rows, ["step", *map(str, steps_kept), "5", "6"])

    def test_report_of_damaged_files(self):
        self.trainer().fit(self.state, batches(), 2)
        log = self.out / "log.jsonl"
        text = log.read_text()
        (self.out / "trace.jsonl").write_text('{"step": 1, "tensors": 3}\n{"step": 1, "tensors": {"w": 3}}\n3\n')
        for damage in ("", '{"step": 2, "tensors": {"w": {"amax": 1.0}}}\n'):
            with open(self.out / "trace.jsonl", "a") as file:
                file.write(damage)
            notes = []
            trace = report_page.trace_data(self.out / "trace.jsonl", report_page.Names([]), 1000, notes)
            self.assertEqual((trace is None, len(notes)), (not damage, 3 if damage else 1))
        for metrics in ("null", "3", "[]"):
            log.write_text(text + f'{{"step": 3, "loss": 1.0, "metrics": {metrics}}}\n')
            with self.assertRaisesRegex(fp8.ReportError, "expected a step and its loss in line 3 of .*log.jsonl"):
                fp8.report(self.out)
        # A loss that is not finite is text.
        log.write_text(text + '{"step": 3, "loss": "nan", "metrics": {}}\n')
        self.assertTrue(fp8.report(self.out).exists())
        # A run that is on, or was killed, may have written a part of a line.
        log.write_bytes(text.encode() + '{"step": 3, "loss": 1.0, "metrics": {"größe'.encode()[:-3])
        notes = []
        self.assertEqual(([row["step"] for row in report_page.read_log(log, notes)], len(notes)), ([1, 2], 1))
        self.assertTrue(fp8.report(self.out).exists())

    def test_trace_and_report(self):
        traced = fp8.compile(steps.tupled, self.state, steps.batch(), recipe="delayed", trace=True)
        with self.assertRaisesRegex(ValueError, "expected a call before"):
            traced.trace()
        fp8.Trainer(traced, self.out, progress=False, trace_every=2).fit(self.state, batches(), 5)
        lines = [json.loads(line) for line in (self.out / "trace.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines], [2, 4])
        state, _ = traced(self.state, steps.batch())
        tensors = traced.trace()
        self.assertEqual(set(tensors), set(lines[0]["tensors"]))
        weight = np.asarray(self.state[0]["up"])
        row = tensors["state[0]['up'].weight"] if "state[0]['up'].weight" in tensors else tensors["state[0]['up']"]
        self.assertAlmostEqual(row["amax"], float(np.abs(weight).max()), places=5)
        self.assertGreater(row["snr"], 25)
        with self.assertRaisesRegex(ValueError, "got one without: nothing in it is quantized, or it was compiled without it"):
            state, _ = self.step(self.state, steps.batch())
            self.step.trace()
        page = fp8.report(self.out)
        self.assertEqual(page, self.out / "report.html")
        self.assertIn("</html>", page.read_text())
        with self.assertRaisesRegex(fp8.ReportError, "expected"):
            fp8.report(self.folder / "none")
        with self.assertRaisesRegex(fp8.ReportError, "cannot write '.*folder': Is a directory"):
            (self.folder / "folder").mkdir()
            fp8.report(self.out, out=self.folder / "folder")
        self.assertFalse((self.folder / "folder.tmp").exists())

    def test_files_are_utf8(self):
        """Whatever the locale: here it has ASCII alone."""
        program = """if True:
            import sys, jax, jax.numpy as jnp, fp8
            def step(state, batch):
                loss, gradient = jax.value_and_grad(lambda p: jnp.mean((jax.nn.relu(batch @ p["gr\\xf6\\xdfe"]) @ p["out"]) ** 2))(state)
                return jax.tree.map(lambda w, g: w - 0.1 * g, state, gradient), {"loss": loss}
            state, batch = {"gr\\xf6\\xdfe": jnp.ones((64, 64)), "out": jnp.ones((64, 64))}, jnp.ones((8, 64))
            recipe = {"name": "gr\\xf6\\xdfe", "forward": {part: {"format": "f8E4M3FN"} for part in ("activation", "weight")}}
            step8 = fp8.compile(step, state, batch, recipe=recipe, trace=True)
            for steps in 1, 2:
                fp8.Trainer(step8, sys.argv[1], progress=False, trace_every=1).fit(state, [batch], steps, resume=True)
            fp8.report(sys.argv[1])
        """
        environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
        subprocess.run([sys.executable, "-c", program, self.out], env=environment, check=True)
        lines = (self.out / "trace.jsonl").read_text("utf-8").splitlines()
        self.assertEqual(len(lines), 2)
        self.assertIn("größe", lines[0])

    def test_differences_from_a_preset(self):
        """The page lists a recipe's differences from its preset, as for a run of fp8-run."""
        changed = fp8.compile(steps.tupled, self.state, steps.batch(), recipe="delayed", set={"dgrad.gradient.format": "f8E4M3FN"})
        fp8.Trainer(changed, self.out, progress=False).fit(self.state, batches(), 1)
        data = report_page.recipe_data(self.out, None, [])
        differences = {key: value for key, value in data["keys"].items() if data["preset"].get(key) != value}
        self.assertEqual(differences, {"dgrad.gradient.format": "f8E4M3FN"})
        # A user's own recipe has no preset to differ from.
        mine = self.folder / "mine.yaml"
        mine.write_text(self.step.recipe.replace("name: coat", "name: mine"))
        own = fp8.compile(steps.tupled, self.state, steps.batch(), recipe=mine)
        fp8.Trainer(own, self.out, progress=False).fit(self.state, batches(), 1, overwrite=True)
        self.assertNotIn("preset", report_page.recipe_data(self.out, None, []))

    def test_held_out(self):
        step = fp8.compile(steps.tupled, self.state, steps.batch(), recipe="coat",
                           evaluate=lambda state, batch: {"loss": jnp.mean((steps.forward(state[0], batch["x"]) - batch["y"]) ** 2), "one": jnp.ones(())})  # fmt: skip
        held_out = [steps.batch(50), steps.batch(51)]
        state = fp8.Trainer(step, self.out, progress=False, held_out=held_out, evaluate_every=2).fit(self.state, batches(), 5)
        lines = self.lines()
        self.assertEqual([line["step"] for line in lines if "heldout_loss" in line], [2, 4, 5])
        self.assertEqual(lines[-1]["heldout_loss"], fp8.evaluate(step, state, batches=held_out)["heldout_loss"])
        self.assertEqual(lines[-1]["heldout_metrics"], {"result['one']": 1.0})
        rows = [row.split(",") for row in (self.out / "log.csv").read_text().splitlines()]
        self.assertEqual(rows[0][:4], ["step", "loss", "heldout_loss", "seconds"])
        self.assertEqual([row[2] != "" for row in rows[1:]], [False, True, False, True, True])
        with self.assertRaisesRegex(TypeError, "gone through again"):
            fp8.Trainer(step, self.out, held_out=iter(held_out))
        # Mistakes in a sequence are reported before training; what may be other batches each time is not read.
        cut = {**held_out[1], "x": held_out[1]["x"][:8]}
        for error, text, wrong in (
            (ValueError, "held_out: expected held-out batches but got none", []),
            (TypeError, r"held_out: batch 1: batch\['x'\]: expected float32\[32,48\] but got float32\[8,48\]", [held_out[0], cut]),
            (TypeError, r"held_out: batch 0: expected batch\['weights'\]", {"batches": [{}]}),
            (TypeError, r"held_out: expected keyword arguments of fp8.evaluate \(batches, .*\) but got batch$", {"batch": held_out}),
            (TypeError, "got an iterator", {"batches": iter(held_out)}),
        ):
            with self.assertRaisesRegex(error, text):
                fp8.Trainer(step, self.out, held_out=wrong)
        fp8.Trainer(step, self.out, held_out={"wrong": cut}.values())
        # Rows of a run without an evaluation have its columns, too.
        fp8.Trainer(step, self.out, progress=False).fit(self.state, batches(), 2, overwrite=True)
        fp8.Trainer(step, self.out, progress=False, held_out=held_out).fit(self.state, batches(begin=2), 3, resume=True)
        fp8.Trainer(step, self.out, progress=False).fit(self.state, batches(begin=3), 4, resume=True)
        with open(self.out / "log.csv", newline="") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["step", "loss", "heldout_loss", "seconds", "result[1]['norm']", "heldout result['one']"])
        self.assertEqual([(row[0], row[1], row[-1]) for row in rows[1:]], [(str(line["step"]), str(line["loss"]), "1.0" if line["step"] == 3 else "") for line in self.lines()])

    def test_alarms(self):
        def spiked():
            for i, batch in enumerate(batches()):
                yield {**batch, "y": batch["y"] * (100 if i == 2 else 1)}

        rules = ["loss > 50 : skip", "norm > 0 : warn"]
        with self.assertWarnsRegex(fp8.AlarmWarning, "skipped: step 3: loss is .*, above 50"):
            skipped = self.trainer(alarms=rules).fit(self.state, spiked(), 5)
        lines = self.lines()
        self.assertEqual([line["step"] for line in lines], [1, 2, 3, 4, 5])
        self.assertEqual([line.get("skipped", False) for line in lines], [False, False, True, False, False])
        # (An alarm that continues is reported once.)
        self.assertRegex(lines[0]["alarms"][0], r"^step 1: norm is .*, above 0 \[norm > 0 : warn\]$")
        self.assertEqual([len(line.get("alarms", [])) for line in lines], [1, 0, 1, 0, 0])
        # The result is as if that batch did not exist.
        rest = [batch for i, batch in enumerate(spiked()) if i != 2]
        state = self.trainer(self.folder / "rest").fit(self.state, rest, 4)
        for one, two in zip(jax.tree.leaves(skipped), jax.tree.leaves(state), strict=True):
            self.assertEqual(np.asarray(one).tobytes(), np.asarray(two).tobytes())

        # A warning that is an exception comes when the update is discarded.
        with self.assertRaisesRegex(fp8.AlarmWarning, "skipped: step 3"), warnings.catch_warnings():
            warnings.simplefilter("error", fp8.AlarmWarning)
            self.trainer(self.folder / "raised", alarms=rules[:1]).fit(self.state, spiked(), 5)
        self.assertTrue(self.lines(self.folder / "raised")[2]["skipped"])
        kept = self.step.load_state(self.folder / "raised" / "checkpoint-3.safetensors", self.state)
        state = self.trainer(self.folder / "two").fit(self.state, batches(), 2)
        for one, two in zip(jax.tree.leaves(kept), jax.tree.leaves(state), strict=True):
            self.assertEqual(np.asarray(one).tobytes(), np.asarray(two).tobytes())

        with self.assertRaisesRegex(fp8.AlarmStop, "stopped by an alarm: step 3: loss is .*; resume from .*checkpoint-3.safetensors"), warnings.catch_warnings():
            warnings.simplefilter("ignore", fp8.AlarmWarning)
            self.trainer(self.folder / "stop", alarms=["loss > 50 : stop"]).fit(self.state, spiked(), 5)
        self.assertTrue((self.folder / "stop" / "checkpoint-3.safetensors").exists())
        with self.assertRaisesRegex(ValueError, "there is no metric 'lss'; expected one of the step"):
            self.trainer(alarms="lss > 5 : warn")
        with self.assertRaisesRegex(ValueError, r"there is no > and no <.*ACTION is warn, stop or skip\)$"):
            self.trainer(alarms="loss")
        with self.assertRaisesRegex(ValueError, "no tensor has a 'snr'.*without --trace.*; a step compiled with trace=True has a trace"):
            self.trainer(alarms=["snr < 5 : warn"])

    def test_alarms_of_a_trace(self):
        traced = fp8.compile(steps.tupled, self.state, steps.batch(), recipe="delayed", trace=True)
        with self.assertWarnsRegex(fp8.AlarmWarning, r"step 1: snr of .* below 500"):
            fp8.Trainer(traced, self.out, progress=False, alarms=["snr < 500 : warn"]).fit(self.state, batches(), 2)

    def test_ctrl_c_after_a_skipped_step(self):
        def interrupted():
            yield steps.batch(1)
            yield {**steps.batch(2), "y": steps.batch(2)["y"] * 100}
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt), self.assertWarns(fp8.AlarmWarning):
            self.trainer(alarms=["loss > 50 : skip"]).fit(self.state, interrupted(), 5)
        self.assertEqual([line["step"] for line in self.lines()], [1, 2])
        saved = self.step.load_state(self.out / "checkpoint-2.safetensors", self.state)
        want, _ = self.step(self.state, steps.batch(1))
        np.testing.assert_array_equal(np.asarray(saved[0]["in"]), np.asarray(want[0]["in"]))

    def test_progress(self):
        """tqdm shows a bar with the steps and the loss; without tqdm there is none."""
        import tqdm.auto

        bars = []

        class Bar(tqdm.auto.tqdm):
            def __init__(self, *args, **options):
                super().__init__(*args, **options, file=io.StringIO())
                bars.append(self)

        with unittest.mock.patch("tqdm.auto.tqdm", Bar):
            fp8.Trainer(self.step, self.out).fit(self.state, batches(), 3)
            fp8.Trainer(self.step, self.out).fit(self.state, batches(begin=3), 5, resume=True)
        self.assertEqual([(bar.initial, bar.n, bar.total) for bar in bars], [(0, 3, 3), (3, 5, 5)])
        self.assertIn(f"loss={self.lines()[-1]['loss']:.3g}"[:8], bars[1].fp.getvalue() + str(bars[1].postfix))
        self.assertTrue(all(bar.disable for bar in bars), "expected closed bars")
        with unittest.mock.patch.dict(sys.modules, {"tqdm.auto": None}):
            fp8.Trainer(self.step, self.folder / "none").fit(self.state, batches(), 1)

    def test_profile(self):
        state, _ = self.step(self.state, steps.batch())
        self.assertEqual(self.step.profile(), [])
        state, _ = self.step(state, steps.batch())
        rows = self.step.profile(on=False)
        self.assertGreater(len(rows), 20)
        self.assertGreater(rows[0]["seconds"], 0)
        self.assertEqual(sorted(rows[0]), ["name", "runs", "seconds", "tasks"])

    def test_steps_of_another_form(self):
        params, opt = self.state
        step = fp8.compile(steps.flat, params, opt, steps.batch(), recipe="none")
        with self.assertRaisesRegex(TypeError, "expected a step that returns state and metrics"):
            fp8.Trainer(step, self.out)


class Files(unittest.TestCase):
    def test_states(self):
        state, batch = steps.state("keyed"), steps.batch()
        step = fp8.compile(steps.keyed, state, batch, recipe="coat")
        current = state
        for _ in range(3):
            current, _ = step(current, batch)
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "state.safetensors"
            step.save_state(path, current)
            loaded = step.load_state(path, state)
            # The file has payloads, scales and histories.
            for _ in range(2):
                current, one = step(current, batch)
                loaded, two = step(loaded, batch)
                self.assertEqual(one, two)
            other = fp8.compile(steps.keyed, state, batch, recipe="delayed")
            with self.assertRaisesRegex(ValueError, r"mu\['down'\]: expected f32\[96,64\] but got f8e4m3fn\[96,64\]"):
                other.load_state(path, state)
            plain = fp8.compile(steps.keyed, state, batch, recipe="tensorwise")
            plain.save_state(path.parent / "plain", state)
            with self.assertRaisesRegex(ValueError, r"(?s)18 missing:\s+fp8\.state\['params'\]\['in'\]\.activation.*It was written with another recipe"):
                other.load_state(path.parent / "plain", state)
            # What a recipe keeps for itself has an end with it.
            other.save_state(path.parent / "delayed", state)
            plain.load_state(path.parent / "delayed", state)
            path.write_bytes(path.read_bytes()[:1000])
            with self.assertRaises(ValueError):
                step.load_state(path, state)
            with self.assertRaises(OSError):
                step.load_state(path.parent / "none", state)
            with self.assertRaises(OSError):
                step.save_state(path.parent / "none" / "state", current)
            with self.assertRaisesRegex(TypeError, r"missing: state\['key'\]"):
                step.load_state(path, {k: v for k, v in state.items() if k != "key"})

    def test_states_of_other_programs(self):
        """Their metadata may have another step, or none."""
        state, batch = {"w": np.ones((32, 32), np.float32), "best": np.float32(1)}, spoiled_batch()
        step = fp8.compile(spoiled, state, batch, recipe="none")
        with tempfile.TemporaryDirectory() as name:
            tensors = {"state['w']": state["w"] * 2, "state['best']": np.array(state["best"])}
            for text, number in (("7", 7), ("epoch-3", 0), ("-5", 0), ("", 0)):
                save_file(tensors, f"{name}/state.safetensors", {"step": text})
                loaded = step.load_state(f"{name}/state.safetensors", state)
                np.testing.assert_array_equal(loaded["w"], tensors["state['w']"])
                step.save_state(f"{name}/again.safetensors", loaded)
                self.assertEqual(metadata_of(pathlib.Path(name) / "again.safetensors")["step"], str(number))

    def test_states_of_another_model(self):
        """All tensors that are missing or left are named; the recipe is not the cause."""

        def step(state, batch):
            loss, gradients = jax.value_and_grad(lambda params: sum(jnp.mean((batch @ w) ** 2) for w in params.values()))(state)
            return jax.tree.map(lambda w, g: w - 0.1 * g, state, gradients), {"loss": loss, "key": jax.random.key(jnp.int32(1e3 * loss))}

        states = [{f"w{i}": np.ones((32, 32), np.float32) for i in range(count)} for count in (1, 3)]
        one, three = (fp8.compile(step, state, np.ones((8, 32), np.float32), recipe="none") for state in states)
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "state.safetensors"
            for step8, state, other, like, what in ((three, states[1], one, states[0], "not wanted"), (one, states[0], three, states[1], "missing")):
                step8.save_state(path, state)
                with self.assertRaises(ValueError) as caught:
                    other.load_state(path, like)
                message = f"{path}: expected the tensors of this step's state but got others:\n  2 {what}:\n    state['w1'] f32[32,32]\n    state['w2'] f32[32,32]"
                self.assertEqual(str(caught.exception), message)
            fp8.Trainer(three, name + "/run", progress=False).fit(states[1], [np.ones((8, 32), np.float32)], 1)
            with self.assertRaisesRegex(ValueError, "2 not wanted"):
                fp8.Trainer(one, name + "/run", progress=False).fit(states[0], [], 2, resume=True)

    def test_state_called_like_the_compilers(self):
        """State of a user's argument that is called fp8 is the model's, not a recipe's own."""

        class Model(NamedTuple):
            params: dict

        def loss_of(model, x):
            for w in model.params.values():
                x = jnp.tanh(x @ w)
            return jnp.mean(x**2)

        def step(fp8, batch):
            loss, gradients = jax.value_and_grad(loss_of)(fp8, batch)
            return jax.tree.map(lambda w, g: w - 0.1 * g, fp8, gradients), {"loss": loss}

        batch = np.ones((32, 32), np.float32)
        states = [Model({f"w{i}": np.full((32, 32), 0.1, np.float32) for i in range(count)}) for count in (2, 3)]
        two, three = (fp8.compile(step, state, batch, recipe="none") for state in states)
        delayed = fp8.compile(step, states[0], batch, recipe="delayed", set={"weight_copies": "state"})
        with tempfile.TemporaryDirectory() as name:
            path = pathlib.Path(name) / "state.safetensors"
            three.save_state(path, states[1])
            with self.assertRaisesRegex(ValueError, r"1 not wanted:\n    fp8\.params\['w2'\]"):
                two.load_state(path, states[0])
            # A file without the list is read by the names.
            path.write_bytes(path.read_bytes().replace(b'"compiler_state"', b'"other_metadata"'))
            two.load_state(path, states[0])
            # What the compiler has added is passed over.
            delayed.save_state(path, states[0])
            self.assertIn(".payload", metadata_of(path)["compiler_state"])
            two.load_state(path, states[0])

    def test_checkpoint_of_fp8_run(self):
        state, batch = steps.state(), steps.batch()
        step = fp8.compile(steps.tupled, state, batch, recipe="coat")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "step.mlir").write_text(jax.jit(steps.tupled, keep_unused=True).lower(state, batch).as_text(debug_info=True))
            values = {f"state{jax.tree_util.keystr(path)}": np.array(leaf) for path, leaf in jax.tree_util.tree_flatten_with_path(state)[0]}
            save_file(values, folder / "init.safetensors")
            feeds = []
            for i, (path, leaf) in enumerate(jax.tree_util.tree_flatten_with_path(batch)[0]):
                np.save(folder / f"{i}.npy", leaf)
                feeds += ["--batch", f"batch{jax.tree_util.keystr(path)}={folder / str(i)}.npy"]
            subprocess.run([FP8_RUN, folder / "step.mlir", "--init", folder / "init.safetensors", *feeds, "--recipe", "coat",
                            "--steps", "3", "--out", folder / "out", "--quiet"], check=True)  # fmt: skip
            loaded = step.load_state(folder / "out" / "checkpoint-3.safetensors", state)
            for _ in range(3):
                state, _ = step(state, batch)
            self.assertEqual(step(loaded, batch)[1], step(state, batch)[1])


if __name__ == "__main__":
    unittest.main()
