"""From a JAX function, or a module's text, to a step that runs in FP8."""

import logging
import os
import pathlib
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import _native, package, state, trees
from .group import Group
from .recipe import Recipe
from .step import Step

_log = logging.getLogger("fp8")


class CompileError(ValueError):
    """The step cannot be compiled. Its text is what the compiler said but for warnings, or `message` if it said nothing.

    diagnostics: all that it said, a line each.
    """

    def __init__(self, message: str, diagnostics: list[str]):
        super().__init__("\n".join(line for line in diagnostics if not line.startswith("warning: ")) or message)
        self.diagnostics = diagnostics


class CompileWarning(UserWarning):
    """What the compiler warns of."""


def version() -> str:
    """The compiler's version and LLVM's."""
    return _native.version()


def compile(
    step: Callable | str | os.PathLike,
    *args: Any,
    recipe: str | os.PathLike | Recipe = "fp8",
    set: Mapping[str, str] | None = None,
    roles: Mapping[str, str] | None = None,
    states: Mapping[str, str] | None = None,
    loss: str | None = None,
    entry: str | None = None,
    target: str = "native",
    group: Group | None = None,
    data_parallel: bool = False,
    zero: int = 0,
    global_amax: bool = False,
    loss_reduction: str | None = None,
    fail_on_fallback: bool = False,
    trace: bool = False,
    evaluate: Callable | str | os.PathLike | tuple | None = None,
    threads: int = 0,
    compile_threads: int = 0,
    cache: bool = True,
) -> Step:
    """Compiles a training step; returns a `Step`, which is called like it.

    step: a JAX function, plain or jitted, or a module: StableHLO text as
        `jax.jit(f).lower(...).as_text(debug_info=True)` gives it, or the path of
        a file with it.
    args: of a function, example arguments: arrays, or shapes and types
        (`jax.ShapeDtypeStruct`), in the function's trees. If the first result has the trees and types
        of the first argument, it replaces that; what else replaces what is found
        by data flow. None of a module: its step takes and returns trees with its paths.
    recipe: a name (docs/Recipes.md), the path of a YAML file, or an `fp8.recipe.Recipe`; "none": the step as it is.
    set: keys of the recipe that are other, as {"dgrad.gradient.format": "f8E4M3FN"}.
    roles: what arguments are, {path: "state", "frozen", "batch", "key" or "constant"}, where data flow decides otherwise.
    states: {path of an argument: path of the result that replaces it}, likewise.
    loss: the path of the loss, if it is not found.
    entry: of a module with several public functions, which one.
    target: "native", or a CPU as in `fp8-run --target-cpu`.
    group: the ranks that run the step together, each with rows of its own (docs/Ranks.md): all compile the same step, rank 0 first, and call it
        equally often, with the same state and batches of their own. Metrics come back reduced. The step is data parallel then, or says in
        `jax.shard_map` itself what N devices do: args are those of all devices, and a call takes whole state and a rank's rows, 1/N of the batch.
    data_parallel: the step is for several ranks, whoever runs it: `Step.save` writes a package that `mpirun fp8-train PACKAGE --data-parallel` and
        `fp8.load(PACKAGE, group=...)` train. Without a group it is one rank alone, with the bits of a step without it. Then zero, 1: masters and
        moments are dealt to the ranks; global_amax: current scales follow from the amaxes of all ranks; loss_reduction: "mean" or "sum", what the
        loss is over the rows, where that cannot be proved.
    fail_on_fallback: a dot that the recipe covers and that cannot become FP8 is an error.
    trace: statistics of what is quantized are computed as well (`Step.trace`).
    evaluate: what `fp8.evaluate` computes, compiled with the same recipe: a JAX function that takes the step's arguments (or a tuple of a function
        and example arguments of its own, state first) and returns a loss, or scalars of which one is called "loss"; or a module, as for `step`.
        Its state is found by path.
    threads: of a step; 0: as many as the process may use cores. compile_threads: of the compiler.
    cache: False: compile anew, and keep nothing (FP8_CACHE_DIR says where it would be).

    Raises CompileError, with the lines of the user's program, and warns with CompileWarning (of a group, rank 0 alone). RankError: another
        rank compiles something else.
    """
    made = None
    if callable(step):
        made = trees.JaxTrees(step, args)
        text = made.text
        states = {**made.states, **(states or {})}
    elif args:
        raise TypeError(f"expected no example arguments for a module but got {len(args)}")
    else:
        text = _text_of(step)
    pairs = lambda given: [f"{key}={value}" for key, value in (given or {}).items()]
    options = dict(recipe=recipe, set=pairs(set), roles=pairs(roles), states=pairs(states), loss=loss, entry=entry, target=None if target == "native" else target,
                   data_parallel=data_parallel or group is not None, zero=zero, global_amax=global_amax, loss_reduction=loss_reduction,
                   fail_on_fallback=fail_on_fallback, trace=trace, threads=compile_threads, cache=cache)  # fmt: skip
    if evaluate is not None:
        options["eval"] = _evaluation_of(evaluate, args)
    is_first = group is None or group.rank == 0
    recompile = lambda **more: _run(text, {**options, **more}, is_quiet=not is_first)
    program = recompile() if is_first else None
    if group is not None:
        group.gather()  # the others find what rank 0 has compiled in the cache
    program = program or recompile()
    functions = state.Functions(program.load(), group)
    if made is None:
        made = package.trees_of(functions)
    return Step(functions, made, threads, program, recompile)


