"""Runs whose optimizer state is stored in FP8: what memory and checkpoints hold, that
an interrupted run resumes bit for bit, and that initial values, evaluations and
messages see the state in the user's types.

    python resume_stored.py FP8_RUN FOLDER [CASE...]
"""

import json
import pathlib
import shutil
import subprocess
import sys
import time

import fp8_testing as t
import gated_mlp
import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

STEPS = 8
# The types and arrays of the parameter, the first and the second moment.
EXPECTED = {
    "scaling_fp8": (("F16", ".scale"), ("F8_E4M3", ".scale"), ("F8_E5M2", ".scale")),
    "fp8_lm": (("F16", ".scale"), ("F8_E4M3", ".scale"), ("F16", ".scale")),
    "coat": (("F32",), ("F8_E4M3", ".scale", ".center", ".exponent"), ("F8_E4M3", ".scale", ".center", ".exponent")),
}
SIZES = {"F8_E4M3": 1, "F8_E5M2": 1, "F16": 2, "BF16": 2, "F32": 4, "I32": 4}
case = t.Cases()


class Fixture:
    """A regression with AdamW: two weights of 4096 elements and a bias, which is too small to be
    stored in another format."""

    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, folder
        folder.mkdir(parents=True)
        self.text = t.write_text(folder / "text.txt")
        random = np.random.default_rng(0)
        save_file({"x": random.normal(size=(64, 64)).astype(np.float32)}, folder / "x.safetensors")
        params = {name: (0.1 * random.normal(size=(64, 64))).astype(np.float32) for name in ("v", "w")}
        params["b"] = np.zeros(64, np.float32)
        optimizer = optax.adamw(1e-2)

        def loss_of(p, x):
            return jnp.mean((jnp.tanh(x @ p["w"] + p["b"]) @ p["v"] - x) ** 2)

        def step(params, state, x):
            loss, grads = jax.value_and_grad(loss_of)(params, x)
            updates, state = optimizer.update(grads, state, params)
            return optax.apply_updates(params, updates), state, loss

        x, self.state = jnp.zeros((16, 64)), {"params": params, "state": optimizer.init(params)}
        self.lowered = {donated: jax.jit(step, donate_argnums=(0, 1) if donated else ()).lower(params, self.state["state"], x) for donated in (True, False)}
        (folder / "step.mlir").write_text(self.lowered[True].as_text(debug_info=True))
        (folder / "eval.mlir").write_text(jax.jit(loss_of).lower(params, x).as_text(debug_info=True))
        t.save_tree(folder / "init.safetensors", **self.state)

    def command(self, out, recipe, *args, step="step.mlir", init="init.safetensors", batch="x", steps=STEPS):
        return [str(part) for part in (self.fp8_run, self.folder / step, "--init", self.folder / init, "--batch", f"{batch}={self.folder}/x.safetensors:x",
                "--recipe", recipe, "--checkpoint-every", 2, "--steps", steps, "--out", self.folder / out, *args)]  # fmt: skip

    def run(self, out, recipe, *args, check=True, **kwargs):
        result = t.run(self.command(out, recipe, *args, **kwargs), check=check)
        return self.folder / out if check else result

    def whole(self, recipe):
        out = self.folder / f"whole-{recipe}"
        return out if out.exists() else self.run(out.name, recipe)


def same(out, whole):
    name = f"checkpoint-{STEPS}.safetensors"
    assert (out / name).read_bytes() == (whole / name).read_bytes(), f"{out.name}: {name} differs from {whole.name}'s"
    assert t.losses(t.read_log(out)) == t.losses(t.read_log(whole)), f"{out.name}: losses differ from {whole.name}'s"


def tensors(path):
    """Returns types and shapes by name, and the metadata."""
    with safe_open(path, "numpy") as file:
        slices = {name: file.get_slice(name) for name in file.keys()}
        return {name: (each.get_dtype(), tuple(each.get_shape())) for name, each in slices.items()}, file.metadata()


def paths_of(state):
    leaves = {}
    for root, tree in state.items():
        for keys, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]:
            leaves[root + jax.tree_util.keystr(keys)] = leaf
    return leaves


