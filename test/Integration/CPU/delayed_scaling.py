"""Delayed scaling is state: its histories roll as Transformer Engine's do, each layer
of a loop has its own, a skipped update changes none, and a resumed run continues bit
for bit.

    delayed_scaling.py fp8-run FOLDER
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import save_file

import fp8_testing as t

t.compile_quickly()
MAX = {"activation": 448.0, "weight": 448.0, "gradient": 57344.0}  # E4M3FN, E5M2


def train(fp8_run, model, out, *args):
    """Runs fp8-run on the example model and some text."""
    data = t.write_text(out.parent / "text.txt")
    return t.train(fp8_run, model, out, "--init", model / "init.mlir", "--data", data, *args)


def write_recipe(path, history, algorithm, margin=0, scale="exact", initial="current"):
    def operand(fmt):
        return (
            f"{{format: {fmt}, scale: {scale}, margin: {margin}, scaling: delayed, "
            f"history: {history}, algorithm: {algorithm}, initial: {initial}}}"
        )

    e4m3, e5m2 = operand("f8E4M3FN"), operand("f8E5M2")
    path.write_text(
        f"name: traced\n"
        f"forward:\n  activation: {e4m3}\n  weight: {e4m3}\n"
        f"dgrad:\n  gradient: {e5m2}\n  weight: {e4m3}\n"
        f"wgrad:\n  activation: {e4m3}\n  gradient: {e5m2}\n"
        f"rules:\n  - keep: {{part: head}}\n"
    )
    return path


def states(folder, step):
    """Returns name -> (history, quantizer) after `step` steps."""
    tensors = t.load_tensors(next(folder.glob(f"checkpoint-*{step}.safetensors")))
    names = {name[: -len(".amax_history")] for name in tensors if name.endswith(".amax_history")}
    assert names, "expected scale states in the checkpoint"
    return {name: (tensors[name + ".amax_history"], tensors[name + ".quantizer"]) for name in names}


def te_update(history, amax, quantizer, maximum, algorithm, margin):
    """Computes the next history and quantizer (Transformer Engine's `scale`) in f32, as its
    _default_get_amax_and_update_history and _default_sf_compute do."""
    history = history.copy()
    history[0] = amax
    largest = history.max(axis=0) if algorithm == "max" else history[0].copy()
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        scale = (np.float32(maximum) / largest) / np.float32(2.0**margin)
    scale = np.where(largest > 0, scale, quantizer)
    scale = np.where(np.isfinite(largest), scale, quantizer)
    scale = np.where(np.isinf(scale), np.finfo(np.float32).max, scale)
    history = np.roll(history, -1, axis=0)
    history[0] = 0
    return history, scale.astype(np.float32)


def check_rolls(fp8_run, folder, model, steps=7):
    """Every step's state follows from the state before and this step's amax, which is the last
    entry of a rolled history."""
    for history, algorithm, margin in [
        (4, "max", 0),
        (16, "most_recent", 1),
        (1024, "max", 2),
    ]:
        recipe = write_recipe(folder / "recipe.yaml", history, algorithm, margin)
        out = folder / f"roll-{history}-{algorithm}"
        train(fp8_run, model, out, "--recipe", recipe, "--steps", steps, "--checkpoint-every", 1)
        before = {name: (np.zeros_like(h), np.zeros_like(q)) for name, (h, q) in states(out, 1).items()}
        for step in range(1, steps + 1):
            after = states(out, step)
            for name, (found_history, found_quantizer) in after.items():
                amax = found_history[-1]
                assert (amax > 0).all(), f"{name}: expected an amax in step {step}"
                expected = te_update(*before[name][:1], amax, before[name][1], MAX[name.rsplit(".", 1)[1]], algorithm, margin)
                for what, want, got in zip(("history", "quantizer"), expected, (found_history, found_quantizer)):
                    assert want.tobytes() == got.tobytes(), f"{name}, step {step}: expected {what} {want} but got {got}"
            before = after
        print(f"history {history}, {algorithm}, margin {margin}: {len(before)} states, {steps} steps bit-equal")


def check_one_entry(fp8_run, folder, model):
    """With a history of one entry, max and most_recent are the same."""
    logs = []
    for history, algorithm in [(1, "max"), (1, "most_recent"), (4, "most_recent")]:
        recipe = write_recipe(folder / "recipe.yaml", history, algorithm)
        out = folder / f"one-{history}-{algorithm}"
        train(fp8_run, model, out, "--recipe", recipe, "--steps", 8)
        logs.append((t.losses(t.read_log(out)), {name: q.tobytes() for name, (_, q) in states(out, 8).items()}))
    assert logs[0] == logs[1] == logs[2], "expected equal losses and quantizers from a history of one entry"


def check_first_step(fp8_run, folder, model):
    """The first step scales by the tensor's own amax, as current scaling does, or by one."""
    first = {}
    for name, args in {
        "current": ("--recipe", "tensorwise", "--set", "compute.unquantized_dots=f32"),
        "delayed": ("--recipe", write_recipe(folder / "current.yaml", 16, "max")),
        "one": ("--recipe", write_recipe(folder / "one.yaml", 16, "max", initial="one")),
    }.items():
        train(fp8_run, model, folder / f"first-{name}", *args, "--steps", 1)
        first[name] = t.losses(t.read_log(folder / f"first-{name}"))[0]
    assert first["current"] == first["delayed"], f"expected equal first losses but got {first}"
    assert first["one"] != first["delayed"], f"expected another first loss with a scale of one but got {first}"


def check_loops(fp8_run, folder, unrolled, scan, remat):
    """Each layer of a scan has its own history, forward and backward; recomputed values have the
    scales of the first computation."""
    recipe = write_recipe(folder / "recipe.yaml", 4, "max")
    found = {}
    for name, model in {"unrolled": unrolled, "scan": scan, "remat": remat}.items():
        train(fp8_run, model, folder / f"loop-{name}", "--recipe", recipe, "--steps", 8)
        found[name] = states(folder / f"loop-{name}", 8)
    assert found["scan"].keys() == found["remat"].keys()
    for name, (history, quantizer) in found["scan"].items():
        for mine, other in zip((history, quantizer), found["remat"][name]):
            assert mine.tobytes() == other.tobytes(), f"{name}: expected the same state with rematerialization"
        # In fp8.params['layers']['wq'].weight, amaxes of weights have a slot for each layer too.
        for layer in range(2):
            single = name.replace("['layers']", f"['layers'][{layer}]")
            want_history, want_quantizer = found["unrolled"][single]
            got_history = history[:, layer].reshape(want_history.shape)
            assert np.allclose(got_history, want_history, rtol=2e-2), f"{name}, layer {layer}: {got_history} {want_history}"
            assert np.allclose(quantizer[layer].reshape(want_quantizer.shape), want_quantizer, rtol=2e-2)
    print(f"loops: {len(found['scan'])} states of 2 layers as {len(found['unrolled'])} without a loop")


def check_resume(fp8_run, folder, model):
    recipe = write_recipe(folder / "recipe.yaml", 4, "max")
    train(fp8_run, model, folder / "whole", "--recipe", recipe, "--steps", 8)
    train(fp8_run, model, folder / "parts", "--recipe", recipe, "--steps", 5)
    train(fp8_run, model, folder / "parts", "--recipe", recipe, "--steps", 8, "--resume")
    whole, parts = states(folder / "whole", 8), states(folder / "parts", 8)
    for name, values in whole.items():
        for a, b in zip(values, parts[name]):
            assert a.tobytes() == b.tobytes(), f"{name}: expected the state of an uninterrupted run"


def check_micro_batches(fp8_run, folder):
    """All micro-batches share one history, of their maximum; a step whose gradient overflows is
    skipped and changes no scale."""
    tx = optax.apply_if_finite(optax.sgd(1e-4), max_consecutive_errors=5)
    rng = np.random.default_rng(0)
    params = {"w1": rng.normal(size=(16, 32)).astype(np.float32), "w2": rng.normal(size=(32, 16)).astype(np.float32)}
    state = tx.init(params)

    def step(params, state, x, y, blow_up):
        def loss_fn(params, x, y):
            out = jnp.tanh(x @ params["w1"]) @ params["w2"]
            return jnp.sum((out - y) ** 2)

        def micro(carry, batch):
            def scaled(params):
                loss = loss_fn(params, *batch)
                return loss * blow_up, loss

            (_, loss), grads = jax.value_and_grad(scaled, has_aux=True)(params)
            return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), None

        zeros = jax.tree.map(jnp.zeros_like, params)
        (loss, grads), _ = jax.lax.scan(micro, (0.0, zeros), (x, y))
        grads = jax.tree.map(lambda g: g / blow_up, grads)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    steps, micros, rows = 6, 3, 8
    x = rng.normal(size=(steps, micros, rows, 16)).astype(np.float32)
    x *= rng.uniform(0.5, 2, size=(steps, micros, 1, 1)).astype(np.float32)
    y = rng.normal(size=(steps, micros, rows, 16)).astype(np.float32)
    # The gradients of the fourth step overflow.
    blow_up = np.array([1, 1, 1, 3e38, 1, 1], np.float32)
    (folder / "micro.mlir").write_text(
        jax.jit(step).lower(params, state, x[0], y[0], blow_up[0]).as_text(debug_info=True)
    )
    save_file({"x": x, "y": y, "blow_up": blow_up}, folder / "data.safetensors")
    t.save_tree(folder / "init.safetensors", params=params, state=state)
    # The second layer would count as a head, because nothing follows it.
    recipe = write_recipe(folder / "recipe.yaml", 4, "max")
    recipe.write_text(recipe.read_text().replace("rules:\n  - keep: {part: head}\n", ""))
    batches = [f"--batch={name}={folder}/data.safetensors:{name}" for name in ("x", "y", "blow_up")]
    out = folder / "micro"
    t.run(
        [fp8_run, folder / "micro.mlir", "--init", folder / "init.safetensors", *batches, "--recipe", recipe]
        + ["--steps", str(steps), "--out", out, "--checkpoint-every", "1"]
    )
    name = "fp8.params['w1'].activation"
    for step in range(1, steps + 1):
        history, quantizer = states(out, step)[name]
        # The newest amax is last: that of this step, unless it was skipped.
        taken = [i for i in range(step) if i != 3]
        amaxes = [np.abs(x[i]).max() for i in taken][-3:]
        expected = np.array([0.0] * (4 - len(amaxes)) + amaxes, np.float32)
        assert history.tobytes() == expected.tobytes(), f"step {step}: expected history {expected} but got {history}"
    before, after = states(out, 3), states(out, 4)
    for name in before:
        for a, b in zip(before[name], after[name]):
            assert a.tobytes() == b.tobytes(), f"{name}: expected no change in a step that is not taken"
    print(f"micro-batches: {len(before)} states, one step of {steps} not taken")


