"""Accumulates sums of bf16 in f32 and rounds once, as everything but XLA's CPU backend does.

StableHLO does not specify the order and type of a sum's partial sums. XLA on a CPU rounds after every
addition, in order. That makes a gradient of a hundred examples wrong by a few percent, always in the same way, so
perturbing the values does not reveal it. The reference therefore sums in f32."""

from jax._src.lib.mlir import ir
from jax._src.lib.mlir.dialects import hlo


def _retyped(type, element):
    return ir.RankedTensorType.get(ir.RankedTensorType(type).shape, element)


def _is_sum(op):
    """Returns whether the op is a single sum of bf16."""
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
    """Changes the module that jit lowered, in place; call it after taking its text."""
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
