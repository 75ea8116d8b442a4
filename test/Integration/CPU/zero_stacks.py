"""Trains a Llama in a scan over five layers with ZeRO-1: each of three ranks owns slices
of the stacks, holds no other bytes of the state, and computes the same bits as without.

    python zero_stacks.py FP8_RUN FOLDER LAUNCHER [CASE...]
"""

import dataclasses
import functools
import json
import pathlib
import shutil
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np
import optax
import ranks
from rank_steps import BATCH, ROWS, Case, dense, step_of
from safetensors.numpy import save_file

LAYERS, WIDTH, HIDDEN, LENGTH, VOCABULARY = 5, 64, 128, 8, 32
PAGE = 4096


def weights(random):
    stack = lambda *shape: np.stack([dense(random, *shape) for _ in range(LAYERS)])
    layers = {"qkv": stack(WIDTH, 3 * WIDTH), "out": stack(WIDTH, WIDTH), "gate": stack(WIDTH, HIDDEN), "up": stack(WIDTH, HIDDEN), "down": stack(HIDDEN, WIDTH)}
    layers |= {"norm1": np.ones((LAYERS, WIDTH), np.float32), "norm2": np.ones((LAYERS, WIDTH), np.float32)}
    return {"embed": dense(random, VOCABULARY, WIDTH), "layers": layers, "norm": np.ones(WIDTH, np.float32), "head": dense(random, WIDTH, VOCABULARY)}


def norm(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(jnp.square(x), -1, keepdims=True) + 1e-6) * scale


def layer(x, p):
    q, k, v = jnp.split(norm(x, p["norm1"]) @ p["qkv"], 3, -1)
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / WIDTH**0.5
    weights = jax.nn.softmax(jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -1e30))
    x = x + weights @ v @ p["out"]
    h = norm(x, p["norm2"])
    return x + (jax.nn.silu(h @ p["gate"]) * (h @ p["up"])) @ p["down"], None


def llama(optimizer):
    random = np.random.default_rng(4)
    tokens = random.integers(0, VOCABULARY, (ROWS, LENGTH + 1)).astype(np.int32)

    def loss(params, batch):
        x, _ = jax.lax.scan(layer, params["embed"][batch["tokens"][:, :-1]], params["layers"])
        logp = jax.nn.log_softmax(norm(x, params["norm"]) @ params["head"])
        return -jnp.mean(jnp.take_along_axis(logp, batch["tokens"][:, 1:, None], -1))

    return Case(loss, weights(random), {"tokens": tokens}, optimizer())


def nested(optimizer):
    """Has a loop over two groups of three layers each."""
    case = llama(optimizer)
    grouped = lambda x: np.concatenate([x, 0.9 * x[:1]]).reshape(2, 3, *x.shape[1:])
    case.params["layers"] = jax.tree.map(grouped, case.params["layers"])

    def loss(params, batch):
        x = params["embed"][batch["tokens"][:, :-1]]
        x, _ = jax.lax.scan(lambda x, group: jax.lax.scan(layer, x, group), x, params["layers"])
        logp = jax.nn.log_softmax(norm(x, params["norm"]) @ params["head"])
        return -jnp.mean(jnp.take_along_axis(logp, batch["tokens"][:, 1:, None], -1))

    return dataclasses.replace(case, loss=loss)


def adamw():
    return optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2, weight_decay=0.1))


def factored():
    return optax.adafactor(1e-2, min_dim_size_to_factor=64)


OPTIMIZERS = {"adamw": adamw, "factored": factored}


class Fixture(ranks.Fixture):
    """Every rank reads four rows, whatever the number of ranks."""

    def prepare(self, name):
        case, folder = nested(adamw) if name == "nested" else llama(OPTIMIZERS[name]), self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        opt = case.optimizer.init(case.params)
        save_file(case.batch, folder / "rows.safetensors")
        batch = {key: value[:BATCH] for key, value in case.batch.items()}
        (folder / "step.mlir").write_text(jax.jit(step_of(case)).lower(case.params, opt, batch).as_text(debug_info=True))
        t.save_tree(folder / "init.safetensors", params=case.params, opt=opt)
        self.keys = list(case.batch)
        return folder

    def files(self, folder, ranks):
        return folder / "step.mlir", folder / "rows.safetensors"


def expect_even(out, count, masters):
    """Checks that `count` stacks have slices, `masters` of them with their masters, that ranks
    differ by less than one slice, and that they hold no more than they own."""
    memory = json.loads((out / "memory.json").read_text())
    shares, step, state = memory["shards_by_rank"], memory["step"], memory["plan"]["state"]
    slices = {}
    for row in state:
        if row.get("slices", 1) > 1:
            assert row["slices"] == LAYERS, f"expected {LAYERS} slices but got {row}"
            slices[row["shard"]] = slices.get(row["shard"], 0) + row["bytes"] / LAYERS
    found = [row["path"] for row in state if row["path"].startswith("params['layers']") and row["path"].endswith("']") and row.get("slices", 1) > 1]
    assert len(found) == masters, f"expected {masters} masters in slices but got {found}"
    assert len(slices) == count, f"expected {count} stacks in slices but got {[row for row in state if 'shard' in row]}"
    assert max(shares) - min(shares) < max(slices.values()), f"expected ranks that differ by less than a slice of {max(slices.values())} bytes but got {shares}"
    assert step["shards"] == shares[0]
    expect_touched(step, state)


