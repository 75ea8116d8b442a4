//===- LayerStacks.h - What a loop stacks for a later one -------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSTACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSTACKS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// A stack of zeros that a loop writes slot by slot, and that only slices of
/// one slot read after it: what autodiff keeps for the backward pass.
struct LayerStack {
  unsigned carry;
  stablehlo::DynamicUpdateSliceOp update;
  SmallVector<stablehlo::DynamicSliceOp> slices;

  /// The value that a slot holds, before it was reshaped.
  Value getValue() const;
};

std::optional<LayerStack> matchLayerStack(stablehlo::WhileOp loop,
                                          unsigned carry);

/// Has the loop stack `values` too, each in a stack of its own, where `update`
/// writes its slot. They are carries behind those that there are. Returns the
/// loop that replaces `loop`.
stablehlo::WhileOp stackBeside(stablehlo::WhileOp loop,
                               stablehlo::DynamicUpdateSliceOp update,
                               ValueRange values);

/// The slot of `stack` that `slice` reads of another one, without the leading
/// dimension, read where the builder stands.
Value readBeside(OpBuilder &builder, stablehlo::DynamicSliceOp slice,
                 Value stack);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_LAYERSTACKS_H
