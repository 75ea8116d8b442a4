"""--trace records the same statistics of every quantized tensor as NumPy computes, and
changes no bit of the losses. --alarm reacts to a spike: a skipped step leaves the
state unchanged.

    trace.py fp8-run FOLDER [CASE...]
"""

import json
import pathlib
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import optax
from safetensors.numpy import load_file, save_file

import fp8_testing as t

t.compile_quickly()
FORMATS = {"f8E4M3FN": (ml_dtypes.float8_e4m3fn, 448.0, 464.0), "f8E5M2": (ml_dtypes.float8_e5m2, 57344.0, 61440.0)}
STEPS, MICROS, ROWS, WIDTH = 8, 3, 8, 16
GATE, UP = "w_gate", "w_up"  # of the example model
F32 = np.float32


def write_recipe(path, **operand):
    keys = ", ".join(f"{key}: {value}" for key, value in operand.items())
    e4m3, e5m2 = f"{{format: f8E4M3FN, {keys}}}", f"{{format: f8E5M2, {keys}}}"
    path.write_text(
        f"name: traced\n"
        f"forward:\n  activation: {e4m3}\n  weight: {e4m3}\n"
        f"dgrad:\n  gradient: {e5m2}\n  weight: {e4m3}\n"
        f"wgrad:\n  activation: {e4m3}\n  gradient: {e5m2}\n"
    )
    return path


SCHEMA = json.loads((t.ROOT / "docs" / "trace.schema.json").read_text())
METRICS = SCHEMA["properties"]["tensors"]["additionalProperties"]["properties"]


def read_trace(out):
    """Returns step -> tensor -> metric -> value, checked against the schema."""

    def check_values(value):
        if isinstance(value, list):
            return all(check_values(part) for part in value)
        return value is None or isinstance(value, (int, float)) and not isinstance(value, bool)

    lines = [json.loads(line) for line in (out / "trace.jsonl").read_text().splitlines()]
    for line in lines:
        assert line.keys() == SCHEMA["properties"].keys(), f"expected a line of the schema but got {line}"
        for name, metrics in line["tensors"].items():
            assert metrics and metrics.keys() <= METRICS.keys(), f"{name}: expected metrics of the schema but got {metrics}"
            assert all(check_values(value) for value in metrics.values()), f"{name}: expected numbers but got {metrics}"
    return {line["step"]: line["tensors"] for line in lines}


def checkpoint(out, step):
    return load_file(out / f"checkpoint-{step}.safetensors")


class Model:
    """Layers of one shape, y = tanh(x w), unrolled or in loops, and their data."""

    def __init__(self, folder, name, layers=2, scan=False, micros=0, spike=None, optimizer=None):
        self.folder, self.name = folder, name
        rng = np.random.default_rng(7)
        w = rng.normal(size=(layers, WIDTH, WIDTH)).astype(F32) / 4
        self.params = {"w": w} if scan else {"w": [w[i] for i in range(layers)]}
        shape = (STEPS, micros, ROWS, WIDTH) if micros else (STEPS, ROWS, WIDTH)
        self.x = rng.normal(size=shape).astype(F32)
        # Each step and micro-batch has its own range, and some zeros.
        self.x *= rng.uniform(0.5, 3, size=shape[:-2] + (1, 1)).astype(F32)
        self.x[..., 3] = 0
        self.x[..., 5] *= 1e-5
        self.y = rng.normal(size=shape).astype(F32)
        if spike:
            step, factor = spike
            self.x[step - 1, ..., 4:] *= factor
            self.y[step - 1] *= factor
        tx = optimizer or optax.adam(1e-2)
        state = tx.init(self.params)

        def forward(params, x):
            if scan:
                return jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, params["w"])[0]
            for w in params["w"]:
                x = jnp.tanh(x @ w)
            return x

        def loss_fn(params, x, y):
            # The loss contains the magnitude of the data, so that it has spikes too.
            return jnp.mean((forward(params, x) * jnp.max(jnp.abs(x)) - y) ** 2)

        def step(params, state, x, y):
            if micros:

                def micro(carry, batch):
                    loss, grads = jax.value_and_grad(loss_fn)(params, *batch)
                    return (carry[0] + loss, jax.tree.map(jnp.add, carry[1], grads)), None

                zeros = jax.tree.map(jnp.zeros_like, params)
                (loss, grads), _ = jax.lax.scan(micro, (0.0, zeros), (x, y))
            else:
                loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
            updates, state = tx.update(grads, state, params)
            return optax.apply_updates(params, updates), state, {"loss": loss, "grad_norm": optax.global_norm(grads)}

        lowered = jax.jit(step).lower(self.params, state, self.x[0], self.y[0])
        self.step = folder / f"{name}.mlir"
        self.step.write_text(lowered.as_text(debug_info=True))
        save_file({"x": self.x, "y": self.y}, folder / f"{name}.data.safetensors")
        t.save_tree(folder / f"{name}.init.safetensors", params=self.params, state=state)

    def run(self, fp8_run, out, *args, recipe, steps=STEPS, **kwargs):
        data = self.folder / f"{self.name}.data.safetensors"
        command = [fp8_run, self.step, "--init", self.folder / f"{self.name}.init.safetensors"]
        command += [f"--batch={name}={data}:{name}" for name in ("x", "y")]
        command += ["--recipe", recipe, "--steps", steps, "--out", self.folder / out, *args]
        result = t.run(command, **kwargs)
        return self.folder / out, result


