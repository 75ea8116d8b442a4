"""Steps for a GPU: the same calls, with the GPU's state and metrics. LD_LIBRARY_PATH has the emulated driver, which
loads kernels as LLVM's bitcode."""

import pathlib
import tempfile
import unittest

import jax
import jax.numpy as jnp
import numpy as np

import fp8

WIDTH, BATCH, STEPS = 32, 16, 5
GPU = {"target": "nvptx:sm_89", "gpu_image": "bitcode"}


def loss_of(params, x, y):
    return jnp.mean((jax.nn.relu(x @ params["up"]) @ params["down"] - y) ** 2)


def step(state, x, y):
    value, grads = jax.value_and_grad(loss_of)(state["params"], x, y)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, state["moments"], grads)
    params = jax.tree.map(lambda p, m: p - 0.05 * m, state["params"], moments)
    return {"params": params, "moments": moments, "count": state["count"] + 1}, {"loss": value, "twice": 2 * value}


def initial():
    random = np.random.default_rng(0)
    params = {name: random.normal(0, 0.2, (WIDTH, WIDTH)).astype(np.float32) for name in ("up", "down")}
    return {"params": params, "moments": jax.tree.map(np.zeros_like, params), "count": np.int32(0)}


def batches():
    random = np.random.default_rng(1)
    return random.normal(0, 1, (STEPS, 2, BATCH, WIDTH)).astype(np.float32)


def play(compiled, state, given):
    """Returns the metrics of each step, read after it, and the last state."""
    metrics = []
    for x, y in given:
        state, found = compiled(state, x, y)
        metrics.append([float(found["loss"]), float(found["twice"])])
    return metrics, state


class OnGPU(unittest.TestCase):
    def assert_close(self, got, want, bound=1e-5):
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
            self.assertLessEqual(np.max(np.abs(a - b)), bound * max(1, np.max(np.abs(b))))

    def test_metrics_and_state_are_those_of_the_cpu(self):
        """Every step reads its own batch and returns its own metrics, although it still runs when the call returns."""
        for recipe in ("none", "tensorwise", "delayed"):
            with self.subTest(recipe):
                on_cpu, on_gpu = (play(fp8.compile(step, initial(), *batches()[0], recipe=recipe, **where), initial(), batches()) for where in ({}, GPU))
                self.assert_close(on_gpu, on_cpu)
                self.assertEqual(int(on_gpu[1]["count"]), STEPS)

    def test_immutable_batches_are_not_copied_again(self):
        compiled = fp8.compile(step, initial(), *batches()[0], recipe="none", **GPU)
        fixed = [tuple(jnp.asarray(part) for part in batches()[0])] * STEPS
        want = play(jax.jit(step), initial(), fixed)
        self.assert_close(play(compiled, initial(), fixed), want)

    def test_a_run_goes_on_elsewhere(self):
        """The state of a step on a GPU goes on in one for the CPU, in memory and by a file, and the other way round."""
        whole, _ = play(fp8.compile(step, initial(), *batches()[0], recipe="delayed"), initial(), batches())
        for begin, end in ((GPU, {}), ({}, GPU)):
            first, second = (fp8.compile(step, initial(), *batches()[0], recipe="delayed", **where) for where in (begin, end))
            head, state = play(first, initial(), batches()[:2])
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder) / "state.safetensors"
                first.save_state(path, state)
                tail, _ = play(second, second.load_state(path, initial()), batches()[2:])
            self.assert_close(head + tail, whole)

    def test_copies_are_independent(self):
        compiled = fp8.compile(step, initial(), *batches()[0], recipe="none", **GPU)
        _, state = play(compiled, initial(), batches()[:2])
        kept = fp8.copy(state)
        again, _ = play(compiled, state, batches()[2:])
        self.assert_close(play(compiled, kept, batches()[2:])[0], again, 0)

    def test_packages(self):
        compiled = fp8.compile(step, initial(), *batches()[0], recipe="none", **GPU)
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(folder)
            self.assert_close(play(fp8.load(folder), initial(), batches()), play(compiled, initial(), batches()), 0)

    def test_mistakes(self):
        compiled = lambda **where: fp8.compile(step, initial(), *batches()[0], recipe="none", **where)
        with self.assertRaisesRegex(fp8.CompileError, "sm_80"):
            compiled(target="nvptx:sm_80")
        with self.assertRaisesRegex(fp8.CompileError, "expected a target nvptx:GPU with gpu_image"):
            compiled(gpu_image="ptx")


if __name__ == "__main__":
    unittest.main()
