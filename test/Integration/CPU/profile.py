"""--profile prints a table of the time of launches and writes a timeline in Chrome's
trace event format. Both must agree with profile.json and cost.json, and losses keep
their bits.

    profile.py fp8-run FOLDER [CASE...]
"""

import collections
import json
import re
import sys
from pathlib import Path

import fp8_testing as t

STEPS, THREADS = 4, 2


class Run:
    """A run with a profile: its files and its output."""

    def __init__(self, fp8_run, model, out, *args, threads=THREADS, recipe="tensorwise"):
        self.recipe = recipe
        common = ["--init", model / "init.mlir", "--data", t.write_text(model / "text.txt"), "--steps", STEPS, "--recipe", recipe, "--threads", threads]
        self.said = t.run([fp8_run, model / "step.mlir", *common, "--out", out, "--overwrite", "--profile", *args]).stdout
        self.log = t.read_log(out)
        self.profile, self.cost, self.timeline = (json.loads((out / f"{name}.json").read_text()) for name in ("profile", "cost", "timeline"))
        self.bare_log = t.train(fp8_run, model, out.with_name(out.name + "-bare"), *common)
        events = self.timeline["traceEvents"]
        self.names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.slices = [event for event in events if event["ph"] == "X" and event["cat"] == "launch"]
        self.steps = [event for event in events if event["ph"] == "X" and event["cat"] == "step"]
        self.others = [event for event in events if event["ph"] not in "XM"]

    def table(self):
        """Returns name -> the columns: calls, milliseconds, percent, rate, unit, and percent of the limit (or
        -)."""
        lines = self.said[self.said.index("profile   limits of") :].splitlines()[1:]
        assert lines[0].split() == "kernel calls ms a step time rate of limit".split(), f"expected the table's head but got {lines[0]}"
        row = re.compile(r" {10}(\S.*?) +(\d+) +([\d.]+) +([\d.]+) % +(?:([\d.]+) (GFLOP/s|GB/s) +(\d+) %|- +-)$")
        found = {}
        for line in lines[1:]:
            match = row.match(line)
            if not match:
                break
            found[match[1]] = [float(value) if value and value[0].isdigit() else value for value in match.groups()[1:]]
        return found


class Runs:
    def __init__(self, fp8_run, folder):
        folder.mkdir(parents=True)
        self.all = []
        for loop in ("unrolled", "scan"):
            model = folder / loop
            t.export_model(model, **t.TINY, loop=loop)
            self.all.append(Run(fp8_run, model, folder / f"out-{loop}"))
        self.one_thread = Run(fp8_run, folder / "scan", folder / "one", threads=1)
        self.wide = Run(fp8_run, folder / "scan", folder / "wide", recipe="none")


def test_losses_keep_their_bits(runs):
    for run in runs.all:
        assert t.losses(run.log) == t.losses(run.bare_log)


def test_a_track_for_each_thread(runs):
    for run in runs.all:
        assert run.names == {0: "thread 0, which launches", 1: "thread 1"}, f"got {run.names}"
        assert {event["tid"] for event in run.slices} <= set(run.names) and not run.others
        assert {event["pid"] for event in run.timeline["traceEvents"]} == {1}
    assert runs.one_thread.names == {0: "thread 0, which launches"}


def test_slices_of_a_track_follow_each_other(runs):
    for run in [*runs.all, runs.one_thread]:
        assert [event["name"] for event in run.steps] == [f"step {number}" for number in range(1, STEPS + 1)]
        for events in (run.steps, *([s for s in run.slices if s["tid"] == thread] for thread in run.names)):
            end = 0
            for event in events:
                assert event["ts"] >= end - 1e-3 and event["dur"] >= 0, f"{event} begins before {end}, where the one before ends"
                end = event["ts"] + event["dur"]
        # Each launch lies within a step, and the slices of other threads within the launch.
        for event in run.slices:
            inside = [step for step in run.steps if step["ts"] <= event["ts"] and event["ts"] + event["dur"] <= step["ts"] + step["dur"] + 2e-3]
            assert len(inside) == 1, f"{event} lies in {len(inside)} steps"
        launch = None
        for event in run.slices:
            if event["tid"] == 0:
                launch = event
            else:
                assert event["args"]["launch"] == launch["args"]["launch"]
                assert launch["ts"] <= event["ts"] and event["ts"] + event["dur"] <= launch["ts"] + launch["dur"] + 2e-3


