//===- Resets.h - State that starts from zero again -------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_RESETS_H
#define FP8_LIB_ANALYSIS_RESETS_H

#include "mlir/IR/Value.h"

namespace mlir {
namespace fp8 {

/// The value `x` of a new state that is zero under some condition and `x`
/// otherwise. A sum over several calls has that form: `optax.MultiSteps`
/// multiplies its sum by a flag, others choose by a select or a branch. Null if
/// `next` is not of that form.
Value getBeforeReset(Value next);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_RESETS_H
