"""Loads packages: compiled steps as files."""

import json
import os
import pathlib

from . import _native, arrays, state, trees
from .group import Group, expect_group
from .step import Step


def load(directory: str | os.PathLike, threads: int = 0, group: Group | None = None) -> Step:
    """Loads the step of a package that `Step.save` or `fp8-run --emit-package` wrote. Needs no compiler.

    It is called like the step that was saved, with any containers whose leaves have
    the same paths. `threads`: threads of a step; 0: one for each core that the process may use.
    `group`: the ranks that run it together, as for `fp8.compile`; the package must be compiled with `data_parallel`.
    Raises OSError if a file cannot be read and ValueError if one is damaged,
    of another version, or for a single process.
    """
    threads = arrays.count("threads", threads, most=2**31 - 1)
    expect_group(group)
    directory = pathlib.Path(arrays.path_text(directory))
    functions = state.Functions(_native.Package(str(directory)), group)
    if functions.package.text("signature.json") is None:
        raise ValueError(f"{directory}: expected signature.json in the package: it was written by an earlier version")
    described = directory / "trees.json"
    try:
        rows = json.loads(described.read_text("utf-8")) if described.exists() else None
    except ValueError as error:
        raise ValueError(f"{described}: expected JSON but got {error}") from None
    # Another program may have written another step there since.
    if rows and rows.get("fingerprint") not in (None, functions.package.text("fingerprint")):
        rows = None
    return Step(functions, trees_of(functions, rows), threads)


def trees_of(functions, rows=None):
    """Returns the trees of compiled functions whose paths are known, from trees.json or else from the signature."""
    signature = json.loads(functions.package.text("signature.json"))
    rows = rows or {part: [_row(row) for row in signature[part]] for part in ("arguments", "results")}
    leaves = ([trees.Leaf(row["path"], tuple(row["shape"]), arrays.dtype_called(row["dtype"]), row["key"]) for row in rows[part]] for part in ("arguments", "results"))
    states = {row["path"]: row["result"] for row in signature["arguments"] if row["result"]}
    return trees.PathTrees(*leaves, states, rows.get("roots"), rows.get("empty"), rows.get("by_name", ()))


_MLIR = {"i1": "bool", "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}


def _row(row):
    """Returns the entry of trees.json for an argument or result of a type such as tensor<4x8xf32>."""
    *shape, element = row["type"].removeprefix("tensor<").removesuffix(">").split("x")
    if element.startswith("f8"):  # f8E4M3FN is float8_e4m3fn.
        element = f"float8_{element[2:].lower()}"
    elif element not in _MLIR:
        kind, bits = ("uint", element[2:]) if element.startswith("ui") else ("int", element[1:])
        element = kind + bits
    return {"path": row["path"], "shape": [int(n) for n in shape], "dtype": _MLIR.get(element, element), "key": None}
