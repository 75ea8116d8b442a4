"""fp8.Group: two ranks in Python have the bits of fp8-run on two ranks, and a failure on one of them is an exception on the other.

    ranks.py FP8_RUN FOLDER LAUNCHER TRANSPORT     runs the tests
    ranks.py --program NAME FOLDER [OPTION...]     runs the program of a rank

LAUNCHER is an mpirun. TRANSPORT is the plugin for sockets, which ends no process, as a launcher does.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import fp8
import jax
import jax.numpy as jnp
import numpy as np
import steps

STEPS = 4


def batch(number):
    """Returns 32 rows."""
    return jax.tree.map(np.asarray, steps.batch(100 + number))


# ------------------------------------------------------------------- programs


def loss(state, batch):
    return jnp.mean((steps.forward(state[0], batch["x"]) - batch["y"]) ** 2)


def compiled(group, options, **more):
    wire = {"all_reduce.format": "f8E4M3FN"} if "f8" in options else None
    return fp8.compile(steps.tupled, steps.state(), batch(0), recipe="coat", set=wire, group=group, zero=int("zero" in options), threads=1, **more)


def state_is_whole(state):
    """Returns whether this rank can read all of the state."""
    try:
        jax.tree.map(np.asarray, state)
        return True
    except RuntimeError as error:
        assert "call step8.gather(state) on all ranks" in str(error), error
        return False


def loop(folder, options):
    """Runs a loop of calls, saves the state, and evaluates."""
    with fp8.Group() as group:
        step8, state, losses = compiled(group, options, evaluate=loss), steps.state(), []
        for number in range(STEPS):
            state, metrics = step8(state, batch(number * group.size + group.rank))
            losses.append(float(metrics["loss"]))
        if "zero" in options:
            assert not state_is_whole(state)
            # The second set replaces the first, which is written at the same place. Nothing is brought together.
            for _ in range(2):
                step8.save_state(folder / "set.safetensors.index.json", state)
            assert not state_is_whole(state)
        held_out = [batch(number) for number in range(5)]
        values = {"losses": losses, "heldout": fp8.evaluate(step8, state, batches=held_out)["heldout_loss"]}
        step8.save_state(folder / "saved.safetensors", state)
        fp8.export_weights(step8, folder / "weights", state)
        loaded = step8.load_state(folder / "saved.safetensors", state)
        kept = fp8.copy(state)
        states = [state, loaded, kept]
        if "zero" in options:
            step8.save_state(folder / "set.safetensors.index.json", state)
            assert state_is_whole(state)
            states.append(step8.load_state(folder / "set.safetensors.index.json", state))
        values["next"] = [float(step8(each, batch(group.rank))[1]["loss"]) for each in states]
        (folder / f"{group.rank}.json").write_text(json.dumps(values))


def trained(folder, options):
    """Trains with fp8.Trainer, in two parts."""
    with fp8.Group() as group:
        step8 = compiled(group, options)
        for begin, end in ((0, 2), (2, STEPS)):
            trainer = fp8.Trainer(step8, folder / "run", progress=False, checkpoint_every=1, keep_checkpoints=2, sharded_checkpoints="sharded" in options)
            trainer.fit(steps.state(), map(batch, range(begin * group.size, 100)), end, resume=True)


def shared(folder, options):
    """Two ranks share each batch: calls take all of its rows or the rank's own, and so does a trainer."""
    with fp8.Group() as group:
        step8 = fp8.compile(steps.tupled, steps.state(), batch(0), recipe="none", group=group, threads=1, global_batch=group.size)
        state, losses = steps.state(), []
        for number in range(STEPS):
            rows = batch(number)
            if number % 2:
                rows = jax.tree.map(lambda x: np.split(x, group.size)[group.rank], rows)
            state, metrics = step8(state, rows)
            losses.append(float(metrics["loss"]))
        fp8.Trainer(step8, folder / "run", progress=False).fit(steps.state(), map(batch, range(100)), STEPS)
        (folder / f"shared-{group.rank}.json").write_text(json.dumps(losses))


