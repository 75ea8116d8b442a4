"""The containers in which a step takes its arguments and returns its results."""

import collections
import dataclasses
import functools
import inspect

import jax
from families import Step

from .choices import number


@functools.cache
def _dataclass(fields):
    return jax.tree_util.register_dataclass(dataclasses.make_dataclass("State", fields), data_fields=list(fields), meta_fields=[])


@functools.cache
def _named_tuple(fields):
    return collections.namedtuple("State", fields)


def _order(names, seed, what):
    return sorted(names, key=lambda name: number(seed, what, name))


class Arguments:
    """The state in the draw's container: `pack` makes the arguments from a dictionary of
    trees, `unpack` is its inverse."""

    def __init__(self, c, state, seed):
        self.names = names = list(state) if c.arguments != "permuted" else _order(state, seed, "state")
        treedef = jax.tree.structure(state)
        whole = {
            "tuple": (lambda s: tuple(s[n] for n in names), lambda v: dict(zip(names, v))),
            "dict": (dict, dict),
            "dataclass": (lambda s: _dataclass(tuple(names))(**s), lambda v: {n: getattr(v, n) for n in names}),
            "namedtuple": (lambda s: _named_tuple(tuple(names))(**s), lambda v: v._asdict()),
            "leaves": (jax.tree.leaves, lambda v: jax.tree.unflatten(treedef, v)),
        }
        if c.container == "arguments":
            self.pack, self.unpack = (lambda s: {n: s[n] for n in names}), dict
        else:
            pack, unpack = whole[c.container]
            self.pack, self.unpack = (lambda s: {"state": pack(s)}), (lambda a: unpack(a["state"]))


def make(c, task, seed):
    """Returns the Step of a task."""
    # State that no update changes is an argument of its own.
    frozen = {n: task.state[n] for n in task.fixed}
    changing = {n: task.state[n] for n in task.changing}
    form = Arguments(c, changing, seed)
    state = form.pack(changing)
    names = [*state, *frozen, *task.batches]
    if c.arguments == "batch_first":
        names = [*task.batches, *frozen, *state]
    if c.arguments == "permuted":
        names = _order(names, seed, "arguments")

    def function(*args):
        given = dict(zip(names, args))
        old = form.unpack({n: given[n] for n in state})
        new, value, metrics = task.update({**old, **{n: given[n] for n in frozen}}, {n: given[n] for n in task.batches}, None)
        parts = form.pack({n: new[n] for n in old})
        out = value if c.metrics == "loss" else {"loss": value, **metrics}
        order = place(parts)
        results = {**parts, "metrics": out}
        return {f"new_{n}": results[n] for n in order} if c.results == "dict" else tuple(results[n] for n in order)

    def place(parts):
        if c.results == "permuted":
            return _order([*parts, "metrics"], seed, "results")
        return ["metrics", *parts] if c.results == "metrics_first" else [*parts, "metrics"]

    def part(results, name):
        return results[f"new_{name}"] if c.results == "dict" else results[place(list(state)).index(name)]

    function.__signature__ = inspect.Signature([inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names])
    loss = lambda r: part(r, "metrics") if c.metrics == "loss" else part(r, "metrics")["loss"]
    return Step(function, {**state, **frozen}, task.batches, loss, lambda r: {n: part(r, n) for n in state})
