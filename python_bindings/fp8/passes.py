"""Any pass, any stage: what fp8-opt does, on text."""

import re
import shlex

from . import _native
from .compiler import CompileError


def opt(module: str, passes: str = "", locations: bool = False) -> str:
    """Runs passes over a module; returns the text after them.

    module: MLIR text of any dialect that fp8-opt reads.
    passes: as on fp8-opt's command line, "--fp8-import --fp8-quantize=recipe=coat",
        or as MLIR spells pipelines, "fp8-import,fp8-quantize{recipe=coat}".
    locations: the result tells where each op comes from, for further passes to say so.

    Raises CompileError, whose `diagnostics` are all that was said, if the text is
    no module, a pass is not known, or one fails.

    >>> import fp8
    >>> print(fp8.opt("func.func @f() -> i32 { %a = arith.constant 1 : i32 %b = arith.addi %a, %a : i32 return %b : i32 }", "--canonicalize"))
    module {
      func.func @f() -> i32 {
        %c2_i32 = arith.constant 2 : i32
        return %c2_i32 : i32
      }
    }
    """
    text, lines, error = _native.run_passes(module, _pipeline(passes), locations)
    if text is None:
        raise CompileError(error, lines)
    return text.rstrip("\n")


def _pipeline(passes):
    """MLIR's spelling of `passes`."""
    if not passes.lstrip().startswith("-"):
        return passes
    parts = []
    for word in shlex.split(passes):
        found = re.fullmatch(r"--?([\w-]+)(?:=(.*))?", word, re.DOTALL)
        if not found:
            raise ValueError(f"expected passes as --name or --name=options but got {word}")
        parts.append(found[1] + (f"{{{found[2]}}}" if found[2] else ""))
    return ",".join(parts)
