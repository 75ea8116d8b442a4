//===- Views.h - Views that preserve some dimensions ------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_VIEWS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_VIEWS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::fp8::smooth {

using Dims = SmallVector<int64_t>;

/// A value as a view of another one. `dims` are dimensions that both have, as
/// dimensions of the root.
struct View {
  Value root;
  Dims dims;
  /// The ops from the value back to its root, without these two.
  SmallVector<OpResult> steps;
  /// The dimensions of the root along which slices cut one layer off, the
  /// outermost first.
  Dims layers;
};

/// The ops that a view may pass through.
enum class Through {
  Layouts, ///< Reshapes, transposes, barriers.
  Layers   ///< Also conversions, and slices of one layer.
};

View getView(Value value, ArrayRef<int64_t> dims, Through through);

/// Returns the layout ops that lead from a value of this shape to `value`, the
/// last one first; none if there is no such value.
std::optional<SmallVector<Operation *>> getLayoutsFrom(ArrayRef<int64_t> shape,
                                                       Value value);

/// Returns the sizes of some dimensions of a tensor.
Dims sizesOf(Value value, ArrayRef<int64_t> dims);

/// Sorts `dims` by `places`, their indices in the root of a view.
Dims sortBy(ArrayRef<int64_t> dims, ArrayRef<int64_t> places);

/// Returns the dimensions of both lists.
Dims unite(ArrayRef<int64_t> a, ArrayRef<int64_t> b);

} // namespace mlir::fp8::smooth

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_VIEWS_H