def jitted(folder, options):
    """As `shared`, of a jit that splits the rows of its batch over two devices."""
    jax.config.update("jax_num_cpu_devices", 2)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("rows",))
    whole, rows = (jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes)) for axes in ((), ("rows",)))
    with fp8.Group() as group:
        step = jax.jit(steps.tupled, in_shardings=(whole, rows))
        step8, state, losses = fp8.compile(step, steps.state(), batch(0), recipe="none", group=group, threads=1), steps.state(), []
        for number in range(STEPS):
            state, metrics = step8(state, batch(number))
            losses.append(float(metrics["loss"]))
        (folder / f"jitted-{group.rank}.json").write_text(json.dumps(losses))


def continued(folder, options):
    """Takes a step from each checkpoint, on any number of ranks."""
    with fp8.Group() as group:
        step8 = compiled(group, options)
        losses = []
        for name in (f"run/checkpoint-{STEPS}.safetensors.index.json", "saved.safetensors", "set.safetensors.index.json"):
            losses.append(float(step8(step8.load_state(folder / name, steps.state()), batch(group.rank))[1]["loss"]))
        (folder / f"continued-{group.rank}.json").write_text(json.dumps(losses))


def killed(folder, options):
    """Trains with a checkpoint every second step."""
    with fp8.Group() as group:
        trainer = fp8.Trainer(compiled(group, ["zero"]), folder / "run", progress=False, checkpoint_every=2)
        is_again = options[0] == "again"
        trainer.fit(steps.state(), map(batch, range(is_again and 2 * group.size, 100)), STEPS, resume=is_again)


def endless(folder, options):
    def batches():
        for number in range(10**9):
            (folder / f"{group.rank}.steps").write_text(str(number))
            yield batch(number % 7)

    with fp8.Group() as group:
        fp8.Trainer(compiled(group, options), folder / "run", progress=False).fit(steps.state(), batches(), 10**6)


def failing(folder, options):
    if options[0] == "buckets":
        os.environ["FP8_BUCKET_BYTES"] = str(4096 + os.getpid())
    with fp8.Group(timeout=60) as group:
        mine = group.rank == 1 and options[0]
        recipe = "none" if mine == "recipe" else "tensorwise"
        step8 = fp8.compile(steps.tupled, steps.state(), batch(0), recipe=recipe, group=group, threads=1, zero=int(mine == "zero"), global_amax=mine == "global_amax")
        params, opt = steps.state()
        if mine == "state":
            params["up"] = params["up"].at[3, 4].add(1e-3)
        state = params, opt
        for number in range(10**6):
            if mine == "data" and number == 3:
                raise ValueError("there is no batch 3")
            try:
                state, _ = step8(state, batch(0))
            except fp8.RankError:
                with contextlib.suppress(RuntimeError):
                    np.asarray(state[0]["up"])
                    print("a half-done step has a state", file=sys.stderr)
                raise
            (folder / f"{group.rank}.steps").write_text(str(number))


def spoiled(folder, options):
    """Trains with a second moment below 0, so that the loss of the first step is finite and its state is not."""
    with fp8.Group() as group:
        params, (clip, (adam, *rest)) = steps.state()
        state = params, (clip, (adam._replace(nu={**adam.nu, "down": adam.nu["down"] - 1}), *rest))
        fp8.Trainer(compiled(group, options), folder / "run", progress=False).fit(state, map(batch, range(100)), 1)


def without_with(folder, options):
    group = fp8.Group()
    if group.rank == 1:
        raise ValueError("before anything")
    compiled(group, [])


# ---------------------------------------------------------------------- tests


def bits(losses):
    """Returns the bits of losses, which fp8-run writes with all digits of f32."""
    return [np.float32(loss).tobytes() for loss in losses]


