"""Calls of a compiled step: results compared with JAX and fp8-run, containers, and how state may be
used."""

import functools
import gc
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import warnings
from collections import OrderedDict
from copy import deepcopy

import jax
import jax.numpy as jnp
import numpy as np
import optax
import steps
from safetensors.numpy import save_file

import fp8

FP8_RUN = sys.argv.pop(1)


def assert_trees_close(test, got, want, bound):
    test.assertEqual(jax.tree.structure(got), jax.tree.structure(want))
    for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(want), strict=True):
        if jax.dtypes.issubdtype(b.dtype, jax.dtypes.prng_key):
            a, b = jax.random.key_data(jnp.asarray(a)), jax.random.key_data(b)
        a, b = np.asarray(a), np.asarray(b)
        test.assertEqual((a.shape, a.dtype), (b.shape, b.dtype), path)
        off = np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)), initial=0)
        test.assertLessEqual(off, bound * max(1, np.max(np.abs(b.astype(np.float64)), initial=0)), jax.tree_util.keystr(path))


class Numbers(unittest.TestCase):
    def test_none_equals_jax_in_every_container(self):
        for kind, step in {"tupled": steps.tupled, "keyed": steps.keyed, "pair": steps.paired, "record": steps.paired, "plain": steps.paired}.items():
            with self.subTest(kind):
                state, want, batch = steps.state(kind), steps.state(kind), steps.batch()
                compiled = fp8.compile(step, state, batch, recipe="none")
                for _ in range(4):
                    state, metrics = compiled(state, batch)
                    want, expected = jax.jit(step)(want, batch)
                    assert_trees_close(self, metrics, expected, 1e-5)
                assert_trees_close(self, state, want, 2e-5)

    def test_state_in_several_arguments(self):
        params, opt = steps.state()
        want = (params, opt)
        compiled = fp8.compile(jax.jit(steps.flat), params, opt, steps.batch(), recipe="none")
        for _ in range(3):
            params, opt, metrics = compiled(params, opt, steps.batch())
            *want, expected = jax.jit(steps.flat)(*want, steps.batch())
        assert_trees_close(self, (params, opt, metrics), (*want, expected), 2e-5)

    def test_state_that_holds_the_last_loss(self):
        """A loss that is returned in the state alone, where the step reads nothing of the one before, is the loss. It may be beside a
        metric that is no loss."""

        def alone(state, batch):
            params, opt, metrics = steps.update(state["params"], state["opt"], batch)
            return {"params": params, "opt": opt, "last": metrics["loss"]}

        def beside(state, batch):
            state = alone(state, batch)
            return state, {"size": optax.global_norm(state["params"])}

        params, opt = steps.state()
        for step in (alone, beside):
            with self.subTest(step.__name__):
                want = state = {"params": params, "opt": opt, "last": jnp.float32(0)}
                compiled = fp8.compile(step, state, steps.batch(), recipe="none")
                path = "result['last']" if step is alone else "result[0]['last']"
                self.assertEqual([row["path"] for row in compiled.signature["results"] if row["kind"] == "loss"], [path])
                for _ in range(3):
                    got, want = compiled(state, steps.batch()), jax.jit(step)(want, steps.batch())
                    assert_trees_close(self, got, want, 2e-5)
                    state, want = (got, want) if step is alone else (got[0], want[0])

    def test_losses_are_those_of_fp8_run(self):
        """Losses have the same bits, with scales and moments that the step keeps in FP8."""
        state, batch = steps.state(), steps.batch()
        for recipe in ("tensorwise", "delayed", "coat"):
            with self.subTest(recipe), tempfile.TemporaryDirectory() as name:
                folder = pathlib.Path(name)
                (folder / "step.mlir").write_text(jax.jit(steps.tupled, keep_unused=True).lower(state, batch).as_text(debug_info=True))
                values = {f"{root}{jax.tree_util.keystr(path)}": np.array(leaf)
                          for root, tree in (("state", state), ("batch", batch)) for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]}  # fmt: skip
                save_file({path: leaf for path, leaf in values.items() if path.startswith("state")}, folder / "init.safetensors")
                feeds = []
                for path in [path for path in values if path.startswith("batch")]:
                    file = folder / f"{len(feeds)}.npy"
                    np.save(file, values[path])
                    feeds += ["--batch", f"{path}={file}"]
                subprocess.run([FP8_RUN, folder / "step.mlir", "--init", folder / "init.safetensors", *feeds, "--recipe", recipe,
                                "--steps", "5", "--out", folder / "out", "--quiet"], check=True)  # fmt: skip
                want = [json.loads(line)["loss"] for line in (folder / "out" / "log.jsonl").read_text().splitlines() if "loss" in json.loads(line)]
                compiled = fp8.compile(steps.tupled, state, batch, recipe=recipe)
                current, got = state, []
                for _ in range(5):
                    current, metrics = compiled(current, batch)
                    got.append(metrics["loss"])
                self.assertEqual([np.float32(loss) for loss in want], got)

    def test_keys_among_the_metrics(self):
        """A typed key is one of its generator, also in the results that are no state."""

        def step(state, batch):
            key, sample = jax.random.split(state["key"])
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch @ w) ** 2))(state["w"])
            return {"w": state["w"] - 0.1 * gradient, "key": key}, {"loss": loss, "keys": jax.random.split(sample, 2), "data": jax.random.key_data(sample)}

        with tempfile.TemporaryDirectory() as folder:
            for generator in ("threefry2x32", "rbg"):
                state, batch = {"w": np.ones((32, 32), np.float32), "key": jax.random.key(0, impl=generator)}, np.ones((8, 32), np.float32)
                want = jax.jit(step)(state, batch)[1]
                compiled = fp8.compile(step, state, batch)
                compiled.save(f"{folder}/{generator}")
                for step8 in (compiled, fp8.load(f"{folder}/{generator}")):
                    got = step8(state, batch)[1]
                    self.assertEqual(got["keys"].dtype, want["keys"].dtype)
                    np.testing.assert_array_equal(jax.random.key_data(got["keys"]), jax.random.key_data(want["keys"]))
                    np.testing.assert_array_equal(jax.random.normal(got["keys"][1]), jax.random.normal(want["keys"][1]))
                    self.assertEqual(type(got["data"]), np.ndarray)
            with self.assertRaisesRegex(TypeError, r"state\['key'\]: expected a key of rbg but got one of unsafe_rbg"):
                step8({**state, "key": jax.random.key(0, impl="unsafe_rbg")}, batch)

    def test_bf16_and_python_numbers(self):
        def step(state, scale, batch):
            params, opt, metrics = steps.update(state["params"], state["opt"], {**batch, "x": batch["x"] * scale})
            return {"params": params, "opt": opt}, metrics

        params = steps.parameters(dtype=jnp.bfloat16)
        state = {"params": params, "opt": steps.OPTIMIZER.init(params)}
        compiled = fp8.compile(step, state, 1.0, steps.batch())
        losses = []
        for scale in (1.0, 1.0, 3):
            state, metrics = compiled(state, scale, steps.batch())
            losses.append(float(metrics["loss"]))
        self.assertEqual(state["params"]["up"].dtype, jnp.bfloat16)
        self.assertLess(losses[1], losses[0])
        self.assertGreater(losses[2], losses[1])

    def test_every_format_of_eight_bits(self):
        """As state, input and result of a step, and in its files."""
        names = ("e4m3fn", "e5m2", "e4m3", "e3m4", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e8m0fnu")
        dtypes = {name: getattr(jnp, f"float8_{name}") for name in names}
        codes = {name: np.arange(256, dtype=np.uint8).view(dtype) for name, dtype in dtypes.items()}

        def step(state, batch):
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch["x"] @ w) ** 2))(state["w"])
            return {"w": state["w"] - 0.1 * gradient, **{name: state[name][::-1] for name in names}}, {"loss": loss, **{name: batch[name][:3] for name in names}}

        state, batch = {"w": np.ones((32, 32), np.float32), **codes}, {"x": np.ones((8, 32), np.float32), **codes}
        bits = lambda array: np.asarray(array).view(np.uint8)
        text = jax.jit(step, keep_unused=True).lower(state, batch).as_text(debug_info=True)
        with tempfile.TemporaryDirectory() as folder:
            for step8 in (fp8.compile(step, state, batch, recipe="none"), fp8.compile(text, recipe="none")):
                after, metrics = step8(state, batch)
                step8.save_state(f"{folder}/state.safetensors", after)
                loaded = step8.load_state(f"{folder}/state.safetensors", after)
                for name, dtype in dtypes.items():
                    self.assertEqual((after[name].dtype, metrics[name].dtype), (dtype, dtype))
                    np.testing.assert_array_equal(bits(metrics[name]), bits(codes[name][:3]))
                    np.testing.assert_array_equal(bits(loaded[name]), bits(codes[name][::-1]))
        for info in step8._functions.arguments:
            if (name := info.name.split("'")[1]) in dtypes:
                finite = np.isfinite(codes[name].astype(np.float32))
                found = [fp8.arrays.first_not_finite(np.array([0, code], np.uint8), info.dtype) for code in range(256)]
                self.assertEqual([at is None for at in found], finite.tolist(), name)

    def test_numbers_that_do_not_fit(self):
        def step(state, rate, count, flag):
            return {"w": state["w"] - rate * count}, {"loss": jnp.sum(state["w"]), "flag": flag}

        state = {"w": np.ones(3, np.float32)}
        compiled = fp8.compile(step, state, 0.5, np.uint8(1), True, recipe="none", roles={"rate": "constant", "count": "constant", "flag": "constant"})
        state, _ = compiled(state, 1, 255, False)
        np.testing.assert_array_equal(state["w"], np.full(3, -254, np.float32))
        for bad, text in (((1, 2.5, True), r"count: expected uint8\[\] but got the float 2.5"), ((1, 256, True), "but got the int 256"), ((1, -1, True), "the int -1"),
                          ((1, 1, 1), r"flag: expected bool\[\] but got the int 1"), ((1, float("nan"), True), "the float nan")):  # fmt: skip
            with self.assertRaisesRegex(TypeError, text):
                compiled(state, *bad)
        np.testing.assert_array_equal(compiled({"w": np.ones(3, ">f4")}, 1.0, 1, True)[0]["w"], np.zeros(3))

    def test_64_bits(self):
        """Only while JAX has no types of 64 bits does it narrow them, which may wrap; weak types are as wide as the step's."""

        def step(state, rows, scale):
            return state - scale * jax.grad(lambda w: jnp.sum(w[rows]))(state), {"loss": jnp.sum(state), "rows": rows}

        state, rows, scale = np.ones(8, np.float32), np.arange(3), np.float32(1)
        compiled = fp8.compile(step, state, rows, scale, recipe="none", roles={"rows": "batch", "scale": "constant"})
        np.testing.assert_array_equal(compiled(state, rows, 0.5)[1]["rows"], rows)
        with jax.enable_x64(True):
            compiled(state, rows.astype(np.int32), jnp.asarray(0.5))
            for bad, text in (((rows, scale), r"rows: expected int32\[3\] but got int64\[3\]"), ((rows.astype(np.int32), np.float64(1)), r"scale: expected float32\[\] but got float64")):  # fmt: skip
                with self.assertRaisesRegex(TypeError, text):
                    compiled(state, *bad)

    def test_decorated_steps(self):
        """functools.wraps shows the signature of the function within; if that takes no such call, arguments have numbers, as in JAX."""

        def configured(step):
            return functools.wraps(step)(lambda *args: step(*args, {"rate": 0.1}))

        @configured
        def step(state, batch, config):
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch @ w) ** 2))(state["w"])
            return {"w": state["w"] - config["rate"] * gradient}, {"loss": loss}

        def counted(step):
            return functools.wraps(step)(lambda state, batch, number: (*step(state, batch), number))

        state, batch = {"w": np.ones((32, 32), np.float32)}, np.ones((8, 32), np.float32)
        for decorated, args, paths in (
            (step, (state, batch), ["args[0]['w']", "args[1]"]),
            (jax.jit(step), (state, batch), ["args[0]['w']", "args[1]"]),
            (counted(lambda state, batch: step(state, batch)), (state, batch, 3), ["args[0]['w']", "args[1]", "args[2]"]),
            (functools.wraps(step)(lambda state, batch, config: step(state, batch)), (state, batch, 3), ["state['w']", "batch", "config"]),
        ):
            compiled = fp8.compile(decorated, *args, recipe="none")
            self.assertEqual(compiled(*args)[1], {"loss": jax.jit(decorated)(*args)[1]["loss"]})
            self.assertEqual([row["path"] for row in compiled.signature["arguments"]], paths)
        # jax.pmap names its arguments otherwise in text.
        one = jax.pmap(lambda state, batch: step(state, batch)[0])
        with self.assertRaisesRegex(fp8.CompileError, "no loss found"):
            fp8.compile(one, *jax.tree.map(lambda x: x[None], (state, batch)))

    def test_names_of_our_own_parameters(self):
        def of(self, x, *, step):
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(self)
            return self - gradient / step, loss

        w, x = np.ones((32, 32), np.float32), np.ones((8, 32), np.float32)
        compiled = fp8.compile(of, w, x, step=np.float32(1), recipe="none")
        np.testing.assert_allclose(compiled(self=w, x=x, step=np.float32(4))[0], of(w, x, step=4)[0])

    def test_examples_by_name(self):
        """They go to the places of their parameters, as in a call of a jitted function; a parameter without a place is given by name."""

        def step(params, state=None, *, batch, rate=0.1, **more):
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch["x"] @ w) ** 2))(params)
            return params - rate * gradient * more.get("scale", 1), {"loss": loss, "state": state}

        w, x, state, rate, scale = np.ones((32, 32), np.float32), {"x": np.ones((8, 32), np.float32)}, np.ones(2, np.float32), np.float32(0.5), np.float32(2)
        placed = lambda params, state, batch: step(params, state, batch=batch)
        for function, args, named, paths in (
            (placed, (w, state), {"batch": x}, ["params", "state", "batch['x']"]),
            (placed, (), {"batch": x, "params": w, "state": state}, ["params", "state", "batch['x']"]),
            (step, (w, state), {"rate": rate, "batch": x}, ["params", "state", "batch['x']", "rate"]),
            (jax.jit(step), (w,), {"scale": scale, "batch": x}, ["params", "batch['x']", "more['scale']"]),
            (
                functools.wraps(placed)(lambda *a, **k: step(*a, **k)),
                (w, state),
                {"batch": x, "rate": rate},
                ["args[0]", "args[1]", "kwargs['batch']['x']", "kwargs['rate']"],
            ),
        ):
            with self.subTest(paths), tempfile.TemporaryDirectory() as folder:
                compiled = fp8.compile(function, *args, **named, recipe="none")
                self.assertEqual([row["path"] for row in compiled.signature["arguments"]], paths)
                compiled.save(folder)
                for step8 in (compiled, fp8.load(folder)):
                    got, metrics = step8(*args, **named)
                    want, expected = function(*args, **named)
                    self.assertEqual(metrics["loss"], expected["loss"])
                    np.testing.assert_allclose(got, want, rtol=1e-6)
        step8 = fp8.compile(step, w, state, batch=x, rate=rate, recipe="none")
        with self.assertRaisesRegex(TypeError, r"expected 4 arguments \(params, state, batch=, rate=\) but got 4$"):
            step8(w, state, x, rate)
        for function, named, text in (
            (step, {}, r"expected an example of batch, which step takes by name: fp8.compile\(step, ..., batch=batch\)"),
            (placed, {"state": state, "batch": x, "recpie": 3}, r"expected options of fp8.compile or arguments of <lambda> \(params, state, batch\) but got recpie"),
            (placed, {"state": state}, r"expected the arguments of <lambda> \(params, state, batch\) but got 1 in their places and, by name, state"),
            (lambda params, *, target: params, {"target": "native"}, "expected other arguments of <lambda> than target, an option of fp8.compile: compile a function around it"),
        ):
            with self.assertRaisesRegex(TypeError, text):
                fp8.compile(function, w, **named)
        with self.assertRaisesRegex(TypeError, "expected no example arguments for a module but got batch"):
            fp8.compile("module {\n}", batch=x)

    def test_shapes_are_enough_to_compile(self):
        state, batch = steps.state("keyed"), steps.batch()
        shapes = jax.eval_shape(lambda *args: args, state, batch)
        one = fp8.compile(steps.keyed, *shapes, recipe="tensorwise")(state, batch)[1]
        two = fp8.compile(steps.keyed, state, batch, recipe="tensorwise")(state, batch)[1]
        self.assertEqual(one["loss"], two["loss"])


