"""The attention spellings of Integration/CPU/attention.py on the GPU emulator: every
kernel of the step agrees with the CPU's, and so do the gradients of steps whose
backward pass is divided by queries and by keys.

    attention.py FP8_CHECK_GPU_KERNELS FP8_OPT FP8_RUN DRIVER_DIR FOLDER [all | CASE...]

DRIVER_DIR has the emulator's libcuda.so.1.
"""

import dataclasses
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "test/Integration/CPU"))
import attention  # noqa: E402
import fp8_testing as t  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402


def calm(attend):
    """The same attention of smaller numbers: those of wide layers with random weights are so large that their rounding to bf16 changes the gradient."""
    return lambda q, k, v, extra: attend(q / 16, k, v / 64, extra)


def later_and_padded(q, k, v, extra):
    """The queries are the last positions; those that are padding see no key."""
    rows, columns = attention.positions(q, k)
    seen = columns < rows + (k.shape[1] - q.shape[1] + 1)
    return attention.softmax_attention(q, k, v, mask=seen & (columns >= extra["padding"][:, None, None, None]))


def paddings(first, second):
    return lambda random: {"padding": np.array([first, second], np.int32)}


# With more than 1024 keys values of rows have kernels of their own. In WHOLE they do not, so scores are in global memory, for the
# last block of queries too.
MASKS = {"extra": lambda random: {"mask": random.random((1, 1, 40, 1700)) < 0.5}}
CASES = attention.CASES | {
    "many keys": attention.Case(attention.grouped, kv_heads=1, queries=40, keys=1700, batch=1),
    "many causal keys": attention.Case(attention.later, queries=96, keys=1100),
    "many keys and a window": attention.Case(attention.later_window, queries=96, keys=1100),
    "padded keys": attention.Case(later_and_padded, queries=192, keys=600, extra=paddings(100, 500)),
    "many divided after": attention.Case(attention.divided_after, queries=40, keys=1700, batch=1),
    "many masked keys": attention.Case(attention.zero_rows, queries=40, keys=1700, batch=1, **MASKS),
    "many whole rows": attention.Case(attention.grouped, kv_heads=1, queries=40, keys=1700, batch=1),
    "long learned bias": attention.Case(attention.causal_with_bias, parameters=attention.learned((2, 96, 96)), backward=2, queries=96, keys=96),
    # On sm_90a, where alone these run, their dots read operands in place.
    "tiles in place": attention.Case(calm(attention.later), heads=1, kv_heads=1, dtype="bfloat16", queries=192, keys=384, width=64, batch=1),
    "deep tiles in place": attention.Case(calm(attention.causal), dtype="bfloat16", queries=320, keys=320, width=256, batch=1),
    "grouped tiles in place": attention.Case(calm(attention.grouped), kv_heads=1, dtype="bfloat16", queries=128, keys=384, width=128, batch=2),
    "window of tiles in place": attention.Case(calm(attention.later_window), dtype="bfloat16", queries=128, keys=576, width=128, batch=1),
    "padded tiles in place": attention.Case(calm(later_and_padded), dtype="bfloat16", queries=192, keys=384, width=64, extra=paddings(100, 320)),
    "many tiles": attention.Case(attention.CASES["full"].attend, queries=64, keys=1700, batch=70),
}
WHOLE = {"many whole rows", "many tiles"}
SOME = ["causal", "soft cap", "mask", "bias", "learned bias", "packed", "dropout", "grouped", "cross", "bf16", "f32 softmax of bf16", "one row", "long",
        "long grouped", "long learned bias", "padded keys", "padded tiles in place", "many keys", "many whole rows", "many causal keys",
        "long window", "many keys and a window", "window of tiles in place", "tiles in place"]  # fmt: skip
CHIPS = ["sm_89", "sm_90a"]
# Largest error of a gradient, as a share of its norm, for each layer: dots sum in another order, and bf16 rounds what differs.
BOUNDS = {"float32": 1e-5, "bfloat16": 1e-2}


def is_divided(case):
    """Whether one kernel of the backward pass has some of the keys, and another one has some of the queries."""
    return case.backward and case.keys > 64 and case.dtype != "float64"


def compare_gradients(case, fp8_run, driver, folder, feeds, params):
    expected = attention.gradient_of(fp8_run, folder, params, feeds, "--no-optimize")
    environment = {**os.environ, "LD_LIBRARY_PATH": driver, "FP8_EMULATOR_CAPABILITY": "90", "FP8_EMULATOR_LANDING": "random"}
    got = attention.gradient_of(fp8_run, folder, params, feeds, "--target", "nvptx:sm_90a", "--gpu-image", "bitcode", env=environment)
    error = attention.distance(got, expected) / attention.norm(expected)
    print(f"  sm_90a: gradients differ by {error:.1e} of their norm")
    bound = BOUNDS[case.dtype] * attention.STACKS.get(case.layers, 1)
    assert error <= bound, f"expected at most {bound} but got {error}"


