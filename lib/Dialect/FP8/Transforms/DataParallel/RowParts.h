//===- RowParts.h - Parts of a dimension that counts rows -------*- C++ -*-===//
//
// A step cuts micro-batches out of its batch, and puts batches side by side, of
// two views of the same examples for instance. The batch of all ranks is then
// in an order in which part i consists of part i of each rank.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWPARTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWPARTS_H

#include "Layout.h"

namespace mlir::fp8 {

/// Whether every element of integers is a multiple of `unit`, whatever the
/// iteration of a loop.
bool isMultipleOf(Value value, int64_t unit);

/// Returns the rows of a part of `row`'s dimension, which has `part` of its
/// `extent` elements and begins at a multiple of `unit`: whole copies of the
/// rows, or a micro-batch of them. None if it is neither.
std::optional<RowDim> cutRows(const RowDim &row, int64_t extent, int64_t part,
                              int64_t &unit);

/// Returns the rows of a dimension of `extent` elements in which those of
/// `row`'s dimension, of `part` elements, begin at `start`, beside zeros or
/// other copies of the rows. None if copies do not fill it evenly.
std::optional<RowDim> embedRows(const RowDim &row, int64_t part, int64_t extent,
                                int64_t start);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWPARTS_H
