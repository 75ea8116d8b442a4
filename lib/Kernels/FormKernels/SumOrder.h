//===- SumOrder.h - The order in which sums are written ---------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_SUMORDER_H
#define FP8_LIB_KERNELS_FORMKERNELS_SUMORDER_H

#include "mlir/IR/Value.h"

namespace mlir::fp8 {

/// Lets the sum that `use`, its only use, reads have the order of dimensions in
/// which the reader writes its own result. Returns false and changes nothing
/// if the reader is no op on elements that reads each of them once, or if the
/// sum does not begin with a fill.
bool writeInOrderOfReader(OpOperand &use);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_SUMORDER_H