class Case(unittest.TestCase):
    def setUp(self):
        # (The path of a socket must be short.)
        names = [self.enterContext(tempfile.TemporaryDirectory(dir=where)) for where in (FOLDER, None)]
        self.folder, self.sockets = map(pathlib.Path, names)

    def program(self, name, *options):
        return [sys.executable, __file__, "--program", name, self.folder, *options]

    def by_mpi(self, command, good=True, ranks=2):
        import fp8_testing

        command, environment = fp8_testing.launched(LAUNCHER, ranks, command)
        run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(run.returncode == 0, good, run.stdout[-2000:] + run.stderr[-4000:])
        return run.stderr

    def by_sockets(self, command, faults=("", "")):
        """Starts two processes."""
        ranks = []
        for rank, fault in enumerate(faults):
            transport = f"{TRANSPORT}:dir={self.sockets},rank={rank},ranks=2{fault}"
            ranks.append(subprocess.Popen(list(map(str, command)), env=os.environ | {"FP8_TRANSPORT": transport}, stderr=subprocess.PIPE, text=True))
            self.addCleanup(ranks[-1].kill)
        return ranks

    def wait(self, ranks):
        """Waits; returns statuses and errors of the ranks."""
        errors = [rank.communicate(timeout=300)[1] for rank in ranks]
        return [rank.returncode for rank in ranks], errors

    def wait_for(self, condition, what):
        """Waits for less time than ranks have patience with each other."""
        deadline = time.monotonic() + 250
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"expected {what}")
            time.sleep(0.02)

    def have_taken(self, number):
        """Returns whether both ranks have taken this many steps."""
        files = [self.folder / f"{rank}.steps" for rank in (0, 1)]
        return all(file.exists() and int(file.read_text() or 0) >= number for file in files)


