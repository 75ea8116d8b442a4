"""What recipes must not round: the operands of masks that the backward pass reads, state that the forward pass computes, and
copies of weights that follow from more than parameters, and factors of either sign.

    unrounded.py FP8_RUN FOLDER [CASE...]
"""

import collections
import json
import pathlib
import sys

import fp8_testing as t

t.compile_quickly()
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import optax  # noqa: E402

WIDTH, HIDDEN, ROWS, STEPS = 64, 128, 32, 6


def weights(*shape):
    return (np.random.default_rng(len(shape)).standard_normal(shape) / np.sqrt(shape[-2])).astype(np.float32)


def parameters():
    return {"up": weights(WIDTH, HIDDEN), "down": weights(HIDDEN, WIDTH)}


def descend(params, gradients):
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)


def train(fixture, name, step, init, recipe, *options, steps=STEPS):
    """Returns the losses, and the state after the last step."""
    fp8_run, folder = fixture
    folder = folder / name
    folder.mkdir(parents=True, exist_ok=True)
    x = np.random.default_rng(7).standard_normal((STEPS * ROWS, WIDTH)).astype(np.float32)
    np.save(folder / "x.npy", x)
    t.save_tree(folder / "init.safetensors", **init)
    path = folder / "step.mlir"
    path.write_text(jax.jit(step).lower(*init.values(), x[:ROWS]).as_text(debug_info=True))
    t.run([fp8_run, path, "--init", folder / "init.safetensors", "--batch", f"x={folder}/x.npy", "--recipe", recipe, "--steps", steps,
           "--out", folder / "out", "--overwrite", *t.quick_options, *options])  # fmt: skip
    return t.losses(t.read_log(folder / "out")), t.load_tensors(folder / "out" / f"checkpoint-{steps}.safetensors")


def moved(state, params):
    """Returns how far each parameter has moved."""
    return {key: np.float64(state[f"params['{key}']"]) - value for key, value in params.items()}


def masks(fixture):
    """The largest unit of each row wins, or the four largest: masks that compare values with each other."""

    def step(params, x, winners=1):
        def loss(params):
            hidden = jax.nn.relu(x @ params["up"])
            least = jax.lax.top_k(hidden, winners)[0][:, -1:]
            return jnp.mean(((hidden * (hidden >= least).astype(hidden.dtype)) @ params["down"] - x) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        return descend(params, gradients), value

    def largest(params, x):
        def loss(params):
            hidden = jax.nn.relu(x @ params["up"])
            return jnp.mean(((hidden * (hidden == hidden.max(-1, keepdims=True)).astype(hidden.dtype)) @ params["down"] - x) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        return descend(params, gradients), value

    params = parameters()
    for name, function in {"largest": largest, "four": lambda params, x: step(params, x, 4)}.items():
        exact = moved(train(fixture, f"masks-{name}", function, {"params": params}, "none")[1], params)
        for recipe in ("fp8", "tensorwise", "coat"):
            found = moved(train(fixture, f"masks-{name}", function, {"params": params}, recipe)[1], params)
            for key in params:
                off = np.linalg.norm(found[key] - exact[key]) / np.linalg.norm(exact[key])
                print(f"  {name}, {recipe}: {key} is {off:.3f} off")
                assert off <= 0.4, f"{name} with {recipe}: expected '{key}' to move as in f32 but got {off:.3f} of it off"


def averages(fixture):
    """State that averages activations, which the backward pass reads, too."""

    def step(params, average, x):
        def loss(params):
            hidden = jnp.tanh(x @ params["up"])
            return jnp.mean((hidden @ params["down"] - x) ** 2), hidden.mean(0)

        (value, mean), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        return descend(params, gradients), 0.9 * average + 0.1 * mean, value

    init = {"params": parameters(), "average": np.zeros(HIDDEN, np.float32)}
    found = [train(fixture, "averages", step, init, "fp8", "--set", f"compute.saved={saved}", steps=1)[1]["average"] for saved in ("f32", "bf16")]
    assert found[0].any() and np.array_equal(*found), "expected averages that do not depend on what the backward pass reads"


def teacher(fixture):
    """An average of the weights moves in every call, the weights in every third one."""
    optimizer = optax.MultiSteps(optax.adam(1e-2), 3)

    def step(params, average, opt, x):
        def loss(params):
            given = jnp.tanh(x @ average["up"]) @ average["down"]
            return jnp.mean((jnp.tanh(x @ params["up"]) @ params["down"] - 0.5 * given - x) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        updates, opt = optimizer.update(gradients, opt, params)
        params = optax.apply_updates(params, updates)
        return params, optax.incremental_update(params, average, 0.3), opt, value

    params = parameters()
    init = {"params": params, "average": jax.tree.map(lambda p: 0.5 * p, params), "opt": optimizer.init(params)}
    one, two = (train(fixture, "teacher", step, init, "delayed", "--set", f"weight_copies={copies}")[0] for copies in ("step", "state"))
    assert one == two, f"expected the losses of copies of every step, {one}, but got {two}"


def tied(fixture):
    """A weight that the forward pass reads in both orientations, with layers that are computed again for the backward pass: what
    they read is no gradient."""
    params = {"up": weights(WIDTH, HIDDEN)}

    def step(params, x):
        @jax.checkpoint
        def loss(params):
            return 1e-6 * jnp.mean((jax.nn.gelu(4 * x @ params["up"]) @ params["up"].T - x) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 1e4 * g, params, gradients), value

    exact, found = (moved(train(fixture, f"tied-{recipe}", step, {"params": params}, recipe)[1], params)["up"] for recipe in ("none", "delayed"))
    off = np.linalg.norm(found - exact) / np.linalg.norm(exact)
    print(f"  delayed: {off:.3f} off")
    assert off <= 0.2, f"expected a weight that moves as in f32 but got {off:.3f} of it off"
    dots = json.loads((fixture[1] / "tied-delayed" / "out" / "verdicts.json").read_text())["dots"]
    roles = collections.Counter((dot["role"], dot["recomputed"]) for dot in dots)
    assert roles == {("forward", False): 2, ("forward", True): 2, ("dgrad", False): 1, ("wgrad", False): 2}, f"expected recomputed layers but got {roles}"


def gates(fixture):
    """Weights of attention with a learned factor of either sign, in f8."""
    params = {"qkv": weights(WIDTH, 3 * WIDTH), "gate": np.array([1.5, -1.5], np.float32)}

    def step(params, x):
        def loss(params):
            q, k, v = (y.reshape(2, ROWS // 2, 2, WIDTH // 2) for y in jnp.split(x @ params["qkv"], 3, -1))
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / (WIDTH // 2) ** 0.5
            mixed = jax.nn.softmax(scores) * jnp.tanh(params["gate"])[None, :, None, None]
            return jnp.mean((jnp.einsum("bhqk,bkhd->bqhd", mixed, v).reshape(x.shape) - x) ** 2)

        value, gradients = jax.value_and_grad(loss)(params)
        return descend(params, gradients), value

    exact, found = (train(fixture, "gates", step, {"params": params}, "none", *options)[0] for options in ((), ("--set", "compute.attention=f8")))
    off = max(abs(a - b) for a, b in zip(exact, found, strict=True))
    print(f"  attention in f8: losses {off:.2e} off")
    assert 0 < off <= 1e-2, f"expected the losses {exact} but got {found}"


if __name__ == "__main__":
    fp8_run, folder, *names = sys.argv[1:]
    t.run_cases({"masks": masks, "averages": averages, "teacher": teacher, "tied": tied, "gates": gates}, names, (fp8_run, pathlib.Path(folder)))
