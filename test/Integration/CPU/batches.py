"""Arrays of any type feed steps and evaluations: which rows are read, in which order,
across epochs and resumes. Keys that a step does not return are `fold_in(key, step)`,
all scalars are logged, and mistakes give one clear error.

    python batches.py FP8_RUN FOLDER
"""

import json
import pathlib
import re
import shutil
import sys

import fp8_testing as t
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from safetensors.numpy import load_file, save_file

ROWS, BATCH, WIDTH = 10, 4, 3
STEPS = 13


def step(params, batch, key, rate):
    """Reports in its metrics which rows it was fed."""
    rows = batch["rows"]

    def loss_of(params):
        return jnp.mean(jnp.where(batch["mask"], (batch["x"] @ params["w"] - 1.0) ** 2, 0.0) * batch["weight"].astype(jnp.float32))

    loss, grads = jax.value_and_grad(loss_of)(params)
    params = jax.tree.map(lambda p, g: p - rate * g, params, grads)
    agree = (batch["x"][:, 0] == rows) & (batch["mask"] == (rows % 3 > 0)) & (batch["weight"].astype(jnp.int32) == rows)
    seen = {f"row{i}": rows[i] for i in range(BATCH)}
    return params, {"loss": loss, "key": {"a": key[0], "b": key[1]}, "rate": rate, "agree": agree.all(), "nan": jnp.log(-1.0 - loss), **seen}


def evaluate(params, batch, key):
    loss = jnp.mean((batch["x"] @ params["w"] - 1.0) ** 2)
    return {"first": batch["x"][0, 0], "loss": loss, "count": jnp.sum(batch["mask"]), "key": key[1]}


class Fixture:
    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, folder
        folder.mkdir(parents=True)
        params = {"w": jnp.full(WIDTH, 0.01)}
        rows = np.arange(ROWS)
        x = np.random.default_rng(0).normal(size=(ROWS, WIDTH)).astype(np.float32)
        x[:, 0] = rows
        # Types that are converted: i64 for i32, u8 for booleans; f64 is not accepted for f32.
        self.arrays = {"rows": rows.astype(np.int64), "mask": (rows % 3 > 0).astype(np.uint8), "weight": rows.astype(ml_dtypes.bfloat16)}
        np.save(folder / "x.npy", x)
        np.save(folder / "rate.npy", np.linspace(1e-3, 2e-3, 5, dtype=np.float32))
        save_file(self.arrays, folder / "a.safetensors")
        self.x, self.params = x, params
        batch = {"rows": np.zeros(BATCH, np.int32), "x": x[:BATCH], "mask": np.zeros(BATCH, bool), "weight": np.zeros(BATCH, ml_dtypes.bfloat16)}
        key = jnp.zeros(2, jnp.uint32)
        (folder / "step.mlir").write_text(jax.jit(step).lower(params, batch, key, np.float32(0)).as_text(debug_info=True))
        (folder / "eval.mlir").write_text(jax.jit(evaluate).lower(params, batch, key).as_text(debug_info=True))
        t.save_tree(folder / "init.safetensors", params=params)
        t.save_tree(folder / "keyed.safetensors", params=params, key=np.array([0xDEADBEEF, 12345], np.uint32))

    def sources(self, flag="--batch", names=("rows", "mask", "weight", "x")):
        files = {"x": f"{self.folder}/x.npy"}
        return [part for name in names for part in (flag, f"batch['{name}']={files.get(name, f'{self.folder}/a.safetensors:{name}')}")]

    def command(self, out, *args, batches=None, init="init", steps=STEPS, rate=True):
        rates = ["--batch", f"rate={self.folder}/rate.npy"] if rate else []
        batches = self.sources() if batches is None else batches
        return [self.fp8_run, self.folder / "step.mlir", "--init", self.folder / f"{init}.safetensors", *batches, *rates,
                "--role", "key=key", "--recipe", "none", "--steps", steps, "--out", self.folder / out, *args]  # fmt: skip

    def train(self, out, *args, **changes):
        result = t.run(self.command(out, *args, **changes))
        log = t.read_log(self.folder / out)
        assert len(log) == changes.get("steps", STEPS), f"expected {STEPS} rows but got {len(log)}"
        return log, result.stdout

    def fails(self, *patterns, args=(), **changes):
        # What an earlier mistake has left would be another one.
        shutil.rmtree(self.folder / "bad", ignore_errors=True)
        result = t.run(self.command("bad", *args, **changes), check=False)
        assert result.returncode > 0 and result.stderr.count("error:") == 1, result.stderr
        for pattern in patterns:
            assert re.search(pattern, result.stderr, re.S), f"expected {pattern!r} but got {result.stderr}"


