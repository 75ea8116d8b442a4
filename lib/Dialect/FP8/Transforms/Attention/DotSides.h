//===- DotSides.h - The dimensions of each operand of a dot -----*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_DOTSIDES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_DOTSIDES_H

#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::fp8 {

/// The batching and contracting dimensions of one operand of a dot.
struct SideDims {
  SmallVector<int64_t> batch, contract;

  SmallVector<int64_t> getFree(int64_t rank) const {
    return stablehlo::getFreeDims(rank, batch, contract);
  }
};

/// Returns the dimensions of operand `side`, 0 or 1.
SideDims sideDims(stablehlo::DotGeneralOp dot, unsigned side);

/// Makes a dot like `like`, on other operands.
Value makeDot(OpBuilder &builder, stablehlo::DotGeneralOp like, Value lhs,
              Value rhs, const SideDims &left, const SideDims &right);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_DOTSIDES_H
