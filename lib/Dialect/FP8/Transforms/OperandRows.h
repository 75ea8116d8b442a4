//===- OperandRows.h - Rows of the batch in operands of dots ----*- C++ -*-===//
//
// If amaxes are to be those of all ranks' rows, fp8-data-parallel records on
// each dot which of its operands differ between ranks. The passes that measure
// operands then reduce their amaxes.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_OPERANDROWS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_OPERANDROWS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// How a dot uses the rows of an operand.
enum class OperandRows {
  None,      ///< It is the same on all ranks, or each rank uses its own amaxes.
  Free,      ///< Each row gives its own results.
  Contracted ///< It sums over rows.
};

OperandRows getOperandRows(Operation *dot, unsigned operand);
void setOperandRows(Operation *dot, ArrayRef<OperandRows> rows);

/// Returns the maximum of `amax` over all ranks.
Value reduceAmaxOverRanks(OpBuilder &builder, Value amax, StringRef name);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_OPERANDROWS_H
