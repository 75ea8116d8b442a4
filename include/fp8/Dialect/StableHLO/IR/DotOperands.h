//===- DotOperands.h - The operands of dots ---------------------*- C++ -*-===//
//
// What holds for dots of both dialects, `stablehlo` and `fp8`: each dimension
// of an operand is batching, contracting or free.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_STABLEHLO_IR_DOTOPERANDS_H
#define FP8_DIALECT_STABLEHLO_IR_DOTOPERANDS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::stablehlo {

/// The dimensions of an operand that only the dot's result has in common with
/// it, in the operand's order, which is the result's, too.
SmallVector<int64_t> getFreeDims(int64_t rank, ArrayRef<int64_t> batching,
                                 ArrayRef<int64_t> contracting);

/// Changes the dimensions of an operand to those of what `transpose`, which
/// makes it, reads, if a dot with this operand has the same result: its free
/// dimensions keep their order. False, with nothing changed, if it has not.
bool readBeforeTranspose(TransposeOp transpose,
                         MutableArrayRef<int64_t> batching,
                         MutableArrayRef<int64_t> contracting);

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_DOTOPERANDS_H
