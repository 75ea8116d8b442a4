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

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include <optional>

namespace mlir::fp8 {

/// A dimension that counts rows, or a factor of one: an index along it is
/// `(o * size + row) * inner + i`, with `outer` values of o.
struct RowDim {
  int64_t dim, outer, size;

  bool operator==(const RowDim &other) const {
    return dim == other.dim && outer == other.outer && size == other.size;
  }
};

/// The rows of a value: more than one where micro-batches have split them.
using RowDims = SmallVector<RowDim, 2>;

/// The rows of a tensor of shape `from` in the shape `to` of as many elements;
/// none if rows and other indices would share a dimension unevenly.
std::optional<RowDims> reshapeRows(ArrayRef<RowDim> rows,
                                   ArrayRef<int64_t> from,
                                   ArrayRef<int64_t> to);

struct Layout {
  enum class Kind {
    Unknown,    ///< Not computed yet.
    Zero,       ///< All zeros, on all ranks.
    Replicated, ///< The same on all ranks.
    Rows,       ///< Of each rank its own rows.
    Partial     ///< A part of a reduction over the rows of all ranks.
  };
  Kind kind = Kind::Unknown;
  RowDims rows;                         ///< Kind::Rows.
  Reduction reduction = Reduction::Sum; ///< Kind::Partial: Sum, Max or Min.
  /// A sum, if this is known of it: of how many elements, times which constant.
  bool isCounted = false;
  double elements = 0, factor = 1;
  /// A sum that was divided by the number of its elements, and perhaps
  /// multiplied by something else since.
  bool isMean = false;
  /// A sum divided by a count that was summed over the ranks; or (Replicated)
  /// such a count.
  bool byCount = false;
  /// Parameters have a part in it.
  bool learned = false;
  /// Replicated: it follows from parameters and the rows of all ranks, which no
  /// row may see.
  bool mixed = false;

  static Layout of(Kind kind) {
    Layout layout;
    layout.kind = kind;
    return layout;
  }
  bool is(Kind other) const { return kind == other; }
  /// The same on all ranks.
  bool isWhole() const { return is(Kind::Zero) || is(Kind::Replicated); }
  bool isPartial(Reduction of) const {
    return is(Kind::Partial) && reduction == of;
  }
  /// A sum over rows without a divisor.
  bool isPlainSum() const;
  /// It is multiplied by a constant, or by something else.
  void scale(std::optional<double> by);

  bool operator==(const Layout &other) const;
  bool operator!=(const Layout &other) const { return !(*this == other); }
};

/// What a value is that is the one or the other (the first and a later turn of
/// a loop, two branches); none if it must be made whole first.
std::optional<Layout> join(const Layout &a, const Layout &b);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_LAYOUT_H
