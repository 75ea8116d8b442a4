//===- StoredForm.h - How an array is stored --------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREDFORM_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREDFORM_H

#include "Quantize/DelayedScaling.h"
#include "Seeds.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

namespace mlir {
namespace fp8 {

/// How an array is stored, as *parts*: the array in a narrower type, or payload
/// and scale, with center and exponent of a range expansion.
struct StoredForm {
  StorageRecipe recipe;
  RankedTensorType real;   ///< In the exported step.
  ScaledType scaled;       ///< Payload and scales; null for a cast.
  RankedTensorType narrow; ///< The type of a cast.

  /// Returns how the recipe stores an array of this type. The first `layers`
  /// dimensions count layers, which do not share a scale.
  static StoredForm get(const StorageRecipe &recipe, RankedTensorType real,
                        unsigned layers = 0);

  bool isCast() const { return !scaled; }
  bool changesType() const { return scaled || narrow != real; }
  SmallVector<RankedTensorType> getPartTypes() const;

  /// Chooses the scale, if it is not the one of the array's own amax.
  using ChooseScale =
      function_ref<DelayedScaling::Scale(ComputeScaleOp current)>;

  /// Makes the parts that store `value`, at the builder's insertion point. With
  /// `seeds`, stochastic rounding draws the random numbers of `tensor`;
  /// without, all values are rounded to nearest. If ranks have parts of the
  /// array, `overRanks` is its name: a single scale is then that of the whole
  /// array.
  FailureOr<SmallVector<Value>> store(OpBuilder &builder, Location loc,
                                      Value value, Seeds *seeds, int64_t tensor,
                                      ChooseScale chooseScale = nullptr,
                                      StringRef overRanks = "") const;

  /// Whether ranks can store parts of an array in this form: with one current
  /// scale, with scales and ranges of groups that no two parts share, or with
  /// none.
  static bool canStoreParts(const StorageRecipe &recipe, ArrayRef<int64_t> part,
                            ArrayRef<int64_t> whole);

  /// Restores the value from its parts.
  Value load(OpBuilder &builder, Location loc, ArrayRef<Value> parts) const;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREDFORM_H
