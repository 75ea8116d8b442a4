//===- BatchReading.h - What counts the rows of a batch ---------*- C++ -*-===//
//
// The leading dimension of a batch counts its rows, unless the step cuts it
// otherwise: `[B]` may be micro-batches `[k, B/k]` (also halves that the loss
// compares), or groups of rows that belong together `[B/g, g]` (answers to one
// question, pairs that are one after another). The operations of a step show
// only that it is cut. What it consists of follows from whether each row, or
// each group, is computed by itself then.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_BATCHREADING_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_BATCHREADING_H

#include "RowDraws.h"

#include "fp8/Analysis/Signature.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// A way to read the leading dimension of batch arguments.
struct BatchReading {
  /// Whether a loop that takes one index of a batch at a time takes rows: else
  /// it takes micro-batches of them.
  bool takesSingleRows = false;
  /// The dimensions of this extent that count rows (the leading ones, and the
  /// second ones of stacks of micro-batches) have `outer` micro-batches of
  /// rows, each of which consists of `inner` elements; 0: there are none.
  int64_t extent = 0, outer = 1, inner = 1;

  /// The leading dimension of arguments with this extent counts no rows: the
  /// second one does if they are stacks of micro-batches, and otherwise all
  /// ranks read all of them. 0: there are none.
  int64_t whole = 0;

  int64_t rows() const { return extent / (outer * inner); }
};

/// Whether an argument may consist of micro-batches of shape `[k, rows, ...]`,
/// since it is read at single indices of its leading dimension.
bool mayHaveMicroBatches(func::FuncOp func, const SignatureArg &arg);

/// Returns the ways to read the batch of a step, the likeliest first: the first
/// one counts each index of the leading dimension as a row.
SmallVector<BatchReading>
findBatchReadings(func::FuncOp func, const Signature &signature, BatchOf batch);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_BATCHREADING_H
