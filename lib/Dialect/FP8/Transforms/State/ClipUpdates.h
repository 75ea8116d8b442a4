//===- ClipUpdates.h - StableAdamW's update clipping ------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_CLIPUPDATES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_CLIPUPDATES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSet.h"

namespace mlir {
namespace fp8 {

/// Divides the update of each parameter in an Adam-like step, m / (sqrt(v) +
/// eps), by max(1, RMS(g / sqrt(v))), with the mean taken over the array, so
/// that the update does not grow where v underestimates the square of the
/// gradient. Returns the paths of the parameters whose update was found.
llvm::StringSet<> clipUpdates(func::FuncOp function);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_CLIPUPDATES_H
