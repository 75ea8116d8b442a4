"""The compiled step as a function of trees."""

import contextlib
import functools
import json
import os
import pathlib
import tempfile
import threading
import weakref
from typing import Any

import numpy as np

from . import arrays, compilations, state
from .trees import in_places
from .verdicts import Verdicts

INDEX = ".safetensors.index.json"
_STAGES = ("import", "fp8", "structured", "kernels", "codegen", "llvm")


class Step:
    """A compiled training step, called like the original function.

    `fp8.compile` and `fp8.load` make it. State given as plain arrays is stored
    anew (and the recipe's own state, such as amax histories, starts
    fresh); state that a call returned stays in place, without a copy, and is
    replaced. Metrics are NumPy arrays, or typed keys of JAX. A call holds Python's lock only while it
    copies its inputs.
    """

    def __init__(self, functions, trees, threads=0, program=None, recompile=None):
        self._functions, self._trees, self._threads = functions, trees, threads
        self._group = functions.group if functions.group is not None and functions.group.size > 1 else None
        self._program, self._recompile = program, recompile
        signature = self.signature
        replaced = {row["path"]: row["state"] for row in signature["results"] if row["state"]}
        held = {path for path in replaced.values()}
        paths = [leaf.path for leaf in trees.arguments]
        # Paths are the contract with the compiler: state may be stored in another form, inputs are arguments of the step.
        known = {row["path"] for row in signature["arguments"]}
        for path in paths:
            if path not in (known if path in held else functions.place):
                raise RuntimeError(f"expected the compiled step to take {path} but it does not; this is a bug of fp8")
        self._state = [(i, path) for i, path in enumerate(paths) if path in held]
        self._inputs = [(i, path) for i, path in enumerate(paths) if path not in held]
        self._results = [(leaf, replaced.get(leaf.path)) for leaf in trees.results]
        self._keys = [(i, leaf) for i, leaf in enumerate(trees.arguments) if leaf.key]
        self._newest = lambda: None
        self._exports = {}  # packages by format

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Takes one step and returns what the function returns, with new state and NumPy metrics.

        Arguments have the names of the function's parameters. Those whose examples were given by name, and have no other place, are given by name.

        Raises TypeError if the trees, shapes or types differ from the
        example arguments', RuntimeError if a later step has replaced the given
        state, BufferError if views of it are still alive, and RankError if
        another rank of the group has failed or does not answer.
        """
        return self._take(in_places(self._trees, args, named) if named or self._trees.by_name else args, lambda memory: None)

    def _expect_fit(self, args):
        """Raises TypeError unless the step takes these arguments, whose state is not looked at."""
        leaves, _ = self._trees.flatten(args)
        for i, path in self._inputs:
            arrays.given_batch(leaves[i], self._functions.arguments[self._functions.place[path]], self._functions.rank, path)

    def _take(self, args, begin):
        """Takes one step; `begin` is told the buffers of its state before."""
        leaves, structures = self._trees.flatten(args)
        for i, _ in self._inputs:
            if type(leaves[i]) is state.StateArray:  # It has a lock of its own.
                leaves[i] = np.asarray(leaves[i])
        for i, leaf in self._keys:
            arrays.expect_generator(leaves[i], leaf.key, leaf.path)
        memory = self._memory_of(leaves)
        with memory.lock:
            self._check_current(memory, leaves)
            begin(memory)
            for i, path in self._inputs:
                memory.feed(path, leaves[i])
            self._newest = weakref.ref(memory)
            memory.structures = structures
            memory.run()
            return self._outputs(memory)

    def newest(self) -> Any:
        """Returns what the last call returned, or would have returned without ctrl-C; None before the first call."""
        memory = self._newest()
        if memory is None:
            return None
        with memory.lock:
            return self._outputs(memory) if memory.taken else None

    def _outputs(self, memory):
        out = []
        for leaf, path in self._results:
            if path is not None:
                out.append(state.StateArray(memory, path, leaf.shape, leaf.dtype, leaf.key))
            else:
                out.append(state.as_key(memory.result(leaf.path), leaf.key))
        return self._trees.unflatten(out, memory.structures)

    def _memory_of(self, leaves):
        """Returns the buffers that hold the state in `leaves`; new ones unless all leaves are one state of this step."""
        first = leaves[self._state[0][0]] if self._state else None
        memory = first._memory if type(first) is state.StateArray else None
        if memory is not None and memory.functions is self._functions:
            for i, path in self._state:
                leaf = leaves[i]
                if type(leaf) is not state.StateArray or leaf._memory is not memory or leaf._path != path:
                    break
            else:
                return memory
        return self._begin(leaves)

    def _check_current(self, memory, leaves):
        memory.expect_complete()
        for i, _ in self._state:
            leaf = leaves[i]
            if type(leaf) is state.StateArray and leaf._memory is memory and leaf._taken != memory.taken:
                leaf._live()  # raises

    def _begin(self, leaves):
        memory = state.Memory(self._functions, self._threads)
        # Values for the state, and for inputs that `store` reads; all inputs are copied anew before each step.
        values = {path: arrays.given(leaves[i], *self._trees.arguments[i][1:3], path) for i, path in self._state}
        for i, path in self._inputs:
            # In a shard_map step a rank takes fewer rows than the example has.
            info = self._functions.arguments[self._functions.place[path]]
            if i < len(leaves):
                values[path] = arrays.given_batch(leaves[i], info, self._functions.rank, path)
        memory.begin(values)
        return memory

    def save_state(self, path: str | os.PathLike, *state: Any) -> None:
        """Writes a state to a safetensors file, atomically: the state in the step's form (FP8 payloads and scales, the
        recipe's own state) by tree path, like fp8-run's checkpoints.

        `state`: the first arguments of a call, as the last call returned them, or as plain arrays. All ranks of a group call it; what is written
        is complete when the call returns. One file is written by rank 0, and all ranks have all of the state until the next step. A path
        that ends with `.safetensors.index.json` is the index of a set of files: each rank writes what it owns, at the same time, and nothing is
        brought together.
        """
        self._save(path, state)

    def _save(self, path, state, more=()):
        """Does the same; `more` is metadata, keys and values."""
        path = arrays.path_text(path)
        with self._held(state) as memory:
            if path.endswith(INDEX):
                memory.save_set(path, [*self._metadata(memory), *more])
            else:
                memory.gather()
                if self._is_first():
                    self._write(path, memory, more)
            if self._group is not None:
                self._group.gather()

    def _write(self, path, memory, more=()):
        memory.native.save(arrays.path_text(path), [*self._metadata(memory), *more])

    def _metadata(self, memory):
        names = "".join(f"{name}\n" for name in self._functions.compilers_names)
        return ["format", "fp8.state", "recipe", self.recipe, "step", str(memory.number), "compiler_state", names]

    def load_state(self, path: str | os.PathLike, *like: Any) -> Any:
        """Returns the state in a file (or in a set of files, by its index) that `save_state` or fp8-run wrote, in the trees of `like`: the first arguments of a call.

        Leaves of `like` that are not state are returned as they are. Raises OSError if the file cannot be read, ValueError if it is
        damaged or its tensors are not those of this step's state, all of which it names.
        """
        leaves = self._leading(like)
        memory = state.Memory(self._functions, self._threads)
        memory.restore(arrays.path_text(path), self.recipe)
        return self._shown(memory, like, leaves)

    def gather(self, *state: Any) -> None:
        """Copies the state of other ranks (`zero=1`, parts of `jax.shard_map`) to this one, where it can be read until the next step.
        All ranks call it.

        `state`: the first arguments of a call, as the last call returned them. It does nothing for states that are not dealt.
        """
        with self._held(state) as memory:
            memory.gather()

    def _is_first(self):
        """Returns whether this rank writes the files."""
        return self._group is None or self._group.rank == 0

    @contextlib.contextmanager
    def _held(self, given):
        """Holds the buffers of a state, the first arguments of a call, while no step changes them."""
        leaves = self._leading(given)
        memory = self._memory_of(leaves)
        with memory.lock:
            self._check_current(memory, leaves)
            yield memory

    def _resident(self, given):
        """Returns a state in buffers of a step: `given`, the first argument of a call, either as it is or newly stored."""
        with self._held((given,)) as memory:
            return self._shown(memory, (given,), self._leading((given,)))

    def _shown(self, memory, like, leaves):
        """Returns the state in `memory` in the trees of `like`, the first arguments of a call, whose leaves are `leaves`."""
        import jax

        for i, place in self._state:
            leaf = self._trees.arguments[i]
            leaves[i] = state.StateArray(memory, place, leaf.shape, leaf.dtype, leaf.key)
        trees = jax.tree.structure(like).unflatten(leaves[: len(jax.tree.leaves(like))])
        return trees[0] if len(like) == 1 else trees

    def _leading(self, args):
        """Returns the leaves of the first arguments of a call, which hold all state."""
        leaves = self._trees.flatten_leading(args)
        missing = [path for i, path in self._state if i >= len(leaves)]
        if missing:
            raise TypeError(f"expected all arguments that hold state but got none with {missing[0]}")
        return leaves

    def trace(self) -> dict[str, dict[str, Any]]:
        """Returns the statistics of the last call, for a step compiled with `trace=True`: {tensor: {metric: number, or a list by layer}}.

        The metrics are those of docs/Runtime.md: amax, scale, underflow, saturation, snr (dB), kurtosis, update_rms, alignment.
        None stands for values that are not finite. Raises ValueError without a trace, or before the first call.
        """
        memory = self._newest()
        if memory is None or not memory.taken:
            raise ValueError("expected a call before its trace is read, and its state to be alive")
        with memory.lock:
            return json.loads(memory.native.trace(0))["tensors"]

    def profile(self, on: bool = True) -> list[dict[str, Any]]:
        """Returns the time of each launch of the newest state's steps, longest first: [{"name", "tasks", "runs", "seconds"}].

        This call also turns timing on or off for later steps, so the first call returns an empty list.
        """
        memory = self._newest()
        if memory is None:
            raise ValueError("expected a call before it is timed, and its state to be alive")
        with memory.lock:
            rows = sorted(memory.native.profile(), key=lambda row: -row["seconds"])
            memory.native.set_profile(on)
        return rows

    # ------------------------------------------------------------ reports

    def _text(self, name):
        return self._functions.package.text(name)

    @functools.cached_property
    def verdicts(self) -> Verdicts:
        """The verdict on every dot, with reasons: a list of dictionaries that prints as a table (`Verdicts`)."""
        return Verdicts(json.loads(self._text("verdicts.json")), self._text("verdicts.txt"))

    @functools.cached_property
    def memory(self) -> dict[str, Any]:
        """The memory plan, as in `memory.json`: bytes of state and arena, and their uses."""
        return json.loads(self._text("memory.json"))

    @functools.cached_property
    def signature(self) -> dict[str, list[dict[str, Any]]]:
        """Arguments and results: {"arguments": [{"path", "type", "role", "kind", "result"}], "results": [{"path", "type", "kind", "state"}]}."""
        return json.loads(self._text("signature.json"))

    @property
    def recipe(self) -> str:
        """The effective recipe as YAML: every key, including overrides."""
        return self._text("recipe.yaml")

    @functools.cached_property
    def cost(self) -> dict[str, Any]:
        """The arithmetic and the traffic of a step, as the compiler counts them: {"flops", "dot_flops", "dot_flops_f32", "bytes", "exact", "launches": [...]}.

        Each launch is {"launch", "name", "runs", "flops", "dot_flops", "dot_flops_f32", "bytes"} for one run; the sums are for a step. `flops`
        counts additions, multiplications, divisions and functions of floats, `dot_flops` those of dots (2 m n k), `dot_flops_f32` those of dots
        whose operands are wider than 16 bits. `bytes` counts each operand
        once and whole: the traffic if no cache keeps anything between launches. If data decide how often a launch runs, its `runs` is
        None, it counts once, and `exact` is False. It contains no times; `profile` does.
        """
        text = self._text("cost.json")
        if text is None:
            raise ValueError("expected cost.json in the package: it was written by an earlier version")
        return json.loads(text)

    def _exporting(self, format):
        """Returns a package with functions that export weights in this format."""
        if self._recompile is None:
            known = json.loads(self._text("export.json") or "{}").get("format", "none")
            if known != format:
                raise ValueError(f"expected a package that exports {format} but got one for {known}: emit it with --export-format {format}")
            return self._functions.package
        if format not in self._exports:
            program = self._recompile(export_format=format)
            with compilations.running():
                self._exports[format] = program.load()
        return self._exports[format]

    def ir(self, stage: str = "fp8") -> str:
        """Returns the module after a stage: import, fp8, structured, kernels, codegen or llvm. Compiles once more."""
        if stage not in _STAGES:
            raise ValueError(f"expected one of the stages {', '.join(_STAGES)} but got {stage}")
        if self._recompile is None:
            raise ValueError("expected a step that fp8.compile made but got one from a package, which holds no IR")
        with tempfile.TemporaryDirectory(prefix="fp8-") as folder:
            self._recompile(dump_directory=folder)
            return (pathlib.Path(folder) / f"step-{stage}.mlir").read_text("utf-8")

    def save(self, directory: str | os.PathLike) -> None:
        """Writes the step as a package, which `fp8.load`, fp8-train and C programs run without the compiler."""
        if self._program is None:
            raise ValueError("expected a step that fp8.compile made but got one from a package: copy its directory")
        directory = pathlib.Path(arrays.path_text(directory))
        with compilations.running():
            self._program.emit(str(directory))
        rows = lambda leaves: [{"path": leaf.path, "shape": leaf.shape, "dtype": leaf.dtype.name, "key": leaf.key} for leaf in leaves]
        trees = {
            "fingerprint": self._text("fingerprint"),
            "roots": self._trees.roots,
            "by_name": self._trees.by_name,
            "arguments": rows(self._trees.arguments),
            "results": rows(self._trees.results),
            "empty": self._trees.empty,
        }
        temporary = directory / f"trees.json.{os.getpid()}-{threading.get_ident()}.tmp"  # All ranks of a group may call this.
        temporary.write_text(json.dumps(trees, indent=1), "utf-8")
        os.replace(temporary, directory / "trees.json")

    def __deepcopy__(self, memo):
        return self  # like a function: states have buffers of their own

    def __reduce__(self):
        raise TypeError("expected what can be pickled but got a compiled step: step8.save(DIR) writes it, and fp8.load(DIR) reads it in another process")

    def __repr__(self):
        return f"<fp8.Step of {len(self._trees.arguments)} arrays, {self._text('summary.txt').strip()}>"
