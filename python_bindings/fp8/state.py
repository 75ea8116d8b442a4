"""The training state of a compiled step, which stays in the step's buffers."""

import os
import threading
import weakref
from typing import Any

import numpy as np

from . import _native, arrays


class Functions:
    """The compiled functions of a step with their arguments and results by path.

    `store` and `load` (both or neither are None) convert state from the user's form to
    the step's and back: fp8_train_options in fp8-c/Runtime/Train.h has the contract.
    group: the ranks that run the step together, or None.
    """

    def __init__(self, package, group=None):
        self.package, self.group = package, group
        self.step, self.store, self.load = (package.function(name) for name in ("step", "store", "load"))
        if self.step is None:
            raise ValueError("expected a package with a function 'step'")
        self.arguments, self.results = self.step.arguments, self.step.results
        self.on_gpu = self.step.on_gpu
        self.place = {info.name: i for i, info in enumerate(self.arguments)}
        self.result_place = {info.name: i for i, info in enumerate(self.results)}
        self.loaded = {info.name for info in self.load.results} if self.load else set()
        if group is not None:
            ranks = package.text("ranks.txt")
            if ranks is None:
                raise ValueError("expected a step that was compiled for several ranks (data_parallel=True) but got one for a single process")
            group._expect_same(
                {
                    "step, recipe or compiler": package.text("fingerprint").encode(),
                    "zero or global_amax": ranks.partition("\n")[0].encode(),
                    "size of buckets (FP8_BUCKET_BYTES)": str(group._bucket_bytes).encode(),
                }
            )
            self.expect_ranks()
        # Each rank has the shards that it owns, or its parts, and gets the others on request.
        self.is_dealt = group is not None and group.size > 1 and any(info.shard for info in self.arguments)
        self.is_in_parts = any(info.parts for info in self.arguments if info.role == "state")
        self.shares_batch = any(info.parts for info in self.arguments if info.role == "batch")
        self.rank = 0 if group is None else group.rank

    @property
    def compilers_names(self):
        """The names of the state that the compiler has added to the user's."""
        made = {info.name for info in self.store.results} - {info.name for info in self.store.arguments} if self.store else set()
        return [info.name for info in self.arguments if info.zero_init or info.name in made]

    def expect_ranks(self):
        """Raises ValueError if the step has its state or its batch in the parts of another number of ranks."""
        ranks = 1 if self.group is None else self.group.size
        for info in self.arguments:
            if info.parts and len(info.parts) != ranks:
                why = f"start {len(info.parts)} processes (mpirun -n {len(info.parts)}) and give their fp8.Group() as group="
                raise ValueError(f"expected {len(info.parts)} ranks, which the step was written for, but got {ranks}: {why}")


def _run(function, threads, fill):
    """Runs a function once. `fill(info, bytes)` sets each argument; returns {path: (description, bytes)} of the results."""
    native = _native.Step(function, threads)
    for i, info in enumerate(function.arguments):
        fill(info, native.argument(i, native))
    native.run()
    return {info.name: (info, native.result(i, native)) for i, info in enumerate(function.results)}


class _Lease:
    """Keeps a step's buffers alive for an array that views them."""

    __slots__ = ("__weakref__", "native")

    def __init__(self, native):
        self.native = native


_memories = weakref.WeakSet()


def _begin_in_child():
    """A process that was forked has none of the other threads, which may have held locks and copied inputs."""
    for memory in _memories:
        memory.lock = threading.RLock()
        memory.fed.clear()


os.register_at_fork(after_in_child=_begin_in_child)


