"""--export-weights writes a file that other programs read, with the values of the
checkpoint, in f32, bf16 and FP8. The tests also check export.json, and that folding
the factors of gated units changes nothing that the model computes.

    python export_weights.py FP8_RUN FOLDER [CASE...]
"""

import json
import pathlib
import re
import sys

import fp8_testing as t
import gated_mlp
import ml_dtypes
import numpy as np
import optax
from safetensors import safe_open
from safetensors.numpy import load_file

SMOOTH = ["--recipe", "tensorwise", "--set", "smooth_swiglu.granularity=channel", "--set", "smooth_swiglu.scaling=delayed", "--set", "smooth_swiglu.history=4"]  # fmt: skip
STEPS = 6
case = t.Cases()


class Fixture:
    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, folder
        folder.mkdir(parents=True)
        self.text = t.write_text(folder / "text.txt")
        for name in ("unrolled", "scan", "fused"):
            loop = "unrolled" if name == "unrolled" else "scan"
            gated_mlp.write(folder / name, loop=loop, ffn=96, optimizer=optax.sgd(0.3), fused=name == "fused")

    def train(self, out, *args, loop="unrolled", check=True):
        model = self.folder / loop
        result = t.run([self.fp8_run, model / "step.mlir", "--init", model / "init.mlir", "--data", self.text, "--steps", STEPS,
                        "--out", self.folder / out, *args], check=check)  # fmt: skip
        return result, self.folder / out

    def export(self, trained, name, form, *args, loop="unrolled"):
        """Exports a finished run, without its data unless `args` has it."""
        folder = self.folder / f"{name}-{form}"
        result = t.run([self.fp8_run, self.folder / loop / "step.mlir", "--resume", "--out", self.folder / trained,
                        "--export-weights", folder, "--export-format", form, *args])  # fmt: skip
        return result, folder

    def evaluation(self, loop="unrolled"):
        return ["--eval", self.folder / loop / "eval.mlir", "--data", self.text]


def manifest_of(weights):
    manifest = json.loads((weights / "export.json").read_text())
    return manifest, {entry["name"]: entry for entry in manifest["tensors"]}


def dotted(path):
    """Returns layers.0.up for params['layers'][0]['up']."""
    return ".".join(re.findall(r"\['?([^\]']*)'?\]", path))


def parameters(out):
    """Returns the parameters of a run's checkpoint, by dotted name."""
    arrays = t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    return {dotted(name): array for name, array in arrays.items() if name.startswith("params")}


