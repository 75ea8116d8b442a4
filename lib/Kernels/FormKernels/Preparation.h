//===- Preparation.h - Preparation of ops for grouping ----------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_PREPARATION_H
#define FP8_LIB_KERNELS_FORMKERNELS_PREPARATION_H

#include "mlir/IR/Block.h"

namespace mlir::fp8 {

/// Prepares `blocks`, inner ones first, for grouping: every op gets its own
/// fill or empty as destination and captures no scalars, and a fill that is
/// read becomes an op.
void prepareForGrouping(ArrayRef<Block *> blocks);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_PREPARATION_H
