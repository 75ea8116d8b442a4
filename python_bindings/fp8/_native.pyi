"""The C interfaces of fp8's compiler and runtime; see Module.cpp."""

from typing import Any

import numpy as np

class TensorInfo:
    name: str
    dtype: str
    shape: tuple[int, ...]
    bytes: int
    role: str
    kind: str
    state_arg: int
    zero_init: bool
    own_buffer: bool

class Function:
    arguments: list[TensorInfo]
    results: list[TensorInfo]

class Step:
    def __init__(self, function: Function, threads: int = 0) -> None: ...
    def run(self) -> None: ...
    def argument(self, index: int, owner: Any) -> np.ndarray: ...
    def result(self, index: int, owner: Any) -> np.ndarray: ...
    def save(self, path: str, metadata: list[str]) -> None: ...
    def restore(self, path: str) -> str: ...
    def trace(self, number: int) -> str: ...
    def memory(self) -> dict[str, int]: ...
    def set_profile(self, on: bool) -> None: ...
    def profile(self) -> list[dict[str, Any]]: ...

class Package:
    def __init__(self, directory: str) -> None: ...
    def function(self, name: str) -> Function | None: ...
    def text(self, name: str) -> str | None: ...
    def evaluate(self, step: Step, held_out: HeldOut) -> str: ...
    def export_weights(self, step: Step, directory: str, number: int, held_out: HeldOut) -> None: ...

class HeldOut:
    data: list[str]
    eval_data: list[str]
    arrays: list[tuple[str, str, list[int], np.ndarray]]
    holdout: float
    seed: int
    threads: int
    signals: bool
    def __init__(self) -> None: ...

class Alarms:
    may_skip: bool
    def __init__(self, step: Function, rules: list[str]) -> None: ...
    def check(self, step: Step, number: int) -> tuple[list[str], bool, bool]: ...

class Program:
    def load(self) -> Package: ...
    def emit(self, directory: str) -> None: ...

def compile(
    step: str,
    *,
    recipe: str = "none",
    set: list[str] = ...,
    roles: list[str] = ...,
    states: list[str] = ...,
    loss: str | None = None,
    entry: str | None = None,
    target: str | None = None,
    dump_directory: str | None = None,
    eval: str | None = None,
    export_format: str | None = None,
    fail_on_fallback: bool = False,
    trace: bool = False,
    cache: bool = True,
    threads: int = 0,
) -> tuple[Program | None, list[str], str]: ...
def run_passes(module: str, pipeline: str, locations: bool = False) -> tuple[str | None, list[str], str]: ...
def version() -> str: ...