# ----------------------------------------------------------------------
# Statistics
# ----------------------------------------------------------------------


def quantize(x, fmt, axis=None, pow2=False, scale=None):
    """Returns the codes of x and its scales; the default is the current scale of the recipe's rule.
    """
    dtype, maximum, _ = FORMATS[fmt]
    amax = np.abs(x).max(axis=axis, keepdims=axis is not None).astype(F32)
    if scale is not None:
        quantizer = F32(1) / scale
    elif pow2:
        scale = np.exp2(np.ceil(np.log2(amax.astype(np.float64) / maximum))).astype(F32)
        quantizer = F32(1) / scale
    else:
        quantizer = F32(maximum) / amax
        scale = F32(1) / quantizer
    codes = np.clip(x * quantizer, -maximum, maximum).astype(dtype).astype(F32)
    return codes, scale


def statistics(parts, fmt):
    """Returns statistics of pairs of a tensor and its (codes, scale), taken as one tensor."""
    x = np.concatenate([part.ravel() for part, _ in parts])
    codes = np.concatenate([codes.ravel() for _, (codes, _) in parts])
    back = np.concatenate([(codes * scale).ravel() for _, (codes, scale) in parts])
    scales = np.concatenate([np.ravel(scale) for _, (_, scale) in parts])
    by = np.concatenate([np.broadcast_to(scale, part.shape).ravel() for part, (_, scale) in parts])
    wide = x.astype(np.float64)
    centered = wide - wide.mean()
    return {
        "amax": np.abs(x).max(),
        "scale": scales.max(),
        "scale_min": scales.min(),
        "underflow": np.mean((x != 0) & (codes == 0)),
        "saturation": np.mean(np.abs(wide) / by > FORMATS[fmt][2]),
        "snr": 10 * np.log10(np.sum(wide**2) / np.sum((wide - back) ** 2)),
        "kurtosis": np.mean(centered**4) / np.mean(centered**2) ** 2,
    }


def check_equal(found, want, what):
    assert found.keys() == want.keys(), f"{what}: expected {sorted(want)} but got {sorted(found)}"
    for metric, value in want.items():
        assert np.allclose(found[metric], value, rtol=1e-5, atol=0), f"{what}: expected {metric} {value} but got {found[metric]}"


def check_numpy(fp8_run, folder):
    """NumPy can compute the statistics of inputs and initial weights."""
    model = Model(folder, "plain")
    for name, axis, operand in [
        ("exact", None, dict(scale="exact")),
        ("pow2", None, dict(scale="pow2")),
        ("rows", 1, dict(tile="row", scale="exact")),
    ]:
        recipe = write_recipe(folder / f"{name}.yaml", **operand)
        out, _ = model.run(fp8_run, f"plain-{name}", "--trace", recipe=recipe, steps=3)
        trace = read_trace(out)
        assert sorted(trace) == [1, 2, 3], f"expected a line a step but got those of {sorted(trace)}"
        pow2 = name == "pow2"
        for step, tensors in trace.items():
            x = model.x[step - 1]
            want = statistics([(x, quantize(x, "f8E4M3FN", axis, pow2))], "f8E4M3FN")
            assert want["underflow"] > 0
            check_equal(tensors["params['w'][0].activation"], want, f"{name}, step {step}")
        for i, w in enumerate(model.params["w"]):
            # The rows of a weight are along the contraction.
            want = statistics([(w, quantize(w, "f8E4M3FN", None if axis is None else 0, pow2))], "f8E4M3FN")
            check_equal(trace[1][f"params['w'][{i}].weight"], want, f"{name}, weight {i}")
        # With row tiles the forward pass and wgrad have a tensor each.
        for part in ("activation", "activation.wgrad", "weight", "gradient"):
            assert (f"params['w'][1].{part}" in trace[1]) == (axis is not None or part != "activation.wgrad"), sorted(trace[1])
        print(f"{name}: {len(trace[1])} tensors")


