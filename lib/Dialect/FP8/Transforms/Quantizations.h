//===- Quantizations.h - Where a payload comes from -------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZATIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZATIONS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// The op that a scaled value or its payload comes from, through ops that
/// change no number and stacks that a loop has filled; null for a value from
/// outside. `visit` is called with every slice and every update of a stack on
/// the way.
Operation *getQuantization(Value value,
                           llvm::function_ref<void(Operation *)> visit = {});

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZATIONS_H