def same_bits(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def quantized(w, axis):
    """Returns payload and scale of the exact rule, in f32."""
    amax = np.max(np.abs(w), axis=axis, keepdims=True)
    q = np.float32(448) / amax
    return np.clip(w * q, -448, 448).astype(ml_dtypes.float8_e4m3fn), np.float32(1) / q


def is_linear(name):
    return name.rpartition(".")[2] in ("gate", "up", "down")


def check_formats(f, out, loop, export):
    """Checks all three formats of a run without factors."""
    expected = parameters(out)
    for form in ("f32", "bf16", "f8E4M3FN"):
        _, weights = export(form)
        found = t.load_tensors(weights / "model.safetensors")
        metadata = safe_open(weights / "model.safetensors", "numpy").metadata()
        manifest, listed = manifest_of(weights)
        assert metadata == {"format": "pt"} and manifest["format"] == form and manifest["step"] == STEPS
        assert sorted(listed) == sorted(expected), sorted(listed)
        scaled = [name for name in expected if form == "f8E4M3FN" and is_linear(name)]
        assert len(scaled) == (0 if form != "f8E4M3FN" else 3 if loop == "scan" else 6)
        assert sorted(found) == sorted([*expected, *(name + "_scale" for name in scaled)]), sorted(found)
        for name, array in expected.items():
            entry = listed[name]
            assert dotted(entry["source"]) == name and tuple(entry["shape"]) == array.shape, entry
            if name in scaled:
                payload, scale = quantized(array, -2)
                assert same_bits(found[name + "_scale"], scale) and same_bits(found[name], payload), name
                assert entry["dtype"] == "f8E4M3FN" and entry["scale"] == name + "_scale" and entry["scale_spans"] == [array.ndim - 2], entry
            else:
                stored = array if form == "f32" else array.astype(ml_dtypes.bfloat16)
                assert same_bits(found[name], stored), name
                assert entry["dtype"] == ("f32" if form == "f32" else "bf16") and "scale" not in entry, entry
    return weights


@case
def formats(f):
    """Exports one run in all formats, which does not change the run."""
    evaluation = f.evaluation()
    result, out = f.train("run", *evaluation[:2], "--export-weights", f.folder / "run-of-training")
    before = {path.name: path.read_bytes() for path in out.glob("checkpoint-*")}
    losses = {}

    def export(form):
        result, weights = f.export("run", "run", form, *(evaluation if form != "f32" else ()))
        assert "warning" not in result.stderr, result.stderr
        losses[form] = manifest_of(weights)[0].get("heldout_loss")
        return result, weights

    check_formats(f, out, "unrolled", export)
    assert {path.name: path.read_bytes() for path in out.glob("checkpoint-*")} == before
    # The file that the run itself exported equals that of the checkpoint, and other libraries load
    # it.
    assert (f.folder / "run-of-training" / "model.safetensors").read_bytes() == (f.folder / "run-f32" / "model.safetensors").read_bytes()
    with safe_open(f.folder / "run-f32" / "model.safetensors", "numpy") as file:
        assert file.metadata() == {"format": "pt"}
    assert sorted(load_file(f.folder / "run-f32" / "model.safetensors")) == sorted(parameters(out))
    loss = manifest_of(f.folder / "run-of-training")[0]["heldout_loss"]
    assert loss["model"] == loss["exported"], loss
    assert f"held out {loss['model']:.4f} as trained, {loss['exported']:.4f} as exported" in result.stdout, result.stdout
    assert losses["f32"] is None
    assert 0 < abs(losses["bf16"]["model"] - losses["bf16"]["exported"]) < 1e-2, losses
    assert 0 < abs(losses["f8E4M3FN"]["model"] - losses["f8E4M3FN"]["exported"]) < 5e-2, losses
    assert 15 < manifest_of(f.folder / "run-f8E4M3FN")[0]["logits_snr_db"] < 60


def factors(out):
    """Returns s of every gated unit; the first dimension is the layer."""
    arrays = t.load_tensors(out / f"checkpoint-{STEPS}.safetensors")
    found = {name: 1 / np.where(array == 0, 1, array) for name, array in arrays.items() if name.endswith(".smooth.quantizer")}
    assert found and all(np.any(s != 1) and np.all(np.frexp(s)[0] == 0.5) for s in found.values()), found
    return found


@case
def factors_are_folded(f):
    """Folding is exact: the exported model has the same loss, bit for bit."""
    for loop in ("unrolled", "scan"):
        evaluation = f.evaluation(loop)
        result, out = f.train(f"smooth-{loop}", *SMOOTH, *evaluation[:2], "--export-weights", f.folder / f"smooth-{loop}-f32", loop=loop)
        expected, s = parameters(out), factors(out)
        found = t.load_tensors(f.folder / f"smooth-{loop}-f32" / "model.safetensors")
        manifest, listed = manifest_of(f.folder / f"smooth-{loop}-f32")
        assert "not_folded" not in manifest and set(manifest["numbers"].values()) == {0}, manifest["numbers"]
        folded = 0
        for name, array in expected.items():
            fold = listed[name].get("folded")
            if fold:
                factor = s[fold[0]["state"]]
                array = array / factor[..., None, :] if fold[0]["factor"] == "1/s" else array * factor[..., :, None]
                assert name.endswith("up" if fold[0]["factor"] == "1/s" else "down"), name
                folded += 1
            assert same_bits(found[name], array.astype(np.float32)), name
        assert folded == (2 if loop == "scan" else 4)
        loss = manifest["heldout_loss"]
        assert loss["model"] == loss["exported"], loss
        assert "logits_snr_db" not in manifest, manifest["logits_snr_db"]


@case
def factors_of_a_fused_projection(f):
    """1/s is folded into the half in which the product is linear, and into its bias."""
    evaluation = f.evaluation("fused")
    _, out = f.train("fused-run", *SMOOTH, *evaluation[:2], "--export-weights", f.folder / "fused-f32", loop="fused")
    expected, (s,) = parameters(out), factors(out).values()
    found = t.load_tensors(f.folder / "fused-f32" / "model.safetensors")
    manifest, _ = manifest_of(f.folder / "fused-f32")
    expected["layers.both"] = np.concatenate([expected["layers.both"][..., :96], expected["layers.both"][..., 96:] / s[:, None]], axis=-1)
    expected["layers.bias"] = np.concatenate([expected["layers.bias"][..., :96], expected["layers.bias"][..., 96:] / s], axis=-1)
    expected["layers.down"] = expected["layers.down"] * s[..., None]
    for name, array in expected.items():
        assert same_bits(found[name], array.astype(np.float32)), name
    assert manifest["heldout_loss"]["model"] == manifest["heldout_loss"]["exported"], manifest["heldout_loss"]


@case
def factors_in_fp8(f):
    """The scales of the linear branch absorb s, so that its codes stay. The layer that reads the
    product is quantized again, and its changed codes are counted."""
    if not (f.folder / "smooth-unrolled").exists():
        f.train("smooth-unrolled", *SMOOTH)
    out = f.folder / "smooth-unrolled"
    _, weights = f.export("smooth-unrolled", "smooth-unrolled", "f8E4M3FN", *SMOOTH, *f.evaluation())
    found = t.load_tensors(weights / "model.safetensors")
    manifest, listed = manifest_of(weights)
    s = factors(out)
    for name, array in parameters(out).items():
        if not is_linear(name):
            continue
        payload, scale = quantized(array, -2)
        if name.endswith("up"):
            factor = s[listed[name]["folded"][0]["state"]]
            assert same_bits(found[name], payload) and same_bits(found[name + "_scale"], (scale / factor).astype(np.float32)), name
            assert manifest["numbers"][name + ".changed"] == 0
        elif name.endswith("down"):
            factor = s[listed[name]["folded"][0]["state"]]
            again, scale = quantized((array * factor[:, None]).astype(np.float32), -2)
            assert same_bits(found[name], again) and same_bits(found[name + "_scale"], scale), name
            changed = np.sum(again.astype(np.float32) != payload.astype(np.float32))
            assert manifest["numbers"][name + ".changed"] == changed > 0, (manifest["numbers"], changed)
    assert abs(manifest["heldout_loss"]["model"] - manifest["heldout_loss"]["exported"]) < 5e-2, manifest["heldout_loss"]
    assert manifest["logits_snr_db"] > 15


@case
def factors_that_are_not_state(f):
    _, out = f.train("current", *SMOOTH[:4], "--export-weights", f.folder / "current-f32")
    manifest, _ = manifest_of(f.folder / "current-f32")
    assert [(unit["gated_unit"], "of each batch" in unit["why"]) for unit in manifest["not_folded"]] == [
        (f"params['layers'][{i}]['down']", True) for i in (0, 1)], manifest["not_folded"]  # fmt: skip
    found = t.load_tensors(f.folder / "current-f32" / "model.safetensors")
    assert all(same_bits(found[name], array) for name, array in parameters(out).items())


@case
def bad_options(f):
    for args, message in (
        (("--export-weights", f.folder / "x", "--export-format", "f16"), "expected --export-format to be f32, bf16 or f8E4M3FN but got 'f16'"),
        (("--export-format", "bf16"), "expected --export-weights DIR with --export-format"),
    ):
        result, _ = f.train("bad", *args, check=False)
        assert result.returncode == 2 and message in result.stderr, result.stderr


def main():
    fp8_run, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    t.run_cases(case, sys.argv[3:], Fixture(fp8_run, folder))


main()
