"""Compiles a JAX function, or a module's text, to a step that runs in FP8."""

import inspect
import logging
import math
import os
import pathlib
import re
import tempfile
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from . import _native, arrays, compilations, package, state, trees
from .group import Group, expect_group
from .recipe import Recipe, override, text_of
from .step import Step

_log = logging.getLogger("fp8")


class CompileError(ValueError):
    """The step cannot be compiled. The text is the compiler's diagnostics without warnings, or `message` if there are none.

    diagnostics: all diagnostics, one line each.
    """

    def __init__(self, message: str, diagnostics: list[str]):
        super().__init__("\n".join(line for line in diagnostics if not line.startswith("warning: ")) or message)
        self.message, self.diagnostics = message, diagnostics

    def __reduce__(self):
        return type(self), (self.message, self.diagnostics)


class CompileWarning(UserWarning):
    """A warning of the compiler."""


def version() -> str:
    """Returns the versions of the compiler and of LLVM."""
    return _native.version()


def compile(
    step: Callable | str | os.PathLike,
    /,
    *args: Any,
    recipe: str | os.PathLike | Recipe | Mapping[str, Any] = "fp8",
    set: Mapping[str, Any] | None = None,
    roles: Mapping[str, str] | None = None,
    states: Mapping[str, str] | None = None,
    loss: str | None = None,
    entry: str | None = None,
    target: str = "native",
    gpu_image: str | None = None,
    group: Group | None = None,
    data_parallel: bool = False,
    zero: int = 0,
    global_amax: bool = False,
    global_batch: int = 0,
    loss_reduction: str | None = None,
    fail_on_fallback: bool = False,
    trace: bool = False,
    evaluate: Callable | str | os.PathLike | tuple | None = None,
    threads: int = 0,
    compile_threads: int = 0,
    cache: bool = True,
    **named: Any,
) -> Step:
    """Compiles a training step; returns a `Step`, which is called like the original.

    step: a JAX function, plain or jitted, or a module: StableHLO text as printed by
        `jax.jit(f).lower(...).as_text(debug_info=True)`, or the path of
        a file with such text.
    args: for a function, example arguments: arrays, or shapes and types
        (`jax.ShapeDtypeStruct`), in the function's trees. If the first result has the trees and types
        of the first argument, it replaces that argument; other replacements are found
        by data flow. For a module, none: its step takes and returns trees with the module's paths.
    named: example arguments by name, as a call of the function gives them. (A name below is always that of an option.)
    recipe: a name (docs/Recipes.md), the path of a YAML file, an `fp8.recipe.Recipe`, or a dictionary with the keys of such a file; "none" leaves the step
        as it is.
    set: overrides of keys of the recipe, such as {"dgrad.gradient.format": "f8E4M3FN"}.
    roles: {path of an argument: "state", "frozen", "batch", "key" or "constant"}, where data flow would decide otherwise.
    states: {path of an argument: path of the result that replaces it}, likewise.
    loss: the path of the loss, if it is not found.
    entry: for a module with several public functions, the one to compile.
    target: "native" (or "cpu"), a CPU as for `fp8-run --target-cpu`, or "nvptx:GPU" as for `fp8-run --target`, such as "nvptx:sm_90a" (docs/GPU.md): the GPU then
        runs the step and has its state. Without that GPU such a step can still be saved.
    gpu_image: the form of a GPU's kernels, "cubin" or "ptx"; None: "cubin" if CUDA's assembler is found.
    group: the ranks that run the step together, each with its own rows of the batch (docs/Ranks.md): all compile the same step, rank 0 first, and
        call it equally often, with the same state and their own batches. Metrics are returned reduced. Such a step is data parallel, or itself
        says in `jax.shard_map` what N devices do: then args are those of all devices, and a call takes the whole state and a rank's rows, 1/N of the batch.
    data_parallel: compiles the step for several ranks, without a group: `Step.save` writes a package that `mpirun fp8-train PACKAGE --data-parallel`
        and `fp8.load(PACKAGE, group=...)` train. Without a group it runs as a single rank, and computes the same bits as a step without it.
        These options apply to such steps: zero, 1: masters and moments are dealt to the ranks; global_amax: current scales follow from the amaxes of
        all ranks; global_batch, N: args have the batch of N ranks together, and a call takes all rows of a batch, or those of the rank (0: each rank has
        a batch like that of args); loss_reduction: "mean" or "sum", how the loss reduces the rows, if that cannot be proved.
    fail_on_fallback: makes a dot that the recipe covers but that cannot become FP8 an error.
    trace: also computes statistics of quantized tensors (`Step.trace`).
    evaluate: the function for `fp8.evaluate`, compiled with the same recipe: a JAX function that takes the step's arguments (or a tuple of a function
        and its own example arguments, state first) and returns a loss, or scalars of which one is called "loss"; or a module, as for `step`.
        Its state is found by path.
    threads: threads of a step; 0: one for each core that the process may use. Kernels are divided into tasks for so many; no bit depends on it.
        compile_threads: threads of the compiler.
    cache: False: neither reads nor writes the cache (FP8_CACHE_DIR sets its directory).

    Raises CompileError, which names lines of the user's program, and warns with CompileWarning (in a group, only rank 0). Raises RankError if
        another rank compiles something else.
    """
    expect_group(group)
    set, roles, states = (_mapping(name, given) for name, given in (("set", set), ("roles", roles), ("states", states)))
    for name, given in (("loss", loss), ("entry", entry), ("target", target), ("gpu_image", gpu_image), ("loss_reduction", loss_reduction)):
        if not isinstance(given, str) and (given is not None or name == "target"):
            raise TypeError(f"expected {name} to be a text but got {given!r}")
    numbers = {"threads": threads, "compile_threads": compile_threads, "zero": zero, "global_batch": global_batch}
    threads, compile_threads, zero, global_batch = (arrays.count(*each, most=2**31 - 1) for each in numbers.items())
    made = None
    if isinstance(step, Step):
        raise TypeError("expected a function but got a compiled step: compile the function that it was compiled from")
    if callable(step):
        made = trees.JaxTrees(step, args, named, _OPTIONS)
        text = made.text
        states = {**made.states, **states}
    elif (args or named) and isinstance(step, str | os.PathLike):
        raise TypeError(f"expected no example arguments for a module but got {len(args) or ', '.join(named)}")
    else:
        text = _text_of(step, "step")
    pairs = lambda given: [f"{key}={value}" for key, value in given.items()]
    options = dict(recipe=text_of(recipe), set=[override(*each) for each in set.items()], roles=pairs(roles), states=pairs(states),
                   loss=loss, entry=entry, gpu_image=gpu_image, **_target_of(target), data_parallel=data_parallel or group is not None,
                   zero=zero, global_amax=global_amax, global_batch=global_batch, loss_reduction=loss_reduction,
                   fail_on_fallback=fail_on_fallback, trace=trace, threads=compile_threads, run_threads=threads, cache=cache)  # fmt: skip
    if evaluate is not None:
        options["eval"] = _evaluation_of(evaluate, args, named)
    is_first = group is None or group.rank == 0
    recompile = lambda **more: _run(text, {**options, **more}, is_quiet=not is_first)
    try:
        program = recompile() if is_first else None
    except CompileError as error:
        _expect_rows(made, error)
        raise
    if group is not None:
        group.gather()  # the other ranks find rank 0's result in the cache
    program = program or recompile()
    with compilations.running():
        loaded = program.load()
    functions = state.Functions(loaded, group)
    if evaluate is not None:
        _expect_loss(functions.package.function("eval"), is_quiet=not is_first)
    if made is None:
        made = package.trees_of(functions)
    return Step(functions, made, threads, program, recompile)


