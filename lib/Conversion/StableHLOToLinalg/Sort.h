//===- Sort.h - Sorting the rows of tensors ---------------------*- C++ -*-===//

#ifndef FP8_LIB_CONVERSION_STABLEHLOTOLINALG_SORT_H
#define FP8_LIB_CONVERSION_STABLEHLOTOLINALG_SORT_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8 {

/// Emits whether the first elements come before the second ones.
using Comparator =
    function_ref<Value(OpBuilder &, Location, ValueRange, ValueRange)>;

/// Returns the indices in a tensor of element `t` of the row that is sorted.
using Row = function_ref<SmallVector<Value>(Value)>;

/// Returns the elements of the tensors at `where`.
SmallVector<Value> extractAll(OpBuilder &b, Location loc, ValueRange tensors,
                              ValueRange where);

/// Returns the extents of the loops over the rows along a dimension. Loops of
/// one iteration are left out, because they would be folded.
SmallVector<int64_t> extentsOfRows(RankedTensorType type, unsigned dimension);

/// Returns the indices of element `t` of the row at these indices of the loops
/// over the rows.
SmallVector<Value> placeInRow(OpBuilder &b, Location loc, RankedTensorType type,
                              unsigned dimension, ArrayRef<Value> rows,
                              Value t);

/// Sorts `inputs` together along `dimension`.
SmallVector<Value> mergeSort(OpBuilder &builder, Location location,
                             ValueRange inputs, unsigned dimension,
                             Comparator comesFirst);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_STABLEHLOTOLINALG_SORT_H
