"""What a family of the zoo is made of: functions marked with `@step`, each of
which makes a training step with its initial values and data."""

import importlib
import sys
from dataclasses import dataclass, field
from typing import Callable, Optional, Union

REGISTRY = {}


def step(function):
    """Marks a function that makes a Step; its docstring says what is special."""
    REGISTRY.setdefault(function.__module__, {})[function.__name__] = function
    return function


def steps_of(names, only=()):
    """(number in its family, name, function that makes the Step) of these families' steps, or of those in `only`."""
    for family in names:
        importlib.import_module(family)
        for i, (name, make) in enumerate(REGISTRY[family].items()):
            if not only or name in only:
                yield i, name, make


def run_checks(checks):
    """Calls the check of each (name, check); a failure does not stop the others."""
    failed = []
    for name, check in checks:
        try:
            check()
        except (Exception, SystemExit) as error:
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
            failed.append(name)
    assert not failed, f"failed: {failed}"


@dataclass
class Step:
    function: Callable
    # Initial values and, with a leading dimension for the step, data; both by
    # name of the function's argument.
    state: dict
    batches: dict
    # The loss among the results, and what replaces the state, by name again.
    # State that nothing replaces is frozen.
    loss: Callable
    carry: Callable
    # Relative bound of the losses, and of the other results in the maximum norm
    # of each tensor.
    loss_bound: float = 1e-4
    bound: float = 1e-3
    # Weights of linear layers: a number, or of forward, dgrad and wgrad dots.
    linear: Optional[Union[int, tuple]] = None
    # Dots that JAX writes again with the same operands, which are one.
    repeated: int = 0
    # What tensorwise may lose, in nats.
    gap: float = 0.05
    # Arguments that are keys which the step does not return: step s has
    # fold_in(key, s).
    keys: tuple = ()
    # Parts of paths of tensors that are rounding errors and not compared: the
    # bias of a key has no gradient, since a softmax does not change with it.
    noise: tuple = ()
    # Shapes of the scales that a recipe keeps, by parts of their names: the
    # layers of the loops that the tensor is quantized in.
    scales: dict = field(default_factory=dict)
    # Settings that a preset is trained with as well, by the preset's name.
    settings: dict = field(default_factory=dict)
