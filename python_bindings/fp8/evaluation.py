"""Evaluates a state on held-out data, and exports its weights for other programs."""

import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from . import _native, arrays, trees
from .step import Step


def evaluate(
    step: Step,
    *state: Any,
    batches: Iterable | None = None,
    data: Sequence[str | os.PathLike] = (),
    eval_data: Sequence[str | os.PathLike] = (),
    holdout: float = 0.1,
    seed: int = 0,
) -> dict[str, Any]:
    """Computes the loss, and every other scalar, of a state on held-out data, as `fp8-run --eval` does.

    step: compiled with `evaluate=`, or loaded from the package of such a step or of `fp8-run --eval`.
    state: the leading arguments of a call, including all that hold state, as the last call returned them or as arrays. It is not changed. All
        ranks of a group call this, with the same data, and each evaluates a share of it.
    batches: an iterable of the evaluation's arguments other than state: each item is a tuple of its last arguments, or the only one, all with the
        shapes for which it was compiled. They are stacked in memory.
    data, eval_data, holdout: text instead of batches, as for `fp8-run --data`, `--eval-data` and `--holdout`, for an evaluation with an
        integer argument.
    seed: the seed of random keys that the evaluation takes; every evaluation takes the same keys.

    Returns {"heldout_loss": mean over the batches, "heldout_metrics": {path: mean}, "batches": count}. Raises ValueError if the step
    has no evaluation, or none for these data, and TypeError if trees, shapes or types of a batch do not match.

    >>> fp8.evaluate(step8, state, batches=held_out)["heldout_loss"]               # doctest: +SKIP
    """
    held_out = _held_out(evaluation_of(step), batches, data, eval_data, holdout, seed, step._threads)
    with step._held(state) as memory:
        memory.gather()
        return _read(step._functions.package.evaluate(memory.native, held_out))


def export_weights(
    step: Step,
    directory: str | os.PathLike,
    *state: Any,
    format: str = "f32",
    number: int | None = None,
    batches: Iterable | None = None,
    data: Sequence[str | os.PathLike] = (),
    eval_data: Sequence[str | os.PathLike] = (),
    holdout: float = 0.1,
    seed: int = 0,
) -> None:
    """Writes the parameters of a state to `directory/model.safetensors`, and `directory/export.json` about them, as `fp8-run --export-weights` does.

    step: the result of fp8.compile (the first call compiles the functions that export), or a package that was emitted with
        `--export-weights` and this format.
    state: the leading arguments of a call, including all that hold state, as the last call returned them or as arrays. It is not changed. All
        ranks of a group call this; rank 0 writes.
    format: "f32", "bf16", or "f8E4M3FN" with scales (docs/Runtime.md, Export).
    number: the step of the weights in export.json; by default, the number of steps that the state has taken.
    batches, data, ...: if there are data as for `fp8.evaluate`, export.json has the held-out losses of the state and of the exported weights.

    Raises ValueError if the package cannot export in this format and OSError if the files cannot be written.
    """
    _check_step(step)
    directory = arrays.path_text(directory)
    if not isinstance(format, str):
        raise TypeError(f"expected format to be a text but got {format!r}")
    number = None if number is None else arrays.count("number", number, most=2**63 - 1)
    with step._held(state) as memory:
        memory.gather()
        if step._is_first():
            package = step._exporting(format)
            evaluation = package.function("check")
            has_data = batches is not None or data or eval_data
            if has_data and evaluation is None:
                raise ValueError("expected a step with an evaluation for the held-out data: fp8.compile(step, ..., evaluate=function)")
            held_out = _held_out(evaluation, batches, data, eval_data, holdout, seed, step._threads) if has_data else _native.HeldOut()
            package.export_weights(memory.native, directory, memory.number if number is None else number, held_out)
        if step._group is not None:
            step._group.gather()


def _check_step(step):
    if not isinstance(step, Step):
        raise TypeError(f"expected a step that fp8.compile or fp8.load has returned but got {type(step).__name__}")


