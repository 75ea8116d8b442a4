"""Sums of bf16 as everyone but XLA's CPU backend has them: in f32, rounded once.

StableHLO leaves order and type of a sum's partial sums open. XLA on a CPU rounds after every
addition, in order, which makes a gradient of a hundred examples wrong by a few percent, and always by the same:
perturbing the values a little tells nothing about it. So the reference sums in f32."""

from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo


def _retyped(type, element):
    return ir.RankedTensorType.get(ir.RankedTensorType(type).shape, element)


def _is_sum(op):
    """Whether it is one sum of bf16."""
    if len(op.results) != 1 or not isinstance(ir.RankedTensorType(op.results[0].type).element_type, ir.BF16Type):
        return False
    body = list(op.regions[0].blocks[0].operations)
    return [inner.operation.name for inner in body] == ["stablehlo.add", "stablehlo.return"]


def _sums(op):
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                if inner.operation.name == "stablehlo.reduce" and _is_sum(inner.operation):
                    yield inner.operation
                else:
                    yield from _sums(inner.operation)


def widen(lowered):
    """Changes the module of what jit lowered, in place; call it when its text was taken."""
    module = lowered.compiler_ir("stablehlo")
    with module.context, ir.Location.unknown():
        f32 = ir.F32Type.get()
        for op in list(_sums(module.operation)):
            with ir.InsertionPoint(op):
                operands = [hlo.convert(_retyped(value.type, f32), value) for value in op.operands]
                scalar, result = ir.RankedTensorType.get([], f32), op.results[0]
                wide = hlo.ReduceOp([_retyped(result.type, f32)], operands[:1], operands[1:], op.attributes["dimensions"])
                block = wide.regions[0].blocks.append(scalar, scalar)
                with ir.InsertionPoint(block):
                    hlo.return_([hlo.add(*block.arguments)])
                result.replace_all_uses_with(hlo.convert(result.type, wide.results[0]))
            op.erase()