@case
def what_is_stored(f):
    for recipe, expected in EXPECTED.items():
        out = f.whole(recipe)
        found, metadata = tensors(out / f"checkpoint-{STEPS}.safetensors")
        user, stored = json.loads(metadata["user_state"]), json.loads(metadata["stored_state"])
        for path, leaf in paths_of(f.state).items():
            kind = 0 if path.startswith("params") else 1 if ".mu" in path else 2
            dtype, shape = found[path]
            assert shape == leaf.shape, (path, shape)
            if leaf.size < 4096 or expected[kind] == ("F32",):
                assert dtype == ("I32" if ".count" in path else "F32") and path not in user, (path, dtype)
                continue
            assert dtype == expected[kind][0] and user[path] == {"dtype": "F32", "shape": [64, 64]}, (path, dtype)
            names = {path, *(path + suffix for suffix in expected[kind][1:])}
            assert names <= set(found) and names <= set(stored), (path, stored)
        # Memory holds the arrays of the checkpoint and the batch, each rounded up to 64 bytes.
        rounded = lambda dtype, shape: (int(np.prod(shape)) * SIZES[dtype] + 63) // 64 * 64
        expected_bytes = sum(rounded(*each) for each in found.values()) + rounded("F32", (16, 64))
        memory = json.loads((out / "memory.json").read_text())["step"]
        assert memory["arguments"] == expected_bytes, (memory["arguments"], expected_bytes)


