//===- ScalarOps.h - Elementwise StableHLO ops ------------------*- C++ -*-===//

#ifndef FP8_LIB_CONVERSION_STABLEHLOTOLINALG_SCALAROPS_H
#define FP8_LIB_CONVERSION_STABLEHLOTOLINALG_SCALAROPS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8 {

/// Returns the element type after conversion: integers become signless.
Type signlessElement(Type element);

/// Returns a tensor type with signless elements, and any other type unchanged.
Type signlessType(Type type);

/// Returns the attribute with signless elements.
TypedAttr signlessAttr(ElementsAttr attr);

/// Returns true for ops that work on each element alone.
bool isElementwise(Operation *op);

/// Emits `op` for one element. `scalars` are its operands' elements with
/// signless types; the op's own types determine the signedness of integers.
/// Returns null, without an error, if the op or its types are not supported.
Value emitScalar(OpBuilder &b, Location loc, Operation *op, ValueRange scalars);

/// Emits the ops of a computation on rank-0 tensors (the body of a reduction,
/// a scatter, ...) for scalars. Fails with an error on the op it cannot emit.
FailureOr<SmallVector<Value>> emitBody(OpBuilder &b, Location loc, Block &body,
                                       ValueRange arguments);

/// Returns true if the body applies one addition, multiplication, maximum or
/// minimum to its two arguments.
bool isPlainReduction(Block &body);

/// Emits the op of a plain reduction of narrow floats for two numbers in f32.
Value emitWideReduction(OpBuilder &b, Location loc, Block &body,
                        ValueRange arguments);

/// Converts an element from one type (with its sign) to another, with the
/// semantics of `stablehlo.convert`.
Value emitConvert(OpBuilder &b, Location loc, Value value, Type from, Type to);

/// Returns true for f16, bf16 and smaller floats.
bool isNarrowFloat(Type element);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_STABLEHLOTOLINALG_SCALAROPS_H