class State(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state, cls.batch = steps.state("keyed"), steps.batch()
        cls.step = fp8.compile(steps.keyed, cls.state, cls.batch, recipe="coat")

    def take(self, count, state=None):
        state = state or self.state
        for _ in range(count):
            state, metrics = self.step(state, self.batch)
        return state, metrics

    def test_stays_where_it_is(self):
        state, _ = self.take(1)
        before = np.asarray(state["opt"][1][0].count)
        memory = state["params"]["in"]._memory
        state, _ = self.step(state, self.batch)
        self.assertIs(state["params"]["in"]._memory, memory)
        self.assertEqual((before, int(state["opt"][1][0].count)), (1, 2))

    def test_is_an_example(self):
        """State that a step returned has shapes and types for another compilation, also that of a typed key."""
        state, _ = self.take(1)
        again = fp8.compile(steps.keyed, state, self.batch, recipe="coat")
        self.assertEqual(again(self.state, self.batch)[1], self.step(self.state, self.batch)[1])

    def test_behaves_like_an_array(self):
        state, _ = self.take(1)
        w, count = state["params"]["in"], state["opt"][1][0].count
        copy = np.asarray(w)
        self.assertEqual(len(list(w)), 48)
        with self.assertRaisesRegex(TypeError, "got a scalar"):
            iter(count)
        x = w
        x += 1
        np.testing.assert_array_equal(x, copy + 1)
        with self.assertRaisesRegex(TypeError, r"state\['params'\]\['in'\]: expected an array that can be written"):
            np.add(copy, 1, out=w)
        np.testing.assert_array_equal(jax.jit(lambda y: w * y)(jnp.float32(2)), copy * 2)
        self.assertEqual((f"{count:03d}", f"{count}", round(count)), ("001", str(count), 1))
        with self.assertRaisesRegex(AttributeError, r"no attribute 'mean'; numpy.asarray\(x\).mean is that of a copy"):
            w.mean()
        self.assertFalse(hasattr(w, "sharding") or hasattr(w, "__array_interface__"))
        for copying in (pickle.dumps, deepcopy):
            with self.assertRaisesRegex(TypeError, "fp8.copy"):
                copying(state)

    def test_waits_for_a_step(self):
        """Reading a state in another thread gives that state, or the error that it was replaced, but no mixture."""
        state, _ = self.take(1)
        leaves = jax.tree.leaves(state["params"])
        wanted = [np.asarray(leaf).tobytes() for leaf in leaves]
        seen, begun = [], threading.Event()

        def read():
            try:
                while True:
                    seen.append([np.asarray(leaf).tobytes() for leaf in leaves] == wanted)
                    begun.set()
            except RuntimeError as error:
                seen.append("a later step has replaced" in str(error))

        reader = threading.Thread(target=read)
        reader.start()
        begun.wait()
        self.take(1, state)
        reader.join()
        self.assertTrue(all(seen))

    def test_profile_waits_for_a_step(self):
        """The step of another thread is writing what it reads."""
        compiled = fp8.compile(steps.tupled, steps.state(), steps.batch(), recipe="none")
        state, _ = compiled(steps.state(), steps.batch())
        begun, read, goes_on = threading.Event(), threading.Event(), threading.Event()

        class Late:
            def __array__(late, dtype=None, copy=None):
                begun.set()
                goes_on.wait()
                return np.asarray(steps.batch()["x"])

        threads = [threading.Thread(target=lambda: compiled(state, {**steps.batch(), "x": Late()})), threading.Thread(target=lambda: (compiled.profile(), read.set()))]
        threads[0].start()
        begun.wait()
        threads[1].start()
        self.assertFalse(read.wait(0.2))
        goes_on.set()
        for thread in threads:
            thread.join()
        self.assertTrue(read.is_set())

    def test_user_form_is_dropped(self):
        """What was dequantized to be read does not stay in memory."""
        state, _ = self.take(1)
        moment = state["opt"][1][0].mu["in"]
        np.asarray(moment)
        self.take(1, state)
        self.assertIsNone(moment._memory.user)

    def test_replaced_state_is_an_error(self):
        old, _ = self.take(1)
        self.step(old, self.batch)
        for use in (lambda: self.step(old, self.batch), lambda: np.asarray(old["params"]["in"]), lambda: fp8.copy(old)):
            with self.assertRaisesRegex(RuntimeError, "expected the state after step 2 but got that after step 1.*fp8.copy"):
                use()
        self.assertIn("replaced", repr(old["params"]["in"]))

    def test_a_copy_is_another_branch(self):
        state, _ = self.take(2)
        kept = fp8.copy(state)
        for _ in range(2):
            one, first = self.step(state, self.batch)
            state = one
        for _ in range(2):
            two, second = self.step(kept, self.batch)
            kept = two
        # The copy has the amax histories and the stored moments too.
        self.assertEqual(first, second)
        self.assertEqual(np.asarray(one["params"]["up"]).tobytes(), np.asarray(two["params"]["up"]).tobytes())

    def test_edited_state_is_stored_anew(self):
        state, _ = self.take(2)
        edited = {**state, "params": {**state["params"], "out": np.zeros((64, 8), np.float32)}}
        _, metrics = self.step(edited, self.batch)
        self.assertAlmostEqual(float(metrics["loss"]), float(np.mean(np.square(self.batch["y"]))), places=5)
        # The state that was edited is still valid.
        self.step(state, self.batch)

    def test_arrays(self):
        state, _ = self.take(3)
        array = state["params"]["up"]
        self.assertEqual((array.shape, array.dtype, array.ndim, array.nbytes, len(array)), ((64, 96), np.float32, 2, 64 * 96 * 4, 64))
        self.assertEqual(float(array[3, 5]), float(jnp.asarray(array)[3, 5]))
        self.assertEqual(np.asarray(array + 1)[0, 0], np.asarray(array)[0, 0] + 1)
        self.assertTrue(jax.dtypes.issubdtype(jnp.asarray(state["key"]).dtype, jax.dtypes.prng_key))
        host = jax.tree.map(np.asarray, state["params"])
        self.assertEqual(host["up"].tobytes(), np.asarray(array).tobytes())
        host["up"][:] = 0  # a copy
        self.assertNotEqual(float(np.abs(np.asarray(array)).max()), 0)

    def test_views_keep_the_step_from_running(self):
        step = fp8.compile(steps.keyed, self.state, self.batch, recipe="tensorwise")
        state, _ = step(self.state, self.batch)
        view = np.from_dlpack(state["params"]["up"])
        self.assertEqual(view.tobytes(), np.asarray(state["params"]["up"]).tobytes())
        part = view[3:5]
        del view
        with self.assertRaisesRegex(BufferError, "expected no views of the state but 1 are alive"):
            step(state, self.batch)
        del part
        gc.collect()
        step(state, self.batch)

    def test_what_is_stored_otherwise_has_no_view(self):
        state, _ = self.take(1)
        with self.assertRaisesRegex(BufferError, "stores otherwise"):
            np.from_dlpack(state["opt"][1][0].mu["up"])
        self.assertGreater(float(np.abs(np.asarray(state["opt"][1][0].mu["up"])).max()), 0)

    def test_newest(self):
        state, _ = self.take(2)
        again, metrics = self.step.newest()
        self.assertEqual(np.asarray(again["params"]["in"]).tobytes(), np.asarray(state["params"]["in"]).tobytes())
        self.assertEqual(set(metrics), {"loss", "norm"})

    def test_threads(self):
        """Several states train at the same time; each has the results that it has alone."""
        want = float(self.take(5)[1]["loss"])
        losses = [None] * 3

        def train(i):
            losses[i] = float(self.take(5)[1]["loss"])

        threads = [threading.Thread(target=train, args=(i,)) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(losses, [want] * 3)

    def test_the_end_of_the_program(self):
        """Python ends threads for which it does not wait in the middle of a call, which is no error."""
        program = """if True:
            import threading, time, numpy as np, fp8
            step8, begun = fp8.load(__import__("sys").argv[1]), threading.Event()
            def train():
                state = np.ones((256, 256), np.float32)
                while True:
                    state, _ = step8(state, np.ones((64, 256), np.float32))
                    begun.set()
            for _ in range(2):
                threading.Thread(target=train, daemon=True).start()
            begun.wait()
        """

        def step(w, x):
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
            return w - 0.1 * gradient, loss

        with tempfile.TemporaryDirectory() as folder:
            fp8.compile(step, jnp.ones((256, 256)), jnp.ones((64, 256)), recipe="none").save(folder)
            for _ in range(3):
                ended = subprocess.run([sys.executable, "-c", program, folder], capture_output=True, text=True, check=False)
                self.assertEqual((ended.returncode, ended.stderr), (0, ""))

    def test_the_end_of_the_program_while_it_compiles(self):
        """A program ends when what its other threads compile is done: LLVM's tables are gone afterwards."""
        program = """if True:
            import atexit, sys, threading, time
            atexit.register(lambda: print(compilations._running))
            import fp8
            from fp8 import compilations, compiler
            def compile():
                while True:
                    fp8.compile(sys.argv[1], recipe="fp8", cache=False)
            threading.Thread(target=compile, daemon=True).start()
            while not compilations._running:
                time.sleep(0.01)
        """

        def step(w, x):
            loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w) ** 2))(w)
            return w - 0.1 * gradient, loss

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.mlir"
            path.write_text(jax.jit(step).lower(jnp.ones((256, 256)), jnp.ones((64, 256))).as_text(debug_info=True))
            ended = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
        self.assertEqual((ended.returncode, ended.stdout, ended.stderr), (0, "0\n", ""))


