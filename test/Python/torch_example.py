"""Compares examples/python/torch_model.py with JAX and PyTorch."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"
sys.path.insert(0, str(EXAMPLES))

import jax
import numpy as np
import torch
import torch_model
from text import batches

import fp8

STEPS = 3


def data():
    stream = batches()
    return [next(stream) for _ in range(STEPS)]


def tensors(batch):
    return [torch.from_numpy(np.array(batch[key])).long() for key in ("tokens", "next")]


class TorchModel(unittest.TestCase):
    def in_pytorch(self):
        """Takes the same steps in PyTorch; returns their losses, and the model."""
        model = torch_model.make_model()
        optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-4)
        losses = []
        for batch in data():
            optimizer.zero_grad()
            loss = model(*tensors(batch))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses, model

    def train(self, call):
        state, losses = torch_model.initial(), []
        for batch in data():
            state, metrics = call(state, batch)
            losses.append(float(metrics["loss"]))
        return losses, state

    def test_training(self):
        want, model = self.in_pytorch()
        np.testing.assert_allclose(self.train(jax.jit(torch_model.step))[0], want, rtol=1e-4)
        for recipe, bound in (("none", 1e-4), ("tensorwise", 0.05)):
            with self.subTest(recipe):
                step8 = fp8.compile(torch_model.step, torch_model.initial(), data()[0], recipe=recipe)
                losses, state = self.train(step8)
                np.testing.assert_allclose(losses, want, rtol=bound)
                if recipe != "none":
                    self.assertEqual((step8.verdicts.report["fp8"], step8.verdicts.report["fallback"]), (30, 0))
                # The weights return to PyTorch.
                other = torch_model.make_model()
                other.load_state_dict(torch_model.state_dict(state))
                with torch.no_grad():
                    np.testing.assert_allclose(other(*tensors(data()[0])), model(*tensors(data()[0])), rtol=bound)

    def test_script(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "weights.pt"
            out = subprocess.run([sys.executable, EXAMPLES / "torch_model.py", "coat", "2", path], check=True, capture_output=True, text=True).stdout
            self.assertIn("30 of 45 dots in FP8", out)
            self.assertEqual(set(torch.load(path)), set(torch_model.make_model().state_dict()))


if __name__ == "__main__":
    unittest.main()
