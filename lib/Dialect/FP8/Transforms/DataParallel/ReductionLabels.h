//===- ReductionLabels.h - What is reduced over ranks -----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_REDUCTIONLABELS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_REDUCTIONLABELS_H

#include "fp8/Analysis/Signature.h"

namespace mlir::fp8 {

/// Returns what a value that is reduced is, for reports: "gradient PATH" if the
/// state PATH follows elementwise, as a whole or, in a loop over a stack, part
/// by part; the path of another result that follows; or "sum over rows".
std::string labelOfReduction(const Signature &signature, Value value);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_REDUCTIONLABELS_H
