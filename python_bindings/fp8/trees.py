"""The trees that a step takes and returns, and the paths of their leaves.

Paths have JAX's spelling: the name of the function's parameter, then
keys, as in `state['params']['w']`; results begin with `result`. The compiler reads the same paths from the module.
"""

import ast
import inspect
import os
import re
import sys
from typing import Any, NamedTuple

from .state import StateArray


class Leaf(NamedTuple):
    """A leaf of the step's arguments or results. `key`: for a typed key, the name of its random number generator."""

    path: str
    shape: tuple
    dtype: Any
    key: str | None = None


class _Call(NamedTuple):
    """The arguments of a call, and the names that JAX has for them. Those that are given by name come last, in the order of their names."""

    args: tuple
    named: dict
    roots: list

    @property
    def trees(self):
        return (*self.args, *self.named.values())


def _bound(function, args, named):
    """Returns a call with the arguments in the places of the function's parameters, as far as they have some; None if its signature takes no such call,
    as that which functools.wraps shows of a function with other parameters."""
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*args, **named)
    except (TypeError, ValueError):
        return None
    roots, extra = [], ""
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            roots += [f"{parameter.name}[{i}]" for i in range(len(bound.args) - len(roots))]
        elif parameter.kind is parameter.VAR_KEYWORD:
            extra = parameter.name
        elif parameter.kind is not parameter.KEYWORD_ONLY:
            roots.append(parameter.name)
    named = dict(sorted(bound.kwargs.items()))
    by_name = [name if name in bound.arguments and name != extra else f"{extra}['{name}']" for name in named]
    return _Call(bound.args, named, roots[: len(bound.args)] + by_name)


def _misfit(function, args, named, reserved):
    """Describes a call that neither a function nor its signature takes. reserved: names that are options of fp8.compile."""
    name = getattr(function, "__name__", function)
    try:
        parameters = inspect.signature(function).parameters
    except ValueError:
        return f"expected {name} to take {len(args) + len(named)} arguments"
    missing = [each.name for each in parameters.values() if each.kind is each.KEYWORD_ONLY and each.default is each.empty and each.name not in named]
    if missing and missing[0] in reserved:
        return f"expected other arguments of {name} than {missing[0]}, an option of fp8.compile: compile a function around it that gives {missing[0]} another name"
    if missing:
        return f"expected an example of {missing[0]}, which {name} takes by name: fp8.compile({name}, ..., {missing[0]}={missing[0]})"
    unknown = [each for each in named if each not in parameters]
    if unknown:
        return f"expected options of fp8.compile or arguments of {name} ({', '.join(parameters)}) but got {unknown[0]}"
    return f"expected the arguments of {name} ({', '.join(parameters)}) but got {_counted(args, named)}"


def _counted(args, named):
    """Describes how many arguments a call has, and which of them are given by name."""
    return f"{len(args)} in their places and, by name, {', '.join(named)}" if named else f"{len(args)}"


def _leaf(path, aval):
    import jax
    import numpy as np

    if jax.dtypes.issubdtype(aval.dtype, jax.dtypes.prng_key):
        data = jax.eval_shape(jax.random.key_data, jax.ShapeDtypeStruct(aval.shape, aval.dtype))
        return Leaf(path, data.shape, np.dtype(data.dtype), str(aval.dtype._impl.name))
    return Leaf(path, tuple(aval.shape), np.dtype(aval.dtype))


def _example(leaf):
    """Returns what JAX can trace in place of an example argument: of state, its shape and type."""
    import jax

    if not isinstance(leaf, StateArray):
        return leaf
    data = jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)
    return jax.eval_shape(lambda x: jax.random.wrap_key_data(x, impl=leaf._key), data) if leaf._key else data


def named(root, tree):
    """Yields the leaves of a tree with their paths below `root`."""
    return paths([root], [tree])


def paths(roots, trees, is_leaf=None):
    """Yields the paths and leaves of several trees, each below its root, as JAX names them in the text of a function: children of
    a class that is registered without keys have numbers."""
    import jax

    for root, tree in zip(roots, trees, strict=True):
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree, is_leaf)[0]:
            yield root + re.sub(r"<flat index (\d+)>", r"\1", jax.tree_util.keystr(path)), leaf


_has_no_jax_threads = False


