//===- SimplifyAttention.h - Attention for a GPU ----------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_ATTENTION_SIMPLIFYATTENTION_H
#define FP8_LIB_CODEGEN_GPU_ATTENTION_SIMPLIFYATTENTION_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8::gpu_codegen {

/// Simplifies the kernel of an attention for a GPU. Values that follow from
/// indices alone, such as a causal mask, are computed where they are read: on a
/// GPU a few instructions cost less than a buffer in shared memory. Elementwise
/// ops that need no result of a dot come before the dots, so that those behind
/// a dot can run on its sums.
void simplifyAttention(KernelOp kernel);

/// Moves dots of operands that the kernel only reads before all others, so that
/// what follows from their results can be one nest, in registers.
void gatherScores(KernelOp kernel);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_ATTENTION_SIMPLIFYATTENTION_H