def test_sums_are_those_of_the_profile(runs):
    for run in [*runs.all, runs.one_thread]:
        time, tasks, launches = collections.Counter(), collections.Counter(), collections.Counter()
        for event in run.slices:
            index = event["args"]["launch"]
            tasks[index] += event["args"]["tasks"]
            assert event["name"] == run.profile[index]["name"]
            assert 0 <= event["args"]["in_tasks_us"] <= event["dur"] + 2e-3
            if event["tid"] == 0:
                time[index] += event["dur"]
                launches[index] += 1
        assert set(time) == {launch["launch"] for launch in run.profile if launch["runs"]}
        for launch in run.profile:
            index, count = launch["launch"], launch["runs"]
            assert launches[index] == count
            if count:
                # The profile has a mean, rounded to a tenth of a microsecond.
                assert abs(time[index] / count - launch["microseconds"]) <= 0.051, f"launch {index}: {time[index] / count} and {launch}"
                assert tasks[index] == count * launch["tasks"], f"launch {index}: {tasks[index]} tasks and {launch}"


def test_the_table_says_what_the_files_say(runs):
    for run in [*runs.all, runs.one_thread, runs.wide]:
        limits, groups = run.cost["limits"], collections.defaultdict(lambda: collections.Counter())
        rate, fast = limits["f32_flops_per_second"], max(limits["f32_flops_per_second"], limits["bf16_flops_per_second"])
        for launch, cost in zip(run.profile, run.cost["launches"], strict=True):
            for group in (groups[re.sub(r"\[\d+\]", "[*]", launch["name"])], groups["in all"]):
                calls = launch["runs"]
                group["calls"] += calls / STEPS
                group["ms"] += 1e-3 * launch["microseconds"] * calls / STEPS
                group["flops"] += cost["flops"] * calls / STEPS
                group["bytes"] += cost["bytes"] * calls / STEPS
                narrow = cost["dot_flops"] - cost["dot_flops_f32"]
                group["arithmetic"] += 1e3 * calls / STEPS * (narrow / fast + (cost["flops"] - narrow) / rate)
                group["narrow"] += narrow * calls
                group["traffic"] += 1e3 * calls / STEPS * cost["bytes"] / limits["bytes_per_second"]
        # Every dot of recipe none has operands of f32.
        assert (groups["in all"]["narrow"] == 0) == (run.recipe == "none"), run.recipe
        table = run.table()
        assert "in all" in table and sum(name.endswith(" others") for name in table) <= 1, f"got the rows {list(table)}"
        times = [row[1] for name, row in table.items() if name in groups and name != "in all"]
        assert len(times) >= 10 and times == sorted(times, reverse=True), f"got the times {times}"
        for name, (calls, ms, percent, rate, unit, of_limit) in table.items():
            if name not in groups:
                assert name.endswith(" others") or name.endswith("..."), f"unknown row {name}"
                continue
            group = groups[name]
            assert abs(calls - group["calls"]) <= 0.5, f"{name}: {calls} calls and {group}"
            # The profile's times are rounded to a tenth of a microsecond, the table's to less.
            assert abs(ms - group["ms"]) <= 1e-3 * group["ms"] + 1e-3 + 5e-5 * group["calls"], f"{name}: {ms} ms and {group}"
            all_, share = groups["in all"], group["ms"] / groups["in all"]["ms"]
            rounded = 5e-5 * (group["calls"] + share * all_["calls"]) / all_["ms"]
            assert abs(percent - 100 * share) <= 0.06 + 100 * rounded, f"{name}: {percent} % and {group} of {all_}"
            least = max(group["arithmetic"], group["traffic"])
            if group["ms"] < 0.05 or not least:
                continue  # too coarsely rounded for a quotient
            assert unit == ("GFLOP/s" if group["arithmetic"] >= group["traffic"] else "GB/s"), f"{name}: {unit} and {group}"
            expected = group["flops" if unit == "GFLOP/s" else "bytes"] / group["ms"] / 1e6
            assert abs(rate - expected) <= 0.05 * expected + 0.06, f"{name}: {rate} {unit} but expected {expected}"
            assert abs(of_limit - 100 * least / group["ms"]) <= 0.6 + 0.02 * of_limit, f"{name}: {of_limit} % and {group}"


if __name__ == "__main__":
    cases = {name.removeprefix("test_"): case for name, case in dict(globals()).items() if name.startswith("test_")}
    fp8_run, folder, *names = sys.argv[1:]
    t.run_cases(cases, names, Runs(fp8_run, Path(folder).resolve()))
