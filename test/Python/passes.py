"""fp8.opt, and the examples in the package's documentation."""

import doctest
import importlib
import pkgutil
import unittest

import jax
import steps

import fp8


class Passes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.text = jax.jit(steps.tupled, keep_unused=True).lower(steps.state(), steps.batch()).as_text(debug_info=True)

    def test_stage_by_stage(self):
        """Running the pipelines one after another gives the same as running them at once, and the same as the
        compiler's stages."""
        text = self.text
        for stage in ("--fp8-import", "--fp8-quantize=recipe=coat", "--fp8-structure", "--fp8-kernels"):
            text = fp8.opt(text, stage, locations=True)
        self.assertIn("fp8.launch", text)
        at_once = fp8.opt(self.text, "fp8-import,fp8-quantize{recipe=coat},fp8-structure,fp8-kernels", locations=True)
        self.assertEqual(text, at_once)

    def test_options_with_spaces(self):
        text = fp8.opt(self.text, "--fp8-import '--fp8-quantize=recipe=tensorwise set=forward.activation.format=f8E5M2'")
        self.assertIn("f8E5M2", text)
        self.assertNotIn("loc(", text)

    def test_errors(self):
        for text, passes, error in (
            ("func.func @f(", "", "expected"),
            ("module {}", "--no-such-pass", "'no-such-pass' does not refer to a registered pass"),
            ("module {}", "--fp8-quantize=no-such=1", "failed to add `fp8-quantize` with options `no-such=1`"),
            (self.text, "--fp8-kernels", "expected|structured"),
        ):
            with self.subTest(passes), self.assertRaisesRegex(fp8.CompileError, error):
                fp8.opt(text, passes)
        with self.assertRaisesRegex(ValueError, "expected passes as --name or --name=options but got fp8-import"):
            fp8.opt("module {}", "--canonicalize fp8-import")


def load_tests(loader, tests, pattern):
    for module in pkgutil.iter_modules(fp8.__path__, "fp8."):
        tests.addTests(doctest.DocTestSuite(importlib.import_module(module.name)) if "_native" not in module.name else ())
    tests.addTests(doctest.DocTestSuite(fp8))
    return tests


if __name__ == "__main__":
    unittest.main()