# What fp8.compile takes by name itself.
_OPTIONS = frozenset(each.name for each in inspect.signature(compile).parameters.values() if each.kind is each.KEYWORD_ONLY)


def _target_of(target):
    """Returns the options of the compiler for a target: a GPU's host is this CPU."""
    if target in ("native", "cpu"):
        return {}
    return {"target" if target.startswith("nvptx") else "target_cpu": target}


def _mapping(name, given):
    if not isinstance(given, Mapping | None):
        raise TypeError(f"expected {name} to be a dictionary but got {type(given).__name__}")
    return given or {}


def _expect_rows(made, error):
    """Raises ValueError if a function does not compile because its batch, the last argument or one that is given by name, is empty: no update
    follows from it."""
    for root in made.roots[-max(1, len(made.by_name)) :] if made else []:
        batch = [leaf for leaf in made.arguments if trees.root_of(leaf.path, made.roots) == root]
        if batch and all(0 in leaf.shape for leaf in batch):
            raise ValueError(f"expected a batch with rows but got {batch[0].path}: {arrays.describe(batch[0].shape, batch[0].dtype)}") from error


def _expect_loss(evaluation, is_quiet):
    """Raises CompileError unless the evaluation has a result that can be its loss; warns if it is one of several in a dictionary and only the order of
    their names decides."""
    results = [info for info in evaluation.results if info.kind != "state"]
    names = [info.name for info in results if math.prod(info.shape) == 1 and info.dtype.startswith(("F", "BF"))]
    is_called = any(re.search(r"\bloss\b\W*$", name) for name in names)
    if len(names) > 1 and not is_called and not is_quiet and not re.fullmatch(r"result(\[\d+\])*", names[0]):
        warnings.warn(f"expected a result of the evaluation that is called loss but got {', '.join(names)}: {names[0]} is taken for it", CompileWarning, stacklevel=3)
    if not names:
        found = ", ".join(f"{info.name}: {info.dtype}[{','.join(map(str, info.shape))}]" for info in results)
        raise CompileError(f"expected an evaluation that returns a loss, a floating-point scalar, but got {found or 'no results'}", [])