class Memory:
    """The buffers of one training state, and the number of steps that it has taken."""

    def __init__(self, functions, threads):
        functions.expect_ranks()
        self.functions, self.threads = functions, threads
        self.native = _native.Step(functions.step, threads)
        if functions.group is not None:
            self.native.set_group(functions.group._native)
        self.begun = 0  # earlier steps of a state that was read from a file
        self.copied = 0  # steps of the state of which this one is a copy
        self.whole = 0  # `taken` when all shards were last here
        self.joined = None  # `taken` when the parts of all ranks were last here
        self.lock = threading.RLock()  # held while a step runs, and while anything reads the buffers
        self.leases = weakref.WeakSet()
        self.inputs, self.fed, self.outputs = {}, {}, {}
        self.structures = None  # what the trees of the step's last call are
        self.user = None  # the results of `load` since the last step
        _memories.add(self)

    @property
    def taken(self):
        """The number of steps that the state has taken since it was stored here. The native step counts: ctrl-C during a run is
        raised when the run is over, and then it has taken the step."""
        return self.copied + self.native.runs

    @property
    def number(self):
        """The number of steps that the state has taken in all, as far as is known."""
        return self.begun + self.taken

    def begin(self, values):
        """Sets the state from arrays by path; the recipe's own state starts anew."""
        functions = self.functions
        set_value = lambda info, buffer: np.copyto(arrays.typed(buffer, info), values[info.name])
        stored = _run(functions.store, self.threads, set_value) if functions.store else {}
        for i, info in enumerate(functions.arguments):
            if info.name in stored:
                self.native.set_whole(i, stored[info.name][1])
            elif info.name in values and not (info.parts and info.role == "batch"):  # Its rows are fed before each step.
                self.native.set_whole(i, arrays.bytes_of(values[info.name]))
            elif info.role == "state" and not info.zero_init:
                raise RuntimeError(f"expected a value of {info.name}, which the step takes; this is a bug of fp8")
        self.expect_same()

    def restore(self, path, recipe):
        """Sets the state from a file; `recipe` is the text of the step's."""
        step = self.native.restore(path, recipe)
        self.begun = int(step) if step.isascii() and step.isdecimal() else 0  # Other programs may write anything there.
        self.expect_same()

    def expect_same(self):
        """Raises RankError on all ranks if the state that all ranks have differs between ranks."""
        group = self.functions.group
        if group is None or group.size == 1:
            return
        infos = self.functions.arguments
        held = [i for i, info in enumerate(infos) if info.role == "state" and (self.has_shards or not info.shard)]
        values = {infos[i].name: self.native.value(i, self.native) for i in held}
        parts = {info.name: info.parts.index(info.parts[group.rank]) for info in infos if info.parts}
        group._expect_same(values, ": all ranks have to hold the same state", parts)

    @property
    def has_shards(self):
        """Whether this rank has all shards."""
        return not self.functions.is_dealt or self.whole == self.taken

    @property
    def is_whole(self):
        """Whether this rank has all shards and the parts of all ranks."""
        return self.has_shards and (not self.functions.is_in_parts or self.joined == self.taken)

    def of_this_rank(self):
        """Yields the arguments that are state, each with its bytes; of state that is divided among ranks, those of which this one has some."""
        for i, info in enumerate(self.functions.arguments):
            if info.role == "state" and (self.has_shards or not info.shard or self.native.owns(info.shard)):
                yield info, self.native.value(i, self.native)

    def gather(self):
        """Copies the shards and parts of other ranks to this one, until the next step. All ranks call it."""
        if not self.is_whole:
            self.native.gather()
            self.whole = self.joined = self.taken

    def save_set(self, index, metadata):
        """Writes a set of files, to which each rank contributes what it owns. All ranks call it."""
        self.native.save_set(str(index), metadata)
        if not self.is_whole:
            self.native.release()

    def _expect_whole(self, path):
        info = self.functions.arguments[self.functions.place[path]] if path in self.functions.place else None
        if not self.is_whole and (path in self.functions.loaded or info.shard or info.parts):
            raise RuntimeError(f"{path}: expected state that is here but another rank may have some of it: call step8.gather(state) on all ranks after the step")

    def expect_complete(self):
        """Raises RuntimeError if the last step has failed half-way."""
        if self.native.broken:
            raise RuntimeError(
                "expected the state of a complete step but the last one has failed, or another thread was taking it when this process was forked, and "
                "left some of the state changed: continue from a saved state"
            )

    def argument(self, path, owner=None):
        """Returns the buffer of an argument; it lives as long as `owner`, by default the step itself."""
        i = self.functions.place[path]
        return arrays.typed(self.native.argument(i, owner or self.native), self.functions.arguments[i])

    def feed(self, path, value):
        """Copies an input of the next step, unless it is the (immutable) JAX array of the last one."""
        immutable = arrays.is_jax(value)
        if immutable and self.fed.get(path) is value and not value.is_deleted():
            return
        buffer = self.inputs.get(path)
        if buffer is None or self.functions.on_gpu:  # There, the step only copies what was asked for.
            buffer = self.inputs[path] = self.argument(path)
        np.copyto(buffer, arrays.given_batch(value, self.functions.arguments[self.functions.place[path]], self.functions.rank, path))
        self.fed[path] = value if immutable else None

    def run(self):
        """Takes a step. The previous state is lost."""
        if self.leases:
            raise BufferError(
                f"expected no views of the state but {len(self.leases)} are alive: the step would change what they show. Delete them, or copy (numpy.array) what is to be kept"
            )
        if self.functions.is_dealt and self.has_shards:
            self.native.release()
        self.user = None
        self.native.run()

    def result(self, path):
        """Returns a result of the last step other than state, as a new array."""
        known = self.outputs.get(path)
        if known is None or self.functions.on_gpu:  # There, asking for a result waits for it.
            i = self.functions.result_place[path]
            known = self.outputs[path] = arrays.typed(self.native.result(i, self.native), self.functions.results[i])
        return known.copy() if known.ndim else known[()]

    def read(self, path):
        """Returns state in the user's form, as a new array."""
        self._expect_whole(path)
        if path in self.functions.loaded:
            return self._load()[path].copy()
        i = self.functions.place[path]
        info = self.functions.arguments[i]
        return arrays.typed(self.native.whole(i, self.native), info, info.whole_shape).copy()

    def view(self, path):
        """Returns a view of the step's buffer; raises BufferError if the step keeps the state in another type."""
        if path in self.functions.loaded:
            raise BufferError(f"expected state that the step keeps in the user's type but got {path}, which it stores otherwise: copy it (numpy.asarray)")
        if self.functions.arguments[self.functions.place[path]].parts:
            raise BufferError(f"expected state that all ranks have as a whole but got {path}, of which each has a part: copy it (numpy.asarray)")
        self._expect_whole(path)
        lease = _Lease(self.native)
        self.leases.add(lease)
        return self.argument(path, lease)

    def _load(self):
        if self.user is None:
            place = self.functions.place
            copy_in = lambda info, buffer: np.copyto(buffer, self.native.whole(place[info.name], self.native))
            loaded = _run(self.functions.load, self.threads, copy_in)
            self.user = {path: arrays.typed(data, info) for path, (info, data) in loaded.items()}
        return self.user

    def clone(self):
        """Returns the same state in buffers of its own, including the recipe's own state."""
        other = Memory(self.functions, self.threads)
        other.copied, other.begun, other.whole = self.taken, self.begun, self.whole
        for i, info in enumerate(self.functions.arguments):
            if not self.has_shards and info.shard and not self.native.owns(info.shard):
                continue
            np.copyto(other.native.argument(i, other.native), self.native.argument(i, self.native))
        return other