class SameBits(Case):
    """Python agrees with fp8-run on two ranks."""

    def fp8_run(self, options):
        """Returns the losses, and the state after the last step."""
        import fp8_testing

        state = steps.state()
        fp8_testing.save_tree(self.folder / "init.safetensors", state=state)
        (self.folder / "step.mlir").write_text(jax.jit(steps.tupled, keep_unused=True).lower(state, batch(0)).as_text(debug_info=True))
        feeds, rows = [], [jax.tree_util.tree_flatten_with_path(batch(number))[0] for number in range(2 * STEPS)]
        for i, (path, _) in enumerate(rows[0]):
            np.save(self.folder / f"{i}.npy", np.concatenate([leaves[i][1] for leaves in rows]))
            feeds += ["--batch", f"batch{jax.tree_util.keystr(path)}={self.folder / str(i)}.npy"]
        self.by_mpi([FP8_RUN, self.folder / "step.mlir", "--init", self.folder / "init.safetensors", *feeds, "--recipe", "coat", "--data-parallel",
                     *(["--set", "all_reduce.format=f8E4M3FN"] if "f8" in options else []), *(["--zero", 1] if "zero" in options else []),
                     "--steps", STEPS, "--threads", 1, "--out", self.folder / "fp8-run", "--quiet"])  # fmt: skip
        return fp8_testing.losses(fp8_testing.read_log(self.folder / "fp8-run")), fp8_testing.load_tensors(self.folder / "fp8-run" / f"checkpoint-{STEPS}.safetensors")

    def assert_same_state(self, path, want):
        import fp8_testing

        found = fp8_testing.load_tensors(path)
        self.assertEqual(sorted(found), sorted(want))
        different = [name for name in want if want[name].tobytes() != found[name].tobytes()]
        self.assertEqual(different, [])

    def compare(self, *options):
        losses, state = self.fp8_run(options)
        self.assertEqual(len(set(losses)), STEPS)
        self.by_mpi(self.program("loop", *options))
        ranks = [json.loads((self.folder / f"{rank}.json").read_text()) for rank in (0, 1)]
        self.assertEqual(ranks[0], ranks[1])
        self.assertEqual(bits(ranks[0]["losses"]), bits(losses))
        self.assertEqual(len(set(ranks[0]["next"])), 1, ranks[0])
        self.assert_same_state(self.folder / "saved.safetensors", state)
        # One process has the same held-out loss.
        with fp8.Group() as alone:
            step8 = compiled(alone, options, evaluate=loss)
            saved = step8.load_state(self.folder / "saved.safetensors", steps.state())
            held_out = fp8.evaluate(step8, saved, batches=[batch(number) for number in range(5)])
        self.assertEqual(held_out["heldout_loss"], ranks[0]["heldout"])
        self.assertTrue((self.folder / "weights" / "model.safetensors").exists())

        self.by_mpi(self.program("trained", *options))
        lines = [json.loads(line) for line in (self.folder / "run" / "log.jsonl").read_text().splitlines()]
        self.assertEqual(bits(line["loss"] for line in lines), bits(losses))
        self.assert_same_state(self.folder / "run" / f"checkpoint-{STEPS}.safetensors", state)
        is_set = "zero" in options or "sharded" in options
        suffixes = ("-00001-of-00002.safetensors", "-00002-of-00002.safetensors", ".safetensors.index.json") if is_set else (".safetensors",)
        checkpoints = sorted(path.name for path in (self.folder / "run").glob("checkpoint*"))
        self.assertEqual(checkpoints, [f"checkpoint-{step}{suffix}" for step in (STEPS - 1, STEPS) for suffix in suffixes])
        if is_set:
            sizes = [(self.folder / "run" / f"checkpoint-{STEPS}{suffix}").stat().st_size for suffix in suffixes[:2]]
            self.assertLess(max(sizes), 0.75 * sum(sizes))

    def test_gradients_as_they_are(self):
        self.compare("sharded")

    def test_gradients_in_f8(self):
        self.compare("f8")

    def test_a_batch_that_ranks_share(self):
        step8, state, want = fp8.compile(steps.tupled, steps.state(), batch(0), recipe="none", threads=1), steps.state(), []
        for number in range(STEPS):
            state, metrics = step8(state, batch(number))
            want.append(float(metrics["loss"]))
        alone = fp8.compile(steps.tupled, steps.state(), batch(0), recipe="none", threads=1, data_parallel=True, global_batch=2)
        with self.assertRaisesRegex(ValueError, "expected 2 ranks, which the step was written for, but got 1"):
            alone(steps.state(), batch(0))
        self.by_mpi(self.program("shared"))
        self.by_mpi(self.program("jitted"))
        lines = [json.loads(line)["loss"] for line in (self.folder / "run" / "log.jsonl").read_text().splitlines()]
        of_ranks = [json.loads((self.folder / f"{name}-{rank}.json").read_text()) for name in ("shared", "jitted") for rank in (0, 1)]
        for losses in (*of_ranks, lines):
            np.testing.assert_allclose(losses, want, rtol=1e-6)

    def test_state_dealt_to_the_ranks(self):
        self.compare("f8", "zero")
        index = self.folder / "set.safetensors.index.json"
        # Of the sets that were replaced nothing is left.
        parts = set(json.loads(index.read_text())["weight_map"].values())
        self.assertEqual({path.name for path in self.folder.glob("set*")}, parts | {index.name})
        self.assertEqual(len(parts), 2)
        import fp8_testing

        want = fp8_testing.load_tensors(self.folder / "saved.safetensors")
        self.assert_same_state(self.folder / "set.safetensors", want)
        # On other numbers of ranks, dealt or not, a set is the state that one file is.
        for ranks, options in ((1, ()), (3, ("zero",))):
            self.by_mpi(self.program("continued", "f8", *options), ranks=ranks)
            for rank in range(ranks):
                losses = json.loads((self.folder / f"continued-{rank}.json").read_text())
                self.assertEqual(len(set(losses)), 1, (ranks, options, losses))


