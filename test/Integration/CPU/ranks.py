"""Steps for one device on several ranks: with half of the rows on each of two ranks a
step trains as it does with all of them in one process, including dropout and other
random numbers for rows.

    python ranks.py FP8_RUN FOLDER LAUNCHER [CASE...]

LAUNCHER is an mpirun. Cases that begin with "shared" or "a row of" run only if they are named:
ranks share the batch of one process. With `none` parameters are within 1e-6 of the largest entry of
each, and moments within 5e-6, because sums have another order over five steps. With
FP8, where each rank has scales of its own rows, losses are as near as those of f32.
"""

import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

import fp8_testing as t
import jax
import numpy as np
from rank_steps import BATCH, CASES, SHARED, step_of
from safetensors.numpy import save_file

t.compile_quickly()
STEPS = 5
RECIPES = ["tensorwise", "delayed", "fp8_lm"]


class Fixture:
    def __init__(self, fp8_run, folder, launcher):
        self.fp8_run, self.folder, self.launcher = fp8_run, folder, launcher

    def prepare(self, name, cases=CASES):
        """Writes the step for the rows of one rank and that for the rows of all ranks."""
        case, folder = cases[name](), self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        opt = {part: case.optimizer.init(case.params[part]) for part in case.turns} if case.turns else case.optimizer.init(case.params)
        opt = (opt, case.seen) if case.watch else opt
        for rows in (BATCH, 2 * BATCH):
            fed = case.rows(2 * BATCH // rows)
            batch = {key: value[: case.micro if case.stacked else rows] for key, value in fed.items()}
            save_file(fed, folder / f"rows{rows}.safetensors")
            (folder / f"step{rows}.mlir").write_text(jax.jit(step_of(case)).lower(case.params, opt, batch, *([] if case.key is None else [case.key])).as_text(debug_info=True))
        t.save_tree(folder / "init.safetensors", params=case.params, opt=opt)
        self.keys = list(case.batch)
        return folder

    def files(self, folder, ranks):
        """Returns the files of the step and of the rows of one of `ranks` ranks."""
        rows = BATCH * 2 // ranks
        return folder / f"step{rows}.mlir", folder / f"rows{rows}.safetensors"

    def command(self, folder, ranks, recipe, out, *options, steps=STEPS):
        shared = "--global-batch" in options
        step, rows = self.files(folder, 1 if shared else ranks)
        feeds = [part for key in self.keys for part in ("--batch", f"batch['{key}']={rows}:{key}")]
        return [self.fp8_run, step, "--init", folder / "init.safetensors", *feeds, "--recipe", recipe,
                "--steps", steps, "--threads", 1, "--out", out, *options, *t.quick_options]  # fmt: skip

    def start(self, folder, ranks, recipe, out, *options, steps=STEPS):
        command = self.command(folder, ranks, recipe, out, *options, steps=steps)
        command, environment = t.on_ranks(self.launcher, ranks, command)
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def run(self, folder, ranks, recipe, *options, steps=STEPS, name="", resume=False):
        """Returns the losses, and the state after the last step."""
        out = folder / (name or f"{recipe}{ranks}")
        process = self.start(folder, ranks, recipe, out, "--resume" if resume else "--overwrite", *options, steps=steps)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, f"expected exit code 0 but got {process.returncode}\n{output[-1000:]}{errors[-3000:]}"
        rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        return rows, t.load_tensors(out / f"checkpoint-{steps}.safetensors")


def exact(name, fixture):
    folder = fixture.prepare(name)
    (one, state), (two, other) = (fixture.run(folder, ranks, "none") for ranks in (1, 2))
    compare(name, one, state, two, other)


def shared(name, ranks, fixture):
    """The ranks share the batch of one process."""
    folder = fixture.prepare(name, SHARED)
    compare(name, *fixture.run(folder, 1, "none"), *fixture.run(folder, ranks, "none", "--global-batch", ranks, name=f"shared{ranks}"))


def shared_parts(fixture):
    """A run says which rows a rank has of a batch that the step cuts into micro-batches."""
    folder = fixture.prepare("normalized micro-batches", SHARED)
    process = fixture.start(folder, 2, "none", folder / "parts", "--overwrite", "--global-batch", 2, steps=1)
    output, errors = process.communicate(timeout=300)
    lines = [line for line in output.splitlines() if line.startswith("shared ")]
    names = " ".join(f"batch['{key}']" for key in fixture.keys)
    expected = f"shared    each rank has {BATCH // 2} of {BATCH} rows of each of 2 parts: {names}"
    assert lines == [expected], f"expected '{expected}' but got {lines} {errors[-1000:]}"


def shared_again(fixture):
    """A run goes on with another number of ranks that share its batch; a wrong number is an error."""
    folder = fixture.prepare("sequences")
    one = fixture.run(folder, 1, "none")
    fixture.run(folder, 1, "none", steps=2, name="again")
    fixture.run(folder, 2, "none", "--global-batch", 2, steps=4, name="again", resume=True)
    compare("sequences", *one, *fixture.run(folder, 4, "none", "--global-batch", 4, name="again", resume=True))
    process = fixture.start(folder, 2, "none", folder / "other", "--overwrite", "--global-batch", 4)
    _, errors = process.communicate(timeout=300)
    expected = "expected 4 ranks, which the step was written for, but got 2"
    assert process.returncode and expected in errors, f"expected '{expected}' but got {errors[-1000:]}"


def compare(name, one, state, two, other):
    for a, b in zip(one, two, strict=True):
        assert any("norm" in key for key in a["metrics"]), f"expected the norm but got {a['metrics']}"
        for key, a_value, b_value in [("loss", a["loss"], b["loss"]), *((key, value, b["metrics"][key]) for key, value in a["metrics"].items())]:
            assert abs(a_value - b_value) <= 1e-6 * abs(a_value), f"step {a['step']}: expected {key} {a_value} but got {b_value}"
    compared = 0
    for path, want in state.items():
        if not path.startswith(("params", "opt")):
            continue
        # (Differences between rows magnify the order of sums.)
        tight = (path.startswith("params") and not name.startswith(("normalized", "contrastive"))) or name == "plain"
        bound = (1e-6 if tight else 5e-6) * np.max(np.abs(want.astype(np.float64)), initial=1e-30)
        off = np.max(np.abs(other[path].astype(np.float64) - want), initial=0)
        assert off <= bound, f"expected '{path}' to be within {bound} of one process's but got {off}"
        compared += 1
    assert compared >= 5, f"expected state but got {list(state)}"


def in_fp8(name, recipe, fixture):
    folder = fixture.prepare(name)
    (one, _), (two, _) = (fixture.run(folder, ranks, recipe) for ranks in (1, 2))
    (exact_rows, _) = fixture.run(folder, 1, "none")
    apart = max(abs(a["loss"] - b["loss"]) for a, b in zip(one, two, strict=True))
    gap = max(abs(a["loss"] - b["loss"]) for a, b in zip(one, exact_rows, strict=True))
    print(f"  {name} with {recipe}: losses {apart:.1e} apart, {gap:.1e} from f32")
    assert 0 < apart <= 3 * gap + 1e-3 * one[0]["loss"], f"expected losses near those of one process but got {apart} apart"


def of_all_rows(name, recipe, fixture):
    """With current scales of all ranks' rows only the order of sums differs."""
    folder = fixture.prepare(name)
    (one, _), (own, _) = (fixture.run(folder, ranks, recipe) for ranks in (1, 2))
    (all_rows, _) = fixture.run(folder, 2, recipe, "--global-amax", name=f"{recipe}-global")
    apart, off = (max(abs(a["loss"] - b["loss"]) for a, b in zip(one, rows, strict=True)) for rows in (all_rows, own))
    print(f"  {name} with {recipe}: losses {apart:.1e} apart, {off:.1e} with scales of a rank's own rows")
    assert apart <= off / 10, f"expected losses of one process but got {apart} apart"
    verdicts = json.loads((folder / f"{recipe}-global" / "verdicts.json").read_text())
    amaxes = [row for row in verdicts["collectives"] if row["what"].startswith("amax ")]
    gradients = [row for row in verdicts["collectives"] if row["what"].startswith("gradient ")]
    assert amaxes and all(row["operation"] == "max" and row["wire"] == "f32" for row in amaxes), f"expected amaxes but got {verdicts['collectives']}"
    assert gradients and all(row["bytes"] == 8 * np.prod(row["shape"]) for row in gradients), f"expected gradients in f32 but got {gradients}"
    assert json.loads((folder / f"{recipe}-global" / "memory.json").read_text())["step"]["reductions"] > 0


def dealt(name, recipe, fixture):
    """ZeRO-1 gives the same bits; each rank writes a file, and any number of ranks resumes from the
    files."""
    folder = fixture.prepare(name)
    (plain, want) = fixture.run(folder, 2, recipe)
    zero = f"{recipe}-zero"
    fixture.run(folder, 2, recipe, "--zero", 1, steps=3, name=zero)
    (rows, found) = fixture.run(folder, 2, recipe, "--zero", 1, name=zero, resume=True)
    assert [row["loss"] for row in rows] == [row["loss"] for row in plain], f"expected losses {plain} but got {rows}"
    different = [path for path in want if want[path].tobytes() != found[path].tobytes()]
    assert want.keys() == found.keys() and not different, f"expected the same state but got others for {different}"
    files = sorted(path.name for path in (folder / zero).glob(f"checkpoint-{STEPS}*"))
    parts = [f"checkpoint-{STEPS}-0000{i}-of-00002.safetensors" for i in (1, 2)]
    assert files == [*parts, f"checkpoint-{STEPS}.safetensors.index.json"], f"expected a file of each rank and an index but got {files}"
    sizes = [(folder / zero / part).stat().st_size for part in parts]
    assert max(sizes) <= 0.75 * sum(sizes), f"expected both ranks to write but got files of {sizes} bytes"
    memory = json.loads((folder / zero / "memory.json").read_text())
    shares, step = memory["shards_by_rank"], memory["step"]
    assert len(shares) == 2 and min(shares) > 0 and step["shards"] == shares[0], f"expected shards on both ranks but got {memory['shards_by_rank']}"
    # A run without ZeRO goes on with it.
    fixture.run(folder, 2, recipe, steps=3, name="early")
    (rows, found) = fixture.run(folder, 2, recipe, "--zero", 1, name="early", resume=True)
    assert [row["loss"] for row in rows] == [row["loss"] for row in plain], f"expected losses {plain} but got {rows}"
    assert all(want[path].tobytes() == found[path].tobytes() for path in want), "expected the same state"
    # One process reads the checkpoint, and so do two without ZeRO.
    for ranks in (1, 2):
        (more, _) = fixture.run(folder, ranks, recipe, *(["--data-parallel"] if ranks == 1 else []), steps=STEPS + 1, name=zero, resume=True)
        assert np.isfinite(more[-1]["loss"]) and len(more) == STEPS + 1
        (folder / zero / f"checkpoint-{STEPS + 1}.safetensors").unlink()


def other_wires(fixture):
    """A run in one process goes on with gradients in FP8 between ranks, and the other way round."""
    folder, f8 = fixture.prepare("regression"), ("--set", "all_reduce.format=f8E4M3FN")
    (rows, want) = fixture.run(folder, 1, "none")
    shutil.rmtree(folder / "wires", ignore_errors=True)
    for ranks, steps, options, note in [
        (1, 1, (), ""),
        (2, 3, f8, "note: the checkpoint lacks 3 scales of gradients between ranks: they begin anew"),
        (2, 4, (), "note: the checkpoint has 3 scales of gradients between ranks that this run does not use"),
        (1, STEPS, (), ""),
    ]:
        process = fixture.start(folder, ranks, "none", folder / "wires", *(["--resume"] if steps > 1 else []), *options, steps=steps)
        said, errors = process.communicate(timeout=300)
        assert process.returncode == 0, f"expected exit code 0 but got {process.returncode}\n{said[-1000:]}{errors[-3000:]}"
        notes = [line for line in (said + errors).splitlines() if line.startswith("note: the checkpoint")]
        assert notes == ([note] if note else []), f"expected '{note}' but got {notes}"
        found = t.load_tensors(folder / "wires" / f"checkpoint-{steps}.safetensors")
        scales = {path: value.tolist() for path, value in found.items() if path.endswith(".all_reduce.mu")}
        assert (len(scales) == 3 and all(age == 2 for _, age in scales.values())) if options else not scales, f"expected scales of two steps but got {scales}"
    losses = [json.loads(line)["loss"] for line in (folder / "wires" / "log.jsonl").read_text().splitlines()]
    assert np.allclose(losses, [row["loss"] for row in rows], rtol=1e-2), f"expected losses {rows} but got {losses}"


def other_options(fixture):
    """Ranks that were not compiled with the same options end before the first step."""
    folder = fixture.prepare("regression")
    for option, line in (["--zero", 1], "--zero 1"), (["--global-amax"], "--zero 0 --global-amax"):
        # The second of the ranks has one option more.
        command = fixture.command(folder, 2, "tensorwise", folder / "options", "--overwrite")
        script = folder / "one-more"
        script.write_text(f'case $OMPI_COMM_WORLD_RANK$PMI_RANK in 1) set -- "$@" {" ".join(map(str, option))};; esac\nexec "$@"\n')
        launched, environment = t.on_ranks(fixture.launcher, 2, ["bash", script, *command])
        result = subprocess.run(launched, capture_output=True, text=True, env=environment, timeout=300)
        expected = f"error: rank 1 of 2 has another --zero or --global-amax than rank 0 ('{line}' instead of '--zero 0')"
        assert result.returncode != 0 and expected in result.stderr, f"expected {expected!r} but got\n{result.stderr[-3000:]}"


def killed(fixture):
    """If a rank dies while it writes its file of a checkpoint, the previous checkpoint is complete,
    and the run resumes from it with the same results."""
    folder = fixture.prepare("regression")
    (rows, want) = fixture.run(folder, 2, "none", "--zero", 1, name="none-zero")
    out = folder / "killed"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    # A pipe without a reader blocks the second rank while it writes.
    first, second = (out / f"checkpoint-4-0000{i}-of-00002.safetensors" for i in (1, 2))
    pipe = pathlib.Path(f"{second}.fp8-tmp")
    os.mkfifo(pipe)
    process = fixture.start(folder, 2, "none", out, "--zero", 1, "--checkpoint-every", 2)
    processes = next(line for line in process.stdout if "; processes " in line).split("; processes ")[1].split()
    deadline = time.monotonic() + 250
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(int(processes[1].strip(",")), signal.SIGKILL)
    process.communicate(timeout=250)
    indices = sorted(path.name for path in out.glob("*.index.json"))
    assert process.returncode != 0 and indices == ["checkpoint-2.safetensors.index.json"], f"expected the set of step 2 alone but got {indices}"
    t.load_tensors(out / "checkpoint-2.safetensors")
    (again, state) = fixture.run(folder, 2, "none", "--zero", 1, name="killed", resume=True)
    assert [row["loss"] for row in again] == [row["loss"] for row in rows], f"expected losses {rows} but got {again}"
    assert want.keys() == state.keys() and all(want[path].tobytes() == state[path].tobytes() for path in want), "expected the same state"
    assert not first.exists() and not pipe.exists(), "expected what is half written to be removed"


def profiled(fixture):
    """collectives.json, the table and the timeline agree on what is sent, and the trace has mu."""
    folder = fixture.prepare("sequences")
    out = folder / "profiled"
    process = fixture.start(folder, 2, "fp8_lm", out, "--zero", 1, "--profile", "--trace", "--overwrite")
    said, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    found = json.loads((out / "collectives.json").read_text())
    rows, step = found["collectives"], found["step"]
    verdicts = json.loads((out / "verdicts.json").read_text())["collectives"]
    labels = {row["label"] for row in rows}
    missing = [row["what"] for row in verdicts if not any(row["what"] in label for label in labels)]
    assert len(rows) > 10 and not missing, f"expected {missing} among {labels}"
    # Each has a verdict: what its owner sends, and gradients, which travel one way.
    unknown = labels - {row["what"] for row in verdicts}
    assert not unknown, f"expected verdicts on {unknown}"
    sent = {row["what"]: row["bytes"] for row in verdicts if row["operation"] == "owner" and row["wire"] == "f16" and row["bytes"] == 2 * np.prod(row["shape"])}
    assert sent.keys() == {f"owner of params['layers']['{name}']" for name in ("down", "qkv", "up")}, f"expected masters but got {sent}"
    gradients = [row for row in verdicts if row["reason"].endswith("to the owner of its shard alone")]
    # Codes, and a scale for each layer of a stack.
    for row in (row for row in gradients if row["wire"] == "f8E4M3FN"):
        scales = row["bytes"] - np.prod(row["shape"])
        assert scales in (4, 4 * row["shape"][0]), f"expected one way but got {row}"
    assert gradients, "expected gradients on an f8 wire"
    for key in ("bytes", "microseconds", "waited_microseconds"):
        total = sum(row[key] * row["runs"] for row in rows) / STEPS
        assert abs(total - step[key]) <= 1e-6 * total, f"expected {key} {total} a step but got {step[key]}"
    assert all(0 <= row["hidden"] <= 1 and row["runs"] % STEPS == 0 for row in rows) and 0 <= found["hidden"] <= 1

    # The trace shows the automatic scales that the state has.
    lines = [json.loads(line)["tensors"] for line in (out / "trace.jsonl").read_text().splitlines()]
    state = {path: value for path, value in t.load_tensors(out / f"checkpoint-{STEPS}.safetensors").items() if path.endswith(".all_reduce.mu")}
    assert len(lines) == STEPS and len(state) > 3, f"expected mu of gradients but got {list(state)}"
    for path, value in state.items():
        traced = lines[-1]["gradient " + path.removeprefix("fp8.").removesuffix(".all_reduce.mu")]
        scales = np.stack([np.float32(traced["mu"]), np.float32(traced["mu_age"])], axis=-1)
        assert np.array_equal(scales, value) and np.all((0 <= np.array(traced["saturation"])) & (np.array(traced["saturation"]) < 0.01)), f"expected {value} for {path} but got {traced}"

    # The table has a row for each collective, with layers summed, and the same sums.
    table = said[said.index("between ranks") :].splitlines()[1:]
    table = {match[1]: [float(value) for value in match.groups()[1:]] for match in map(re.compile(r" {10}(\S.*?) +(\d+) +([\d.]+) +(\d+) % +([\d.]+)$").match, table) if match}
    calls, milliseconds, hidden, kilobytes = table["in all"]
    assert calls == sum(row["runs"] for row in rows) / STEPS and abs(hidden - 100 * found["hidden"]) <= 0.5
    assert abs(milliseconds - 1e-3 * step["microseconds"]) <= 1e-3 and abs(kilobytes - 1e-3 * step["bytes"]) <= 0.1

    # Messages on the network follow each other, within steps; waits are on the track of the launching thread.
    events = json.loads((out / "timeline.json").read_text())["traceEvents"]
    assert {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"} == {0: "thread 0, which launches", 1: "network"}
    messages, waits, steps, launches = ([event for event in events if event["ph"] == "X" and event["cat"] == kind] for kind in ("network", "wait", "step", "launch"))
    assert {event["tid"] for event in messages} == {1} and {event["tid"] for event in waits} == {0} and len(steps) == STEPS
    for track in (messages, sorted(waits + launches, key=lambda event: event["ts"])):
        for before, event in zip(track, track[1:]):
            assert event["ts"] >= before["ts"] + before["dur"] - 2e-3, f"{event} begins before {before} ends"
    for event in messages + waits:
        assert any(one["ts"] <= event["ts"] and event["ts"] + event["dur"] <= one["ts"] + one["dur"] + 2e-3 for one in steps), f"{event} lies in no step"
    assert sum(event["args"]["bytes"] for event in messages) == round(STEPS * step["bytes"])
    assert sum(event["args"]["collectives"] for event in messages) == sum(row["runs"] for row in rows)
    for key, events_of in (("microseconds", messages), ("waited_microseconds", waits)):
        total = sum(event["dur"] for event in events_of) / STEPS
        assert abs(total - step[key]) <= 1e-3 * len(events_of) + 1e-6 * total, f"expected {key} {total} a step but got {step[key]}"


def alarmed(fixture):
    """A trace has the rows of one rank, so rank 0 alone decides alarms about it: all ranks skip the same steps."""
    folder = fixture.prepare("regression")
    fixture.run(folder, 2, "tensorwise", "--trace", name="traced", steps=1)
    tensors = json.loads((folder / "traced" / "trace.jsonl").read_text().splitlines()[0])["tensors"]
    name, amax = next((name, values["amax"]) for name, values in tensors.items() if name.endswith(".activation"))
    # Whichever amax rank 1 has, one of these rules is true on rank 0 alone.
    for rule in (f"> {amax * (1 - 1e-5)}", f"< {amax * (1 + 1e-5)}"):
        rows, _ = fixture.run(folder, 2, "tensorwise", "--trace", "--alarm", f"amax@{name} {rule} : skip", name="skipped")
        assert rows[0].get("skipped"), f"expected a first step that is skipped but got {rows[0]}"


if __name__ == "__main__":
    fixture = Fixture(sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3])
    cases = {name: functools.partial(exact, name) for name in CASES}
    cases |= {f"{recipe}": functools.partial(in_fp8, "sequences", recipe) for recipe in RECIPES}
    cases |= {"global amax": functools.partial(of_all_rows, "sequences", "tensorwise")}
    cases |= {f"zero {name} {recipe}": functools.partial(dealt, name, recipe) for name, recipe in [("regression", "none"), ("sequences", "fp8_lm")]}
    cases |= {"other wires": other_wires}
    cases |= {"other options": other_options}
    cases |= {"killed while it writes": killed, "profiled": profiled, "alarmed": alarmed}
    # (shared-batch.test has these.)
    shares = {f"shared {name}": functools.partial(shared, name, 2) for name in SHARED}
    shares |= {f"a row of {name}": functools.partial(shared, name, 2 * BATCH) for name in ("regression", "sequences", "dropout", "normalized")}
    shares |= {"shared again": shared_again, "shared parts": shared_parts}
    t.run_cases(cases | shares, sys.argv[4:] or list(cases), fixture)
