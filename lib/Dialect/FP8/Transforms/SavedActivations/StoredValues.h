//===- StoredValues.h - The forms in which values are saved -----*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_STOREDVALUES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_STOREDVALUES_H

#include "../Attention/AttentionBlocks.h"
#include "../Quantize/ComputeType.h"

#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Stores values as the recipe says, each once, and restores them where they
/// are read.
class StoredValues {
public:
  StoredValues(func::FuncOp function, const LinearLayers &layers,
               const ComputeRecipe &compute);

  /// Tells of a use in the backward pass for which `value` is saved.
  void addUse(Value value, OpOperand &use);
  /// Whether a value is stored as it is. (Biases of scores are.)
  bool isKeptExact(Value value) const { return exact.contains(value); }

  /// Returns the f8 format that a value is saved in; none if it is not
  /// quantized.
  std::optional<SavedFormat> getForm(Value value) const;
  /// Whether a value is saved in the blocks that attention dots read.
  bool isInBlocks(Value value) const { return blocks.contains(value); }
  /// Returns what is saved of a value: the value, or a narrower form of it.
  Value store(Value value, bool isStacked);
  /// Makes the value that `reader` reads instead of a saved one.
  Value restore(Value value, Operation *reader, bool isStacked);

private:
  void findBlocks(func::FuncOp function, const LinearLayers &layers);
  Value quantize(Value value, SavedFormat form);
  Value addBarrier(Value narrow);
  Value inRangeOfBF16(Value value);

  const ComputeRecipe &compute;
  OpBuilder builder;
  Rounder rounder;
  BlockQuantizer blockQuantizer;
  DenseSet<Value> exact;
  /// Values that other ops than dots read.
  DenseSet<Value> ofOthers;
  /// The inputs of norms and of gated units, with the values related to them.
  DenseSet<Value> ofNorms, ofGatedUnits;
  /// The tiles of values that only attention dots read from the forward pass.
  DenseMap<Value, SmallVector<int64_t>> blocks;
  DenseMap<Value, Value> payloads, barriers, clampedValues;
  /// The number of elements of the largest saved operand of a dot.
  int64_t largestOperand = 0;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_STOREDVALUES_H
