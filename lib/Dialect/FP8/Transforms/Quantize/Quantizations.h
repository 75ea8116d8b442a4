//===- Quantizations.h - Where a payload comes from -------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_QUANTIZATIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_QUANTIZATIONS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// Returns the op that a scaled value or its payload comes from, through ops
/// that change no value and stacks that a loop has filled; null for a value
/// from outside. Calls `visit` for every slice and every update of a stack on
/// the way.
Operation *getQuantization(Value value,
                           llvm::function_ref<void(Operation *)> visit = {});

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_QUANTIZATIONS_H
