//===- Resets.h - State that is reset to zero -------------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_RESETS_H
#define FP8_LIB_ANALYSIS_RESETS_H

#include "mlir/IR/Value.h"

namespace mlir {
namespace fp8 {

/// Returns the value `x` of a new state that is zero under some condition and
/// `x` otherwise, or null if `next` does not have that form. A sum over several
/// calls has it: `optax.MultiSteps` multiplies its sum by a flag, others use a
/// select or a branch.
Value getBeforeReset(Value next);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_RESETS_H