class Forks(unittest.TestCase):
    """A process that was forked lacks all threads but one."""

    def setUp(self):
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore", RuntimeWarning)  # JAX's about forks

    def expect_in_child(self, call):
        """Calls a function in a forked process, which is ended after a minute, and expects no error there."""
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            try:
                call()
                os._exit(0)
            finally:
                traceback.print_exc()
                os._exit(1)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_a_forked_process(self):
        state, batch = jax.tree.map(np.asarray, (steps.state(), steps.batch()))
        step = fp8.compile(steps.tupled, state, batch, threads=3)
        text = jax.jit(steps.tupled, keep_unused=True).lower(state, batch).as_text(debug_info=True)
        kept, _ = step(state, batch)
        want = step(fp8.copy(kept), batch)[1]
        busy, _ = step(state, batch)
        memory = busy[0]["up"]._memory
        running, ended = threading.Event(), threading.Event()

        def train():
            given = busy
            while not ended.is_set():
                given, _ = step(given, batch)
                running.set()

        def child():
            self.assertEqual(step(kept, batch)[1], want)
            with self.assertRaisesRegex(RuntimeError, "another thread was taking it when this process was forked"):
                np.asarray(busy[0]["up"])
            self.assertEqual(fp8.compile(text, threads=3)(state, batch)[1]["loss"], step(state, batch)[1]["loss"])
            with self.assertRaisesRegex(RuntimeError, "expected a process .* but got one that was forked after JAX had started"):
                fp8.compile(steps.tupled, state, batch)

        thread = threading.Thread(target=train)
        thread.start()
        running.wait()
        before = sys.getswitchinterval()
        sys.setswitchinterval(1000)  # From here to the fork, the thread does not end its step.
        try:
            while not memory.native.broken:
                time.sleep(0)
            self.expect_in_child(child)
        finally:
            sys.setswitchinterval(before)
            ended.set()
            thread.join()

    def test_the_last_step_of_a_forked_process(self):
        step = fp8.compile(steps.tupled, *jax.tree.map(np.asarray, (steps.state(), steps.batch())), threads=3)
        state = step(steps.state(), steps.batch())[0]

        def child():
            nonlocal step, state
            del step, state
            gc.collect()

        self.expect_in_child(child)


