//===- ShareBatch.h - A batch of all ranks becomes a rank's own -*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_SHAREBATCH_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_SHAREBATCH_H

#include "Propagation.h"

namespace mlir::fp8 {

/// Changes a step whose batch has the rows of all ranks to what one of `ranks`
/// ranks computes: every value that has rows keeps as many of them as one rank
/// has. `layouts` are those of the step's values. Sums over rows must have been
/// completed before: they stay what they are. Each of `gathers`, which are
/// reshapes of rows, becomes an exchange of the rows of all ranks.
LogicalResult shareBatch(func::FuncOp func, const Propagation &layouts,
                         ArrayRef<Operation *> gathers, int64_t ranks);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_SHAREBATCH_H