def fed(log):
    """Returns the rows in the order in which they were read."""
    assert t.metric(log, "agree") == [1] * len(log), "the arrays do not go together"
    return np.stack([t.metric(log, f"row{i}") for i in range(BATCH)], axis=1).astype(int).ravel()


def keys_of(log):
    return list(zip(*(map(int, [row["metrics"][f"result[1]['key']['{k}']"] for row in log]) for k in "ab")))


def folded(key, count):
    return [tuple(map(int, jax.random.key_data(jax.random.fold_in(key, s)))) for s in range(count)]


def rows_and_epochs(f):
    log, stdout = f.train("ordered")
    np.testing.assert_array_equal(fed(log), np.arange(STEPS * BATCH) % ROWS)
    np.testing.assert_allclose(t.metric(log, "rate"), np.resize(np.load(f.folder / "rate.npy"), STEPS))
    assert "10 rows, 4 a step, in their order" in stdout, stdout
    # A metric that is NaN does not stop the run; the log files have everything.
    assert all(row["metrics"]["result[1]['nan']"] == "nan" for row in log)
    header = (f.folder / "ordered" / "log.csv").read_text().splitlines()[0]
    assert "result[1]['row3']" in header and "result[1]['key']['a']" in header, header
    assert re.search(r"step 13/13 .* agree 1 .* row3 ", stdout), stdout

    log, _ = f.train("shuffled", "--shuffle", "--seed", 7)
    epochs = fed(log)[: STEPS * BATCH // ROWS * ROWS].reshape(-1, ROWS)
    for epoch in epochs:
        assert sorted(epoch) == list(range(ROWS)), f"expected every row once but got {epoch}"
    assert len(set(map(tuple, epochs))) == len(epochs), f"expected another order in every epoch but got {epochs}"
    other, _ = f.train("other", "--shuffle", "--seed", 8)
    assert (fed(other) != fed(log)).any(), "the seed has no effect on the order"


def resumes(f):
    whole, _ = f.train("shuffled", "--shuffle", "--seed", 7, "--overwrite", init="keyed")
    f.train("parts", "--shuffle", "--seed", 7, init="keyed", steps=6)
    # The seed and the key come from the checkpoint.
    parts, stdout = f.train("parts", "--shuffle", "--resume", init="keyed")
    assert "at row 4 of epoch 2" in stdout, stdout
    for row in whole + parts:
        row.pop("seconds"), row.pop("tokens_per_second")
    assert whole == parts
    a, b = (f.folder / out / f"checkpoint-{STEPS}.safetensors" for out in ("shuffled", "parts"))
    assert a.read_bytes() == b.read_bytes()
    raw = a.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    expected = {"step": "13", "data_epoch": "5", "data_index": "2", "shuffle_seed": "7"}
    assert expected.items() <= header["__metadata__"].items(), header["__metadata__"]
    # A resume that reads the data in another order gives a warning.
    result = t.run(f.command("parts", "--resume", init="keyed", steps=STEPS + 1))
    assert "the checkpoint's run shuffled its data, this one does not" in result.stderr, result.stderr


def keys_advance(f):
    log = t.read_log(f.folder / "shuffled")
    given = jax.random.wrap_key_data(np.array([0xDEADBEEF, 12345], np.uint32))
    assert keys_of(log) == folded(given, STEPS), keys_of(log)
    saved = load_file(f.folder / "shuffled" / f"checkpoint-{STEPS}.safetensors")["key"]
    np.testing.assert_array_equal(saved, jax.random.key_data(given))
    log, _ = f.train("seeded", "--seed", 123456)
    assert keys_of(log) == folded(jax.random.key(123456), STEPS), keys_of(log)

    # Four words are two keys that advance together, as in JAX.
    def wide(w, x, key):
        loss = jnp.mean((x - w) ** 2)
        return w - 0.1 * jax.grad(lambda w: jnp.mean((x - w) ** 2))(w), loss, {str(i): key[i] for i in range(4)}

    module = jax.jit(wide).lower(np.float32(0), f.x[0], np.zeros(4, np.uint32)).as_text(debug_info=True)
    (f.folder / "wide.mlir").write_text(module)
    save_file({"w": np.zeros((), np.float32)}, f.folder / "w.safetensors")
    log = t.run([f.fp8_run, f.folder / "wide.mlir", "--init", f.folder / "w.safetensors", "--batch", f"x={f.folder}/x.npy",
                 "--role", "key=key", "--seed", 9, "--steps", 4, "--out", f.folder / "wide"]) and t.read_log(f.folder / "wide")  # fmt: skip
    got = [tuple(int(row["metrics"][f"result[2]['{i}']"]) for i in range(4)) for row in log]
    assert got == folded(jax.random.key(9, impl="rbg"), 4), got


def micro_batches(f):
    """With two leading dimensions a step takes the product of both as its number of rows."""

    def accumulate(w, x):
        def loss_of(w, x):
            return jnp.mean((x @ w) ** 2)

        gradients = [jax.grad(loss_of)(w, x[i]) for i in range(2)]
        return w - 0.01 * (gradients[0] + gradients[1]), loss_of(w, x[0]), {f"row{i}": x[i // 3, i % 3, 0] for i in range(6)}

    (f.folder / "micro.mlir").write_text(jax.jit(accumulate).lower(jnp.ones(WIDTH), jnp.zeros((2, 3, WIDTH))).as_text(debug_info=True))
    t.save_tree(f.folder / "micro.safetensors", w=np.ones(WIDTH, np.float32))
    t.run([f.fp8_run, f.folder / "micro.mlir", "--init", f.folder / "micro.safetensors", "--batch", f"x={f.folder}/x.npy", "--steps", 5,
           "--out", f.folder / "micro"])  # fmt: skip
    log = t.read_log(f.folder / "micro")
    got = np.stack([t.metric(log, f"row{i}") for i in range(6)], axis=1).ravel()
    np.testing.assert_array_equal(got, np.arange(30) % ROWS)


def evaluates(f):
    evaluation = ["--eval", f.folder / "eval.mlir", *f.sources("--eval-batch", ("mask", "x")), "--eval-every", 5]
    log, stdout = f.train("evaluated", "--seed", 3, *evaluation)
    assert [row["step"] for row in log if "heldout_loss" in row] == [5, 10, 13]
    # Evaluation does not change training.
    plain, _ = f.train("plain", "--seed", 3)
    assert t.losses(plain) == t.losses(log)
    params = load_file(f.folder / "evaluated" / f"checkpoint-{STEPS}.safetensors")["params['w']"]
    batches = [slice(0, 4), slice(4, 8)]  # the last two rows fill no batch
    expected = {"loss": np.mean([np.mean((f.x[b] @ params - 1.0) ** 2) for b in batches]), "first": 2.0,
                "count": np.mean([np.sum(f.arrays["mask"][b]) for b in batches]),
                "key": np.mean([k[1] for k in folded(jax.random.key(3), 2)])}  # fmt: skip
    got = {"loss": log[-1]["heldout_loss"], **{name[8:-2]: value for name, value in log[-1]["heldout_metrics"].items()}}
    assert got.keys() == expected.keys(), got
    for name in expected:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, err_msg=name)
    assert "on 8 rows of arrays (10 given)  count 2.5  first 2  key " in stdout, stdout
    assert "heldout result['count']" in (f.folder / "evaluated" / "log.csv").read_text().splitlines()[0]
    f.fails(r"batch\['x'\] f32\[4,3\]", r"--eval-batch", args=evaluation[:4] + evaluation[-2:])
    f.fails(r"evaluation has no data", args=["--eval", f.folder / "eval.mlir"])
    f.fails(r"expected --eval EVAL.mlir with --eval-batch", args=f.sources("--eval-batch"))


def files_of_odd_names(f):
    """File names hold what separates the parts of an option."""
    log, _ = f.train("even", steps=2)
    folder = f.folder / "b2=0.9:a='1"
    folder.mkdir()
    (folder / "x=1.npy").write_bytes((f.folder / "x.npy").read_bytes())
    (folder / "a.safetensors").write_bytes((f.folder / "a.safetensors").read_bytes())
    files = {"x": "x=1.npy", **{name: f"a.safetensors:{name}" for name in ("rows", "mask", "weight")}}
    batches = [part for name, file in files.items() for part in ("--batch", f"batch['{name}']={folder}/{file}")]
    odd, _ = f.train("odd", steps=2, batches=batches)
    assert t.losses(odd) == t.losses(log) and fed(odd).tolist() == fed(log).tolist()
    f.fails(r"cannot open '[^']*b2=0.8/x.npy'", batches=[*f.sources(names=("rows", "mask", "weight")), "--batch", f"batch['x']={f.folder}/b2=0.8/x.npy"])


def mistakes(f):
    def other(name, file):
        return [*f.sources(names=[n for n in ("rows", "mask", "weight", "x") if n != name]), "--batch", f"batch['{name}']={f.folder / file}"]

    def saved(name, array):
        np.save(f.folder / name, array)
        return name

    short = saved("short.npy", f.x[:9])
    f.fails(r"batch\['rows'\].*10 rows, 4 a step, and .*batch\['x'\].*9 rows, 4 a step", batches=other("x", short))
    steps = saved("steps.npy", np.zeros((10, BATCH, WIDTH), np.float32))
    f.fails(r"10 rows, 1 a step", batches=other("x", steps))
    f.fails(r"expected f32\[rows,4,3\] \(one row a step\) or f32\[rows,3\] \(4 rows a step\) but got f32\[10,4\]",
            batches=other("x", saved("shape.npy", np.zeros((10, 4), np.float32))))  # fmt: skip
    f.fails(r"but got f64\[10,3\]: narrower", batches=other("x", saved("type.npy", f.x.astype(np.float64))))
    f.fails(r"the loss is nan.* in its batch, batch\['x'\]\[0, 0\] is nan;", batches=other("x", saved("nan.npy", np.full_like(f.x, np.nan))))
    f.fails(r"element 4 is 7, expected 0 to 1", batches=other("mask", saved("mask.npy", np.array([0, 1, 1, 0, 7, 0, 0, 0, 0, 0], np.int32))))
    header = (f.folder / "x.npy").read_bytes()[:128]
    for shape, error in (b"(-9, 3)", "expected sizes >= 0 in its shape but got -9"), (b"(4294967296, 4294967296)", r"its shape f32\[4294967296,4294967296\] is too large"):
        (f.folder / "absurd.npy").write_bytes(header.replace(b"(10, 3)", shape)[:127] + b"\n")
        f.fails(error, batches=other("x", "absurd.npy"))
    f.fails(r"no tensor 'y'; it has 'mask' u8\[10\]|no tensor 'y'; it has .*'mask' u8\[10\]", batches=other("mask", "a.safetensors:y"))
    f.fails(r"has 3 tensors and none is named 'batch\['x'\]'.*'weight' bf16\[10\]", batches=other("x", "a.safetensors"))
    f.fails(r"no-such.npy", r"No such file", batches=other("x", "no-such.npy"))
    f.fails(r"no argument has the path 'batch\['z'\]'|no batch argument 'batch\['z'\]'", batches=[*f.sources(), "--batch", f"batch['z']={f.folder}/x.npy"])
    f.fails(r"two sources", batches=[*f.sources(), *f.sources(names=["x"])])
    f.fails(r"no data for batch argument 'batch\['weight'\]' bf16\[4\]", batches=f.sources(names=("rows", "mask", "x")),
            args=["--role", "batch['weight']=batch"])  # fmt: skip
    f.fails(r"expected --no-checkpoints or --checkpoint-every but got both", args=["--no-checkpoints", "--checkpoint-every", "2"])
    f.fails(r"expected --no-checkpoints or --sharded-checkpoints but got both", args=["--no-checkpoints", "--sharded-checkpoints"])
    f.fails(r"--batch PATH=FILE with --shuffle", args=["--shuffle"], batches=[], rate=False)


def mistakes_come_before_compilation(f):
    """Arrays that do not fit are reported once the signature is known, those of the evaluation, too."""
    np.save(f.folder / "wide.npy", np.zeros((ROWS, WIDTH + 1), np.float32))
    np.save(f.folder / "few.npy", f.x[: BATCH - 1])
    wide, few = (f"batch['x']={f.folder}/{name}.npy" for name in ("wide", "few"))
    held_out = [*f.sources("--eval-batch", ("mask",)), "--eval-batch"]
    for args, pattern in (
        ([*f.sources(names=("rows", "mask", "weight")), "--batch", wide], r"expected f32\[rows,4,3\] .* but got f32\[10,4\]"),
        ([*f.sources(names=("rows", "mask", "x")), "--role", "batch['weight']=batch"], "no data for batch argument 'batch\\['weight'\\]'"),
        ([*f.sources(), *held_out, wide], r"expected f32\[rows,4,3\] .* but got f32\[10,4\]"),
        ([*f.sources(), "--eval-batch", few], "the evaluation's arrays have 3 rows but one evaluation takes 4"),
    ):
        shutil.rmtree(f.folder / "bad", ignore_errors=True)
        result = t.run(f.command("bad", "--no-cache", "--eval", f.folder / "eval.mlir", batches=args), check=False)
        assert result.returncode == 1 and re.search(pattern, result.stderr) and result.stderr.count("error:") == 1, result.stderr
        assert "compiled step" not in result.stdout and not (f.folder / "bad").exists(), result.stdout


def beyond_the_type(f):
    """A number of u64 that i64 does not hold is an error, not another number."""

    def labelled(params, x, ids):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        return jax.tree.map(lambda p, g: p - g, params, grads), {"loss": loss, "id": (ids[0] >> 40).astype(jnp.int32)}

    with jax.enable_x64(True):
        lowered = jax.jit(labelled).lower(f.params, f.x[:BATCH], np.zeros(BATCH, np.int64))
    (f.folder / "labelled.mlir").write_text(lowered.as_text(debug_info=True))
    command = [f.fp8_run, f.folder / "labelled.mlir", "--init", f.folder / "init.safetensors", "--batch", f"x={f.folder}/x.npy",
               "--batch", f"ids={f.folder}/ids.npy", "--recipe", "none", "--steps", "1", "--overwrite", "--out", f.folder / "labelled"]  # fmt: skip
    ids = np.arange(ROWS, dtype=np.uint64) + np.uint64(2**63 - ROWS)
    np.save(f.folder / "ids.npy", ids)
    t.run(command)
    assert t.metric(t.read_log(f.folder / "labelled"), "id") == [2**23 - 1]
    np.save(f.folder / "ids.npy", ids + np.uint64(2))
    result = t.run(command, check=False)
    assert "element 8 is above 9223372036854775807, expected -9223372036854775808 to 9223372036854775807" in result.stderr, result.stderr


def main():
    f = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]))
    for check in (rows_and_epochs, resumes, keys_advance, micro_batches, evaluates, files_of_odd_names, mistakes, mistakes_come_before_compilation, beyond_the_type):
        check(f)
        print("PASS", check.__name__)


main()
