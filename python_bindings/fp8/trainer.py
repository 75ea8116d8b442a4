"""The training loop around a compiled step: it feeds data, and writes logs and checkpoints, also after ctrl-C."""

import contextlib
import csv
import fcntl
import io
import itertools
import json
import math
import os
import pathlib
import re
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from . import _native, arrays
from .evaluation import evaluate, expect_held_out
from .group import RankError
from .report_page import header_of
from .state import copy
from .step import INDEX, Step
from .trees import arguments_of, below, named


class AlarmWarning(UserWarning):
    """The message of a rule of `alarms` about a step."""


class AlarmStop(RuntimeError):
    """A rule of `alarms` with the action stop has ended training; the checkpoint is written."""


def is_whole(path):
    """Returns whether a checkpoint has all of its bytes: its tensors fill the file, or, of a set, each file that the index names."""
    try:
        if path.name.endswith(INDEX):
            names = set(json.loads(path.read_bytes())["weight_map"].values())
            return all(is_whole(path.parent / name) for name in names)
        header, begin = header_of(path)
        ends = (tensor["data_offsets"][1] for name, tensor in header.items() if name != "__metadata__")
        return path.stat().st_size == begin + max(ends, default=0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def metadata_of(path):
    """Returns what a checkpoint says about itself besides its tensors."""
    return (json.loads(path.read_bytes()).get("metadata") if path.name.endswith(INDEX) else header_of(path)[0].get("__metadata__")) or {}


def _row(line):
    """Returns the object in a line of `log.jsonl` or `trace.jsonl`; None if it is no step, as a killed process may leave it."""
    try:
        row = json.loads(line)
        step, parts = row["step"], [row.get(key, {}) for key in ("metrics", "heldout_metrics")]
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return row if isinstance(step, int) and all(isinstance(part, dict) for part in parts) else None


def _rows_of_table(text):
    """Yields the rows of a `log.csv`, which it may have left incomplete, as lines of `log.jsonl` have them."""
    try:
        columns, *rows = csv.reader(io.StringIO(text[: text.rfind("\n") + 1], newline=""))
    except (ValueError, csv.Error):  # nothing, or no table at all
        return
    for cells in rows if columns[:2] == ["step", "loss"] else ():
        try:
            step, *values = int(cells[0]), *(float(cell) if cell else None for cell in cells[1:])
        except (ValueError, IndexError):
            continue
        named = {name: value for name, value in zip(columns[1:], values) if value is not None}
        if len(cells) == len(columns) and "loss" in named:
            yield _line_of_cells(step, named)


_undos = []  # of what runs have changed of the process


@contextlib.contextmanager
def _undone(undo):
    """Calls `undo` at the end, or first of all in a process that is forked before, such as one that loads data: that would keep the lock of the
    run, and would not end when a signal tells it to."""
    _undos.append(undo)
    try:
        yield
    finally:
        if undo in _undos:
            _undos.remove(undo)
            undo()


def _begin_in_child():
    while _undos:
        _undos.pop()()


os.register_at_fork(after_in_child=_begin_in_child)


def _texts(name, given):
    """Returns one or several texts as a list; raises TypeError for anything else."""
    texts = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"expected {name} to be texts but got {text!r}")
    return texts


