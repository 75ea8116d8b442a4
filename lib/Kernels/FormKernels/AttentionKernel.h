//===- AttentionKernel.h - Outlining of an attention ------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_ATTENTIONKERNEL_H
#define FP8_LIB_KERNELS_FORMKERNELS_ATTENTIONKERNEL_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Returns true if `op` is an attention, whose body becomes one kernel.
bool isAttention(Operation *op);

/// Turns `op`, an attention on tensors, into the kernel `name` at the end of
/// the module and a launch in its place. Batches and heads are the kernel's
/// domain. So are queries if no op sums over them; otherwise each task runs
/// over them in blocks.
LogicalResult outlineAttention(Operation *op, StringRef name);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_ATTENTIONKERNEL_H
