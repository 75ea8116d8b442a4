//===- StoredForm.h - What an array is stored as ----------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREDFORM_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREDFORM_H

#include "DelayedScaling.h"
#include "Seeds.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

namespace mlir {
namespace fp8 {

/// An array is stored as *parts*: the array in a narrower type, or payload and
/// scale, with center and exponent of an expansion.
struct StoredForm {
  StorageRecipe recipe;
  RankedTensorType real;   ///< As the step has it.
  ScaledType scaled;       ///< Payload and scales; null: a cast.
  RankedTensorType narrow; ///< Of a cast.

  /// How the recipe stores an array of this type. The first `layers` dimensions
  /// count layers, which do not share a scale.
  static StoredForm get(const StorageRecipe &recipe, RankedTensorType real,
                        unsigned layers = 0);

  bool isCast() const { return !scaled; }
  bool changesType() const { return scaled || narrow != real; }
  SmallVector<RankedTensorType> getPartTypes() const;

  /// Chooses the scale, where it is not the one of the array's own amax.
  using ChooseScale =
      function_ref<DelayedScaling::Scale(ComputeScaleOp current)>;

  /// The parts that `value` is stored in, made where the builder stands. With
  /// `seeds` stochastic rounding draws the numbers of `tensor`; without, all
  /// is rounded to nearest. Of an array that ranks have parts of, `overRanks`
  /// is what it is called: one scale is that of the whole.
  FailureOr<SmallVector<Value>> store(OpBuilder &builder, Location loc,
                                      Value value, Seeds *seeds, int64_t tensor,
                                      ChooseScale chooseScale = nullptr,
                                      StringRef overRanks = "") const;

  /// Whether ranks can store parts of an array so: with one current scale, with
  /// those of groups that no two parts have some of, or with none.
  static bool isForParts(const StorageRecipe &recipe, ArrayRef<int64_t> part,
                         ArrayRef<int64_t> whole);

  /// The value that the parts stand for.
  Value load(OpBuilder &builder, Location loc, ArrayRef<Value> parts) const;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREDFORM_H
