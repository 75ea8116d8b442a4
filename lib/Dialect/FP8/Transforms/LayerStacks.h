//===- LayerStacks.h - Stacks that a later loop reads -----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSTACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSTACKS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// A stack of zeros that a loop writes slot by slot, and of which only slices
/// of one slot are read after the loop: autodiff saves values for the backward
/// pass in such stacks.
struct LayerStack {
  unsigned carry;
  stablehlo::DynamicUpdateSliceOp update;
  SmallVector<stablehlo::DynamicSliceOp> slices;

  /// Returns the value that a slot holds, before it was reshaped.
  Value getValue() const;
};

std::optional<LayerStack> matchLayerStack(stablehlo::WhileOp loop,
                                          unsigned carry);

/// Makes the loop stack `values`, too, each in a stack of its own, at the slot
/// that `update` writes. The stacks are new carries after the existing ones.
/// Returns the loop that replaces `loop`.
stablehlo::WhileOp addParallelStacks(stablehlo::WhileOp loop,
                                     stablehlo::DynamicUpdateSliceOp update,
                                     ValueRange values);

/// Reads, at the builder's insertion point, the slot of `stack` that `slice`
/// reads of another stack, without the leading dimension.
Value readParallelSlot(OpBuilder &builder, stablehlo::DynamicSliceOp slice,
                       Value stack);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSTACKS_H