def _begin_in_child():
    """Notes in a process that was forked whether JAX had threads: they are not there, and JAX would wait for them."""
    global _has_no_jax_threads
    backends = sys.modules.get("jax._src.xla_bridge")
    _has_no_jax_threads |= getattr(backends, "backends_are_initialized", lambda: False)()


os.register_at_fork(after_in_child=_begin_in_child)


def _lower(function, call):
    import jax

    if _has_no_jax_threads:
        raise RuntimeError(
            "expected a process of its own to trace a JAX function but got one that was forked after JAX had started, whose threads it lacks: "
            "start processes by spawn (multiprocessing.get_context('spawn')), or compile before the fork"
        )
    try:
        # An inner jit may drop unused arguments; this one keeps all.
        return jax.jit(function, keep_unused=True).lower(*call.args, **call.named)
    except ValueError as error:
        if not str(error).startswith("Non-hashable static arguments"):
            raise
        raise TypeError("expected arguments that are arrays but got one for a static argument: bind it first, as by functools.partial") from error


def _names(text, roots, args):
    """Returns whether the text of a function names its arguments by these roots. (Other letters than ASCII's are escaped there.)"""
    import jax

    return all(f'loc("{root}' in text for root, arg in zip(roots, args, strict=True) if root.isascii() and jax.tree.leaves(arg))


def _traced(function, args, named, reserved):
    """Returns a call of a function with its arguments' names, the function's text, in which they have these names, and its outputs."""
    call = _bound(function, args, named)
    if call is not None:
        _expect_arrays(call.roots, call.trees)
        lowered = _lower(function, call)
        text = lowered.as_text(debug_info=True)
        if _names(text, call.roots, call.trees):
            return call, text, lowered.out_info
    # The names of a function with `*args, **kwargs`, where JAX does not use the parameters' names.
    places, named = [f"args[{i}]" for i in range(len(args))], dict(sorted(named.items()))
    call = _Call(args, named, places + [f"kwargs['{name}']" for name in named])
    _expect_arrays(places, args)
    try:
        lowered = _lower(lambda *args, **kwargs: function(*args, **kwargs), call)
    except TypeError as error:
        raise TypeError(f"{_misfit(function, args, named, reserved)}: {error}") from error
    return call, lowered.as_text(debug_info=True), lowered.out_info


def _expect_arrays(roots, args):
    """Raises TypeError if an example argument has no shape, such as a text."""
    for path, leaf in paths(roots, args):
        if not (isinstance(leaf, bool | int | float | complex) or hasattr(leaf, "shape") or hasattr(leaf, "__jax_array__")):
            raise TypeError(f"{path}: expected an array, a number or a jax.ShapeDtypeStruct but got {leaf!r}: bind static arguments first, as by functools.partial")


class JaxTrees:
    """The arguments and results of a JAX function."""

    def __init__(self, function, args, named=None, reserved=()):
        """named: example arguments by name. reserved: names that such arguments cannot have."""
        import jax

        call, self.text, outputs = _traced(function, *jax.tree.map(_example, (tuple(args), named or {})), reserved)
        args, self.roots, self.by_name = call.trees, call.roots, list(call.named)
        self.structure = jax.tree.structure(args)
        self.arguments = [_leaf(path, aval) for path, aval in paths(self.roots, jax.eval_shape(lambda *a: a, *args))]
        self.outputs = jax.tree.structure(outputs)
        self.empty = _empty(self.outputs)
        self.results = [_leaf(path, aval) for path, aval in paths(["result"], [outputs])]
        self.states = self._states(args, outputs)

    def _states(self, args, outputs):
        """Returns {path of an argument: path of its replacement} by the contract of `state, ... = step(state, ...)`: the first result
        replaces the first argument if both have the same trees and types."""
        import jax

        first = outputs[0] if isinstance(outputs, (tuple, list)) and len(outputs) else outputs
        count = jax.tree.structure(args[0]).num_leaves if args else 0
        took, gave = self.arguments[:count], self.results[:count]
        same = jax.tree.structure(first) == jax.tree.structure(args[0]) if args else False
        if not same or count == 0 or any(a[1:] != r[1:] for a, r in zip(took, gave, strict=True)):
            return {}
        return {a.path: r.path for a, r in zip(took, gave, strict=True)}

    def flatten(self, args):
        """Returns the leaves of a call's arguments, and what `unflatten` is to know of their trees; raises TypeError if these differ from the example
        arguments'."""
        import jax

        leaves, structure = jax.tree.flatten(args)
        if structure != self.structure:
            raise TypeError(_difference(self.roots, [leaf.path for leaf in self.arguments], args, self.structure))
        return leaves, None

    def flatten_leading(self, args):
        """Does the same for the first arguments of a call."""
        return _flatten_leading(self, args)

    def unflatten(self, leaves, _):
        """Returns the trees that the function returns, from their leaves."""
        return self.outputs.unflatten(leaves)


