"""The parts of the zoo's families: a family consists of functions marked with `@step`, each of
which makes a training step with its initial values and data."""

import importlib
import sys
from dataclasses import dataclass, field
from typing import Callable, Optional, Union

import fp8_testing as t

# The steps of each family.
REGISTRY = {}


def step(function):
    """Registers a function that makes a Step; its docstring says what is special about it."""
    return REGISTRY.setdefault(function.__module__, t.Cases())(function)


def steps_of(names, only=()):
    """Yields (number in its family, name, function that makes the Step) for the steps of these families, or for
    those in `only`."""
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
    # Initial values and data, by name of the function's argument. Data has a leading dimension for
    # the step.
    state: dict
    batches: dict
    # Select the loss among the results, and the results that replace the state, by name too. State
    # that nothing replaces is frozen.
    loss: Callable
    carry: Callable
    # Bound of the losses' relative error, and of the error of other results in the maximum norm of
    # each tensor.
    loss_bound: float = 1e-4
    bound: float = 1e-3
    # The number of weights of linear layers, or of their forward, dgrad and wgrad dots.
    linear: Optional[Union[int, tuple]] = None
    # The number of layers that have weight gradients.
    wgrads: Optional[int] = None
    # The number of dots that JAX repeats with the same operands, and that become one.
    repeated: int = 0
    # The largest loss of tensorwise above that of none, in nats.
    gap: float = 0.05
    # Arguments that are keys which the step does not return: step s gets fold_in(key, s).
    keys: tuple = ()
    # Parts of paths of tensors that consist of rounding errors and are not compared: the bias of a
    # key has no gradient, since a softmax does not depend on it.
    noise: tuple = ()
    # Shapes of the scales that a recipe keeps, by parts of their names: the trip counts of the
    # layer loops in which the tensor is quantized.
    scales: dict = field(default_factory=dict)
    # Additional settings with which a preset is trained, by the preset's name.
    settings: dict = field(default_factory=dict)
    # The presets that a step for several ranks is trained with.
    presets: tuple = ()
