"""A case is a function marked with `@case` that makes a training step and says what is to be found in it."""

from typing import Any, NamedTuple

import fp8_testing as t

case = t.Cases()


class Case(NamedTuple):
    """`step(**args)` returns a dictionary of the new values of the arguments named in `state`, and
    a dictionary of everything else. `kinds` has pairs of a regular expression for a path and the
    kind of the state at that path; the first match counts, and None stands for any kind. `roles` has
    the roles of arguments that are not state."""

    step: Any
    args: dict
    state: list
    kinds: list
    roles: dict
    loss: str = "['loss']"
    # Arguments that could be state without names: an error that options resolve.
    unclear: tuple = ()
    # Matches state that results with the same value replace, in any order.
    alike: str = "$^"


PARAMETER = (r"params", "parameter")
ADAM = [(r"\.mu\b", "moment1"), (r"\.nu\b", "moment2"), (r"count", "step")]
