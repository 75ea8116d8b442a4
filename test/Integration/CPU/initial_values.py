"""Arguments that no result replaces are frozen or constant if the initializer, the
file or the checkpoint has a value for them, and batch otherwise.

    python initial_values.py FP8_RUN FOLDER
"""

import json
import pathlib
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
from safetensors.numpy import save_file

ROWS, WIDTH, STEPS = 4, 8, 6


def loss_of(w, scale, shift, places, mask, x, y):
    h = jnp.tanh((x * scale + shift) @ w["in"])[places] @ w["out"]
    return jnp.where(mask, jnp.square(h - y).mean(-1), 0).sum()


def step(w, scale, shift, places, mask, x, y):
    """`scale` and `shift` are combined with data elementwise, and `places` and `mask` are integers:
    each could be set once or be data."""
    loss, grads = jax.value_and_grad(loss_of)(w, scale, shift, places, mask, x, y)
    return jax.tree.map(lambda p, g: p - 0.05 * g, w, grads), loss


def roles(fp8_run, *arguments):
    text = t.run([fp8_run, *arguments, "--explain-signature"]).stdout
    rows = [line.split() for line in text.partition("results:")[0].splitlines()[1:]]
    return {row[0]: row[2] for row in rows}


def losses(out):
    return [json.loads(line)["loss"] for line in open(out / "log.jsonl")]


def expect(got, expected, what):
    if got != expected:
        raise SystemExit(f"{what}: expected {expected} but got {got}")


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    random = np.random.default_rng(3)
    matrix = lambda *shape: random.normal(size=shape).astype(np.float32)
    w = {"in": matrix(WIDTH, WIDTH) * 0.3, "out": matrix(WIDTH, WIDTH) * 0.3}
    fixed = {"scale": matrix(ROWS, WIDTH), "shift": matrix(ROWS, WIDTH),
             "places": np.array([2, 0, 3, 1], np.int32), "mask": np.array([True, False, True, True])}  # fmt: skip
    data = {"x": matrix(STEPS, ROWS, WIDTH), "y": matrix(STEPS, ROWS, WIDTH)}
    first = {name: array[0] for name, array in data.items()}
    lowered = jax.jit(step).lower(w, **fixed, **first)
    module = folder / "step.mlir"
    module.write_text(lowered.as_text(debug_info=True))

    state = {"w['in']": w["in"], "w['out']": w["out"]}
    whole, bare = folder / "whole.safetensors", folder / "bare.safetensors"
    save_file(state | fixed, whole)
    save_file(state | {"statistics": matrix(ROWS, WIDTH), "order": fixed["places"]}, bare)
    # Results of a function that returns a tuple have no names: they match by type and position.
    init = folder / "init.mlir"
    values = jax.tree.map(jnp.asarray, (w, *fixed.values()))
    init.write_text(jax.jit(lambda seed: jax.tree.map(lambda a: a + 0 * seed.astype(a.dtype) if a.dtype != bool else a, values))
                    .lower(jnp.uint32(0)).as_text(debug_info=True))  # fmt: skip

    trained = {"w['in']": "state", "w['out']": "state"}
    batch = {"x": "batch", "y": "batch"}
    set_once = {"scale": "frozen", "shift": "frozen", "places": "constant", "mask": "constant"}
    for source in (whole, init):
        expect(roles(fp8_run, module, "--init", source), trained | set_once | batch, source.name)
    # Tensors of the same type with other names do not match.
    expect(roles(fp8_run, module, "--init", bare), trained | dict.fromkeys(fixed, "batch") | batch, "a file without them")
    expect(roles(fp8_run, module, "--init", whole, "--role", "mask=batch", "--role", "x=frozen"),
           trained | set_once | batch | {"mask": "batch", "x": "frozen"}, "--role")  # fmt: skip
    why = t.run([fp8_run, module, "--init", whole, "--explain-signature"]).stdout
    assert why.count("the initial values have it") == 4, why

    def train(out, *arguments):
        feed = [f"--batch={name}={folder}/data.safetensors:{name}" for name in (*data, *arguments[0])]
        t.run([fp8_run, module, *feed, "--recipe", "none", "--out", folder / out, "--quiet", *arguments[1:]])
        return losses(folder / out)

    repeated = {name: np.stack([array] * STEPS) for name, array in fixed.items()}
    save_file(data | repeated, folder / "data.safetensors")
    expected, p = [], w
    for i in range(STEPS):
        p, loss = jax.jit(step)(p, **fixed, x=data["x"][i], y=data["y"][i])
        expected.append(float(loss))
    # A resumed run takes the roles from its checkpoint, as it took them from the file.
    train("half", [], "--init", whole, "--steps", STEPS // 2)
    np.testing.assert_allclose(train("half", [], "--resume", "--steps", STEPS), expected, rtol=1e-5)
    np.testing.assert_allclose(train("init", [], "--init", init, "--steps", STEPS), expected, rtol=1e-5)
    # Arguments that are fed are data, and the checkpoint of such a run does not have them.
    np.testing.assert_allclose(train("fed", fixed, "--init", whole, "--steps", STEPS), expected, rtol=1e-5)
    train("bare", fixed, "--init", bare, "--steps", STEPS // 2)
    np.testing.assert_allclose(train("bare", fixed, "--resume", "--init", bare, "--steps", STEPS), expected, rtol=1e-5)


main()