def _empty(outputs):
    """Returns {place: None, {} or []} of the elements without leaves of the tuple that a function returns."""
    if outputs.node_data() is None or outputs.node_data()[0] is not tuple:
        return {}
    values = {place: part.unflatten([]) for place, part in enumerate(outputs.children()) if part.num_leaves == 0}
    return {place: value if type(value) in (dict, list) else None for place, value in values.items()}


def _flatten_leading(trees, args):
    if not args:
        raise TypeError(f"expected the arguments that hold state, of {', '.join(trees.roots)}, but got none")
    roots = trees.roots[: len(args)]
    got = list(paths(roots, args)) if len(roots) == len(args) else []
    expected = [leaf.path for leaf in trees.arguments if root_of(leaf.path, trees.roots) in roots]
    if [path for path, _ in got] != expected:
        raise TypeError(_difference(roots, expected, args))
    return [leaf for _, leaf in got]


def root_of(path, roots):
    """Returns the root of a path: of `step(*args)` the roots are `args[0]`, `args[1]`, ..."""
    return next(root for root in roots if path == root or path.startswith((root + "[", root + ".")))


def roots_of(names):
    """Returns the names of a function's arguments, from the paths of all their leaves."""
    return list(dict.fromkeys(_split(name)[0] for name in names))


def below(root, leaves, roots):
    """Returns the paths of the leaves below one of the roots."""
    return [path for path in leaves if root_of(path, roots) == root]


def arguments_of(batch, root, leaves):
    """Returns the arguments that a batch stands for: a tuple of the last ones, or the only one, which may be a tuple itself.

    root, leaves: the last argument, and the paths of its leaves.
    """
    if not isinstance(batch, tuple):
        return (batch,)
    return (batch,) if [path for path, _ in named(root, batch)] == leaves else tuple(batch)


def in_places(trees, args, named):
    """Returns the arguments of a call, of which some are named, in the order of the step's."""
    places = len(trees.roots) - len(trees.by_name)
    names = trees.roots[:places] + trees.by_name
    rest = names[len(args) :]
    if len(args) > places or sorted(rest) != sorted(named):
        shown = trees.roots[:places] + [f"{name}=" for name in trees.by_name]
        raise TypeError(f"expected {len(names)} arguments ({', '.join(shown)}) but got {_counted(args, named)}")
    return (*args, *(named[name] for name in rest))


def _other_container(path, structure, tree):
    """Describes the first container of a tree that is of another type than in this structure; None if only static fields differ."""
    import jax

    here = jax.tree.structure(tree)
    expected, got = structure.node_data(), here.node_data()
    if here == structure or expected is None or got is None:
        return None
    if expected[0] is not got[0]:
        return f"{path}: expected a container of type {expected[0].__name__} but got {got[0].__name__}"
    below = paths([path], [tree], is_leaf=lambda part: part is not tree)
    found = (_other_container(name, part, of) for part, (name, of) in zip(structure.children(), below, strict=False))
    return next(filter(None, found), None)


def _difference(roots, expected, args, structure=None):
    """Describes how the trees of a call differ from those that the step takes, which have this structure, if it is known."""
    if len(args) != len(roots):
        return f"expected {len(roots)} arguments ({', '.join(roots)}) but got {len(args)}"
    got = [path for path, _ in paths(roots, args)]
    missing, extra = ([p for p in a if p not in set(b)] for a, b in ((expected, got), (got, expected)))
    if not missing and not extra:
        found = (_other_container(*each) for each in zip(roots, structure.children(), args, strict=True)) if structure else ()
        if other := next(filter(None, found), None):
            return other
        return (
            "expected the containers of the example arguments but got others of the same keys, or with other static fields: "
            "if they are objects made anew, such as TrainState.tx, use the example's with other arrays (TrainState.replace)"
        )
    parts = [f"{len(paths)} {what}: {', '.join(paths[:4])}{', ...' if len(paths) > 4 else ''}" for paths, what in ((missing, "missing"), (extra, "not known")) if paths]
    return f"expected the trees of the example arguments but got others ({'; '.join(parts)})"