def kill(command, out):
    """Starts a run and kills it after it has saved step 4."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (out / "checkpoint-4.safetensors").exists():
        time.sleep(0.0005)
    process.kill()
    process.communicate()
    for late in (6, STEPS):  # on a busy machine the run may have written these too
        (out / f"checkpoint-{late}.safetensors").unlink(missing_ok=True)
    assert (out / "checkpoint-4.safetensors").exists()


@case
def killed_and_resumed(f):
    for recipe in ("scaling_fp8", "fp8_lm"):
        kill(f.command(f"killed-{recipe}", recipe), f.folder / f"killed-{recipe}")
        same(f.run(f"killed-{recipe}", recipe, "--resume"), f.whole(recipe))


@case
def layers_in_a_loop(f):
    """Stacked layers that the backward pass recomputes."""
    model = f.folder / "remat"
    gated_mlp.write(model, loop="remat")
    command = lambda out, *args: [str(part) for part in (f.fp8_run, model / "step.mlir", "--init", model / "init.mlir", "--data", f.text, "--recipe", "coat",
                                  "--checkpoint-every", 2, "--steps", STEPS, "--out", f.folder / out, *args)]  # fmt: skip
    t.run(command("loop"))
    found, _ = tensors(f.folder / "loop" / f"checkpoint-{STEPS}.safetensors")
    assert found["state[0].mu['layers']['up']"] == ("F8_E4M3", (2, 64, 64)), found
    assert found["state[0].mu['layers']['up'].center"] == ("F32", (2, 64, 1)), found
    shutil.copytree(f.folder / "loop", f.folder / "loop-stopped")
    for late in (6, STEPS):
        (f.folder / "loop-stopped" / f"checkpoint-{late}.safetensors").unlink()
    t.run(command("loop-stopped", "--resume"))
    same(f.folder / "loop-stopped", f.folder / "loop")


@case
def truncated_checkpoint(f):
    out = f.folder / "truncated"
    shutil.copytree(f.whole("coat"), out)
    last = out / f"checkpoint-{STEPS}.safetensors"
    last.write_bytes(last.read_bytes()[:-100])
    same(f.run("truncated", "coat", "--resume"), f.whole("coat"))


@case
def checkpoint_as_initial_values(f):
    """The stored values are taken as they are: the first loss is that of the next step."""
    start = f.whole("scaling_fp8") / "checkpoint-4.safetensors"
    save = {"x": np.roll(load_file(f.folder / "x.safetensors")["x"], -4 * 16, axis=0)}
    save_file(save, f.folder / "later.safetensors")
    command = f.command("from-stored", "scaling_fp8", init=start, steps=4)
    t.run([part.replace("x.safetensors", "later.safetensors") for part in command])
    later = t.losses(t.read_log(f.whole("scaling_fp8")))[4:]
    assert t.losses(t.read_log(f.folder / "from-stored")) == later, (t.losses(t.read_log(f.folder / "from-stored")), later)


@case
def another_recipe(f):
    """Another recipe is refused, with a message that names both recipes and their types."""
    out = f.folder / "other-recipe"
    shutil.copytree(f.whole("coat"), out)
    result = f.run("other-recipe", "none", "--resume", check=False, steps=STEPS + 2)
    for part in ("is a checkpoint of another model or recipe ('", "recipe coat ", "', this is 'recipe none ", ".mu['w']: expected f32[64,64] but got f8e4m3fn[64,64]", "not wanted"):
        assert result.returncode == 1 and part in result.stderr, result.stderr
    result = f.run("misfit", "none", check=False, init=f.whole("coat") / "checkpoint-4.safetensors")
    assert result.returncode == 1 and "do not fit the step" in result.stderr, result.stderr


@case
def misfits_are_told_of_the_users_tree(f):
    values = load_file(f.folder / "init.safetensors")
    values["state[0].mu['w']"] = np.zeros((63, 64), np.float32)
    save_file(values, f.folder / "short.safetensors")
    result = f.run("short", "coat", check=False, init="short.safetensors")
    assert result.returncode == 1 and "state[0].mu['w']: expected f32[64,64] but got f32[63,64]" in result.stderr, result.stderr
    for part in (".scale", ".center", ".exponent", "f8"):
        assert part not in result.stderr, result.stderr


@case
def names_stripped(f):
    """Steps without names, in another order, with and without donation store the same."""
    values = list(paths_of(f.state).values())
    for donated in (True, False):
        text, order, _ = t.strip_names(f.lowered[donated].as_text(), seed=1, donated=donated)
        (f.folder / "stripped.mlir").write_text(text)
        batch = f"arg{order.index(len(values))}"
        initial = {f"arg{new}": np.asarray(values[old]) for new, old in enumerate(order) if old < len(values)}
        save_file(initial, f.folder / "stripped.safetensors")
        out = f.run(f"stripped-{donated}", "scaling_fp8", step="stripped.mlir", init="stripped.safetensors", batch=batch)
        assert t.losses(t.read_log(out)) == t.losses(t.read_log(f.whole("scaling_fp8"))), "losses differ"
        found, known = (tensors(each / f"checkpoint-{STEPS}.safetensors")[0] for each in (out, f.whole("scaling_fp8")))
        assert sorted(found.values()) == sorted(known.values())
        f.run(f"stripped-{donated}", "scaling_fp8", "--resume", step="stripped.mlir", init="stripped.safetensors", batch=batch, steps=STEPS + 1)


@case
def evaluation(f):
    """The evaluation gets the weights in the user's types, dequantized from the stored ones."""
    out = f.run("evaluated", "scaling_fp8", "--eval", f.folder / "eval.mlir", "--eval-batch", f"x={f.folder}/x.safetensors:x")
    arrays = {}
    with safe_open(out / f"checkpoint-{STEPS}.safetensors", "numpy") as file:
        for name in ("w", "v"):
            arrays[name] = file.get_tensor(f"params['{name}']").astype(np.float32) * file.get_tensor(f"params['{name}'].scale")
        arrays["b"] = file.get_tensor("params['b']")
    x = load_file(f.folder / "x.safetensors")["x"]
    expected = np.mean((np.tanh(x @ arrays["w"] + arrays["b"]) @ arrays["v"] - x) ** 2)
    assert abs(t.heldout(out) - expected) < 2e-2 * expected, (t.heldout(out), expected)
    memory = json.loads((out / "memory.json").read_text())
    assert memory["load"]["arguments"] < memory["load"]["results"] and "store" in memory, memory


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    t.run_cases(case, sys.argv[3:], Fixture(fp8_run, folder))


main()
