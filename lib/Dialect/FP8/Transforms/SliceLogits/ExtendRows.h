//===- ExtendRows.h - Losses of a slice of the rows -------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SLICELOGITS_EXTENDROWS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SLICELOGITS_EXTENDROWS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::fp8 {

/// Lets the ops on a slice of the rows of logits (`logits[:, :-1]`) work on all
/// rows, which can be cut into equal parts. In place of labels, the other rows
/// read zeros; sums leave these rows out, and so do their gradients. Returns
/// false and changes nothing if an op reads the slice in another way.
bool extendRows(stablehlo::SliceOp slice);

/// Gives the result of `dot` `all` rows along dimension `dim` in the same way:
/// the additional rows are of zeros. Returns the new dot; null if nothing
/// changed.
stablehlo::DotGeneralOp extendRows(stablehlo::DotGeneralOp dot, int64_t dim,
                                   int64_t all);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SLICELOGITS_EXTENDROWS_H
