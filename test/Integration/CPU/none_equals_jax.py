"""`--recipe none` computes what JAX computes: the same losses for 20 steps, from the
same initial values and batches, to a relative error of 1e-4 in f32.

    python none_equals_jax.py FP8_RUN FOLDER tiny|example
"""

import pathlib
import sys

import fp8_testing as t
import jax
import numpy as np

STEPS = 20


def main():
    fp8_run, folder, size = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    folder.mkdir(parents=True, exist_ok=True)
    import export

    if size == "example":
        # Compares the committed files.
        cfg, model = export.Config(), t.ROOT / "examples" / "llama"
    else:
        cfg, model = t.export_model(folder, **t.TINY), folder

    text = np.frombuffer(b"".join(f.read_bytes() for f in t.fortunes()), np.uint8)
    starts = np.random.default_rng(0).integers(0, len(text) - cfg.sequence - 1, (STEPS, cfg.batch))
    tokens = np.stack([[text[s : s + cfg.sequence + 1] for s in row] for row in starts]).astype(np.int32)
    np.save(folder / "tokens.npy", tokens)

    init, step, _ = export.make_functions(cfg)
    params, opt_state = jax.jit(init)(np.uint32(7))
    t.save_tree(folder / "init.safetensors", params=params, opt_state=opt_state)

    step = jax.jit(step, donate_argnums=(0, 1))
    expected = {"loss": [], "grad_norm": [], "learning_rate": []}
    for batch in tokens:
        params, opt_state, metrics = step(params, opt_state, batch)
        for name, values in expected.items():
            values.append(float(metrics[name]))

    log = t.train(
        fp8_run, model, folder / "out", "--init", folder / "init.safetensors",
        "--batch", f"tokens={folder / 'tokens.npy'}", "--recipe", "none", "--steps", STEPS,
    )  # fmt: skip
    got = {name: t.metric(log, name) for name in expected}

    worst = {}
    for name, values in expected.items():
        assert len(got[name]) == STEPS, f"expected {STEPS} values of {name} but got {len(got[name])}"
        worst[name] = float(np.max(np.abs(np.subtract(got[name], values)) / np.maximum(np.abs(values), 1e-6)))
    print("largest relative differences:", worst)
    assert worst["loss"] <= 1e-4, f"expected losses\n{expected['loss']}\nbut got\n{got['loss']}"
    assert worst["learning_rate"] <= 1e-5, f"expected {expected['learning_rate']} but got {got['learning_rate']}"
    # The norm is not an average, so that rounding differences are larger.
    assert worst["grad_norm"] <= 2e-3, f"expected {expected['grad_norm']} but got {got['grad_norm']}"


main()