def check_together(fp8_run, folder, width=32, steps=4):
    """If a gradient overflows and the step is skipped, the scales of dots, smoothing factors and
    stored state all stay. If the step updates nevertheless, the scales of dots stay and the others
    follow the values they were given."""
    rng = np.random.default_rng(0)
    shapes = {"gate": (width, 48), "up": (width, 48), "down": (48, width), "head": (width, 16)}
    params = {k: (rng.normal(size=s) * s[0] ** -0.5).astype(np.float32) for k, s in shapes.items()}
    x, y = (rng.normal(size=(steps, 16, n)).astype(np.float32) for n in (width, 16))
    x *= np.float32([1, 2, 4, 8])[:, None, None]
    blow_up = np.array([1, 1, 3e38, 1], np.float32)
    recipe = write_recipe(folder / "together.yaml", 3, "max")
    delayed = "{format: f16, tile: tensor, scaling: delayed, history: 3}"
    recipe.write_text(
        recipe.read_text()
        + "smooth_swiglu: {granularity: channel, scaling: delayed, history: 3}\n"
        + f"optimizer: {{moment1: {delayed}, moment2: {delayed}, master: {delayed}, min_elements: 1}}\n"
    )
    adam = optax.adam(1e-4)
    skipping = optax.apply_if_finite(adam, 5)
    for name, tx in {"wrapped": skipping, "chosen": adam, "zeroed": adam}.items():

        def step(params, state, x, y, blow_up):
            def loss(p):
                h = jax.nn.silu(x @ p["gate"]) * (x @ p["up"])
                value = jnp.sum((h @ p["down"] @ p["head"] - y) ** 2)
                return value * blow_up * 1e6, value

            (_, value), g = jax.value_and_grad(loss, has_aux=True)(params)
            g = jax.tree.map(lambda g: g / (blow_up * 1e6), g)
            finite = jnp.all(jnp.array([jnp.all(jnp.isfinite(a)) for a in jax.tree.leaves(g)]))
            if name == "zeroed":
                g = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0), g)
            updates, new = tx.update(g, state, params)
            after = optax.apply_updates(params, updates), new
            if name == "chosen":
                after = jax.tree.map(lambda a, b: jnp.where(finite, a, b), after, (params, state))
            return *after, value

        where = folder / f"together-{name}"
        where.mkdir(exist_ok=True)
        state = tx.init(params)
        (where / "step.mlir").write_text(jax.jit(step).lower(params, state, x[0], y[0], blow_up[0]).as_text(debug_info=True))
        save_file({"x": x, "y": y, "blow_up": blow_up}, where / "data.safetensors")
        t.save_tree(where / "init.safetensors", params=params, state=state)
        batches = [f"--batch={key}={where}/data.safetensors:{key}" for key in ("x", "y", "blow_up")]
        t.run([fp8_run, where / "step.mlir", "--init", where / "init.safetensors", *batches, "--recipe", recipe,
               "--steps", str(steps), "--out", where / "out", "--checkpoint-every", "1"])  # fmt: skip
        before, after = states(where / "out", 2), states(where / "out", 3)
        smooth = {key for key in before if key.endswith(".smooth")}
        dots = {key for key in before if key.endswith((".activation", ".weight", ".gradient"))}
        assert len(smooth) == 1 and len(dots) == 7 and len(before) == len(smooth) + len(dots) + 12, sorted(before)
        moved = {key for key in before if any(a.tobytes() != b.tobytes() for a, b in zip(before[key], after[key]))}
        assert not moved & dots, f"{name}: expected the scales of dots to stay but got {sorted(moved & dots)}"
        if name != "zeroed":
            assert not moved, f"{name}: expected all to stay but got {sorted(moved)}"
        else:
            assert smooth <= moved, f"{name}: expected {smooth} to follow the product"
        last = states(where / "out", 4)
        assert all(np.isfinite(a).all() for pair in last.values() for a in pair), f"{name}: a scale is not finite"
    print("scales of dots, smoothing factors and stored state stay together")


