//===- AttentionBlocks.h - Attention on operands in f8 ----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBLOCKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBLOCKS_H

#include "../Quantize/ComputeType.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// An operand of an attention dot that is rounded in blocks: queries, keys,
/// values or the gradient of the output.
struct RoundedOperand {
  OpOperand *use;
  SmallVector<int64_t> tile; // of the operand
};

/// Returns these operands of a function whose dots have verdicts.
SmallVector<RoundedOperand> findRoundedOperands(func::FuncOp function);

/// Returns the values that such operands are, before they are transposed or, in
/// the loop of a backward pass, read from a stack, with the tile of each.
/// Values that are read in different tiles are left out.
DenseMap<Value, SmallVector<int64_t>>
findValuesInBlocks(ArrayRef<RoundedOperand> operands);

/// Quantizes values in blocks, each once.
class BlockQuantizer {
public:
  explicit BlockQuantizer(MLIRContext *context)
      : builder(context), rounder(context) {}

  /// Returns the payload and scales of a value. The value is rounded to bf16
  /// first, so that a backward pass that reads it saved in bf16 gets the same.
  Value get(Value value, ArrayRef<int64_t> tile);

private:
  OpBuilder builder;
  Rounder rounder;
  DenseMap<std::pair<Value, Attribute>, Value> payloads;
};

/// Rounds the operands of a function's attention dots to E4M3, as
/// FlashAttention-3 does (arXiv 2407.08608, section 3.3): queries, keys, values
/// and the gradient of the output in blocks of 64 tokens of a head, weights row
/// by row. Scales are powers of two, so that bf16 holds the rounded operands
/// exactly. The gradient of the scores stays bf16.
void quantizeAttention(func::FuncOp function);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBLOCKS_H
