//===- DotOperands.h - The operands of dots ---------------------*- C++ -*-===//
//
// Helpers for the dots of both dialects, `stablehlo` and `fp8`: each dimension
// of an operand is batching, contracting or free.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_DOTOPERANDS_H
#define FP8_DIALECT_STABLEHLO_IR_DOTOPERANDS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::stablehlo {

/// Returns the free dimensions of an operand. Their order in the operand is
/// also their order in the result.
SmallVector<int64_t> getFreeDims(int64_t rank, ArrayRef<int64_t> batching,
                                 ArrayRef<int64_t> contracting);

/// The dimensions of an operand of a dot, by what becomes of them.
struct OperandDims {
  ArrayRef<int64_t> batching, contracting;
  SmallVector<int64_t> free;
};

/// Returns the dimensions of operand `number`: 0 is the lhs, 1 is the rhs.
OperandDims getOperandDims(DotGeneralOp dot, unsigned number);

/// Returns the dimension of the result that each dimension of operand `number`
/// becomes; -1 for those that are contracted.
SmallVector<int64_t> getResultDims(DotGeneralOp dot, unsigned number);

/// Rewrites the dimension numbers of an operand that is `transpose`'s result to
/// those of its input, if a dot that reads the input has the same result: the
/// free dimensions must keep their order. Otherwise returns false and changes
/// nothing.
bool readBeforeTranspose(TransposeOp transpose,
                         MutableArrayRef<int64_t> batching,
                         MutableArrayRef<int64_t> contracting);

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_DOTOPERANDS_H
