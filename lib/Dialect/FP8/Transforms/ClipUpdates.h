//===- ClipUpdates.h - StableAdamW's update clipping ------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_CLIPUPDATES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_CLIPUPDATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir {
namespace fp8 {

/// Divides what an Adam-like step updates each parameter by, m / (sqrt(v) +
/// eps), by max(1, RMS(g / sqrt(v))), the mean taken over the array: where v
/// has underestimated the square of a gradient, the update is no larger for it.
/// Returns the paths of the parameters whose update was found.
llvm::StringSet<> clipUpdates(func::FuncOp function);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_CLIPUPDATES_H