def expect_touched(step, state):
    # The first and the last page of each tensor may also hold bytes of other ranks.
    own = step["arguments"] + step["results"] + 2 * PAGE * sum("shard" in row for row in state)
    everything = sum(row["bytes"] for row in state)
    assert step["arguments_touched"] <= own < everything, f"expected at most {own} of {everything} bytes to be touched but got {step['arguments_touched']}"


def same(found, want):
    assert found.keys() == want.keys(), f"expected {sorted(want)} but got {sorted(found)}"
    different = [path for path in want if want[path].tobytes() != found[path].tobytes()]
    assert not different, f"expected the same state but got others for {different}"


def dealt(name, recipe, count, masters, fixture):
    folder = fixture.prepare(name)
    zero, plain = f"{recipe}-zero", f"{recipe}-plain"
    (rows, want) = fixture.run(folder, 3, recipe, name=plain, steps=3)
    (found_rows, found) = fixture.run(folder, 3, recipe, "--zero", 1, name=zero, steps=3)
    assert [row["loss"] for row in rows] == [row["loss"] for row in found_rows], f"expected losses {rows} but got {found_rows}"
    same(found, want)
    expect_even(folder / zero, count, masters)
    # Two ranks, with and without ZeRO, and one rank resume the checkpoints of three.
    for ranks_, options in ((2, ["--zero", 1]), (2, []), (1, ["--data-parallel"])):
        for out in (folder / f"{recipe}-more-{part}" for part in (zero, plain)):
            shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(folder / zero, folder / f"{recipe}-more-{zero}")
        shutil.copytree(folder / plain, folder / f"{recipe}-more-{plain}")
        (rows, want) = fixture.run(folder, ranks_, recipe, *(["--data-parallel"] if ranks_ == 1 else []), name=f"{recipe}-more-{plain}", resume=True)
        (found_rows, found) = fixture.run(folder, ranks_, recipe, *options, name=f"{recipe}-more-{zero}", resume=True)
        assert [row["loss"] for row in rows] == [row["loss"] for row in found_rows], f"expected losses {rows} but got {found_rows}"
        same(found, want)


def dealt_nested(recipe, slices, fixture):
    """Stacks that two loops count have slices along the outer one, or are whole with a reason if that reads several layers at once."""
    folder = fixture.prepare("nested")
    (rows, want) = fixture.run(folder, 3, recipe, name=f"{recipe}-plain", steps=3)
    (found_rows, found) = fixture.run(folder, 3, recipe, "--zero", 1, name=f"{recipe}-zero", steps=3)
    assert [row["loss"] for row in rows] == [row["loss"] for row in found_rows], f"expected losses {rows} but got {found_rows}"
    same(found, want)
    memory = json.loads((folder / f"{recipe}-zero" / "memory.json").read_text())
    stacks = [row for row in memory["plan"]["state"] if ".mu['layers']['qkv']" in row["path"] or ".nu['layers']['qkv']" in row["path"]]
    assert len(stacks) == 2 and all(row["slices"] == slices for row in stacks), f"expected {slices} slices but got {stacks}"
    assert slices > 1 or all("reads several slices at once" in row["whole_reason"] for row in stacks), f"expected a reason but got {stacks}"
    assert memory["step"]["shards"] == memory["shards_by_rank"][0]
    expect_touched(memory["step"], memory["plan"]["state"])


# Optimizer, recipe, the number of stacks that have slices, and the number of those whose masters
# are dealt: dots read the payloads of these, except for the smoothed down projections, which other
# ops read, too.
CASES = {
    "adamw none": ("adamw", "none", 5, 0),
    "adamw tensorwise": ("adamw", "tensorwise", 5, 5),
    "adamw delayed": ("adamw", "delayed", 5, 5),
    "adamw fp8_lm": ("adamw", "fp8_lm", 5, 5),
    "adamw coat": ("adamw", "coat", 5, 5),
    "adamw scaling_fp8": ("adamw", "scaling_fp8", 5, 4),
    "factored tensorwise": ("factored", "tensorwise", 5, 5),
}


if __name__ == "__main__":
    fixture = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    cases = {name: functools.partial(dealt, *about) for name, about in CASES.items()}
    cases |= {f"nested {recipe}": functools.partial(dealt_nested, recipe, slices) for recipe, slices in (("none", 2), ("tensorwise", 1))}
    t.run_cases(cases, sys.argv[4:], fixture)