class Trainer:
    """Trains with a step of the form `state, metrics = step(state, *batch)`.

    step: the result of fp8.compile or fp8.load.
    out: a directory, created if missing, for `log.csv`, `log.jsonl`,
        `verdicts.json`, `memory.json`, `recipe.yaml`, `preset.yaml` and `checkpoint-<step>.safetensors`,
        as fp8-run writes them.
    checkpoint_every: steps between checkpoints; 0: at the end only.
    keep_checkpoints: how many of the newest stay; 0: all.
    sharded_checkpoints: whether the ranks of a group write each checkpoint as a set of files with an index,
        `checkpoint-<step>.safetensors.index.json`, at the same time. They always do if each has another part of the state.
    trace_every: for a step compiled with `trace=True`: steps between lines of `trace.jsonl`; 0: none.
    held_out: for a step compiled with `evaluate=`: batches for `fp8.evaluate` (which can be iterated repeatedly, such as a list), or its
        keyword arguments as a dictionary. A sequence is checked at once. The state is evaluated at the end, and every `evaluate_every` steps (0: at the end only).
    alarms: rules as for `fp8-run --alarm`, "grad_norm > 3x median(50) : skip" (docs/Runtime.md). Each alarm is logged and issued as an
        AlarmWarning; "skip" discards the step's update; "stop" raises AlarmStop after the checkpoint.
        Rules about a metric of the trace need a step compiled with `trace=True`.
    stop_on_nonfinite: ends training with FloatingPointError if the loss, or the state of a checkpoint, is NaN or infinite, before the checkpoint
        is written. State that has such values at the beginning, such as the best loss so far, may have them later, too.
    progress: shows a tqdm bar if tqdm is installed. log: called with each line of the log as a dictionary.

    The ranks of a group (`fp8.compile(..., group=group)`) all make the same trainer and call `fit` with the same batches, which are dealt to them
    as in fp8-run: a step that begins at batch b takes batch b + r on rank r; with `global_batch`, each takes its rows of batch b. Only rank 0 logs,
    warns, and writes files other than the sets above.

    >>> trainer = Trainer(step8, "out/run", checkpoint_every=100)                # doctest: +SKIP
    >>> state = trainer.fit(state, batches, steps=1000, resume=True)             # doctest: +SKIP
    """

    def __init__(
        self,
        step: Step,
        out: str | os.PathLike,
        *,
        checkpoint_every: int = 0,
        keep_checkpoints: int = 0,
        sharded_checkpoints: bool = False,
        trace_every: int = 0,
        held_out: Iterable | dict[str, Any] | None = None,
        evaluate_every: int = 0,
        alarms: Sequence[str] = (),
        stop_on_nonfinite: bool = True,
        progress: bool = True,
        log: Callable[[dict[str, Any]], None] | None = None,
    ):
        if not isinstance(step, Step):
            raise TypeError(f"expected a step that fp8.compile or fp8.load made but got {type(step).__name__}")
        self.step, self.out = step, pathlib.Path(out)
        self._group, self._is_first = step._group, step._is_first()
        self._signals = 0  # in a group: the number of signals received
        self._ended_by = None  # without a group: the signal that ends the program
        self.checkpoint_every, self.keep_checkpoints = arrays.count("checkpoint_every", checkpoint_every), arrays.count("keep_checkpoints", keep_checkpoints)
        self.trace_every, self.evaluate_every = arrays.count("trace_every", trace_every), arrays.count("evaluate_every", evaluate_every)
        functions = step._functions
        self._is_sharded = self._group is not None and (sharded_checkpoints or functions.is_dealt or functions.is_in_parts)
        if trace_every and not self._has_trace():
            raise ValueError("expected a step with a trace for trace_every but got one without: fp8.compile(step, ..., trace=True)")
        self.held_out = held_out if held_out is None or isinstance(held_out, dict) else {"batches": held_out}
        if evaluate_every and held_out is None:
            raise ValueError("expected held_out, the batches of the evaluation, for evaluate_every")
        if held_out is not None:
            expect_held_out(step, self.held_out)
        self.alarms = _texts("alarms", alarms)
        self._rules()  # reports mistakes at once
        self.stop_on_nonfinite, self.progress, self.log = stop_on_nonfinite, progress, log
        self._count = None  # the steps taken, once `fit` has begun
        self._memory = None  # the buffers of the state, while `fit` runs
        self._columns = []  # the columns of log.csv
        self._may_be_infinite = set()  # the state that was not finite at the beginning
        roots = step._trees.roots
        self._last = below(roots[-1], [leaf.path for leaf in step._trees.arguments], roots)  # the leaves of a batch that is one argument
        rows = step.signature["results"]
        self.loss = next(row["path"] for row in rows if row["kind"] == "loss")
        if not self.loss.startswith("result[1]") or any(row["state"] and not row["path"].startswith("result[0]") for row in rows):
            raise TypeError(f"expected a step that returns state and metrics, two trees, but got the loss as {self.loss}")

    @property
    def taken(self) -> int:
        """The number of steps that the state has taken; before `fit`, that of the newest checkpoint in `out`, 0 if there is none."""
        if self._count is not None:
            return self._count
        newest = self._from_first(self._newest())
        return newest[0] if newest else 0

    def fit(self, state: Any, batches: Iterable, steps: int, resume: bool = False, overwrite: bool = False) -> Any:
        """Trains until the state has taken `steps` steps in total; returns the state.

        state: the first argument of the step, as arrays or as a call returned it.
        batches: an iterable. Each item is the rest of the step's arguments: a
            tuple, or the only one. It may end before `steps`. With N ranks a step takes N items, and each rank iterates over all of them.
        resume: continues from the newest checkpoint in `out` that is not damaged, if there is one; the iterable must start there
            (`trainer.taken` is the number of steps taken). Warns if a step with another recipe wrote it. Nothing happens if it is of step `steps` or later.
        overwrite: allows replacing an earlier run's files in `out`; otherwise they are an
            error (without `resume`).

        After ctrl-C, and after any exception of the iterable, the checkpoint of the last complete step is written, and the exception propagates.
        So it is after SIGTERM and SIGHUP, which raise SystemExit, unless the program handles or ignores them.
        The ranks of a group stop after the same step when one of them receives SIGINT or SIGTERM; an exception on a single rank ends all.
        """
        steps = arrays.count("steps", steps)
        arrays.expect_batches(batches)
        batches = iter(batches)
        if overwrite:  # An earlier run goes once there is a batch that fits.
            first = list(itertools.islice(batches, 1))
            for batch in first:
                self.step._expect_fit(self._arguments(state, batch))
            batches = itertools.chain(first, batches)
        with self._locked():
            return self._train(self._begin(state, resume, overwrite), batches, steps)

    @contextlib.contextmanager
    def _locked(self):
        """Keeps other runs from writing to `out`, as fp8-run does; the operating system ends the lock with the process."""
        if not self._is_first:
            yield
            return
        self.out.mkdir(parents=True, exist_ok=True)
        directory = os.open(self.out, os.O_RDONLY)
        with _undone(lambda: os.close(directory)):
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise BlockingIOError(f"another run writes to '{self.out}': wait for its end, or choose another directory") from None
            except OSError:
                pass  # a file system without locks
            yield

    def _train(self, state, batches, steps):
        bar = self._bar(steps)
        self._alarms, self._kept = self._rules(), None
        self._started, self._unwritten = time.perf_counter() - self._seconds_before, None
        with self._log("log.jsonl") as jsonl, self._log("log.csv") as table, self._catch_signals():
            try:
                if self._is_first:
                    self._begin_table(table)
                for batch in self._limited(batches, steps):
                    if self._alarms is not None and self._alarms.may_skip:
                        state = self.step._resident(state)
                        self._kept = copy(state)
                    state, metrics = self.step._take(self._arguments(state, batch), self._hold)
                    state = self._after(state, metrics, steps, jsonl, table, bar)
                    if self.checkpoint_every and self.taken % self.checkpoint_every == 0:
                        self._checkpoint(state)
                    self._stop_if_told(state)
            except (FloatingPointError, AlarmStop, RankError):
                raise
            except BaseException as error:
                try:
                    self._rescue(steps, jsonl, table)
                except FloatingPointError as why:
                    error.add_note(str(why))
                raise
            finally:
                self._memory = None
                if bar is not None:
                    bar.close()
        self._checkpoint(state)
        return state

    def _arguments(self, state, batch):
        """Returns the arguments of a step."""
        return state, *arguments_of(batch, self.step._trees.roots[-1], self._last)

    def _hold(self, memory):
        """Notes the buffers of the state before a step."""
        self._note_infinite(memory)
        if memory is not self._memory:
            self._memory, self._before = memory, self.taken - memory.taken

    def _after(self, state, metrics, steps, jsonl, table, bar=None):
        """Counts a step, carries out the alarms' actions, and logs it. Returns the state with which training continues."""
        self._count += 1
        line = self._unwritten = self._line(metrics)
        ran = self._memory
        skip, stop = self._heed(state, line)
        if skip:
            state, self._kept = self._kept, None
            self._hold(self.step._memory_of(self.step._leading((state,))))
        is_due = self.taken == steps or stop or (self.evaluate_every and self.taken % self.evaluate_every == 0)
        if self.held_out is not None and is_due and (skip or math.isfinite(line["loss"])):
            values = evaluate(self.step, state, **self.held_out)
            line["heldout_loss"] = values["heldout_loss"]
            if values["heldout_metrics"]:
                line["heldout_metrics"] = values["heldout_metrics"]
        self._write(line, jsonl, table)
        if self.trace_every and self.taken % self.trace_every == 0 and self._is_first:
            with open(self.out / "trace.jsonl", "a", encoding="utf-8") as file:
                file.write(ran.native.trace(self.taken))
        # Now that what they do is done: filters may turn warnings into exceptions.
        for text in line.get("alarms", []) if self._is_first else []:
            warnings.warn(("skipped: " if skip and text == line["alarms"][-1] else "") + text, AlarmWarning, stacklevel=4)
        if bar is not None:
            bar.set_postfix(loss=line["loss"], refresh=False)
            bar.update()
        if self.stop_on_nonfinite and not skip and not math.isfinite(line["loss"]):
            self._raise_not_finite(f"a finite loss but got {line['loss']}")
        if stop:
            self._raise(AlarmStop(f"stopped by an alarm: {line['alarms'][-1]}; resume from {self._checkpoint(state)}"))
        return state

    def _raise(self, error):
        """Raises an error that all ranks raise after the same step."""
        if self._group is not None:
            self._group._raise_together(error)
        raise error

    def _raise_not_finite(self, what):
        newest = self._from_first(self._newest())
        last = f"the last checkpoint is {self.out / newest[1]}" if newest else "no checkpoint had been written"
        self._raise(FloatingPointError(f"step {self.taken}: expected {what}; {last}"))

    def _not_finite(self, memory):
        """Yields state that this rank has and that is not finite: name, index and value of its first such element."""
        for info, value in memory.of_this_rank():
            at = arrays.first_not_finite(value, info.dtype)
            if at is not None:
                place = ", ".join(map(str, np.unravel_index(at, info.shape)))
                yield info.name, f"[{place}]" if place else "", float(arrays.typed(value, info).flat[at])

    def _note_infinite(self, memory):
        """Notes, before the first step, what is not finite in the state: a running minimum, for one. It may be so later, too."""
        if self._before is None and self.stop_on_nonfinite:
            found = [name for name, *_ in self._not_finite(memory)]
            self._may_be_infinite.update(*self._of_all(found))

    def _why_not_saved(self, memory):
        """Describes the first element, of state that has to be finite, that is not; "" if there is none."""
        bad = ((name, place, value) for name, place, value in self._not_finite(memory) if name not in self._may_be_infinite)
        return next((f"{name}{place} = {value}" for name, place, value in bad), "") if self.stop_on_nonfinite else ""

    @contextlib.contextmanager
    def _catch_signals(self):
        """Lets all ranks end after the same step: the first SIGINT or SIGTERM on a rank is recorded, a second one ends that rank at once.
        Without a group, SIGTERM, and SIGHUP of a closed terminal, raise SystemExit unless the program has said what they do."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def told(number, frame):
            self._signals += 1
            if self._signals > 1:
                raise KeyboardInterrupt

        def ended(number, frame):
            # A terminal that is closed may say so twice.
            signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.SIG_DFL)
            self._ended_by = number
            raise SystemExit(128 + number)

        self._signals, self._ended_by = 0, None
        if self._group is None:
            defaults = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
            before = {number: signal.signal(number, ended) for number in defaults}
        else:
            before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
        with _undone(lambda: [signal.signal(*each) for each in before.items()]):
            yield

    def _stop_if_told(self, state):
        # Python ignores what a handler raises within a finalizer or a callback of the garbage collector, of which JAX has one.
        if self._ended_by is not None:
            raise SystemExit(128 + self._ended_by)
        if self._group is not None and self._group._any(self._signals):
            self._checkpoint(state)
            self._raise(KeyboardInterrupt())

    def _rules(self):
        """Returns the alarms, which remember earlier steps; None without rules."""
        if not self.alarms:
            return None
        try:
            return _native.Alarms(self.step._functions.step, self.alarms)
        except ValueError as error:
            is_unknown = re.search("there is no metric|no tensor", str(error))
            if not is_unknown or self._has_trace():
                raise
            raise ValueError(f"{error}; a step compiled with trace=True has a trace") from None

    def _has_trace(self):
        return any(info.kind.startswith("trace") for info in self.step._functions.results)

    def _heed(self, state, line):
        """Notes the alarms of a step; returns whether to discard its update, and whether to stop."""
        if self._alarms is None:
            return False, False
        with self.step._held((state,)) as memory:
            lines, skip, stop = self._alarms.check(memory.native, self.taken)
        if self._group is not None:
            # Each rank's trace covers its own rows only, so rank 0 decides.
            skip, stop, lines = json.loads(self._group.gather(json.dumps([skip, stop, lines]).encode())[0])
        if skip:
            line["skipped"] = True
        if lines:
            line["alarms"] = lines
        return skip, stop

    def _rescue(self, steps, jsonl, table):
        """Writes a checkpoint of the last complete step, whose result ctrl-C may have prevented from being returned."""
        if self._memory is None or self._memory.native.broken:
            return
        if self._unwritten:  # The evaluation was interrupted.
            self._write(self._unwritten, jsonl, table)
        state, metrics = self.step._outputs(self._memory)
        is_ahead = self._before + self._memory.taken > self.taken
        if self._group is not None:
            self._rescue_alone(state, is_ahead)
            return
        if is_ahead:
            state = self._after(state, metrics, steps, jsonl, table)
        if self.taken:
            self._checkpoint(state)

    def _rescue_alone(self, state, is_ahead):
        """Does the same without the other ranks, which do not take part: possible if this rank has all of the state."""
        with self.step._held((state,)) as memory:
            if self._is_first and memory.is_whole and not is_ahead and self.taken and not self._written(self.taken) and not self._why_not_saved(memory):
                self.step._write(self._path(self.taken), memory, self._infinite())

    def checkpoint(self, state: Any) -> pathlib.Path:
        """Writes a checkpoint, in place of an earlier one of this step, and removes the oldest ones beyond `keep_checkpoints`. Returns its path
        (of a set of files, that of the index).

        Raises FloatingPointError, and removes nothing, if the state is not finite (`stop_on_nonfinite`).
        """
        return self._checkpoint(state, again=True)

    def _checkpoint(self, state, again=False):
        """Does so, unless the step has a checkpoint."""
        if self._group is not None:
            with self.step._held((state,)) as memory:
                memory.expect_same()
        if self._count is None:
            raise RuntimeError("expected fit to have begun, which counts the steps, before a checkpoint: step8.save_state writes a state alone")
        written = self._from_first(self._written(self.taken))
        path = self.out / written if written else self._path(self.taken, self._is_sharded)
        if again or not written:
            self._expect_finite(state)
            self.step._save(path, (state,), self._infinite())
        if self.keep_checkpoints and self._is_first:
            # Later ones are damaged: training was resumed from an earlier one.
            for old in [step for step in self._checkpoints() if step <= self.taken][: -self.keep_checkpoints]:
                self._remove(old)
        return path

    def _expect_finite(self, state):
        with self.step._held((state,)) as memory:
            self._note_infinite(memory)  # unless a step was taken
            bad = next(filter(None, self._of_all(self._why_not_saved(memory))), None)
        if bad:
            self._raise_not_finite(f"a finite state but got {bad}")

    def _infinite(self):
        """Returns what a checkpoint records of the state that may have any value, as fp8-run records it."""
        names = "".join(f"{name}\n" for name in sorted(self._may_be_infinite))
        return ["may_be_infinite", names] if names else []

    # ------------------------------------------------------------ files

    def _path(self, step, is_sharded=False):
        return self.out / f"checkpoint-{step}{INDEX if is_sharded else '.safetensors'}"

    def _matching(self, pattern):
        """Returns the files of `out` whose names match, each with its step."""
        found = ((re.fullmatch(pattern, path.name), path) for path in self.out.glob("checkpoint-*"))
        return sorted((int(match[1]), path) for match, path in found if match)

    def _complete(self):
        """Returns the steps of complete checkpoints, each with its file or, of a set, its index."""
        return self._matching(r"checkpoint-(\d+)\.safetensors(\.index\.json)?")

    def _checkpoints(self):
        return sorted({step for step, _ in self._complete()})

    def _written(self, step):
        """Returns the name of the checkpoint of a step; None if there is none."""
        return next((path.name for number, path in self._complete() if number == step and is_whole(path)), None)

    def _newest(self):
        """Returns the step and the name of the newest checkpoint that is not damaged; None if there is none."""
        for step, path in reversed(self._complete()):
            if is_whole(path):
                return step, path.name
            warnings.warn(f"passing over a damaged checkpoint: {path}")
        return None

    def _remove(self, step):
        """Removes a checkpoint. Without its index a set is no checkpoint, so the index goes first."""
        for path in self._path(step, True), self._path(step), *(path for number, path in self._parts() if number == step):
            path.unlink(missing_ok=True)

    def _parts(self):
        """Returns the files of sets, each with its step."""
        return self._matching(r"checkpoint-(\d+)-\d+-of-\d+\.safetensors")

    def _remove_incomplete(self):
        """Removes files of sets without an index, and temporary files, which killed ranks left behind."""
        for step, path in self._parts():
            if not self._path(step, True).exists():
                path.unlink()
        for path in self.out.glob("*.fp8-tmp"):
            if not path.is_dir():
                path.unlink()

    def _from_first(self, value):
        """Returns rank 0's value: only rank 0 looks at files."""
        return value if self._group is None else json.loads(self._group.gather(json.dumps(value).encode())[0])

    def _of_all(self, value):
        """Returns the values of all ranks."""
        return [value] if self._group is None else [json.loads(each) for each in self._group.gather(json.dumps(value).encode())]

    def _log(self, name):
        return open(self.out / name if self._is_first else os.devnull, "a", encoding="utf-8", newline="")

    def _compare_recipes(self, name):
        """Warns if a step with another recipe wrote the checkpoint."""
        found = metadata_of(self.out / name).get("recipe") if self._is_first else None
        if found is None or found == self.step.recipe:
            return
        was, now = (text.partition("\n")[0].removeprefix("name: ") for text in (found, self.step.recipe))
        other = f"'{was}', not '{now}'" if was != now else f"'{was}' with other keys"
        warnings.warn(f"{name} was written with the recipe {other}: training does not continue exactly", stacklevel=4)

    def _begin(self, state, resume, overwrite):
        self._count, self._before, self._may_be_infinite, self._seconds_before = 0, None, set(), 0
        newest = self._from_first(self._newest() if resume else None)
        if not newest and self._from_first(bool(resume and self._complete())):
            raise ValueError(f"{self.out}: expected a checkpoint to resume from but got damaged ones only: overwrite=True begins anew")
        if newest:
            self._count, name = newest
            self._compare_recipes(name)
            self._may_be_infinite.update(metadata_of(self.out / name).get("may_be_infinite", "").splitlines())
            state = self.step.load_state(self.out / name, state)
            with self.step._held((state,)) as memory:
                if bad := self._why_not_saved(memory):
                    warnings.warn(f"{name} is not finite: {bad}", stacklevel=4)
        else:
            state = self.step._resident(state)  # reports what does not fit, before an earlier run goes
        if self._is_first:
            self._begin_files(resume, overwrite)
        return state

    def _replace_file(self, name, text):
        """Writes a file whole or not at all."""
        temporary = self.out / f"{name}.fp8-tmp"
        temporary.write_text(text, "utf-8")
        os.replace(temporary, self.out / name)

    def _begin_files(self, resume, overwrite):
        self.out.mkdir(parents=True, exist_ok=True)
        checkpoints = [path for _, path in self._matching(r"checkpoint-(\d+)(-\d+-of-\d+)?\.safetensors(\.index\.json)?")]
        logs = [path for name in ("log.csv", "log.jsonl", "trace.jsonl") if (path := self.out / name).exists() and path.stat().st_size]
        earlier = [*logs, *checkpoints]
        if not resume and (self.out / "manifest.json").exists() and (self.out / "package.so").exists():
            raise FileExistsError(f"{self.out}: expected another directory for the run than that of a package")
        if resume:
            self._remove_incomplete()
            self._cut_logs()
        elif earlier and not overwrite:
            raise FileExistsError(f"{self.out}: expected no earlier run but got {earlier[0].name}: choose resume=True, overwrite=True or another directory")
        elif not overwrite and (own := self.out / "recipe.yaml").exists() and own.read_text("utf-8", errors="replace") != self.step.recipe:
            # Someone may have written it by hand.
            raise FileExistsError(f"expected no '{own}', which the run would replace by its own: move it, or choose overwrite=True or another directory")
        else:
            for path in sorted(earlier, key=lambda path: not path.name.endswith(INDEX)):
                path.unlink()
        for name, text in (
            ("verdicts.json", json.dumps(self.step.verdicts.report, indent=1)),
            ("memory.json", json.dumps(self.step.memory, indent=1)),
            ("recipe.yaml", self.step.recipe),
            ("preset.yaml", self.step._text("preset.yaml")),
        ):
            # Files of an earlier run must not stay.
            if text is None:
                (self.out / name).unlink(missing_ok=True)
            else:
                self._replace_file(name, text)

    def _cut_logs(self):
        """Removes the log lines that an interrupted run wrote after the checkpoint, and those that are no steps, as fp8-run does. Rows that
        `log.jsonl` lacks come from `log.csv`. The time goes on from that of the last one."""
        for name in ("log.jsonl", "trace.jsonl"):
            lines = self._text(name).splitlines()
            if name == "log.jsonl":
                lines += (json.dumps(_jsonable(row)) for row in _rows_of_table(self._text("log.csv")))
            kept = {}
            for line in lines:
                if (row := _row(line)) and row["step"] <= self.taken:
                    kept.setdefault(row["step"], line)
            if lines:
                self._replace_file(name, "".join(f"{kept[step]}\n" for step in sorted(kept)))
            seconds = _row(kept[max(kept)]).get("seconds") if kept and name == "log.jsonl" else None
            if isinstance(seconds, int | float):
                self._seconds_before = seconds

    def _text(self, name):
        """Returns the text of a file; that of none is empty."""
        path = self.out / name
        return path.read_text("utf-8", errors="replace") if path.exists() else ""

    def _limited(self, batches, steps):
        is_alone = self._group is None or self.step._functions.shares_batch
        rank, ranks = (0, 1) if is_alone else (self._group.rank, self._group.size)
        batches = iter(batches)
        while self.taken < steps:
            of_all = list(itertools.islice(batches, ranks))
            if len(of_all) < ranks:
                return
            yield of_all[rank]

    def _line(self, metrics):
        """Returns a line of the log: the loss, and every other scalar by path."""
        scalars = {path: float(value) for path, value in named("result[1]", metrics) if np.ndim(value) == 0 and not arrays.is_key(value)}
        return {"step": self.taken, "loss": scalars.pop(self.loss), "seconds": round(time.perf_counter() - self._started, 3), "metrics": scalars}

    def _write(self, line, jsonl, table):
        self._unwritten = None
        if not self._is_first:
            return
        jsonl.write(json.dumps(_jsonable(line)) + "\n")
        jsonl.flush()
        cells = _cells(line)
        if cells.keys() <= set(self._columns):
            csv.writer(table, lineterminator="\n").writerow([cells.get(name, "") for name in self._columns])
            table.flush()
        else:
            self._begin_table(table)
        if self.log:
            self.log(line)

    def _begin_table(self, table):
        """Writes log.csv anew, from `log.jsonl`: a run that is resumed may have other metrics than before."""
        rows = [_cells(json.loads(line)) for line in (self.out / "log.jsonl").read_text("utf-8").splitlines()]
        names = dict.fromkeys(name for row in rows for name in row) | ({"heldout_loss": None} if rows and self.held_out is not None else {})
        self._columns = sorted(names, key=_order)
        table.truncate(0)
        if rows:
            csv.writer(table, lineterminator="\n").writerows([self._columns, *([row.get(name, "") for name in self._columns] for row in rows)])
        table.flush()

    def _bar(self, steps):
        if not self.progress or not self._is_first:
            return None
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return tqdm(total=steps, initial=self.taken, unit="step")


# The first columns of log.csv.
_FIRST = ("step", "loss", "heldout_loss", "tokens_per_second", "seconds")


def _cells(line):
    """Returns the cells of a line of the log by column, as fp8-run names them."""
    metrics, heldout = (line.get(key) or {} for key in ("metrics", "heldout_metrics"))
    return {name: line[name] for name in _FIRST if name in line} | metrics | {f"heldout {name}": value for name, value in heldout.items()}


def _line_of_cells(step, cells):
    """Returns the line of a step with these cells, which are numbers."""
    line = {"step": step, **{name: cells.pop(name) for name in _FIRST if name in cells}, "metrics": {}}
    for name, value in cells.items():
        is_heldout = name.startswith("heldout ")
        line.setdefault("heldout_metrics" if is_heldout else "metrics", {})[name.removeprefix("heldout ")] = value
    return line


def _order(name):
    """Returns what columns are sorted by: those that every step has, metrics, then those of evaluations."""
    return _FIRST.index(name) if name in _FIRST else len(_FIRST) + name.startswith("heldout ")


def _jsonable(value):
    """Returns the value with text in place of numbers that JSON does not have."""
    if isinstance(value, dict):
        return {key: _jsonable(part) for key, part in value.items()}
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value