class Example(Case):
    def test_it_runs(self):
        example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python" / "ranks.py"
        program = self.folder / "program.sh"
        # (Only rank 0 prints.)
        program.write_text(f"{sys.executable} {example} fp8_lm 4 >> {self.folder}/said")
        self.by_mpi(["sh", program])
        losses = [float(loss) for loss in re.findall(r"loss ([0-9.]+), the mean over 2 ranks", (self.folder / "said").read_text())]
        self.assertEqual(len(losses), 4)
        self.assertLess(losses[-1], losses[0])


class Failures(Case):
    def test_a_killed_rank(self):
        ranks = self.by_sockets(self.program("failing", "none"), ("", ",kill=60"))
        statuses, errors = self.wait(ranks)
        self.assertEqual(statuses, [1, -signal.SIGKILL])
        self.assertIn("fp8.RankError: rank 1 of 2: its process has ended", errors[0])
        self.assertNotIn("a half-done step has a state", errors[0])

    def test_a_rank_that_is_killed_while_it_writes(self):
        import fp8_testing

        self.by_mpi(self.program("killed", "never"))
        run = self.folder / "run"
        want = fp8_testing.load_tensors(run / f"checkpoint-{STEPS}.safetensors")
        run.rename(self.folder / "want")
        # A pipe without a reader blocks the second rank while it writes.
        run.mkdir()
        first, second = (run / f"checkpoint-{STEPS}-0000{i}-of-00002.safetensors" for i in (1, 2))
        os.mkfifo(f"{second}.fp8-tmp")
        ranks = self.by_sockets(self.program("killed", "now"))
        self.wait_for(first.exists, "the file of the first rank")
        ranks[1].kill()
        statuses, errors = self.wait(ranks)
        self.assertEqual(statuses, [1, -signal.SIGKILL])
        self.assertIn("fp8.RankError: rank 1 of 2: its process has ended", errors[0])
        self.assertEqual([path.name for path in run.glob("*.index.json")], ["checkpoint-2.safetensors.index.json"])
        # The run continues from the last complete set.
        self.by_mpi(self.program("killed", "again"))
        found = fp8_testing.load_tensors(run / f"checkpoint-{STEPS}.safetensors")
        self.assertEqual([name for name in want if want[name].tobytes() != found[name].tobytes()], [])
        self.assertFalse(list(run.glob("*.fp8-tmp")))

    def test_a_rank_that_cannot_write(self):
        run = self.folder / "run"
        # A folder blocks the path that the second rank writes.
        (run / "checkpoint-4-00002-of-00002.safetensors.fp8-tmp").mkdir(parents=True)
        statuses, errors = self.wait(self.by_sockets(self.program("killed", "never")))
        self.assertEqual(statuses, [1, 1])
        self.assertIn("fp8.RankError: rank 1 of 2: cannot write '", errors[0])
        self.assertEqual([path.name for path in run.glob("*.index.json")], ["checkpoint-2.safetensors.index.json"])
        self.assertFalse((run / "checkpoint-4-00001-of-00002.safetensors").exists())

    def test_another_state(self):
        statuses, errors = self.wait(self.by_sockets(self.program("failing", "state")))
        self.assertEqual(statuses, [1, 1])
        for error in errors:
            self.assertIn("fp8.RankError: rank 1 of 2 has another state[0]['up'] than rank 0: all ranks have to hold the same state", error)

    def test_state_that_is_not_finite(self):
        """What one rank has of the state ends all ranks, before any writes a file."""
        for options in (), ("zero",):
            statuses, errors = self.wait(self.by_sockets(self.program("spoiled", *options)))
            self.assertEqual(statuses, [1, 1])
            for error in errors:
                self.assertRegex(error, r"FloatingPointError: step 1: expected a finite state but got state.*'down'\].* = nan; no checkpoint had been written")
            self.assertEqual(list((self.folder / "run").glob("checkpoint-*")), [])
            shutil.rmtree(self.folder / "run")

    def test_another_recipe(self):
        statuses, errors = self.wait(self.by_sockets(self.program("failing", "recipe")))
        self.assertEqual(statuses, [1, 1])
        self.assertIn("fp8.RankError: rank 1 of 2 has another step, recipe or compiler than rank 0", errors[0])

    def test_other_options(self):
        for option in "zero", "global_amax":
            statuses, errors = self.wait(self.by_sockets(self.program("failing", option)))
            self.assertEqual(statuses, [1, 1])
            self.assertIn("fp8.RankError: rank 1 of 2 has another zero or global_amax than rank 0", errors[0])

    def test_other_buckets(self):
        statuses, errors = self.wait(self.by_sockets(self.program("failing", "buckets")))
        self.assertEqual(statuses, [1, 1])
        self.assertIn("fp8.RankError: rank 1 of 2 has another size of buckets (FP8_BUCKET_BYTES) than rank 0", errors[0])

    def test_an_exception_of_one_rank(self):
        statuses, errors = self.wait(self.by_sockets(self.program("failing", "data")))
        self.assertEqual(statuses, [1, 1])
        self.assertIn("ValueError: there is no batch 3", errors[1])
        self.assertIn("fp8.RankError: rank 1 of 2: ValueError: there is no batch 3", errors[0])

    def test_an_exception_under_a_launcher(self):
        errors = self.by_mpi(self.program("failing", "data"), good=False)
        self.assertEqual(errors.count("ValueError: there is no batch 3\n"), 1, errors)
        self.assertIn("rank 1 of 2 ends all", errors)

    def test_an_exception_without_with(self):
        errors = self.by_mpi(self.program("without_with"), good=False)
        self.assertIn("ValueError: before anything", errors)

    def test_one_signal_stops_all(self):
        ranks = self.by_sockets(self.program("endless", "zero"))
        self.wait_for(lambda: self.have_taken(6), "6 steps")
        ranks[1].send_signal(signal.SIGTERM)
        statuses, errors = self.wait(ranks)
        self.assertEqual(statuses, [-signal.SIGINT, -signal.SIGINT], errors)
        lines = [json.loads(line) for line in (self.folder / "run" / "log.jsonl").read_text().splitlines()]
        self.assertTrue((self.folder / "run" / f"checkpoint-{len(lines)}.safetensors.index.json").exists())