# Mistakes in kernels whose blocks skip what a causal mask hides, as replacements in their loops, and what the checker says.
MUTATIONS = {
    "a block begins too late": (r"arith\.maxsi (%\w+), %\w+", r"arith.addi \1, \1", "differs|no memory of the device"),
    "a block ends too early": (r"arith\.minsi (%\w+), (%\w+)", r"arith.subi \1, \2", "differs"),
    "no barriers": (r"gpu\.barrier\b.*", "", "no barrier between|nothing has been written to"),
}
# The same for kernels whose dots read operands in place.
MUTATIONS_IN_PLACE = {
    "weights without the swizzle": (r"arith\.xori (%\w+), %\w+ : index", r"arith.ori \1, \1 : index", "differs"),
    "no fence behind weights": (r"nvvm\.fence\.proxy.*", "", "fence.proxy"),
    "no barriers": (r"nvvm\.barrier id.*", "", "no barrier between|nothing has been written to"),
    "too few bytes": (r"arith\.constant 8192 : i32", "arith.constant 8176 : i32", "has not been waited for|no barrier between|nothing has been written to|deadlock|an mbarrier waits for"),
    "no tile is released": (r"%\w+ = nvvm\.mbarrier\.arrive %.*", "", "deadlock"),
}  # fmt: skip


def check_mutations(checker, fp8_opt, folder, chip, mutations, marks):
    """In the kernels of a step that have `marks`, each mistake is found wherever it can be made."""
    t.run([fp8_opt, f"--fp8-target=nvptx={chip}", "--fp8-gpu-codegen", folder / "4.mlir", "-o", folder / "5.mlir"])
    whole = (folder / "5.mlir").read_text()
    kernels = {re.search(r"gpu\.func @(\w+)", part)[1]: part for part in re.split(r"(?=gpu\.module)", whole)[1:]}
    for what, (pattern, replacement, message) in mutations.items():
        places = [name for name, text in kernels.items() if re.search(marks, text) and re.search(pattern, text)]
        assert places, f"expected a kernel in which {what} is possible"
        name = places[-1]
        (folder / "mutated.mlir").write_text(whole.replace(kernels[name], re.sub(pattern, replacement, kernels[name])))
        t.run([fp8_opt, "--fp8-to-nvvm", folder / "mutated.mlir", "-o", folder / "6.mlir"])
        got = t.run([checker, f"--chip={chip}", f"--kernel={name}", f"--compiled={folder / '6.mlir'}", folder / "4.mlir"], check=False)
        assert got.returncode == 1 and re.search(message, got.stdout), f"{what}: expected {message} but got {got.stdout} {got.stderr}"
        print(f"  {what}: found, in the last of {len(places)} kernels that could have it")


def check(name, chips, checker, fp8_opt, fp8_run, driver, folder):
    case, random = CASES[name], np.random.default_rng(len(name))
    divided = is_divided(case) and name not in WHOLE
    if divided and case.layers != "unrolled":
        case = dataclasses.replace(case, batch=2 if re.search("bias|padded|packed", name) else 1)
    loss = attention.make_loss(case)

    def step(params, x, memory, extra):
        value, gradients = jax.value_and_grad(loss)(params, x, memory, extra)
        return jax.tree.map(lambda p, g: p - attention.RATE * g, params, gradients), value

    folder = folder / name.replace(" ", "_")
    folder.mkdir(parents=True, exist_ok=True)
    inputs = attention.make_inputs(case, random)
    (folder / "step.mlir").write_text(jax.jit(step).lower(*inputs).as_text(debug_info=True))
    ops = attention.quantize(fp8_opt, folder)
    assert ops == (case.forward, case.backward), f"expected {(case.forward, case.backward)} ops of attention but got {ops}"
    kernels = "--fp8-kernels" if name in WHOLE else "--fp8-kernels=layouts=along-k"
    t.run([fp8_opt, "--fp8-structure", kernels, folder / "2.mlir", "-o", folder / "4.mlir"])
    in_place = name.endswith("in place")
    for chip in ["sm_90a"] if in_place else chips:
        options = [f"--chip={chip}", *(["--tolerance=1e-3"] if in_place else [])]  # a result in bf16 may be rounded the other way
        print(f"  {chip}: {t.run([checker, '--quiet', *options, folder / '4.mlir']).stdout.strip()}")
    if name == "many causal keys":
        check_mutations(checker, fp8_opt, folder, "sm_89", MUTATIONS, r"arith\.m(ax|in)si")
    if name == "tiles in place":
        check_mutations(checker, fp8_opt, folder, "sm_90a", MUTATIONS_IN_PLACE, r"fence\.proxy")
    if divided:
        compare_gradients(case, fp8_run, driver, folder, attention.write_inputs(folder, *inputs), inputs[0])


if __name__ == "__main__":
    programs, folder, names = sys.argv[1:5], pathlib.Path(sys.argv[5]), sys.argv[6:]
    # By hand each case runs on both chips, in the suite on one of them, in turns.
    names = list(CASES) if names == ["all"] else names
    cases = {name: (lambda fixture, name=name: check(name, CHIPS if names else [CHIPS[SOME.index(name) % 2]], *fixture)) for name in CASES}
    t.run_cases(cases, names or SOME, (*programs, folder))