def _text_of(step):
    """A module's text, or that of the file that a path names."""
    if isinstance(step, str) and "\n" in step:
        return step
    return pathlib.Path(step).read_text()


def _evaluation_of(evaluate, args):
    """The module of an evaluation."""
    if isinstance(evaluate, tuple):
        evaluate, *args = evaluate
    if not callable(evaluate):
        return _text_of(evaluate)
    if not args:
        raise TypeError("expected example arguments with the evaluation of a module: evaluate=(function, state, batch)")
    return trees.JaxTrees(evaluate, args).text


def _run(text, options, is_quiet):
    with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
        texts = {"step": text, **({"eval": options["eval"]} if options.get("eval") else {})}
        paths = {name: pathlib.Path(folder) / f"{name}.mlir" for name in texts}
        for name, path in paths.items():
            path.write_text(texts[name])
        recipe = options["recipe"]
        if isinstance(recipe, Recipe):
            recipe = pathlib.Path(folder) / "recipe.yaml"
            recipe.write_text(str(options["recipe"]))
        files = {name: str(path) for name, path in paths.items()}
        program, lines, error = _native.compile(files["step"], **{**options, "recipe": str(recipe), "eval": files.get("eval")})
        for name, what in (("step", "the step"), ("eval", "the evaluation")):
            if name in files:
                lines, error = [_place(line, files[name], texts[name], what) for line in lines], _place(error, files[name], texts[name], what)
        *lines, error = (line.replace(f"{folder}/", "") for line in [*lines, error])
    if program is None:
        raise CompileError(error, lines)
    for line in lines:
        if is_quiet:
            continue
        if line.startswith("warning: "):
            warnings.warn(line.removeprefix("warning: "), CompileWarning, stacklevel=4)
        else:
            _log.info("%s", line)
    return program


def _place(line, path, text, what):
    """A diagnostic whose place in the module's text, which has no file of its own, is the line of the user's program there."""

    def user_line(match):
        rows = text.splitlines()
        row = rows[int(match[1]) - 1] if int(match[1]) <= len(rows) else ""
        names = re.findall(r"loc\((#loc\d*)\)", row)
        definitions = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
        # From the op's location through those that it names to the first with a file.
        queue, seen = names[-1:], set()
        while queue:
            name = queue.pop(0)
            place = definitions.get(name, "")
            if found := re.match(r'"([^"]+)":(\d+):(\d+)', place):
                return ":".join(found.groups()) + ": "
            seen.add(name)
            queue += [other for other in re.findall(r"#loc\d*", place) if other not in seen]
        return ""

    return re.sub(re.escape(path) + r":(\d+):\d+: ", user_line, line).replace(path, what)