class Alone(Case):
    """A group of one process."""

    def test_a_size_of_buckets_that_is_no_number(self):
        with unittest.mock.patch.dict(os.environ, FP8_BUCKET_BYTES="4k"):
            with self.assertRaisesRegex(ValueError, "FP8_BUCKET_BYTES: expected a number of bytes above 0 but got '4k'"):
                fp8.Group()

    def test_bits_are_those_of_no_group(self):
        with fp8.Group() as group:
            self.assertEqual((group.rank, group.size, group.gather(b"abc")), (0, 1, [b"abc"]))
            one, two = compiled(group, ["f8"]), compiled(None, [])
            state, other = steps.state(), steps.state()
            for number in range(3):
                (state, a), (other, b) = one(state, batch(number)), two(other, batch(number))
                self.assertEqual(a, b)
        with self.assertRaisesRegex(ValueError, "their group is closed"):
            one(state, batch(0))

    def test_packages(self):
        compiled(None, []).save(self.folder / "single")
        with fp8.Group() as group:
            with self.assertRaisesRegex(ValueError, "expected a step that was compiled for several ranks"):
                fp8.load(self.folder / "single", group=group)
            step8 = compiled(group, [])
            step8.save(self.folder / "package")
            loaded = fp8.load(self.folder / "package", group=group)
            self.assertEqual(step8(steps.state(), batch(0))[1], loaded(steps.state(), batch(0))[1])


if __name__ == "__main__":
    if sys.argv[1] == "--program":
        program, folder, *options = sys.argv[2:]
        globals()[program](pathlib.Path(folder), options)
    else:
        FP8_RUN, FOLDER, LAUNCHER, TRANSPORT = sys.argv[1:5]
        sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "Integration" / "CPU"))
        pathlib.Path(FOLDER).mkdir(parents=True)
        unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
