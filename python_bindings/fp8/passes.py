"""Runs passes and pipelines on text, as fp8-opt does."""

import re
import shlex

from . import _native, compilations
from .compiler import CompileError


def opt(module: str, passes: str = "", locations: bool = False) -> str:
    """Runs passes on a module; returns the text of the result.

    module: MLIR text of any dialect that fp8-opt reads.
    passes: as on fp8-opt's command line, "--fp8-import --fp8-quantize=recipe=coat",
        or in MLIR's syntax of pipelines, "fp8-import,fp8-quantize{recipe=coat}".
    locations: keeps the location of each op in the result, for the diagnostics of further passes.

    Raises CompileError, whose `diagnostics` are all diagnostics, if the text is
    not a module, a pass is unknown, or a pass fails.

    >>> import fp8
    >>> print(fp8.opt("func.func @f() -> i32 { %a = arith.constant 1 : i32 %b = arith.addi %a, %a : i32 return %b : i32 }", "--canonicalize"))
    module {
      func.func @f() -> i32 {
        %c2_i32 = arith.constant 2 : i32
        return %c2_i32 : i32
      }
    }
    """
    with compilations.running():
        text, lines, error = _native.run_passes(module, _pipeline(passes), locations)
    if text is None:
        raise CompileError(error, lines)
    return text.rstrip("\n")


def _pipeline(passes):
    """Returns `passes` in MLIR's syntax of pipelines."""
    if not passes.lstrip().startswith("-"):
        return passes
    parts = []
    for word in shlex.split(passes):
        found = re.fullmatch(r"--?([\w-]+)(?:=(.*))?", word, re.DOTALL)
        if not found:
            raise ValueError(f"expected passes as --name or --name=options but got {word}")
        parts.append(found[1] + (f"{{{found[2]}}}" if found[2] else ""))
    return ",".join(parts)
