//===- DotDims.h - The dimensions of either kind of dot ---------*- C++ -*-===//

#ifndef FP8_LIB_CONVERSION_STABLEHLOTOLINALG_DOTDIMS_H
#define FP8_LIB_CONVERSION_STABLEHLOTOLINALG_DOTDIMS_H

#include "mlir/IR/Operation.h"

namespace mlir::fp8 {

/// The dimensions of a dot, by operand: 0 is the lhs, 1 is the rhs.
struct DotDims {
  using Dims = SmallVector<int64_t>;
  std::array<Dims, 2> batching, contracting;

  /// Returns the dimensions of a `stablehlo.dot_general` or an
  /// `fp8.dot_general`; nullopt for other ops.
  static std::optional<DotDims> of(Operation *op);
};

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_STABLEHLOTOLINALG_DOTDIMS_H
