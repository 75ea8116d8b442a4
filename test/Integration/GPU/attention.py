"""The attention spellings of Integration/CPU/attention.py on the GPU emulator: every
kernel of the step agrees with the CPU's.

    attention.py FP8_CHECK_GPU_KERNELS FP8_OPT FOLDER [all | CASE...]
"""

import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Integration/CPU"))
import attention  # noqa: E402
import fp8_testing as t  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

# With this many keys scores are in global memory, for the last block of queries too.
CASES = attention.CASES | {"many keys": attention.Case(attention.grouped, kv_heads=1, queries=40, keys=1700, batch=1)}
CASES["many tiles"] = attention.Case(CASES["full"].attend, queries=64, keys=1700, batch=70)
SOME = ["causal", "soft cap", "mask", "bias", "packed", "dropout", "grouped", "cross", "bf16", "f32 softmax of bf16", "one row", "long",
        "long grouped", "many keys"]  # fmt: skip


def check(name, checker, fp8_opt, folder):
    case, random = CASES[name], np.random.default_rng(len(name))
    loss = attention.make_loss(case)

    def step(params, x, memory, extra):
        value, gradients = jax.value_and_grad(loss)(params, x, memory, extra)
        return jax.tree.map(lambda p, g: p - g, params, gradients), value

    folder = folder / name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.mlir").write_text(jax.jit(step).lower(*attention.make_inputs(case, random)).as_text(debug_info=True))
    ops = attention.count_ops(fp8_opt, folder / "step.mlir")
    assert ops == (case.forward, case.backward), f"expected {(case.forward, case.backward)} ops of attention but got {ops}"
    t.run([fp8_opt, "--fp8-import", "--fp8-quantize=recipe=none", "--fp8-structure", "--fp8-kernels", folder / "step.mlir", "-o", folder / "4.mlir"])
    for chip in ("sm_89", "sm_90a"):
        print(f"  {chip}: {t.run([checker, '--quiet', f'--chip={chip}', folder / '4.mlir']).stdout.strip()}")


if __name__ == "__main__":
    checker, fp8_opt, folder, names = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4:]
    cases = {name: (lambda fixture, name=name: check(name, *fixture)) for name in CASES}
    t.run_cases(cases, list(cases) if names == ["all"] else names or SOME, (checker, fp8_opt, folder))
