"""Modules without a function, packages, and what a step reports about itself."""

import pathlib
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

import fp8

FP8_RUN = sys.argv.pop(1)


def text_of(step, *args):
    return jax.jit(step, keep_unused=True).lower(*args).as_text(debug_info=True)


class Modules(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state, cls.batch = steps.state(), steps.batch()
        cls.text = text_of(steps.tupled, cls.state, cls.batch)
        cls.want = cls.losses(cls, fp8.compile(steps.tupled, cls.state, cls.batch, recipe="delayed"))

    def losses(self, step, count=3):
        state, losses = self.state, []
        for _ in range(count):
            state, metrics = step(state, self.batch)
            losses.append(metrics["loss"])
        assert jax.tree.structure(state) == jax.tree.structure(self.state)
        return losses

    def test_text_and_file(self):
        self.assertEqual(self.losses(fp8.compile(self.text, recipe="delayed")), self.want)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "step.mlir"
            path.write_text(self.text)
            self.assertEqual(self.losses(fp8.compile(path, recipe="delayed")), self.want)
            self.assertEqual(self.losses(fp8.compile(str(path), recipe="delayed")), self.want)
            with self.assertRaises(FileNotFoundError):
                fp8.compile(path.parent / "none.mlir")
        with self.assertRaisesRegex(TypeError, "expected no example arguments for a module but got 1"):
            fp8.compile(self.text, self.state)
        with self.assertRaisesRegex(TypeError, "expected step to be a function, a module's text or its path but got NoneType"):
            fp8.compile(None, self.state)
        with self.assertRaisesRegex(fp8.CompileError, "expected"):
            fp8.compile("module {\n func.func @main( }\n")

    def test_package(self):
        compiled = fp8.compile(steps.tupled, self.state, self.batch, recipe="delayed")
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(folder)
            loaded = fp8.load(folder)
            self.assertEqual(self.losses(loaded), self.want)
            self.assertEqual((loaded.recipe, str(loaded.verdicts), loaded.signature, loaded.memory), (compiled.recipe, str(compiled.verdicts), compiled.signature, compiled.memory))
            with self.assertRaisesRegex(ValueError, "from a package"):
                loaded.ir()
            with self.assertRaisesRegex(TypeError, "1 missing: batch"):
                loaded(self.state, {k: v for k, v in self.batch.items() if k != "y"})
            # A damaged package is an error.
            manifest = pathlib.Path(folder) / "manifest.json"
            manifest.write_bytes(manifest.read_bytes()[:-100])
            with self.assertRaises(ValueError):
                fp8.load(folder)
        with self.assertRaises(OSError):
            fp8.load(folder)

    def test_package_of_fp8_run(self):
        """A package without Python's trees: dictionaries with the same keys are returned as they were passed."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            (path / "step.mlir").write_text(self.text)
            subprocess.run([FP8_RUN, path / "step.mlir", "--recipe", "delayed", "--emit-package", path / "package", "--quiet"], check=True)
            self.assertEqual(self.losses(fp8.load(path / "package")), self.want)

    def test_package_of_another_step(self):
        """Trees of an earlier step in the same directory are not those of the package."""
        other = fp8.compile(steps.flat, *self.state, self.batch, recipe="none")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder)
            other.save(path / "package")
            (path / "step.mlir").write_text(self.text)
            subprocess.run([FP8_RUN, path / "step.mlir", "--recipe", "delayed", "--emit-package", path / "package", "--quiet"], check=True)
            self.assertEqual(self.losses(fp8.load(path / "package")), self.want)

    def test_package_in_place_of_a_loaded_one(self):
        """What is loaded from a directory is the package that is there now; an earlier one stays what it is."""
        with tempfile.TemporaryDirectory() as folder:
            steps8, want = [], []
            for factor in (1.0, 2.0, 3.0):
                compiled = fp8.compile(lambda w, x, factor=factor: (w - jax.grad(lambda w: jnp.sum(x @ w))(w), jnp.sum(w) * factor), jnp.ones((8, 8)), jnp.ones((4, 8)))
                compiled.save(folder)
                steps8.append(fp8.load(folder))
                want.append(64 * factor)
            self.assertEqual([float(step8(jnp.ones((8, 8)), jnp.ones((4, 8)))[1]) for step8 in steps8], want)

    def test_packages_written_at_once(self):
        compiled, mistakes = fp8.compile(steps.tupled, self.state, self.batch, recipe="none"), []

        def save(folder):
            try:
                for _ in range(6):
                    compiled.save(folder)
            except OSError as error:
                mistakes.append(error)

        with tempfile.TemporaryDirectory() as folder:
            threads = [threading.Thread(target=save, args=(folder,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(mistakes, [])
            self.assertEqual(fp8.load(folder).recipe, compiled.recipe)
            self.assertEqual([path.name for path in pathlib.Path(folder).glob("*.tmp")], [])

    def test_results_without_leaves(self):
        def step(state, batch):
            state, metrics = steps.tupled(state, batch)
            return state, {}, metrics["loss"], None

        compiled = fp8.compile(step, self.state, self.batch, recipe="delayed")
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(folder)
            for one in (compiled, fp8.load(folder)):
                _, nothing, loss, none = one(self.state, self.batch)
                self.assertEqual((nothing, loss, none), ({}, self.want[0], None))

    def test_keys_of_results(self):
        """Keys are what they are in the function, however Python prints them."""
        keys = ["it's", 'say "it\'s"', "back\\slash", "two\nlines", "a['b']", "naïve", "]", "", "0"]
        numbers = {"tuple": (1.0, 2.0), "sparse": {0: 1.0, 7: 2.0}, "from one": {1: 1.0, 2: 2.0}, "after nothing": (None, 1.0)}

        def step(state, batch):
            state, metrics = steps.tupled(state, batch)
            return state, {key: i * metrics["loss"] for i, key in enumerate(keys)} | jax.tree.map(lambda x: x * metrics["loss"], numbers)

        for one in (fp8.compile(step, self.state, self.batch, recipe="none"), fp8.compile(text_of(step, self.state, self.batch), recipe="none")):
            metrics = one(self.state, self.batch)[1]
            self.assertEqual(set(metrics), {*keys, *numbers})
            loss = metrics[keys[1]]
            self.assertEqual([round(float(metrics[key] / loss)) for key in keys], list(range(len(keys))))
            self.assertEqual([len(metrics["tuple"]), list(metrics["sparse"]), list(metrics["from one"]), metrics["after nothing"][1]], [2, [0, 7], [1, 2], loss])

    def test_containers_of_a_call(self):
        """State comes back in the containers of its own call, whatever else is called meanwhile, here while an input is read."""
        compiled = fp8.compile(text_of(steps.paired, steps.state("pair"), self.batch), recipe="none")

        class Late:
            def __array__(late, dtype=None, copy=None):
                state, _ = compiled(steps.state("record"), self.batch)
                self.assertEqual(type(state), steps.Record)
                return np.asarray(self.batch["x"])

        state, _ = compiled(steps.state("pair"), {**self.batch, "x": Late()})
        self.assertEqual(type(state), steps.Pair)

    def test_any_number_of_arguments(self):
        def step(*args):
            params, opt, metrics = steps.flat(*args)
            return params, opt, metrics

        params, opt = self.state
        compiled = fp8.compile(step, params, opt, self.batch, recipe="delayed")
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            compiled.save(folder / "package")
            loaded = fp8.load(folder / "package")
            for one in (compiled, loaded):
                *state, metrics = one(params, opt, self.batch)
                self.assertEqual(metrics["loss"], self.want[0])
                self.assertEqual(jax.tree.structure(tuple(state)), jax.tree.structure((params, opt)))
                one.save_state(folder / "state", *state)
                again = one.load_state(folder / "state", params, opt)
                self.assertEqual(one(*again, self.batch)[2]["loss"], self.want[1])
            with self.assertRaisesRegex(TypeError, r"args\[1\]"):
                compiled.save_state(folder / "state", params)

    def test_keys_in_a_package(self):
        state = steps.state("keyed")
        compiled = fp8.compile(steps.keyed, state, self.batch, recipe="tensorwise")
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(folder)
            again, _ = fp8.load(folder)(state, self.batch)
        key = jax.numpy.asarray(again["key"])
        self.assertTrue((jax.random.key_data(key) == jax.random.key_data(jax.random.split(state["key"])[0])).all())


class Facts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state, cls.batch = steps.state(), steps.batch()
        cls.step = fp8.compile(steps.tupled, cls.state, cls.batch, recipe="coat")

    def test_verdicts(self):
        verdicts = self.step.verdicts
        self.assertEqual(len(verdicts), verdicts.report["total"])
        self.assertEqual(sum(dot["verdict"] == "fp8" for dot in verdicts), verdicts.report["fp8"])
        self.assertIn(verdicts.summary, str(verdicts))
        self.assertIn("steps.py", verdicts[0]["location"])
        table = verdicts._repr_html_()
        self.assertEqual(table.count("<tr>"), len(verdicts) + 1)
        self.assertIn("[&#x27;up&#x27;]", table)

    def test_signature_and_memory(self):
        signature = self.step.signature
        row = next(row for row in signature["arguments"] if row["path"] == "state[0]['up']")
        self.assertEqual((row["role"], row["kind"], row["result"], row["type"]), ("state", "parameter", "result[0][0]['up']", "tensor<64x96xf32>"))
        self.assertEqual([row["kind"] for row in signature["results"] if not row["state"]], ["loss", "metric"])
        self.assertGreater(self.step.memory["arena_bytes"], 0)
        self.assertIn("name: coat", self.step.recipe)
        self.assertIn("dots in FP8", repr(self.step))

    def test_ir(self):
        self.assertIn("fp8.dot_general", self.step.ir())
        self.assertNotIn("fp8.dot_general", self.step.ir("import"))
        self.assertIn("fp8.launch", self.step.ir("kernels"))
        with self.assertRaisesRegex(ValueError, "expected one of the stages import, fp8.* but got codegn"):
            self.step.ir("codegn")

    def test_overrides(self):
        changed = fp8.compile(steps.tupled, self.state, self.batch, recipe="tensorwise", set={"forward.activation.format": "f8E5M2"})
        self.assertIn("f8E5M2", next(dot["lhs"] for dot in changed.verdicts if dot["role"] == "forward" and dot["verdict"] == "fp8"))
        with self.assertRaisesRegex(fp8.CompileError, "formt"):
            fp8.compile(steps.tupled, self.state, self.batch, recipe="tensorwise", set={"forward.activation.formt": "f8E5M2"})
        # Values of Python are written as YAML has them.
        values = {"optimizer.clip_update": True, "wgrad": None, "forward.activation": {"format": "f8E5M2"}, "optimizer.keep": ["*['up']"], "seed": 3}
        texts = {"optimizer.clip_update": "true", "wgrad": "none", "forward.activation": "{format: f8E5M2}", "optimizer.keep": "[\"*['up']\"]", "seed": "3"}
        one, two = (fp8.compile(steps.tupled, self.state, self.batch, recipe="coat", set=given) for given in (values, texts))
        self.assertEqual(one.recipe, two.recipe)
        with self.assertRaisesRegex(fp8.CompileError, "but got 'pentium-of-1993'"):
            fp8.compile(steps.tupled, self.state, self.batch, target="pentium-of-1993")
        with self.assertRaisesRegex(fp8.CompileError, "but got 'gpu'; a GPU is a target of its own, such as nvptx:sm_90a"):
            fp8.compile(steps.tupled, self.state, self.batch, target="gpu")
        with self.assertRaisesRegex(fp8.CompileError, "expected a target of cpu or nvptx:GPU .* but got 'nvptx'"):
            fp8.compile(steps.tupled, self.state, self.batch, target="nvptx")
        self.assertTrue(fp8.compile(steps.tupled, self.state, self.batch, target="cpu").verdicts)
        with jax.enable_x64(True):
            wide = jax.tree.map(lambda x: x.astype(np.float64) if x.dtype == np.float32 else x, (self.state, self.batch))
            with self.assertRaisesRegex(fp8.CompileError, "steps.py:\\d+:\\d+: .*expected lhs of f32, bf16 or f16 but got f64"):
                fp8.compile(steps.tupled, *wide, fail_on_fallback=True)
            state, _ = fp8.compile(steps.tupled, *wide)(*wide)
            self.assertEqual(state[0]["up"].dtype, np.float64)

    def test_ranks(self):
        ranks = fp8.compile(steps.tupled, self.state, self.batch, recipe="tensorwise", data_parallel=True, zero=1, global_amax=True)
        one = fp8.compile(steps.tupled, self.state, self.batch, recipe="tensorwise")
        self.assertEqual(one.verdicts.report["collectives"], [])
        self.assertIn("mean", {row["operation"] for row in ranks.verdicts.report["collectives"]})
        (_, a), (_, b) = ranks(self.state, self.batch), one(self.state, self.batch)
        jax.tree.map(np.testing.assert_array_equal, a, b)
        with self.assertRaisesRegex(fp8.CompileError, "expected data_parallel with zero"):
            fp8.compile(steps.tupled, self.state, self.batch, zero=1)

    def test_recipes_as_objects(self):
        from fp8.recipe import Compute, Dgrad, Forward, Operand, Optimizer, Recipe, Rule, Storage, Wgrad

        moment = Storage("f8E4M3FN", tile="1x128", expand=True)
        coat = Recipe("coat", Forward(), Dgrad(), Wgrad(), [Rule(part="head")], Compute("bf16", "bf16", "f8E4M3FN", "f8E4M3FN"), optimizer=Optimizer(moment, moment))
        made = fp8.compile(steps.tupled, self.state, self.batch, recipe=coat)
        self.assertEqual(made.recipe, self.step.recipe)
        # A dictionary has the same keys; what is None gets the default.
        rules = {"rules": [{"keep": {"path": "*['up']"}}], "optimizer": {"clip_update": False}, "dgrad": None, "seed": 3}
        given = {"name": "mine", "forward": {"activation": {"format": "f8E4M3FN"}, "weight": Operand()}, **rules}
        as_object = Recipe("mine", Forward(), rules=[Rule(path="*['up']")], optimizer=Optimizer(clip_update=False), seed=3)
        one, two = (fp8.compile(steps.tupled, self.state, self.batch, recipe=recipe) for recipe in (given, as_object))
        self.assertEqual(one.recipe, two.recipe)
        mixed = fp8.compile(steps.tupled, self.state, self.batch, recipe={**given, "forward": Forward()}, set={"optimizer": Optimizer(clip_update=False)})
        self.assertEqual(mixed.recipe, two.recipe)
        self.assertIn("name: mine\n", one.recipe)
        with self.assertRaisesRegex(fp8.CompileError, r"error: recipe\.yaml:3:\d+: .*'f8E4M4'"):
            fp8.compile(steps.tupled, self.state, self.batch, recipe=Recipe("mine", Forward(Operand("f8E4M4"))))
        path = Recipe("mine", Forward(), rules=[Rule(path="*['up']"), Rule(quantize=True, layers=[0], max_k=8)])
        self.assertIn("- keep: {path: '*[''up'']'}\n  - quantize: {layers: [0], max_k: 8}\n", str(path))

    def test_recipes_as_text(self):
        from fp8.recipe import Optimizer, Recipe, Rule

        self.assertIn("optimizer: {}\n", str(Recipe("mine", optimizer=Optimizer())))
        for layers in (range(2), np.arange(2), (0, 1)):
            self.assertIn("layers: [0, 1]", str(Recipe("mine", rules=[Rule(layers=layers)])))

    def test_keys_with_signs(self):
        """A key of a tree may contain the sign that separates paths in options."""
        x = np.ones((4, 8), np.float32)
        for key in ("a=b", "it's=", '"=x', "\\'="):

            def step(state, x, key=key):
                loss, grad = jax.value_and_grad(lambda w: (x @ w).sum() ** 2)(state[key])
                return {key: state[key] - grad}, loss

            compiled = fp8.compile(step, {key: np.ones((8, 2), np.float32)}, x, recipe="none")
            row = compiled.signature["arguments"][0]
            self.assertEqual((row["role"], row["result"]), ("state", f"result[0][{key!r}]"))

    def test_warnings(self):
        def scaled(state, scale, batch):
            return steps.tupled(({**state[0], "up": state[0]["up"] * scale}, state[1]), batch)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fp8.compile(scaled, self.state, 1.0, self.batch, recipe="delayed", set={"weight_copies": "state"})
        (warning,) = [w for w in caught if issubclass(w.category, fp8.CompileWarning)]
        self.assertRegex(str(warning.message), r"modules\.py:\d+:\d+: .*state\[0\]\['up'\].*depends on more than the step's state")
        self.assertEqual(pathlib.Path(warning.filename), pathlib.Path(__file__))

    def test_import_is_light(self):
        code = "import sys, fp8; assert not {'numpy', 'jax', 'fp8._native'} & set(sys.modules), sys.modules.keys(); print(fp8.__doc__[:20])"
        out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
        self.assertEqual(out.strip(), "FP8 training steps:")
        with self.assertRaisesRegex(AttributeError, "module 'fp8' has no attribute 'compil'; it has .*CompileError, .*compile"):
            fp8.compil  # noqa: B018


if __name__ == "__main__":
    unittest.main()
