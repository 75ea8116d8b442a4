//===- Resets.h - State that starts from zero again -------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_RESETS_H
#define FP8_LIB_ANALYSIS_RESETS_H

#include "mlir/IR/Value.h"

namespace mlir {
namespace fp8 {

/// Where a new state is zero under some condition and `x` otherwise: `x`. Such
/// is what is summed up over several calls: `optax.MultiSteps` multiplies its
/// sum by a flag, others choose by a select or a branch. Null if `next` is not
/// of that form.
Value getBeforeReset(Value next);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_RESETS_H
