//===- AttentionBlocks.h - Attention on operands in f8 ----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBLOCKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBLOCKS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Rounds the operands of a function's attention dots to E4M3, as
/// FlashAttention-3 does (arXiv 2407.08608, section 3.3): queries, keys, values
/// and the gradient of the output in blocks of 64 tokens of a head, weights row
/// by row. Scales are powers of two, so that bf16 holds the rounded operands
/// exactly. The gradient of the scores stays bf16.
void quantizeAttention(func::FuncOp function);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBLOCKS_H