def evaluation_of(step):
    """Returns the function that evaluates the step's state; raises ValueError if there is none."""
    _check_step(step)
    function = step._functions.package.function("eval")
    if function is None:
        raise ValueError("expected a step with an evaluation: fp8.compile(step, ..., evaluate=function) compiles one too")
    return function


def _read(line):
    values = json.loads(line)
    # JSON has no NaN.
    known = lambda value: math.nan if value is None else value
    metrics = {path: known(value) for path, value in values.get("heldout_metrics", {}).items()}
    return {"heldout_loss": known(values["heldout_loss"]), "heldout_metrics": metrics, "batches": values["batches"]}


def _held_out(function, batches, data, eval_data, holdout, seed, threads):
    held_out = _native.HeldOut()
    held_out.data, held_out.eval_data = _files(data), _files(eval_data)
    held_out.holdout, held_out.seed, held_out.threads = float(holdout), arrays.count("seed", seed, most=2**64 - 1), threads
    _expect_data(batches, data, eval_data)
    if batches is not None:
        held_out.arrays = _stacked(function, batches)
    return held_out


def _files(given):
    """Returns the paths of one file or of several."""
    return [arrays.path_text(path) for path in ([given] if isinstance(given, (str, os.PathLike)) else given)]


def _expect_data(batches=None, data=(), eval_data=(), **others):
    """Raises an error unless there are data for an evaluation."""
    if batches is None and not data and not eval_data:
        raise ValueError("expected held-out batches, or held-out text (data, eval_data), but got neither")
    if batches is not None:
        arrays.expect_batches(batches)


_KEYWORDS = ("batches", "data", "eval_data", "holdout", "seed")


def expect_held_out(step, given):
    """Raises an error unless these keyword arguments are for `evaluate` with this step, as often as it is called. Reads batches only if they
    are a sequence: others may take long, or give other batches each time."""
    function = evaluation_of(step)
    if unknown := [name for name in given if name not in _KEYWORDS]:
        raise TypeError(f"held_out: expected keyword arguments of fp8.evaluate ({', '.join(_KEYWORDS)}) but got {unknown[0]}")
    batches = given.get("batches")
    try:
        _expect_data(**given)
    except (TypeError, ValueError) as error:
        raise type(error)(f"held_out: {error}") from error
    if isinstance(batches, Iterator):
        raise TypeError("expected held-out batches that can be gone through again, a list for one, but got an iterator")
    if not isinstance(batches, Sequence):
        return
    try:
        for _ in _rows(function, batches):
            pass
    except (TypeError, ValueError) as error:
        raise type(error)(f"held_out: {error}") from error


def _stacked(function, batches):
    """Returns all batches as arrays by path; their first dimension is the batch."""
    infos = {info.name: info for info in function.arguments}
    columns, count = {}, 0
    for row in _rows(function, batches):
        for path, leaf in row.items():
            columns.setdefault(path, []).append(leaf)
        count += 1
    return [(path, infos[path].dtype, [count, *infos[path].shape], arrays.bytes_of(np.stack(column))) for path, column in columns.items()]


def _rows(function, batches):
    """Yields the arrays of each batch by path; raises an error if there are none, or if their trees, shapes or types do not match."""
    infos = {info.name: info for info in function.arguments if not info.zero_init}
    roots = trees.roots_of(infos)
    last = trees.below(roots[-1], infos, roots)
    count = 0
    for batch in batches:
        items = trees.arguments_of(batch, roots[-1], last)
        if len(items) > len(roots):
            raise TypeError(f"expected batches for the last of the evaluation's arguments {', '.join(roots)} but got {len(items)}")
        # State comes first.
        given = dict(trees.paths(roots[len(roots) - len(items) :], items))
        expected = [path for path in infos if trees.root_of(path, roots) in roots[len(roots) - len(items) :]]
        if list(given) != expected:
            raise TypeError(f"batch {count}: expected {', '.join(expected)} but got {', '.join(given)}")
        yield {path: arrays.given(leaf, infos[path].shape, arrays.numpy_dtype(infos[path].dtype), f"batch {count}: {path}") for path, leaf in given.items()}
        count += 1
    if not count:
        raise ValueError("expected held-out batches but got none")
