//===- Shapes.h - Types and sizes of tensors and buffers --------*- C++ -*-===//

#ifndef FP8_SUPPORT_SHAPES_H
#define FP8_SUPPORT_SHAPES_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

#include <string>

namespace mlir::fp8 {

/// Returns the type of a tensor.
inline RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Returns the shape of a tensor.
inline ArrayRef<int64_t> shapeOf(Value value) {
  return tensorOf(value).getShape();
}

/// Dimensions of a tensor, and those of its reshape that have the same
/// elements.
struct MatchedDims {
  SmallVector<int64_t, 2> from, to;
};

/// Divides the dimensions of a shape and of its reshape, except those of one
/// element, into groups that match. They are as small as they can be, and in
/// order.
SmallVector<MatchedDims> matchReshape(ArrayRef<int64_t> from,
                                      ArrayRef<int64_t> to);

/// Returns the bytes of an element of a dense buffer or tensor: those of less
/// than a byte take one, and those of type index eight.
int64_t elementBytes(Type element);

/// Returns the bytes of a dense buffer or tensor.
int64_t byteSize(ShapedType type);

/// Returns a type as 16x64xf32.
std::string printShape(ShapedType type);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_SHAPES_H