def check_expansion(fp8_run, folder):
    """Statistics of a moment with range expansion are those of the moment."""
    model = Model(folder, "expanded")
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    moment = "optimizer.moment2={format: f8E4M3FN, tile: 1x128, expand: true}"
    out, _ = model.run(fp8_run, "expanded", "--trace", "--set", moment, "--set", "optimizer.min_elements=0", recipe=recipe, steps=1)
    plain, _ = model.run(fp8_run, "plain", recipe=recipe, steps=1)
    stored, trace = t.load_tensors(out / "checkpoint-1.safetensors"), read_trace(out)[1]
    names = [name for name in stored if name + ".exponent" in stored]
    assert len(names) == 2, f"expected two expanded moments but got {sorted(stored)}"
    for name in names:
        x = checkpoint(plain, 1)[name]
        codes = stored[name].astype(F32)
        scale, center, exponent = (stored[f"{name}.{part}"] for part in ("scale", "center", "exponent"))
        back = center * (codes * scale).astype(np.float64) ** (1 / exponent.astype(np.float64))
        want = statistics([(x, (codes, scale))], "f8E4M3FN")
        want["snr"] = 10 * np.log10(np.sum(x.astype(np.float64) ** 2) / np.sum((x - back) ** 2))
        found = {metric: trace[name][metric] for metric in want}
        check_equal(found, want | {"saturation": 0}, name)


def check_saturation(fp8_run, folder):
    """A scale from the previous step is too small for a larger batch."""
    model = Model(folder, "larger", spike=(2, 8))
    recipe = write_recipe(folder / "most_recent.yaml", scaling="delayed", history=1, algorithm="most_recent")
    out, result = model.run(fp8_run, "larger", "--trace", recipe=recipe, steps=3)
    trace = read_trace(out)
    _, scale = quantize(model.x[0], "f8E4M3FN")
    want = statistics([(model.x[1], quantize(model.x[1], "f8E4M3FN", scale=scale))], "f8E4M3FN")
    assert want["saturation"] > 0.1, f"expected saturation but got {want}"
    check_equal(trace[2]["params['w'][0].activation"], want, "delayed")
    assert "worst SNR" in result.stdout and "largest saturation" in result.stdout, result.stdout


def check_loops(fp8_run, folder):
    """A loop has a value for each layer; micro-batches count as one tensor."""
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    single, _ = Model(folder, "single").run(fp8_run, "single", "--trace", recipe=recipe, steps=3)
    scan, _ = Model(folder, "scan", scan=True).run(fp8_run, "scan", "--trace", recipe=recipe, steps=3)
    single, scan = read_trace(single), read_trace(scan)
    for step in single:
        for name, metrics in scan[step].items():
            if "update_rms" in metrics:
                continue
            for metric, values in metrics.items():
                assert len(values) == 2, f"{name}: expected a value for each layer but got {values}"
                for layer, value in enumerate(values):
                    other = single[step][name.replace("['w']", f"['w'][{layer}]")][metric]
                    assert np.isclose(value, other, rtol=1e-3, atol=1e-6), f"step {step}, {name}, {metric}: {value} {other}"
    assert len(scan[1]) * 2 == len(single[1])

    model = Model(folder, "micro", micros=MICROS)
    out, _ = model.run(fp8_run, "micro", "--trace", recipe=recipe, steps=2)
    for step, tensors in read_trace(out).items():
        parts = [(x, quantize(x, "f8E4M3FN")) for x in model.x[step - 1]]
        check_equal(tensors["params['w'][0].activation"], statistics(parts, "f8E4M3FN"), f"micro-batches, step {step}")
    model = Model(folder, "both", micros=MICROS, scan=True)
    out, _ = model.run(fp8_run, "both", "--trace", recipe=recipe, steps=2)
    for step, tensors in read_trace(out).items():
        parts = [(x, quantize(x, "f8E4M3FN")) for x in model.x[step - 1]]
        first = {metric: values[0] for metric, values in tensors["params['w'].activation"].items()}
        check_equal(first, statistics(parts, "f8E4M3FN"), f"micro-batches and layers, step {step}")