def _text_of(step, what):
    """Returns the text of a module, or of the file at a path."""
    if isinstance(step, str) and "\n" in step:
        return step
    if not isinstance(step, str | os.PathLike):
        raise TypeError(f"expected {what} to be a function, a module's text or its path but got {type(step).__name__}")
    return pathlib.Path(step).read_text("utf-8")


def _evaluation_of(evaluate, args, named):
    """Returns the module of an evaluation."""
    if isinstance(evaluate, tuple):
        (evaluate, *args), named = evaluate, {}
    if not callable(evaluate):
        return _text_of(evaluate, "evaluate")
    if not args and not named:
        raise TypeError("expected example arguments with the evaluation of a module: evaluate=(function, state, batch)")
    return trees.JaxTrees(evaluate, args, named, _OPTIONS).text


def _run(text, options, is_quiet):
    with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
        texts = {"step": text, **({"eval": options["eval"]} if options.get("eval") else {})}
        paths = {name: pathlib.Path(folder) / f"{name}.mlir" for name in texts}
        for name, path in paths.items():
            path.write_text(texts[name], "utf-8")
        recipe = options["recipe"]
        if "\n" in recipe:
            recipe = pathlib.Path(folder) / "recipe.yaml"
            recipe.write_text(options["recipe"], "utf-8")
        files = {name: str(path) for name, path in paths.items()}
        with compilations.running():
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
    """Replaces a position in the module's text, which has no file, by the line of the user's program in a diagnostic."""

    def user_line(match):
        rows = text.splitlines()
        definitions = dict(re.findall(r"^(#loc\d*) = loc\((.*)\)$", text, re.MULTILINE))
        position = _position(rows, int(match[1]) - 1, definitions) if int(match[1]) <= len(rows) else None
        return f"{position}: " if position else ""

    return re.sub(re.escape(path) + r":(\d+):\d+: ", user_line, line).replace(path, what)


def _position(rows, index, definitions, calls=8):
    """Returns the first file, line and column to which the location of a row of a module refers; None if it refers to no file.

    JAX gives some functions of its own (jnp.fft) no position: then that of their call counts, through so many calls.
    """
    queue, seen = re.findall(r"loc\((#loc\d*)\)", rows[index])[-1:], set()
    while queue:
        name = queue.pop(0)
        place = definitions.get(name, "")
        if found := re.match(r'"([^"]+)":(\d+):(\d+)', place):
            return ":".join(found.groups())
        seen.add(name)
        queue += [other for other in re.findall(r"#loc\d*", place) if other not in seen]
    heads = (re.match(r"\s*func\.func (?:\w+ )?@([\w.$-]+)", row) for row in reversed(rows[: index + 1]))
    function = next((head[1] for head in heads if head), None)
    callers = (i for i, row in enumerate(rows) if function and re.search(rf"\bcall @{re.escape(function)}\(", row))
    caller = next(callers, None)
    return _position(rows, caller, definitions, calls - 1) if caller is not None and calls else None