def check_calls(fp8_run, folder, window=3, calls=8, layers=2, width=16):
    """With optax.MultiSteps micro-batches are calls of the step: entry 0 is the largest amax of the
    window so far, and the history rolls in the call that updates the parameters. A skipped
    micro-batch changes nothing, and a run that is interrupted within a window continues bit for
    bit."""
    tx = optax.MultiSteps(optax.adam(1e-2), window, should_skip_update_fn=optax.skip_not_finite)
    rng = np.random.default_rng(0)
    params = {
        "first": rng.normal(size=(width, width)).astype(np.float32),
        "layers": rng.normal(size=(layers, width, width)).astype(np.float32) / 4,
    }
    state = tx.init(params)

    def step(params, state, x, y, blow_up):
        def loss_fn(params):
            layer = lambda h, w: (h + jnp.tanh(h @ w), None)
            out, _ = jax.lax.scan(layer, jnp.tanh(x @ params["first"]), params["layers"])
            loss = jnp.sum((out - y) ** 2)
            return loss * blow_up, loss

        (_, loss), grads = jax.value_and_grad(loss_fn, has_aux=True)(params)
        grads = jax.tree.map(lambda g: g / blow_up, grads)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    x = rng.normal(size=(calls, 8, width)).astype(np.float32)
    x *= rng.uniform(0.5, 2, size=(calls, 1, 1)).astype(np.float32)
    y = rng.normal(size=(calls, 8, width)).astype(np.float32)
    skipped = 4  # the second call of the second window
    blow_up = np.ones(calls, np.float32)
    blow_up[skipped] = 3e38
    (folder / "calls.mlir").write_text(jax.jit(step).lower(params, state, x[0], y[0], blow_up[0]).as_text(debug_info=True))
    save_file({"x": x, "y": y, "blow_up": blow_up}, folder / "calls.safetensors")
    t.save_tree(folder / "calls-init.safetensors", params=params, state=state)
    recipe = write_recipe(folder / "recipe.yaml", 4, "max")
    recipe.write_text(recipe.read_text().replace("rules:\n  - keep: {part: head}\n", ""))
    batches = [f"--batch={name}={folder}/calls.safetensors:{name}" for name in ("x", "y", "blow_up")]

    def train(out, *args):
        t.run(
            [fp8_run, folder / "calls.mlir", "--init", folder / "calls-init.safetensors", *batches, "--recipe", recipe]
            + ["--out", out, *args]
        )

    out = folder / "calls"
    train(out, "--steps", str(calls), "--checkpoint-every", "1")
    weights = {"fp8.params['first'].weight": params["first"], "fp8.params['layers'].weight": params["layers"]}
    before = {name: (np.zeros_like(h), np.zeros_like(q)) for name, (h, q) in states(out, 1).items()}
    micro, rolls = 0, 0
    for call in range(calls):
        after = states(out, call + 1)
        for name, (history, quantizer) in after.items():
            old_history, old_quantizer = before[name]
            want_history, want_quantizer = old_history.copy(), old_quantizer
            # The amaxes of data and weights are known.
            if name == "fp8.params['first'].activation":
                amax = np.abs(x[call]).max()
            elif name in weights:
                axes = tuple(range(weights[name].ndim - 2, weights[name].ndim))
                amax = np.abs(weights[name]).max(axis=axes).reshape(old_history.shape[1:])
            else:
                amax = history[-1] if micro == window - 1 else history[0]
                assert (amax >= old_history[0]).all() or call == skipped, f"{name}, call {call}: expected a maximum"
            amax = np.maximum(amax, old_history[0])
            if call == skipped:
                pass
            elif micro == window - 1:
                maximum = MAX[name.rsplit(".", 1)[1]]
                want_history, want_quantizer = te_update(old_history, amax, old_quantizer, maximum, "max", 0)
            else:
                want_history[0] = amax
            for what, want, got in (("history", want_history, history), ("quantizer", want_quantizer, quantizer)):
                assert want.tobytes() == got.tobytes(), f"{name}, call {call}: expected {what} {want} but got {got}"
        tensors = t.load_tensors(next(out.glob(f"checkpoint-*{call + 1}.safetensors")))
        weights = {name: tensors[name[len("fp8.") : -len(".weight")]] for name in weights}
        if call != skipped:
            rolls += micro == window - 1
            micro = (micro + 1) % window
        before = after
    assert rolls == 2, f"expected two updates but got {rolls}"

    # The run stops after the first call of the second window.
    train(folder / "calls-parts", "--steps", "4")
    train(folder / "calls-parts", "--steps", str(calls), "--resume")
    whole, parts = (
        next(path.glob(f"checkpoint-*{calls}.safetensors")).read_bytes() for path in (out, folder / "calls-parts")
    )
    assert whole == parts, "expected the checkpoint of an uninterrupted run"

    # Copies of weights that are state change in the calls that update the weights.
    copies = folder / "calls-copies"
    train(copies, "--set", "weight_copies=state", "--steps", str(calls), "--checkpoint-every", "1")
    assert t.losses(t.read_log(copies)) == t.losses(t.read_log(out)), "expected the losses of weight_copies: step"
    changed = []
    for call in range(1, calls):
        old, new = (t.load_tensors(next(copies.glob(f"checkpoint-*{i}.safetensors"))) for i in (call, call + 1))
        payloads = [name for name in new if ".payload" in name]
        assert len(payloads) == 4, f"expected payload and scale of two weights but got {payloads}"
        if any(old[name].tobytes() != new[name].tobytes() for name in payloads):
            changed.append(call)
        for name, (history, quantizer) in states(out, call + 1).items():
            for part, want in (("amax_history", history), ("quantizer", quantizer)):
                got = new[f"{name}.{part}"]
                assert want.tobytes() == got.tobytes(), f"{name}.{part}, call {call}: expected {want} but got {got}"
    assert changed == [2, 6], f"expected other payloads after calls 2 and 6 but got {changed}"
    print(f"calls: {len(before)} states, windows of {window} calls bit-equal, one call skipped")