def as_key(data, generator):
    """Returns the typed key with these data; the data if `generator`, its random number generator, is None."""
    if generator is None:
        return data
    import jax

    return jax.random.wrap_key_data(data, impl=generator)


class StateArray(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of the state that a step returned.

    The data stay in the step's buffers and are read on access:
    `numpy.asarray(x)` and `x[...]` return copies in the type of the user's step,
    `jnp.asarray(x)` a JAX array, and DLPack (`numpy.from_dlpack`) a view of the
    buffer if the step keeps that type. The next step replaces the state: after that,
    reading it or passing it to a step is an error. `fp8.copy(state)` keeps a state.
    """

    __slots__ = ("_memory", "_taken", "_path", "shape", "dtype", "_key")

    def __init__(self, memory, path, shape, dtype, key=None):
        self._memory, self._taken, self._path = memory, memory.taken, path
        self.shape, self.dtype, self._key = shape, dtype, key

    def _live(self):
        memory = self._memory
        memory.expect_complete()
        if memory.taken != self._taken:
            raise RuntimeError(
                f"{self._path}: expected the state after step {memory.taken} but got that after step {self._taken}, which a later step has "
                "replaced; fp8.copy(state) before a step keeps it"
            )
        return memory

    def __array__(self, dtype=None, copy=None):
        if copy is False:
            array = self._view()
            if dtype is not None and array.dtype != dtype:
                raise ValueError(f"expected {array.dtype} but got {np.dtype(dtype)}: another type needs a copy")
            return array
        with self._memory.lock:
            array = self._live().read(self._path)
        return array if dtype is None else array.astype(dtype, copy=False)

    def _view(self):
        with self._memory.lock:
            return self._live().view(self._path)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method == "at" or any(isinstance(x, StateArray) for x in options.get("out", ())):
            raise TypeError(f"{self._path}: expected an array that can be written but got state of a step: change a copy of it (numpy.array)")
        if any(arrays.is_jax(x) for x in inputs) and method == "__call__" and not options:
            import jax.numpy as jnp

            return getattr(jnp, ufunc.__name__)(*(jnp.asarray(x) for x in inputs))
        given = [np.asarray(x) if isinstance(x, StateArray) else x for x in inputs]
        return getattr(ufunc, method)(*given, **options)

    def __jax_array__(self):
        import jax.numpy as jnp

        return as_key(jnp.asarray(np.asarray(self)), self._key)

    def __dlpack__(self, **options):
        return self._view().__dlpack__(**options)

    def __dlpack_device__(self):
        return (1, 0)  # the CPU

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: int(np.prod(self.shape)))
    nbytes = property(lambda self: self.size * self.dtype.itemsize)

    def __getitem__(self, index):
        return np.asarray(self)[index]

    def __len__(self):
        if not self.shape:
            raise TypeError("expected an array with dimensions but got a scalar")
        return self.shape[0]

    def __iter__(self):
        len(self)  # raises for scalars
        return iter(np.asarray(self))  # one copy for all rows

    def __getattr__(self, name):
        hint = f"; numpy.asarray(x).{name} is that of a copy" if hasattr(np.ndarray, name) and not name.startswith("_") else ""
        raise AttributeError(f"'StateArray' object has no attribute '{name}'{hint}", name=name, obj=self)

    def item(self, *index):
        """Returns the Python number of an array of one element, or at this index."""
        return np.asarray(self).item(*index)

    __float__ = lambda self: float(np.asarray(self))
    __int__ = lambda self: int(np.asarray(self))
    __index__ = lambda self: np.asarray(self).__index__()
    __bool__ = lambda self: bool(np.asarray(self))
    __round__ = lambda self, digits=None: round(self.item(), digits)
    __hash__ = object.__hash__

    def __format__(self, spec):
        return format(self.item(), spec) if spec else str(self)

    def __reduce__(self):
        raise TypeError(f"{self._path}: expected an array with data of its own but got state of a step: fp8.copy(state) copies it, step8.save_state writes it")

    def __repr__(self):
        what = f"{self._path}: {arrays.describe(self.shape, self.dtype)}"
        return f"StateArray({what}, replaced)" if self._memory.taken != self._taken else f"StateArray({what}, {np.asarray(self)})"


# `x += 1` is `x = x + 1`, a new array: the state stays.
for _name in ("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "and", "xor", "or"):
    setattr(StateArray, f"__i{_name}__", getattr(StateArray, f"__{_name}__"))


def copy(state: Any) -> Any:
    """Copies a state so that later steps do not change it: returns the same tree with buffers of its own.

    `state`: what a compiled step returned, or any tree of arrays and such
    states. Arrays that are not state of a step are returned as they are.
    """
    import jax

    clones = {}

    def clone(leaf):
        if not isinstance(leaf, StateArray):
            return leaf
        memory = leaf._memory
        with memory.lock:
            leaf._live()
            if id(memory) not in clones:
                clones[id(memory)] = memory.clone()
        return StateArray(clones[id(memory)], leaf._path, leaf.shape, leaf.dtype, leaf._key)

    return jax.tree.map(clone, state)
