"""Trains a small model with every recipe and some of their variants: losses end near
those without FP8, and no two runs have the same losses.

Sizes are not multiples of tiles: 160 and 224 end in partial blocks of 128.
Usage: recipes.py FP8_RUN FOLDER [NAME...]"""

import json
import pathlib
import sys

import fp8_testing

FP8_RUN, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
STEPS = 12
MODEL = dict(width=160, layers=1, heads=2, ffn=224, batch=1, sequence=160, warmup_steps=4, schedule_steps=STEPS)
CURRENT = [f"{dot}.scaling=current" for dot in ("forward.activation", "forward.weight", "dgrad.gradient",
                                                "dgrad.weight", "wgrad.activation", "wgrad.gradient")]
E4M3_GRADIENTS = "gradients={format: f8E4M3FN, scale: pow2}"
# The largest difference from the loss without FP8 after these few steps, in nats.
GAP = 0.03
RUNS = {
    "none": ("none", []),
    "fp8": ("fp8", []),
    "bf16": ("bf16", []),
    "tensorwise": ("tensorwise", []),
    "rowwise": ("rowwise", []),
    "rowwise_gw_hp": ("rowwise_gw_hp", []),
    "switchback": ("switchback", []),
    "blockwise": ("blockwise", []),
    "mxfp8": ("mxfp8", []),
    # The recipes of delayed scaling with current scales, which tests their other keys.
    "delayed, current": ("delayed", [*CURRENT, "forward.weight.margin=1"]),
    "scaling_fp8, current": ("scaling_fp8", CURRENT),
    "fp8_lm, current": ("fp8_lm", CURRENT),
    # FP8-LM's levels, as in docs/Recipes.md.
    "fp8_lm O1": ("fp8_lm", [E4M3_GRADIENTS, "optimizer={moment1: {format: f32}, moment2: {format: f32}, master: {format: f32}}"]),
    "fp8_lm O2": ("fp8_lm", [E4M3_GRADIENTS]),
    "requantized": ("rowwise", ["wgrad.copy=requantized"]),
    "narrow sums": ("tensorwise", ["forward.accumulator.bits=14", "forward.accumulator.promote=128"]),
    "FNUZ": ("tensorwise", ["forward.activation.format=f8E4M3FNUZ", "dgrad.gradient.format=f8E5M2FNUZ"]),
    "another layer": ("tensorwise", ["rules=[keep: {path: \"*['wq']\"}, keep: {part: head}]"]),
}


def train(name, recipe, settings):
    out = FOLDER / name.replace(" ", "-").replace(",", "")
    sets = [argument for setting in settings for argument in ("--set", setting)]
    fp8_testing.run([FP8_RUN, FOLDER / "step.mlir", "--init", FOLDER / "init.mlir", "--data", FOLDER / "text",
                     "--recipe", recipe, *sets, "--steps", STEPS, "--out", out, "--quiet", "--fail-on-fallback"])
    return [json.loads(line)["loss"] for line in (out / "log.jsonl").read_text().splitlines()]


FOLDER.mkdir(parents=True)
fp8_testing.export_model(FOLDER, **MODEL)
fp8_testing.write_text(FOLDER / "text")
chosen = [name for name in RUNS if not sys.argv[3:] or name in sys.argv[3:] or name == "none"]
losses = {name: train(name, *RUNS[name]) for name in chosen}
for name, values in losses.items():
    gap = values[-1] - losses["none"][-1]
    print(f"{name:22} loss {values[0]:.5f} -> {values[-1]:.5f}, {gap:+.5f} from none", flush=True)
    assert len(values) == STEPS and values[-1] < values[0] - 0.5, f"{name}: expected the loss to fall but got {values}"
    assert abs(gap) <= GAP, f"{name}: expected a final loss within {GAP} of {losses['none'][-1]} but got {values[-1]}"
    others = [other for other in losses if other != name and losses[other] == values]
    assert not others, f"{name} computes the same as {others}"
