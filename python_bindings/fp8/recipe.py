"""Recipes as objects: they print as the YAML of docs/Recipes.md, which explains every key.

A field that is None is left out and gets the compiler's default. Only the compiler checks values.
"""

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class _Flow:
    """Prints as one line of YAML."""

    def __str__(self) -> str:
        return "{" + ", ".join(f"{name}: {_flow(value)}" for name, value in _given(self)) + "}"


@dataclasses.dataclass
class Operand(_Flow):
    """How an operand of a dot is quantized."""

    format: str = "f8E4M3FN"
    tile: str | None = None
    scale: str | None = None
    margin: int | None = None
    rounding: str | None = None
    overflow: str | None = None
    scaling: str | None = None
    history: int | None = None
    algorithm: str | None = None
    initial: str | None = None


@dataclasses.dataclass
class Accumulator(_Flow):
    """The precision in which a dot accumulates its products."""

    bits: int | None = None
    promote: int | None = None


@dataclasses.dataclass
class Forward:
    """output = activation x weight"""

    activation: Operand = dataclasses.field(default_factory=Operand)
    weight: Operand = dataclasses.field(default_factory=Operand)
    accumulator: Accumulator | None = None


@dataclasses.dataclass
class Dgrad:
    """gradient of the input = gradient of the output x weight"""

    gradient: Operand = dataclasses.field(default_factory=lambda: Operand("f8E5M2"))
    weight: Operand = dataclasses.field(default_factory=Operand)
    accumulator: Accumulator | None = None


@dataclasses.dataclass
class Wgrad:
    """gradient of the weight = activation x gradient of the output"""

    activation: Operand = dataclasses.field(default_factory=Operand)
    gradient: Operand = dataclasses.field(default_factory=lambda: Operand("f8E5M2"))
    accumulator: Accumulator | None = None
    copy: str | None = None


@dataclasses.dataclass
class Rule(_Flow):
    """Decides about the dots that fulfill all of its conditions: with `quantize` they become FP8, else they stay in high precision."""

    quantize: bool = False
    part: str | None = None
    role: str | None = None
    path: str | None = None
    layers: Sequence[int] | None = None
    first: int | None = None
    last: int | None = None
    min_m: int | None = None
    max_m: int | None = None
    min_n: int | None = None
    max_n: int | None = None
    min_k: int | None = None
    max_k: int | None = None

    def __str__(self) -> str:
        conditions = ", ".join(f"{name}: {_flow(value)}" for name, value in _given(self) if name != "quantize")
        return f"{'quantize' if self.quantize else 'keep'}: {{{conditions}}}"


@dataclasses.dataclass
class Compute(_Flow):
    """The precision of all other computation, and of what is saved for the backward pass."""

    unquantized_dots: str | None = None
    saved: str | None = None
    saved_norms: str | None = None
    saved_gated: str | None = None
    logits_bytes: int | None = None
    attention: str | None = None


@dataclasses.dataclass
class SmoothSwiGLU(_Flow):
    """A scale that is factored out of a gated unit's product before it is quantized."""

    granularity: str = "channel"
    scale: str | None = None
    margin: int | None = None
    scaling: str | None = None
    history: int | None = None
    algorithm: str | None = None
    initial: str | None = None


@dataclasses.dataclass
class Storage(_Flow):
    """How arrays of the state are stored between steps."""

    format: str = "f32"
    tile: str | None = None
    scale: str | None = None
    margin: int | None = None
    rounding: str | None = None
    scaling: str | None = None
    history: int | None = None
    algorithm: str | None = None
    expand: bool | None = None


@dataclasses.dataclass
class Optimizer:
    """How the state of the optimizer and the masters of weights are stored."""

    moment1: Storage | None = None
    moment2: Storage | None = None
    master: Storage | None = None
    min_elements: int | None = None
    keep: Sequence[str] | None = None
    clip_update: bool | None = None


@dataclasses.dataclass
class AllReduce(_Flow):
    """The format in which gradients travel between ranks."""

    format: str = "f8E4M3FN"
    tile: str | None = None


@dataclasses.dataclass
class Recipe:
    """The settings that say which dots become FP8, and how.

    >>> print(Recipe("mine", Forward(weight=Operand(tile="row")), rules=[Rule(part="head")]))
    name: mine
    forward:
      activation: {format: f8E4M3FN}
      weight: {format: f8E4M3FN, tile: row}
    rules:
      - keep: {part: head}
    <BLANKLINE>

    A dot that is None stays in high precision. Pass the recipe to `fp8.compile(..., recipe=Recipe(...))`.
    """

    name: str
    forward: Forward | None = None
    dgrad: Dgrad | None = None
    wgrad: Wgrad | None = None
    rules: Sequence[Rule] | None = None
    compute: Compute | None = None
    smooth_swiglu: SmoothSwiGLU | None = None
    optimizer: Optimizer | None = None
    gradients: Storage | None = None
    all_reduce: AllReduce | None = None
    weight_copies: str | None = None
    seed: int | None = None

    def __str__(self) -> str:
        lines = []
        for key, value in _given(self):
            if key == "rules":
                lines += ["rules:", *(f"  - {rule}" for rule in value)] if value else ["rules: []"]
            elif dataclasses.is_dataclass(value) and not isinstance(value, _Flow):
                parts = [f"  {name}: {_flow(part)}" for name, part in _given(value)]
                lines += [f"{key}:", *parts] if parts else [f"{key}: {{}}"]
            else:
                lines.append(f"{key}: {_flow(value)}")
        return "\n".join(lines) + "\n"


def text_of(recipe: Any) -> str:
    """Returns the YAML, which has a line break, of a `Recipe` or of a dictionary with the same keys; of others the name or the path."""
    if isinstance(recipe, Mapping):
        return _flow(recipe) + "\n"
    if not isinstance(recipe, str | os.PathLike | Recipe):
        raise TypeError(f"expected a recipe as a name, a path, an fp8.recipe.Recipe or a dictionary but got {type(recipe).__name__}")
    return str(recipe)


def override(key: str, value: Any) -> str:
    """Returns the text of `--set` that changes a key of a recipe. Text is YAML already; None is the recipe's `none`."""
    return f"{key}={value if isinstance(value, str) else 'none' if value is None else _flow(value)}"


def _given(record: Any) -> list[tuple[str, Any]]:
    """Returns the fields that are not None."""
    pairs = ((field.name, getattr(record, field.name)) for field in dataclasses.fields(record))
    return [(name, value) for name, value in pairs if value is not None]


def _flow(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(part)}" for key, part in value.items() if part is not None) + "}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    if dataclasses.is_dataclass(value) and not isinstance(value, _Flow):  # such as Forward, which has lines of its own in a Recipe
        return _Flow.__str__(value)
    if isinstance(value, str) and not value.replace("_", "").isalnum():
        return "'" + value.replace("'", "''") + "'"
    return str(value)