def check_updates(fp8_run, folder):
    """update_rms is the root of the mean of g^2 / v, both from the moments in checkpoints."""
    decay, steps = 0.9, 4
    model = Model(folder, "adam", optimizer=optax.chain(optax.clip_by_global_norm(0.1), optax.adam(1e-2, b2=decay)))
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    out, _ = model.run(fp8_run, "adam", "--trace", "--checkpoint-every", 1, recipe=recipe, steps=steps)
    trace = read_trace(out)
    for i in range(2):
        before = np.zeros((WIDTH, WIDTH))
        for step in range(1, steps + 1):
            (name,) = [name for name in checkpoint(out, step) if name.endswith(f".nu['w'][{i}]")]
            after = checkpoint(out, step)[name].astype(np.float64)
            squares = (after - decay * before) / (1 - decay)
            # Inputs of zero give gradients of zero.
            want = np.sqrt(np.mean(squares / np.maximum(after / (1 - decay**step), 1e-37)))
            check_equal(trace[step][f"params['w'][{i}]"], {"update_rms": want}, f"step {step}, {name}")
            before = after


def compare_bits(fp8_run, run, what):
    """`run(args, name)` trains; compares runs with and without --trace, and returns the trace and
    its folder."""
    found = []
    for args, name in ((["--trace"], "with"), ([], "without")):
        out = run(args, f"{what}-{name}")
        state = load_file(max(out.glob("checkpoint-*.safetensors")))
        found.append((t.losses(t.read_log(out)), {key: value.tobytes() for key, value in state.items()}))
        if not args:
            assert not (out / "trace.jsonl").exists(), "expected no file without --trace"
    assert found[0] == found[1], f"{what}: expected the same bits but got losses {found[0][0]} and {found[1][0]}"
    out = out.parent / f"{what}-with"
    trace = read_trace(out)
    for name, metrics in max(trace.items())[1].items():
        # The SNR is only predictable if the scale did not saturate.
        sure = np.ravel(metrics.get("saturation", 1)) == 0
        for value in np.ravel(metrics.get("snr", 30))[sure]:
            assert 10 < value < 60, f"{what}: expected a plausible SNR of {name} but got {value}"
    print(f"{what}: {len(trace[1])} tensors, same bits")
    return out, trace


def check_bits(fp8_run, folder):
    """Losses and state have the same bits with and without a trace."""
    for recipe, config in [("tensorwise", {}), ("delayed", dict(micros=MICROS)), ("blockwise", dict(scan=True, micros=MICROS))]:
        # (The recipes keep the last layer, which counts as a head.)
        model = Model(folder, recipe, layers=3, **config)
        compare_bits(fp8_run, lambda args, name: model.run(fp8_run, name, *args, recipe=recipe, steps=4)[0], recipe)


def check_example(fp8_run, folder):
    """The example model keeps its bits too, and the trace has the cosines of its gate and up
    weights at the beginning of a step."""
    data, model = t.write_text(folder / "text.txt"), folder / "model"
    t.export_model(model, **t.TINY, loop="scan")

    def run(args, name):
        args = ["--init", model / "init.mlir", "--data", data, "--recipe", "tensorwise", "--steps", 3, "--checkpoint-every", 1, *args]
        t.train(fp8_run, model, folder / name, *args)
        return folder / name

    out, trace = compare_bits(fp8_run, run, "example")
    for step in (2, 3):
        params = checkpoint(out, step - 1)
        found = {name: metrics for name, metrics in trace[step].items() if "alignment_max" in metrics}
        assert len(found) == 1, f"expected a gated unit but got {sorted(trace[step])}"
        for name, metrics in found.items():
            gate, up = (params[name.replace(GATE, key)].astype(np.float64) for key in (GATE, UP))
            cosines = np.abs(np.sum(gate * up, axis=-2) / np.linalg.norm(gate, axis=-2) / np.linalg.norm(up, axis=-2))
            for metric, value in {"alignment_max": cosines.max(axis=-1), "alignment_mean": cosines.mean(axis=-1)}.items():
                assert np.allclose(metrics[metric], value, rtol=1e-5), f"{name}: expected {metric} {value} but got {metrics[metric]}"


def check_resume(fp8_run, folder):
    """A resumed run continues the file; repeated steps occur once."""
    model = Model(folder, "resumed")
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    whole, _ = model.run(fp8_run, "whole", "--trace", recipe=recipe, steps=6)
    out, _ = model.run(fp8_run, "parts", "--trace", recipe=recipe, steps=3)
    lines = (out / "trace.jsonl").read_text()
    # As if the run had continued and then died.
    (out / "trace.jsonl").write_text(lines + lines.splitlines()[-1].replace('"step": 3', '"step": 4') + "\n" + '{"step": 5, "ten')
    model.run(fp8_run, "parts", "--trace", "--resume", recipe=recipe, steps=6)
    assert (out / "trace.jsonl").read_text() == (whole / "trace.jsonl").read_text()