class Errors(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state, cls.batch = steps.state(), steps.batch()
        cls.step = fp8.compile(steps.tupled, cls.state, cls.batch)

    def expect(self, error, text, *args):
        with self.assertRaisesRegex(error, text):
            self.step(*args)

    def test_inputs(self):
        state, batch = self.state, self.batch
        self.expect(TypeError, r"expected 2 arguments \(state, batch\) but got 1", state)
        self.expect(TypeError, r"1 missing: batch\['y'\]; 1 not known: batch\['z'\]", state, {**{k: v for k, v in batch.items() if k != "y"}, "z": batch["y"]})
        self.expect(TypeError, r"batch\['x'\]: expected float32\[32,48\] but got float32\[31,48\]", state, {**batch, "x": batch["x"][1:]})
        self.expect(TypeError, r"batch\['x'\]: expected float32\[32,48\] but got int32\[32,48\]", state, {**batch, "x": np.zeros((32, 48), np.int32)})
        self.expect(TypeError, r"state\[0\]\['up'\]: expected float32\[64,96\] but got float32\[96,64\]", ({**state[0], "up": state[0]["up"].T}, state[1]), batch)

    def test_containers(self):
        state, batch = self.state, self.batch
        self.expect(TypeError, r"^state: expected a container of type tuple but got list$", list(state), batch)
        self.expect(TypeError, r"^batch\['weights'\]: expected a container of type dict but got OrderedDict$", state, {**batch, "weights": OrderedDict(batch["weights"])})
        self.expect(TypeError, r"state\[0\]\['down'\]: expected float32\[96,64\] but got a ShapeDtypeStruct", jax.eval_shape(lambda: state), batch)

    def test_arguments_by_name(self):
        _, want = self.step(self.state, self.batch)
        for args, named in (((self.state,), {"batch": self.batch}), ((), {"batch": self.batch, "state": self.state})):
            self.assertEqual(self.step(*args, **named)[1], want)
        for args, named in (((self.state,), {"data": self.batch}), ((self.state, self.batch), {"batch": self.batch})):
            with self.assertRaisesRegex(TypeError, rf"expected 2 arguments \(state, batch\) but got {len(args)} in their places and, by name, {next(iter(named))}"):
                self.step(*args, **named)

    def test_static_arguments(self):
        """They are bound before: here a value would be traced."""

        def step(state, batch, mode):
            return steps.tupled(state, batch)

        for mode, text in ((2, "expected arguments that are arrays but got one for a static argument: .* functools.partial"),
                           ("train", "mode: expected an array, a number or a jax.ShapeDtypeStruct but got 'train': .* functools.partial")):  # fmt: skip
            with self.assertRaisesRegex(TypeError, text):
                fp8.compile(jax.jit(step, static_argnames="mode"), self.state, self.batch, mode)
        self.assertEqual(fp8.compile(functools.partial(step, mode="train"), self.state, self.batch)(self.state, self.batch)[1], self.step(self.state, self.batch)[1])

    def test_a_step_is_no_function_of_jax(self):
        with self.assertRaisesRegex(TypeError, r"batch\['.*: expected an array but got what JAX traces in place of one: .* outside of jax.jit"):
            jax.jit(lambda batch: self.step(self.state, batch))(self.batch)
        with self.assertRaisesRegex(TypeError, "expected a function but got a compiled step"):
            fp8.compile(self.step, self.state, self.batch)

    def test_copies_of_a_step(self):
        self.assertIs(deepcopy(self.step), self.step)
        with self.assertRaisesRegex(TypeError, r"expected what can be pickled but got a compiled step: step8.save\(DIR\) writes it"):
            pickle.dumps(self.step)

    def test_masked_arrays(self):
        """The mask would get lost."""
        masked = np.ma.masked_array(np.asarray(self.batch["x"]), mask=True)
        self.expect(TypeError, r"batch\['x'\]: expected an array without a mask but got a masked array", self.state, {**self.batch, "x": masked})

    def test_an_error_leaves_the_state(self):
        state, _ = self.step(self.state, self.batch)
        self.expect(TypeError, "expected float32", state, {**self.batch, "x": self.batch["x"][1:]})
        self.step(state, self.batch)

    def test_place_of_an_op_in_a_function_of_jax(self):
        """JAX puts the op into a function without a position, so the position is that of the call."""

        def step(state, x):
            return state - 0.1 * jax.grad(lambda w: jnp.fft.irfft(x @ w).sum())(state), jnp.float32(0)

        with self.assertRaisesRegex(fp8.CompileError, r"calls\.py:\d+:\d+: stablehlo\.fft is not supported"):
            fp8.compile(step, jnp.ones((4, 4)), jnp.ones((2, 4)))

    def test_arguments_of_compile(self):
        state, batch = self.state, self.batch
        for error, text, options in (
            (TypeError, "expected a recipe as a name, a path, .* but got NoneType", {"recipe": None}),
            (TypeError, "expected set to be a dictionary but got list", {"set": ["seed=3"]}),
            (TypeError, "expected roles to be a dictionary but got str", {"roles": "batch"}),
            (TypeError, "expected group to be an fp8.Group but got str", {"group": "x"}),
            (TypeError, "expected threads to be an integer but got '2'", {"threads": "2"}),
            (ValueError, "expected compile_threads to be 0 or more but got -1", {"compile_threads": -1}),
            (ValueError, "expected threads to be at most 2147483647 but got 1099511627776", {"threads": 2**40}),
            (TypeError, "expected global_batch to be an integer but got 1.5", {"data_parallel": True, "global_batch": 1.5}),
            (TypeError, "expected loss to be a text but got 3", {"loss": 3}),
            (TypeError, "expected target to be a text but got None", {"target": None}),
            (ValueError, "expected a text without NUL but got one behind 'fp8'", {"recipe": "fp8\0 or not"}),
            (TypeError, "expected evaluate to be a function, a module's text or its path but got int", {"evaluate": 3}),
        ):
            with self.assertRaisesRegex(error, text):
                fp8.compile(steps.tupled, state, batch, **options)
        with self.assertRaisesRegex(ValueError, "neoverse-v2"):  # of another machine
            fp8.compile(steps.tupled, state, batch, target="neoverse-v2")
        with self.assertRaisesRegex(TypeError, "expected format to be a text but got None"):
            fp8.export_weights(self.step, "none", state, format=None)
        with self.assertRaisesRegex(TypeError, "expected step to be a function, a module's text or its path but got int"):
            fp8.compile(42)
        with self.assertRaisesRegex(TypeError, "expected group to be an fp8.Group but got str"):
            fp8.load("package", group="x")
        with self.assertRaisesRegex(ValueError, r"expected a batch with rows but got batch\['weights'\]\['unused'\]: float32\[0,3\]"):
            fp8.compile(steps.tupled, state, jax.tree.map(lambda x: x[:0], batch))

    def test_paths(self):
        """What is no path is an error, and no other path: C ends a text at a NUL."""
        with tempfile.TemporaryDirectory() as folder:
            self.step.save_state(os.fsencode(f"{folder}/state.safetensors"), self.state)
            self.step.load_state(f"{folder}/state.safetensors".encode(), self.state)
            calls = {
                "save_state": lambda path: self.step.save_state(path, self.state),
                "load_state": lambda path: self.step.load_state(path, self.state),
                "save": self.step.save,
                "load": fp8.load,
                "export_weights": lambda path: fp8.export_weights(self.step, path, self.state),
            }
            for name, call in calls.items():
                with self.subTest(name):
                    with self.assertRaisesRegex(TypeError, "NoneType"):
                        call(None)
                    with self.assertRaisesRegex(ValueError, "expected a text without NUL but got one behind '.*state.safetensors'"):
                        call(f"{folder}/state.safetensors\0.old")
                    with self.assertRaisesRegex(ValueError, r"expected a path in UTF-8 but got '.*\\udcff'"):
                        call(f"{folder}/\udcff")
            self.assertEqual(os.listdir(folder), ["state.safetensors"])

    def test_compiling(self):
        with self.assertRaisesRegex(fp8.CompileError, "unknown recipe.*no-such|no-such.*recipe"):
            fp8.compile(steps.tupled, self.state, self.batch, recipe="no-such")
        for args in ((self.state,), (self.state, self.batch, 3)):
            with self.assertRaisesRegex(TypeError, rf"expected the arguments of tupled \(state, batch\) but got {len(args)}"):
                fp8.compile(steps.tupled, *args)

        def sorting(state, batch):
            return jnp.fft.fft(state).real, jnp.sum(state * batch)

        with self.assertRaisesRegex(fp8.CompileError, r"calls\.py:\d+:\d+: stablehlo\.real is not supported") as caught:
            fp8.compile(sorting, jnp.ones(8), jnp.ones(8))
        again = pickle.loads(pickle.dumps(caught.exception))
        self.assertEqual((str(again), again.diagnostics), (str(caught.exception), caught.exception.diagnostics))


if __name__ == "__main__":
    unittest.main()