class PathTrees:
    """The arguments and results of a step whose trees are known only by path: of a package, or of a module's text.

    The step takes as many trees as the paths have roots, in any containers whose
    leaves have these paths. State is returned in the tree in which it was passed;
    other results in dictionaries, lists and tuples according to their paths.
    """

    def __init__(self, arguments, results, states, roots=None, empty=None, by_name=()):
        """empty: {place in the returned tuple: what has no leaves there, None or a container}. by_name: the names of the last arguments, if a call
        gives them by name."""
        self.arguments, self.results, self.states, self.by_name = arguments, results, states, list(by_name)
        self.empty = {int(place): value for place, value in (empty or {}).items()}
        self.roots = roots or roots_of(leaf.path for leaf in arguments)
        self._latest = (None, None)  # the structure of a call's arguments, and those of each
        self._parts = self._find_parts()

    def _find_parts(self):
        """Returns, for each element of the tuple that the step returns (or for its single result): the indices of its results, their keys
        below it, and the index of the argument that it replaces as a whole, or None."""
        replaces = {result: argument for argument, result in self.states.items()}
        keys = [_split(leaf.path)[1] for leaf in self.results]
        self._is_tuple = all(key and isinstance(key[0], int) for key in keys)
        tops = [key[0] if self._is_tuple else 0 for key in keys]
        parts = []
        for top in range(1 + max([*tops, *self.empty], default=0)):
            chosen = [i for i in range(len(keys)) if tops[i] == top]
            took = [replaces.get(self.results[i].path) for i in chosen]
            whole = [below(root, [leaf.path for leaf in self.arguments], self.roots) for root in self.roots]
            parts.append((chosen, [keys[i][1:] if self._is_tuple else keys[i] for i in chosen], whole.index(took) if took in whole else None))
        return parts

    def flatten(self, args):
        """Returns the leaves of a call's arguments, and the structures of these, in which `unflatten` returns state; raises TypeError if their paths
        are not those of the step."""
        import jax

        leaves, structure = jax.tree.flatten(args)
        latest, structures = self._latest
        if structures is None or structure != latest:
            if len(args) != len(self.roots) or [path for path, _ in paths(self.roots, args)] != [leaf.path for leaf in self.arguments]:
                raise TypeError(_difference(self.roots, [leaf.path for leaf in self.arguments], args))
            structures = [jax.tree.structure(tree) for tree in args]
            self._latest = (structure, structures)  # Other threads may call the step with other containers.
        return leaves, structures

    def flatten_leading(self, args):
        """Does the same for the first arguments of a call."""
        return _flatten_leading(self, args)

    def unflatten(self, leaves, structures):
        """Returns what the step returns, from the leaves of its results; state is in the structures of the arguments."""
        done = []
        for place, (chosen, keys, argument) in enumerate(self._parts):
            if not chosen:
                done.append(self.empty.get(place))
                continue
            below = [leaves[i] for i in chosen]
            done.append(_plain(dict(zip(keys, below, strict=True))) if argument is None else structures[argument].unflatten(below))
        return tuple(done) if self._is_tuple else done[0]


def _split(path):
    """Returns the root of a path and its keys: `p['layers'][0].w` gives ("p", ("layers", 0, "w"))."""
    root = re.match(r"[^\[.]*", path).group()
    text = r"""\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""  # as Python prints it
    keys = re.findall(rf"\[(\d+)\]|{text}|\.(\w+)|\[([^\]]*)\]", path[len(root) :])
    return root, tuple(int(number) if number else _unquoted(quoted) if quoted else attribute or other for number, quoted, attribute, other in keys)


def _unquoted(text):
    """Returns the text that Python prints so, `"it's"` or `'a\\nb'`; without its quotes if Python would not."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text[1:-1]


def _plain(values):
    """Nests values by their keys in dictionaries, and in tuples where the keys count from 0."""
    if list(values) == [()]:
        return values[()]
    below = {}
    for keys, value in values.items():
        below.setdefault(keys[0], {})[keys[1:]] = value
    if set(below) == set(range(len(below))):
        return tuple(_plain(below[key]) for key in sorted(below))
    return {key: _plain(part) for key, part in below.items()}
