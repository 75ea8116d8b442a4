//===- OperandRows.h - Rows of the batch in operands of dots ----*- C++ -*-===//
//
// Where amaxes of all ranks' rows are wanted, fp8-data-parallel leaves on each
// dot which of its operands differ between ranks, and the passes that measure
// operands reduce their amaxes.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_OPERANDROWS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_OPERANDROWS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// What a dot does with the rows of an operand.
enum class OperandRows {
  None,      ///< It is the same on all ranks, or its own amaxes are wanted.
  Free,      ///< Each row gives its own results.
  Contracted ///< It sums over rows.
};

OperandRows getOperandRows(Operation *dot, unsigned operand);
void setOperandRows(Operation *dot, ArrayRef<OperandRows> rows);

/// The largest of all ranks.
Value reduceAmaxOverRanks(OpBuilder &builder, Value amax, StringRef name);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_OPERANDROWS_H
