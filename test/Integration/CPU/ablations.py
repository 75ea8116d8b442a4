"""Reproduces what papers found about the formats of optimizer state: with a second
moment in E4M3 with one scale the run diverges; with E5M2, groups with range expansion
or f16 it holds; a master in FP8 breaks it; and range expansion has a smaller error
than plain groups.

The set-up is fixed, eps = 1e-8 above all: with 1e-6 nothing diverges. A language
model of 68 thousand parameters learns a Markov chain whose words follow Zipf's law.

    ablations.py fp8-run FOLDER [NAME...]
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax

import fp8_testing as t

WORDS, CONTEXT, EMBEDDING, HIDDEN, BATCH = 512, 3, 24, 96, 64
STEPS, TAIL = 400, 50
# The losses of two runs that differ only in rounding differ by about 0.015 nats.
HOLDS, BREAKS = 0.10, 1.0


# ------------------------------------------------------------------- the model


def markov_chain(count):
    """Returns words of which 70% follow one of four successors of the word before."""
    random = np.random.default_rng(7)
    zipf = 1 / np.arange(1, WORDS + 1) ** 1.2
    zipf /= zipf.sum()
    follower = random.choice(WORDS, (WORDS, 4), p=zipf)
    fresh = random.choice(WORDS, count, p=zipf)
    follows, which = random.random(count) < 0.7, random.integers(0, 4, count)
    words = fresh.copy()
    for i in range(1, count):
        if follows[i]:
            words[i] = follower[words[i - 1], which[i]]
    return words.astype(np.uint16)


def initial_params():
    random = np.random.default_rng(11)

    def normal(*shape, std):
        return (std * random.normal(size=shape)).astype(np.float32)

    return {
        "embed": normal(WORDS, EMBEDDING, std=0.1),
        "hidden": normal(CONTEXT * EMBEDDING, HIDDEN, std=(CONTEXT * EMBEDDING) ** -0.5),
        "head": normal(HIDDEN, WORDS, std=0.5 * HIDDEN**-0.5),
    }


def loss_fn(params, words):
    x = params["embed"][words[:, :CONTEXT]].reshape(words.shape[0], -1)
    logits = jnp.tanh(x @ params["hidden"]) @ params["head"]
    return optax.softmax_cross_entropy_with_integer_labels(logits, words[:, CONTEXT]).mean()


optimizer = optax.adam(lambda count: 3e-3 * jnp.minimum((count + 1) / 100, 1.0), b1=0.9, b2=0.95, eps=1e-8)


def step(params, opt_state, words):
    loss, grads = jax.value_and_grad(loss_fn)(params, words)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, {"loss": loss}


def write_set_up(folder):
    """Writes the step, its initial values and its data."""
    folder.mkdir(parents=True)
    params = initial_params()
    opt_state = optimizer.init(params)
    words = jax.ShapeDtypeStruct((BATCH, CONTEXT + 1), jnp.int32)
    lowered = jax.jit(step, donate_argnums=(0, 1)).lower(params, opt_state, words)
    (folder / "step.mlir").write_text(lowered.as_text(debug_info=True))
    t.save_tree(folder / "init.safetensors", params=params, opt_state=opt_state)
    markov_chain(200_000).tofile(folder / "words.u16")


# ---------------------------------------------------------------- the formats


def storage(fmt, tile="tensor", scale="pow2", **others):
    return {"format": fmt, "tile": tile, "scale": scale, **others}


E4M3, E5M2, F16 = storage("f8E4M3FN"), storage("f8E5M2"), storage("f16")
GROUPS = storage("f8E4M3FN", tile="1x128", scale="exact")
EXPANDED = {**GROUPS, "expand": True}

OPTIMIZERS = {
    "f32": {},
    "v-e4m3": {"moment2": E4M3},
    "m-e4m3-v-e4m3": {"moment1": E4M3, "moment2": E4M3},
    "v-e5m2": {"moment2": E5M2},
    "m-e4m3-v-e5m2": {"moment1": E4M3, "moment2": E5M2},
    "groups": {"moment1": GROUPS, "moment2": GROUPS},
    "expanded": {"moment1": EXPANDED, "moment2": EXPANDED},
    "master-e4m3": {"master": E4M3},
    "m-e4m3-v-f16-master-f16": {"moment1": E4M3, "moment2": F16, "master": F16},
    "m-e4m3-v-e5m2-master-f16": {"moment1": E4M3, "moment2": E5M2, "master": F16},
}


class SetUp:
    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, folder
        self.finished = {}
        write_set_up(folder)

    def recipe(self, name):
        """Writes and returns a recipe that quantizes no dot."""
        file = self.folder / f"{name}.yaml"
        optimizer = OPTIMIZERS[name]
        # JSON is YAML.
        file.write_text(f"name: {name}\n" + (f"optimizer: {json.dumps(optimizer)}\n" if optimizer else ""))
        return file

    def train(self, name, steps, out, init):
        """Returns the losses up to the end, or up to a value that is not finite."""
        result = t.run(
            [self.fp8_run, self.folder / "step.mlir", "--init", init, "--data", self.folder / "words.u16",
             "--recipe", self.recipe(name), "--steps", steps, "--seed", 5, "--quiet", "--out", out], check=False)  # fmt: skip
        assert result.returncode == 0 or "finite" in result.stderr, f"{name}: {result.stderr[-1000:]}"
        return np.array(t.losses(t.read_log(out))), result.returncode == 0

    def run(self, name):
        """Returns (losses, whether the run reached its end); runs each name once."""
        if name not in self.finished:
            out = self.folder / name
            self.finished[name] = self.train(name, STEPS, out, self.folder / "init.safetensors")
            losses, ended = self.finished[name]
            print(f"{name:26} {losses[0]:.3f} -> {losses[-TAIL:].mean():.4f}, {'' if ended else 'stopped, '}{len(losses)} steps")
        return self.finished[name]

    def tail(self, name):
        losses, ended = self.run(name)
        assert ended, f"{name}: expected a run to the end but it stopped at step {len(losses)}"
        assert len(losses) == STEPS, f"{name}: expected {STEPS} losses but got {len(losses)}"
        return losses[-TAIL:].mean()


def diverges(*names):
    def case(setup):
        for name in names:
            losses, ended = setup.run(name)
            # The mean, because with their small learning rates the first steps differ from the
            # initial loss only by the batch.
            ten = min((i for i in range(10, len(losses) - 9) if losses[i : i + 10].mean() > losses[0] + 0.5), default=None)
            assert not ended or ten is not None, f"{name}: expected divergence but the loss went to {losses[-TAIL:].mean():.4f}"
            at = len(losses) if ten is None else ten
            assert at < 200, f"{name}: expected divergence within 200 steps but got {at}"

    return case


def holds(*names):
    def case(setup):
        reference = setup.tail("f32")
        for name in names:
            gap = setup.tail(name) - reference
            assert abs(gap) < HOLDS, f"{name}: expected a loss within {HOLDS} of {reference:.4f} but got {gap:+.4f}"

    return case


def master_breaks(setup):
    gap = setup.tail("master-e4m3") - setup.tail("f32")
    assert gap > BREAKS, f"expected a loss at least {BREAKS} above that of an f32 master but got {gap:+.4f}"


# ------------------------------------------------ the error of storing once


def read_stored(file, path):
    """Returns the values that an array of a checkpoint represents, in f64: payload times scale,
    with the center and exponent of an expansion applied."""
    tensors = t.load_tensors(file)
    parts = {part: tensors[f"{path}.{part}"].astype(np.float64) for part in ("scale", "center", "exponent") if f"{path}.{part}" in tensors}
    values = tensors[path].astype(np.float64)
    # Repeats a group's number for each of its elements.
    spread = {part: np.repeat(value, 128, axis=-1)[:, : values.shape[-1]] for part, value in parts.items()}
    values = values * spread.get("scale", 1.0)
    if "center" in spread:
        values = np.sign(values) * spread["center"] * np.abs(values) ** (1 / spread["exponent"])
    return values


def expansion_errs_less(setup):
    """Measures the error that storing once adds to the update m / sqrt(v), in groups with and
    without expansion. The layer is linear and its input is the identity, so that the gradient is
    the batch itself: the new moments follow from the moments stored before."""
    folder, shape = setup.folder / "moments", (256, 512)
    folder.mkdir()
    adam = optax.adam(1e-6, b1=0.9, b2=0.95, eps=1e-8)

    def linear_step(params, opt_state, identity, x):
        loss, grads = jax.value_and_grad(lambda p: jnp.sum(x * (identity @ p["w"])))(params)
        updates, opt_state = adam.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state, {"loss": loss}

    random = np.random.default_rng(1)
    params = {"w": random.normal(size=shape).astype(np.float32)}
    opt_state = adam.init(params)
    identity = np.eye(shape[0], dtype=np.float32)
    lowered = jax.jit(linear_step, donate_argnums=(0, 1)).lower(params, opt_state, identity, params["w"])
    (folder / "step.mlir").write_text(lowered.as_text(debug_info=True))

    for spread in (0.5, 1.0, 2.0):
        # The magnitudes of rows, and of the elements in a row, are lognormal.
        size = 1e-4 * np.exp(spread * random.normal(size=(shape[0], 1)) + 0.5 * random.normal(size=shape))
        m, v = 0.3 * size * random.normal(size=shape), size**2
        state = (opt_state[0]._replace(mu={"w": m.astype(np.float32)}, nu={"w": v.astype(np.float32)}), *opt_state[1:])
        t.save_tree(folder / "init.safetensors", params=params, opt_state=state)
        x = (size * random.normal(size=(2, *shape))).astype(np.float32)
        np.save(folder / "x.npy", x)
        np.save(folder / "identity.npy", np.stack([identity, identity]))
        errors = {}
        for name in ("f32", "groups", "expanded"):
            out = folder / f"{name}-{spread}"
            t.run([setup.fp8_run, folder / "step.mlir", "--init", folder / "init.safetensors", "--batch", f"x={folder / 'x.npy'}",
                   "--batch", f"identity={folder / 'identity.npy'}", "--recipe", setup.recipe(name), "--steps", 2, "--checkpoint-every", 1, "--quiet", "--out", out])  # fmt: skip
            (before,), (after,) = (out.glob(f"checkpoint-*{step}.safetensors") for step in (1, 2))
            m, v = (read_stored(before, f"opt_state[0].{moment}['w']") for moment in ("mu", "nu"))
            fresh = (0.9 * m + 0.1 * x[1]) / (np.sqrt(0.95 * v + 0.05 * x[1].astype(np.float64) ** 2) + 1e-8)
            m, v = (read_stored(after, f"opt_state[0].{moment}['w']") for moment in ("mu", "nu"))
            errors[name] = np.sqrt(np.mean((m / (np.sqrt(v) + 1e-8) - fresh) ** 2) / np.mean(fresh**2))
        ratio = errors["expanded"] / errors["groups"]
        print(f"rows differ by e^{spread:g}: update error {errors['groups']:.4f} in groups, {errors['expanded']:.4f} expanded, ratio {ratio:.3f}")
        assert errors["f32"] < 1e-6, f"expected the moments of f32 to follow from those before but got {errors['f32']}"
        assert 1e-3 < errors["expanded"] and ratio <= 0.65, f"expected at most 0.65 times the error of plain groups but got {ratio:.3f}"


CASES = {
    "v-in-e4m3-diverges": diverges("v-e4m3", "m-e4m3-v-e4m3"),
    "v-in-e5m2-holds": holds("v-e5m2", "m-e4m3-v-e5m2"),
    "expansion-holds": holds("expanded"),
    "f16-master-holds": holds("m-e4m3-v-f16-master-f16", "m-e4m3-v-e5m2-master-f16"),
    "e4m3-master-breaks": master_breaks,
    "expansion-errs-less": expansion_errs_less,
}


def main():
    t.run_cases(CASES, sys.argv[3:], SetUp(sys.argv[1], pathlib.Path(sys.argv[2])))


if __name__ == "__main__":
    main()
