//===- Layout.h - How a value differs between ranks -------------*- C++ -*-===//
//
// Every rank runs the step on its own rows of the batch. A value is then
// replicated (the same on all ranks), made of rows (each rank has its own,
// along some dimensions), or a part of a sum, a maximum or a minimum over all
// ranks' rows.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_LAYOUT_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_LAYOUT_H

#include "../LayerSlots.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include <optional>

namespace mlir::fp8 {

/// A dimension that counts rows, or has rows as a factor: an index along it is
/// `(o * size + row) * inner + i`, with `outer` values of o.
struct RowDim {
  int64_t dim, outer, size;

  bool operator==(const RowDim &other) const {
    return dim == other.dim && outer == other.outer && size == other.size;
  }
};

/// The rows of a value: several dimensions where micro-batches have split them.
using RowDims = SmallVector<RowDim, 2>;

/// Maps the rows of a tensor of shape `from` to the shape `to`, which has as
/// many elements. None if rows and other indices would share a dimension
/// unevenly.
std::optional<RowDims> reshapeRows(ArrayRef<RowDim> rows,
                                   ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to);

struct Layout {
  enum class Kind {
    Unknown,    ///< Not computed yet.
    Zero,       ///< All zeros, on all ranks.
    Replicated, ///< The same on all ranks.
    Rows,       ///< Each rank has its own rows.
    Partial     ///< A part of a reduction over the rows of all ranks.
  };
  Kind kind = Kind::Unknown;
  RowDims rows; ///< Kind::Rows.
  /// Kind::Rows, without a dimension that counts rows: the one row of a turn of
  /// a loop over rows.
  std::optional<LayerSlot> turn;
  Reduction reduction = Reduction::Sum; ///< Kind::Partial: Sum, Max or Min.
  /// For a sum with a known constant factor: the factor, and the number of its
  /// elements, 0 if that is unknown. Replicated: the value follows linearly
  /// from such a sum that was completed before.
  bool isCounted = false;
  double elements = 0, factor = 1;
  /// Whether it is a sum that was divided by the number of its elements, and
  /// possibly multiplied by something else since.
  bool isMean = false;
  /// Whether it is a sum divided by a count that was summed over the ranks, or
  /// (Replicated) such a count.
  bool byCount = false;
  /// Whether the value depends on parameters.
  bool learned = false;
  /// Replicated: whether the value follows from parameters and the rows of all
  /// ranks, so that no row may depend on it. A new parameter is not mixed.
  bool mixed = false;

  static Layout of(Kind kind) {
    Layout layout;
    layout.kind = kind;
    return layout;
  }
  bool is(Kind other) const { return kind == other; }
  /// Whether the value is the same on all ranks.
  bool isWhole() const { return is(Kind::Zero) || is(Kind::Replicated); }
  bool isPartial(Reduction of) const {
    return is(Kind::Partial) && reduction == of;
  }
  /// Whether it is a part of a sum over rows, or zeros, which add nothing to
  /// one.
  bool isSum() const { return isPartial(Reduction::Sum) || is(Kind::Zero); }
  /// Whether it is a sum over rows without a divisor.
  bool isPlainSum() const;
  /// Multiplies it by a constant, or by an unknown factor. divides: it is
  /// divided by the inverse.
  void scale(std::optional<double> by, bool divides = false);

  bool operator==(const Layout &other) const;
  bool operator!=(const Layout &other) const { return !(*this == other); }
};

/// Returns the layout of a partial sum of this many elements, 0 if the number
/// is unknown.
Layout sumOf(double elements);

/// Returns the layout of a partial sum, combined linearly with weights that are
/// the same on all ranks.
Layout weighted(Layout sum);

/// Returns the layout of a value that is either of two (in the first and a
/// later iteration of a loop, in two branches); none if it must be reduced over
/// the ranks first.
std::optional<Layout> join(const Layout &a, const Layout &b);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_LAYOUT_H