def memory(out):
    """Returns the contents of a run's memory.json."""
    return json.loads((out / "memory.json").read_text())


def check_saved_payloads(fp8_run, folder, scan):
    """In a loop without rematerialization the backward pass reads the payloads of the forward pass,
    not the values that were quantized: the losses equal those with every payload recomputed, in
    less memory."""
    recipe = write_recipe(folder / "recipe.yaml", 4, "max")
    found = {}
    for copy in ("saved", "recomputed"):
        out = folder / f"saved-{copy}"
        train(fp8_run, scan, out, "--recipe", recipe, "--set", f"wgrad.copy={copy}", "--steps", 4)
        found[copy] = t.losses(t.read_log(out)), memory(out)["step"]["arena_planned"], states(out, 4)
    assert found["saved"][0] == found["recomputed"][0], f"expected equal losses but got {found}"
    for name, values in found["saved"][2].items():
        for a, b in zip(values, found["recomputed"][2][name]):
            assert a.tobytes() == b.tobytes(), f"{name}: expected the same state"
    small, large = found["saved"][1], found["recomputed"][1]
    assert small < large, f"expected less memory with saved payloads but got {small} and {large} bytes"
    print(f"saved payloads: {small} bytes instead of {large}")


def check_weight_copies(fp8_run, folder, unrolled, scan):
    """Weights that the update quantizes for the next step equal those that every step quantizes
    anew; an interrupted run continues bit for bit."""
    args = {}
    for name, model, recipe in (
        ("unrolled", unrolled, write_recipe(folder / "recipe.yaml", 4, "max")),
        ("scan", scan, write_recipe(folder / "one.yaml", 1, "most_recent", margin=1, initial="one")),
    ):
        found = {}
        for when in ("step", "state"):
            out = folder / f"copies-{name}-{when}"
            args = ("--recipe", recipe, "--set", f"weight_copies={when}")
            train(fp8_run, model, out, *args, "--steps", 4)
            found[when] = t.losses(t.read_log(out)), states(out, 4)
        assert found["step"][0] == found["state"][0], f"{name}: expected equal losses but got {found}"
        for state, values in found["step"][1].items():
            for a, b in zip(values, found["state"][1][state]):
                assert a.tobytes() == b.tobytes(), f"{name}: {state}: expected the same state"
    parts = folder / "copies-parts"
    train(fp8_run, scan, parts, *args, "--steps", 2)
    train(fp8_run, scan, parts, *args, "--steps", 4, "--resume")
    whole, cut = (next(path.glob("checkpoint-*4.safetensors")).read_bytes() for path in (out, parts))
    assert whole == cut, "expected the checkpoint of an uninterrupted run"
    print("weight copies: as if quantized in every step")


def main(fp8_run, folder):
    folder = pathlib.Path(folder)
    models = {}
    for loop in ("unrolled", "scan", "remat"):
        models[loop] = folder / f"model-{loop}"
        t.export_model(models[loop], **t.TINY, loop=loop)
    model = models["unrolled"]
    check_rolls(fp8_run, folder, model)
    check_one_entry(fp8_run, folder, model)
    check_first_step(fp8_run, folder, model)
    check_loops(fp8_run, folder, **models)
    check_resume(fp8_run, folder, model)
    check_saved_payloads(fp8_run, folder, models["scan"])
    check_weight_copies(fp8_run, folder, unrolled=model, scan=models["scan"])
    check_micro_batches(fp8_run, folder)
    check_together(fp8_run, folder)
    check_calls(fp8_run, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
