//===- Tensors.h - New tensors of a type ------------------------*- C++ -*-===//

#ifndef FP8_LIB_CONVERSION_TENSORS_H
#define FP8_LIB_CONVERSION_TENSORS_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {

/// Creates an uninitialized tensor.
inline Value emptyTensor(OpBuilder &b, Location loc, RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type.getShape(),
                                 type.getElementType());
}

/// Creates a tensor of zeros, for example as an accumulator.
inline Value filledWithZero(OpBuilder &b, Location loc, RankedTensorType type) {
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  return linalg::FillOp::create(b, loc, zero, emptyTensor(b, loc, type))
      .getResult(0);
}

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_TENSORS_H
