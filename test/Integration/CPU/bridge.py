"""A pytree goes from JAX to fp8-run and back: every kind of container and type is kept
bit for bit, and a run that changes from JAX to fp8-run and back to JAX has the losses
of one that does not. Pretrained weights are loaded by a map of names.

    python bridge.py FP8_RUN FOLDER
"""

import pathlib
import sys
import typing
import warnings

import fp8_testing as t

sys.path.insert(0, str(t.ROOT / "examples"))

import bridge
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax.training.train_state import TrainState
from safetensors import safe_open
from safetensors.numpy import save_file

STEPS = 36  # of which fp8-run does the second third
BATCH, LENGTH, VOCAB = 4, 12, 32


class Pair(typing.NamedTuple):
    left: jax.Array
    right: dict


def every_kind(folder):
    """Saves and loads the containers and types that steps have in their states."""
    keys = jax.random.split(jax.random.key(3), 4)
    floats = jax.random.normal(keys[0], (3, 5))
    state = TrainState.create(apply_fn=None, params={"w": floats, "a.b": [floats[0]]}, tx=optax.adamw(1e-3))
    tree = {
        "state": state.apply_gradients(grads=state.params),
        "pair": Pair(floats.astype(jnp.bfloat16), {"e4m3": floats.astype(jnp.float8_e4m3fn), "e5m2": floats.astype(jnp.float8_e5m2)}),
        "keys": (keys[1], keys, jax.random.key(5, impl="rbg"), jax.random.PRNGKey(7)),
        "scalars": [3, 0.5, True, None, np.float16(1.5), jnp.int32(-4), np.uint8(200)],
        "arrays": {"empty": jnp.zeros((0, 3)), "bool": floats > 0, "i8": jnp.arange(-3, 4, dtype=jnp.int8)},
    }  # fmt: skip
    path = folder / "kinds.safetensors"
    bridge.save(path, tree=tree)
    blank = jax.tree.map(lambda leaf: leaf if bridge.is_key(leaf) or not hasattr(leaf, "dtype") else jnp.zeros_like(leaf), tree)
    again = bridge.load(path, tree=blank)
    assert jax.tree.structure(again) == jax.tree.structure(tree)
    for (where, a), b in zip(jax.tree_util.tree_leaves_with_path(tree), jax.tree.leaves(again)):
        where = jax.tree_util.keystr(where)
        x, y = bridge.to_array(a), bridge.to_array(b)
        assert bridge.is_key(a) == bridge.is_key(b) and (x.dtype, x.shape) == (y.dtype, y.shape), where
        assert x.tobytes() == y.tobytes(), f"{where}: expected {x} but got {y}"
    # Other readers of the format give the same values.
    with safe_open(path, framework="np") as theirs:
        assert set(theirs.keys()) == set(bridge.read(path))
        np.testing.assert_array_equal(theirs.get_tensor("tree['state'].params['a.b'][0]"), tree["state"].params["a.b"][0])

    for what, template in (("shape", {"w": jnp.zeros((5, 3))}), ("dtype", {"w": jnp.zeros((3, 5), jnp.int32)})):
        try:
            bridge.load(path, tree={"state": state.replace(params=template)})
            raise AssertionError(f"expected an error for another {what}")
        except ValueError as error:
            assert "tree['state'].params['w']: expected" in str(error), error
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        more = bridge.load(path, tree={"arrays": {**tree["arrays"], "new": jnp.ones(2)}})
    assert len(caught) == 1 and "tree['arrays']['new']" in str(caught[0].message)
    assert (more["arrays"]["new"] == 1).all() and (more["arrays"]["i8"] == tree["arrays"]["i8"]).all()


class Model(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Embed(VOCAB, 24)(x)
        h = nn.Dropout(0.1, deterministic=False)(nn.gelu(nn.Dense(48)(nn.LayerNorm()(x))))
        x = x + nn.Dense(24)(h)
        return nn.Dense(VOCAB)(x)


def step(state, tokens, weights, key):
    def loss_of(params):
        logits = state.apply_fn(params, tokens[:, :-1], rngs={"dropout": key})
        losses = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
        return jnp.sum(losses * weights) / jnp.sum(weights)

    loss, grads = jax.value_and_grad(loss_of)(state.params)
    return state.apply_gradients(grads=grads), {"loss": loss}


def there_and_back(fp8_run, folder):
    random = np.random.default_rng(1)
    tokens = (np.cumsum(random.choice([1, 1, 3], (STEPS, BATCH, LENGTH + 1)), -1) % VOCAB).astype(np.int32)
    weights = random.uniform(0.5, 1, (STEPS, BATCH, LENGTH)).astype(np.float32)
    model, key = Model(), jax.random.key(0)
    params = model.init({"params": key, "dropout": key}, tokens[0, :, :-1])
    state = TrainState.create(apply_fn=model.apply, params=params, tx=optax.adamw(3e-3))
    compiled, third = jax.jit(step), STEPS // 3
    (folder / "step.mlir").write_text(compiled.lower(state, tokens[0], weights[0], key).as_text(debug_info=True))

    def run_jax(state, begin, end):
        losses = []
        for i in range(begin, end):
            # Every third of the run has its own key, because fp8-run's part is a run of its own.
            key = jax.random.fold_in(jax.random.key(i // third), i % third)
            state, metrics = compiled(state, tokens[i], weights[i], key)
            losses.append(float(metrics["loss"]))
        return state, losses

    def run_fp8(state, begin, end):
        # Each part is a run of its own on its part of the data.
        save_file({"tokens": tokens[begin:end], "weights": weights[begin:end]}, folder / "data.safetensors")
        bridge.save(folder / "init.safetensors", state=state)
        log = t.train(fp8_run, folder, folder / "out", "--init", folder / "init.safetensors", "--recipe", "none", "--overwrite",
                      "--batch", f"tokens={folder / 'data.safetensors'}:tokens",
                      "--batch", f"weights={folder / 'data.safetensors'}", "--seed", begin // third, "--steps", end - begin)  # fmt: skip
        state = bridge.load(folder / "out" / f"checkpoint-{end - begin}.safetensors", state=state)
        assert int(state.step) == end, f"expected step {end} but got {state.step}"
        return state, t.losses(log)

    expected_state, expected = run_jax(state, 0, STEPS)
    state, first = run_jax(state, 0, third)
    state, second = run_fp8(state, third, 2 * third)
    state, last = run_jax(state, 2 * third, STEPS)
    np.testing.assert_allclose(first + second + last, expected, rtol=1e-4)
    assert expected[-1] < 0.9 * expected[0], "expected it to learn"
    for a, b in zip(jax.tree.leaves(state), jax.tree.leaves(expected_state)):
        np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-3)


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True)
    every_kind(folder)
    there_and_back(fp8_run, folder)


main()
