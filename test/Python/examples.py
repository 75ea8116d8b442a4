"""The examples in examples/python: `none` computes what JAX does, FP8 losses stay near it, and the
scripts run."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

import jax
import jax.numpy as jnp
import numpy as np

import fp8

STEPS = 3


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        """Replaces the documentation by random words of a small vocabulary, so that the text does
        not change."""
        import text

        random = np.random.default_rng(0)
        words = ["".join(map(chr, random.integers(97, 123, size))) for size in random.integers(1, 9, 200)]
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        (folder / "words.md").write_text(" ".join(random.choice(words, 5000)))
        text.DOCS = folder

    def test_no_documentation(self):
        import text

        with tempfile.TemporaryDirectory() as empty, unittest.mock.patch.object(text, "DOCS", pathlib.Path(empty)):
            with self.assertRaisesRegex(FileNotFoundError, "expected the documentation, .*in a clone of the repository, or set text.DOCS"):
                next(text.batches())

    def compare(self, step, state, inputs, least, noise=0.05):
        """`inputs()` makes new arguments of the step beside state. At least `least` dots become FP8, and losses stay within `noise` of JAX's."""
        want, losses = state, []
        jitted = jax.jit(step)
        for args in inputs():
            want, metrics = jitted(want, *args)
            losses.append(float(metrics["loss"]))
        for recipe, bound in (("none", 1e-4), ("tensorwise", noise)):
            with self.subTest(recipe):
                step8 = fp8.compile(step, state, *next(iter(inputs())), recipe=recipe)
                got, ours = state, []
                for args in inputs():
                    got, metrics = step8(got, *args)
                    ours.append(float(metrics["loss"]))
                self.assertEqual(jax.tree.structure(got), jax.tree.structure(want))
                np.testing.assert_allclose(ours, losses, rtol=bound)
                if recipe != "none":
                    self.assertGreaterEqual(step8.verdicts.report["fp8"], least)
                    self.assertEqual(step8.verdicts.report["fallback"], 0)
                    continue
                for (path, a), b in zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree.leaves(want), strict=True):
                    a, b = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
                    # Adam divides small gradients by their magnitude.
                    self.assertLessEqual(np.max(np.abs(a - b), initial=0), 2e-3 * max(1, np.max(np.abs(b), initial=0)), jax.tree_util.keystr(path))

    def data(self, **options):
        from text import batches

        stream = batches(**options)
        return [next(stream) for _ in range(STEPS)]

    def test_flax_linen(self):
        import flax_linen

        self.compare(flax_linen.step, flax_linen.initial(), lambda: [(batch,) for batch in self.data()], least=40)

    def test_flax_nnx(self):
        import flax_nnx

        self.compare(flax_nnx.step, flax_nnx.initial()[1], lambda: [(batch,) for batch in self.data()], least=27)

    def test_equinox(self):
        import equinox_model

        self.compare(equinox_model.step, equinox_model.initial(), lambda: [(batch,) for batch in self.data()], least=30)

    def test_keras(self):
        import keras_model

        self.compare(keras_model.step, keras_model.initial(), lambda: [(batch,) for batch in self.data()], least=36)

    def test_dpo(self):
        import dpo

        def inputs():
            stream = dpo.pairs()
            return [(dpo.PARAMS, *next(stream)) for _ in range(STEPS)]

        # The loss depends on a difference of sums over all bytes of two answers, which accumulates their
        # rounding errors.
        self.compare(dpo.step, dpo.initial(), inputs, least=72, noise=0.15)

    def test_lora(self):
        import lora
        from safetensors.numpy import load_file

        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "model.safetensors"
            lora.write_random_model(path)
            base = {name: jnp.asarray(weight) for name, weight in load_file(path).items()}
            # (In bf16 sums in another order are rounded differently.)
            wide = {name: weight.astype(jnp.float32) for name, weight in base.items()}
            self.compare(lora.step, lora.initial(wide), lambda: [(wide, batch) for batch in self.data(prompt=16)], least=60)
            out = subprocess.run([sys.executable, EXAMPLES / "lora.py", path, "coat", "4"], check=True, capture_output=True, text=True).stdout
            self.assertIn("dots in FP8", out)
            adapters = load_file(path.with_name("adapters.safetensors"))
            self.assertEqual(len(adapters), 2 * sum("_proj" in name for name in base))
            self.assertGreater(max(float(np.abs(array).max()) for name, array in adapters.items() if name.endswith(".b")), 0)


if __name__ == "__main__":
    unittest.main()