# ----------------------------------------------------------------------
# Alarms
# ----------------------------------------------------------------------


def check_warn(fp8_run, folder):
    model = Model(folder, "spike", spike=(5, 100))
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    alarms = ["--alarm", "loss > 10x median(3) : warn", "--alarm", "amax@params['w'][0].* > 100 : warn", "--alarm", "grad_norm > 1e30:warn"]
    _, result = model.run(fp8_run, "warn", *alarms, recipe=recipe)
    warnings = [line for line in result.stderr.splitlines() if line.startswith("warning: step")]
    assert len(warnings) == 2, f"expected two warnings but got {result.stderr}"
    assert all(line.startswith("warning: step 5: ") for line in warnings), warnings
    assert "amax of params['w'][0].activation is " in warnings[1], warnings
    assert not (folder / "warn" / "trace.jsonl").exists(), "expected no file without --trace"


def check_stop(fp8_run, folder):
    model = Model(folder, "spike", spike=(5, 100))
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    out, result = model.run(fp8_run, "stop", "--alarm", "loss > 10x median(3) : stop", recipe=recipe, check=False)
    assert result.returncode == 4, f"expected exit code 4 but got {result.returncode}: {result.stderr}"
    assert "stopped by an alarm: step 5: loss is " in result.stderr, result.stderr
    assert len(t.read_log(out)) == 5
    checkpoint(out, 5)


def check_skip(fp8_run, folder):
    """A skipped step keeps the bits of the previous state, and training continues with the next
    batch, even if the step is not finite."""
    for factor, alarm in [(100, "amax@*.activation > 100 : skip"), (np.inf, "loss > 1e6:skip")]:
        model = Model(folder, "skipped", spike=(5, factor))
        recipe = write_recipe(folder / "delayed.yaml", scaling="delayed", history=4)
        out, result = model.run(fp8_run, "skip", "--overwrite", "--alarm", alarm, "--checkpoint-every", 1, recipe=recipe)
        log = t.read_log(out)
        assert [row["step"] for row in log if row.get("skipped")] == [5], log
        assert "skipped: step 5: " in result.stderr and "1 of 8 steps" in result.stdout, result.stderr + result.stdout
        before, after, last = checkpoint(out, 4), checkpoint(out, 5), checkpoint(out, 8)
        for name, value in before.items():
            assert value.tobytes() == after[name].tobytes(), f"{alarm}: expected {name} unchanged in a step that is skipped"
        assert any(value.tobytes() != last[name].tobytes() for name, value in before.items())
        assert all(np.isfinite(row["loss"]) and row["loss"] < 100 for row in log if row["step"] != 5), log


def check_wrong(fp8_run, folder):
    model = Model(folder, "wrong")
    recipe = write_recipe(folder / "exact.yaml", scale="exact")
    for alarm, code, message in [
        ("loss > 1", 2, "there is no : before an action; expected METRIC[@TENSORS] > VALUE : ACTION"),
        ("loss > many : warn", 2, "expected a number but got 'many'"),
        ("loss > 2x mean(5) : warn", 2, "expected a number or a multiple of a median"),
        ("loss > 2 : shout", 2, "there is no action 'shout'; expected"),
        ("lss > 2 : warn", 1, "there is no metric 'lss'; expected one of the step (loss, grad_norm) or of its trace (amax, scale, "),
        ("snr@nothing* < 2 : warn", 1, "no tensor fits 'nothing*'; those that have one: params['w'][0].activation, "),
        ("loss@* < 2 : warn", 1, "expected @TENSORS with a metric of the trace only"),
    ]:
        _, result = model.run(fp8_run, "wrong", "--overwrite", "--alarm", alarm, recipe=recipe, steps=1, check=False)
        assert result.returncode == code and message in result.stderr, f"{alarm}: {result.returncode} {result.stderr}"


CASES = {
    "numpy": check_numpy,
    "expansion": check_expansion,
    "saturation": check_saturation,
    "loops": check_loops,
    "updates": check_updates,
    "bits": check_bits,
    "example": check_example,
    "resume": check_resume,
    "warn": check_warn,
    "stop": check_stop,
    "skip": check_skip,
    "wrong": check_wrong,
}


def main(fp8_run, folder, *names):
    folder = pathlib.Path(folder)

    def run(case, name):
        (folder / name).mkdir(parents=True)
        case(fp8_run, folder / name)

    t.run_cases({name: lambda _, name=name, case=case: run(case, name) for name, case in CASES.items()}, names, None)


if __name__ == "__main__":
    main(*sys.argv[1:])
