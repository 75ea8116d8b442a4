"""Rounds the operands of every dot of JAX's own step to E4M3, to measure how much such dots change a loss."""

from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo
import numpy as np

LARGEST = 448.0


def _dots(op):
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.dot_general":
                    yield inner.operation
                yield from _dots(inner.operation)


def _constant(number):
    return hlo.constant(ir.DenseElementsAttr.get(np.array(number, np.float32)))


def _largest(value, rank):
    """Returns the amax of an f32 tensor."""
    scalar = ir.RankedTensorType.get([], ir.F32Type.get())
    reduce = hlo.ReduceOp([scalar], [hlo.abs(value)], [_constant(1e-30)], ir.DenseI64ArrayAttr.get(list(range(rank))))
    with ir.InsertionPoint(reduce.regions[0].blocks.append(scalar, scalar)) as at:
        hlo.return_([hlo.maximum(*at.block.arguments)])
    return reduce.results[0]


def _rounded(value):
    """Returns the value rounded to E4M3 with one scale."""
    type = ir.RankedTensorType(value.type)
    f32, f8 = (ir.RankedTensorType.get(type.shape, element.get()) for element in (ir.F32Type, ir.Float8E4M3FNType))
    wide = hlo.convert(f32, value)
    scale = hlo.broadcast_in_dim(f32, hlo.divide(_constant(LARGEST), _largest(wide, type.rank)), ir.DenseI64ArrayAttr.get([]))
    narrow = hlo.convert(f8, hlo.multiply(wide, scale))
    return hlo.convert(type, hlo.divide(hlo.convert(f32, narrow), scale))


def round_dots(lowered):
    """Changes the module that jit lowered, in place."""
    module = lowered.compiler_ir("stablehlo")
    with module.context, ir.Location.unknown():
        for op in list(_dots(module.operation)):
            for i, value in enumerate(op.operands):
                if isinstance(ir.RankedTensorType(value.type).element_type, (ir.F32Type, ir.BF16Type)):
                    with ir.InsertionPoint(op):
                        op.operands[i] = _rounded(value)
