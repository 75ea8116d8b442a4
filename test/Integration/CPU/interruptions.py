"""Whatever stops a run, only the steps since its last checkpoint are lost: a full
disk, an output directory that is read-only or vanishes, a checkpoint of another
version of the model, SIGKILL at any moment.

    python interruptions.py FP8_RUN FOLDER [CASE...]
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

import fp8_testing as t
import jax
import jax.numpy as jnp
import numpy as np

STEPS = 60
case = t.Cases()


class Fixture:
    """A step whose state has megabytes, so that writing it takes a while, and an uninterrupted run.
    """

    def __init__(self, fp8_run, folder):
        self.fp8_run, self.folder = fp8_run, folder
        folder.mkdir(parents=True)
        self.export("model", 64)
        np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(96, 64)).astype(np.float32))
        self.run("whole")

    def export(self, name, width, **more):
        def step(params, x):
            def loss_of(p):
                return jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - x) ** 2)

            loss, grads = jax.value_and_grad(loss_of)(params)
            return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss

        random = np.random.default_rng(1)
        shapes = {"w": (width, 2048), "v": (2048, width), **more}
        params = {key: (0.05 * random.normal(size=shape)).astype(np.float32) for key, shape in shapes.items()}
        model = self.folder / name
        model.mkdir()
        (model / "step.mlir").write_text(jax.jit(step).lower(params, jnp.zeros((8, width))).as_text(debug_info=True))
        t.save_tree(model / "init.safetensors", params=params)
        (model / "init.safetensors").chmod(0o644)  # read by the user without write permission
        return model

    def command(self, out, *args, steps=STEPS, model="model"):
        return [str(part) for part in (self.fp8_run, self.folder / model / "step.mlir", "--init", self.folder / model / "init.safetensors",
                "--batch", f"x={self.folder}/x.npy", "--shuffle", "--recipe", "none", "--checkpoint-every", 5, "--steps", steps, "--out", self.path(out), *args)]  # fmt: skip

    def path(self, out):
        return pathlib.Path(out) if os.path.isabs(out) else self.folder / out

    def run(self, out, *args, check=True, **kwargs):
        user = {"user": kwargs.pop("user")} if "user" in kwargs else {}
        return t.run(self.command(out, *args, **kwargs), check=check, **user)

    def check_resumes(self, out):
        """A resumed run ends with the state of the uninterrupted run, bit for bit."""
        self.run(out, "--resume")
        self.check_same(out)

    def check_same(self, out):
        name = f"checkpoint-{STEPS}.safetensors"
        assert (self.path(out) / name).read_bytes() == (self.path("whole") / name).read_bytes(), f"{out}: {name} differs"
        assert t.losses(t.read_log(self.path(out))) == t.losses(t.read_log(self.path("whole"))), f"{out}: losses differ"
        left = [p.name for p in self.path(out).iterdir() if p.name.endswith("tmp")]
        assert not left, f"expected no temporary files but got {left}"


def check_failure(result, *patterns):
    shown = f"\n--- exit code {result.returncode}, stderr:\n{result.stderr[-2000:]}"
    assert result.returncode == 1 and result.stderr.count("error:") == 1, "expected exit code 1 and one error" + shown
    for pattern in patterns:
        assert pattern in result.stderr, f"expected {pattern!r}" + shown


def rows_of(log):
    """Returns the number of lines of a log; a run that begins anew replaces it."""
    try:
        return log.read_text().count("\n")
    except FileNotFoundError:
        return 0


def steps_of(out):
    return sorted(int(path.stem.split("-")[1]) for path in out.glob("checkpoint-*.safetensors"))


@case
def file_size_limit(f):
    """A limit on the size of a file, as a disk quota has: no checkpoint fits, but the log does."""
    f.run("quota", steps=10)
    good = {step: (f.path("quota") / f"checkpoint-{step}.safetensors").read_bytes() for step in (5, 10)}
    limited = ["sh", "-c", 'ulimit -f 200 && exec "$@"', "sh"]
    result = t.run([*limited, *f.command("quota", "--resume")], check=False)
    check_failure(result, "cannot write", "checkpoint-15.safetensors", "File too large", f"the last checkpoint is {f.path('quota')}/checkpoint-10.safetensors")
    for step, data in good.items():
        assert (f.path("quota") / f"checkpoint-{step}.safetensors").read_bytes() == data, f"checkpoint {step} changed"
    f.check_resumes("quota")


@case
def trace_that_does_not_fit(f):
    """The step that is saved then has its row in the logs, though the trace is written before them."""
    f.export("small", 64, w=(64, 64), v=(64, 64))
    limited = ["sh", "-c", 'ulimit -f 128 && exec "$@"', "sh"]
    quantized = "forward={activation: {format: f8E4M3FN}, weight: {format: f8E4M3FN}}"
    result = t.run([*limited, *f.command("traced", "--trace", "--set", quantized, steps=1000, model="small")], check=False)
    check_failure(result, "cannot write", "trace.jsonl", "File too large", "is saved in")
    saved = steps_of(f.path("traced"))[-1]
    assert f"step {saved} is saved in" in result.stderr, result.stderr
    for name in ("log.jsonl", "log.csv"):
        lines = (f.path("traced") / name).read_text().splitlines()
        assert len(lines) == saved + (name == "log.csv"), f"expected rows of {saved} steps but got {len(lines)} lines in {name}"


@case
def full_disk(f):
    """A file system of 4 MB, on which three checkpoints fit."""
    script = 'mount -t tmpfs -o size=4m none "$0" && "$@"; code=$?; cp -r "$0" "$0-kept"; exit $code'
    mount = f.path("disk")
    mount.mkdir()
    result = t.run(["unshare", "-rm", "sh", "-c", script, mount, *f.command(mount / "out")], check=False)
    if "unshare:" in result.stderr or "mount:" in result.stderr:
        print("    no file system can be mounted here:", result.stderr.strip())
        return
    check_failure(result, "cannot write", "No space left on device", "the last checkpoint is")
    kept = f.path("disk-kept") / "out"
    saved = steps_of(kept)
    assert saved and saved == [5 * (i + 1) for i in range(len(saved))], saved
    assert f"/checkpoint-{saved[-1]}.safetensors" in result.stderr, result.stderr
    f.check_resumes(kept)


@case
def read_only_directory(f):
    """Runs as a user without write permission, because root may write everywhere."""
    out = f.path("locked")
    f.run("locked", steps=5)
    for path in (f.folder, *f.folder.parents):
        if not path.stat().st_mode & 0o005 and os.getuid() == 0:
            print("    other users cannot read", path)
            return
    out.chmod(0o555)
    user = {"user": 65534} if os.getuid() == 0 else {}
    try:
        result = f.run("locked", "--resume", check=False, **user)
        check_failure(result, f"cannot write to directory '{out}'", "Permission denied")
        result = f.run("locked/below", check=False, **user)
        check_failure(result, "cannot create directory", "Permission denied")
    finally:
        out.chmod(0o755)
    f.check_resumes("locked")


def start(f, out, *args, **kwargs):
    return subprocess.Popen(f.command(out, *args, **kwargs), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def wait_for(condition, process, what):
    deadline = time.time() + 120
    while not condition():
        assert time.time() < deadline and process.poll() is None, f"expected {what}: {process.communicate()}"
        time.sleep(0.001)


@case
def vanished_directory(f):
    """The run reports the missing directory and writes nowhere else."""
    out = f.path("vanishing")
    process = start(f, out, steps=100000)
    wait_for(lambda: len(steps_of(out)) > 1, process, "checkpoints")
    out.rename(f.path("moved"))
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 1 and stderr.count("error:") == 1, stderr
    assert f"cannot write '{out}/" in stderr and "No such file or directory" in stderr, stderr
    assert not out.exists(), "expected no new directory"
    # The checkpoints in the moved directory are intact.
    saved = steps_of(f.path("moved"))[-1]
    f.run("moved", "--resume", steps=saved + 5)
    assert steps_of(f.path("moved"))[-1] == saved + 5


@case
def checkpoint_of_another_version(f):
    """All differences are listed, and no file changes."""
    f.run("versions", steps=5)
    before = {path.name: path.read_bytes() for path in f.path("versions").iterdir()}

    def other(name, step, params):
        model = f.folder / name
        model.mkdir()
        (model / "step.mlir").write_text(jax.jit(step).lower(params, jnp.zeros((8, 64))).as_text(debug_info=True))
        t.save_tree(model / "init.safetensors", params=params)

    def step(params, x):
        def loss_of(p):
            return jnp.mean((jnp.tanh(x @ p["w"].astype(jnp.float32) + p["bias"]) @ p["u"] - x) ** 2)

        loss, grads = jax.value_and_grad(loss_of)(params)
        return jax.tree.map(lambda p, g: p - (0.1 * g).astype(p.dtype), params, grads), loss

    other("newer", step, {"w": np.zeros((64, 2048), jnp.bfloat16), "bias": np.zeros(1024 * 2, np.float32), "u": np.zeros((2048, 64), np.float32)})
    result = f.run("versions", "--resume", check=False, model="newer")
    check_failure(result, "is a checkpoint of another model", "2 missing", "params['bias'] f32[2048]", "params['u'] f32[2048,64]",
                  "params['w']: expected bf16[64,2048] but got f32[64,2048]", "1 not wanted", "params['v'] f32[2048,64]")  # fmt: skip
    f.export("wider", 96)
    np.save(f.folder / "kept.npy", np.load(f.folder / "x.npy"))
    np.save(f.folder / "x.npy", np.zeros((96, 96), np.float32))
    result = f.run("versions", "--resume", check=False, model="wider")
    shutil.move(f.folder / "kept.npy", f.folder / "x.npy")
    check_failure(result, "params['w']: expected f32[96,2048] but got f32[64,2048]", "params['v']: expected f32[2048,96] but got f32[2048,64]")
    assert {path.name: path.read_bytes() for path in f.path("versions").iterdir()} == before, "the earlier run's files changed"
    f.check_resumes("versions")


@case
def checkpoint_from_python(f):
    """A checkpoint of fp8.Trainer does not say where the data stand: the message says so, and nothing goes on from an earlier one."""
    f.run("python", steps=8)
    log = (f.path("python") / "log.jsonl").read_text()
    path = f.path("python") / "checkpoint-8.safetensors"
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps({**json.loads(content[8:end]), "__metadata__": {"format": "fp8.state", "step": "8"}}).encode()
    content = len(header).to_bytes(8, "little") + header + content[end:]
    path.write_bytes(content)
    result = f.run("python", "--resume", steps=12, check=False)
    assert result.returncode == 1 and re.search("error: .*checkpoint-8.safetensors' was written from Python .*fp8.Trainer", result.stderr), result.stderr
    assert path.read_bytes() == content and (f.path("python") / "log.jsonl").read_text() == log
    path.unlink()
    assert "resuming from" in f.run("python", "--resume", steps=8).stdout
    assert [row["step"] for row in t.read_log(f.path("python"))] == list(range(1, 9))


@case
def killed_at_any_moment(f):
    """Kills the run with SIGKILL at random moments until it reaches its end."""
    chance = random.Random(5)
    kills, best, unharmed = 0, 0, 0
    log = f.path("killed") / "log.csv"
    while True:
        resume = ["--resume"] if f.path("killed").exists() and steps_of(f.path("killed")) else ["--overwrite"]
        process = start(f, "killed", *resume)
        # Each run advances, by a different number of steps.
        target = best + chance.randint(1, 16)
        while process.poll() is None and kills < 8 and rows_of(log) <= target:
            time.sleep(0.0005)
        if process.poll() is None and kills < 8:
            time.sleep(chance.random() * 0.01)
            process.kill()
            kills += 1
        _, stderr = process.communicate(timeout=120)
        assert "error" not in stderr, stderr
        saved = steps_of(f.path("killed"))
        now = max(saved, default=0)
        assert now >= best, f"a checkpoint is gone: {saved}"
        best = now
        if process.returncode == 0 and kills == 0 and unharmed < 20:
            # On a busy machine a run may end before it can be killed.
            shutil.rmtree(f.path("killed"))
            best, unharmed = 0, unharmed + 1
        elif process.returncode == 0:
            break
        else:
            assert process.returncode == -signal.SIGKILL, f"{process.returncode}: {stderr}"
    assert kills >= 1, "expected a kill in the middle"
    f.check_same("killed")


@case
def killed_while_it_writes(f):
    """Kills the run with SIGKILL while the checkpoint's temporary file exists."""
    out = f.path("torn")
    torn = 0
    for attempt in range(20):
        shutil.rmtree(out, ignore_errors=True)
        process = start(f, out)
        # At the second checkpoint, so that the first must be complete.
        wait_for(lambda: (out / "checkpoint-10.safetensors.fp8-tmp").exists() or (out / "checkpoint-15.safetensors").exists(), process, "a checkpoint")
        process.kill()
        process.communicate()
        if (out / "checkpoint-10.safetensors.fp8-tmp").exists():
            torn += 1
            assert steps_of(out) == [5], steps_of(out)
            f.check_resumes(out)
            if torn == 2:
                return
    assert torn, "expected to meet a write in 20 attempts"


def main():
    f = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]))
    t.run_cases(case, sys.argv[3:], f)


main()
