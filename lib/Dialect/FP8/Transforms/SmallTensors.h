//===- SmallTensors.h - Constants and reshapes ------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMALLTENSORS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMALLTENSORS_H

#include "fp8/Support/Shapes.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir {
namespace fp8 {

/// Makes a constant of floats that all equal `value`.
Value makeSplat(OpBuilder &b, Location loc, RankedTensorType type,
                double value);

/// Makes a constant of zeros, of any element type.
Value makeZeros(OpBuilder &b, Location loc, Type type);

/// Makes a constant that repeats the element of `value`; null if that is no
/// constant or its elements differ.
Value resizeSplat(OpBuilder &b, Location loc, Value value,
                  RankedTensorType type);

/// Reshapes `value`; returns it unchanged if it has that shape.
Value makeReshape(OpBuilder &b, Location loc, Value value,
                  ArrayRef<int64_t> shape);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMALLTENSORS_H
