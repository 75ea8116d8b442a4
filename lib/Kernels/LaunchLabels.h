//===- LaunchLabels.h - Labels of launches ----------------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_LAUNCHLABELS_H
#define FP8_LIB_KERNELS_LAUNCHLABELS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::fp8 {

/// Returns the label of `ops`, which become one kernel: what they compute and
/// for which part of the step, such as `dot_amax train.py:81:12 (forward
/// params['wq'])`. If `state`, the path of the state that the kernel replaces,
/// is not empty, the label is `update params['wq']`.
std::string labelOf(ArrayRef<Operation *> ops, StringRef state);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_LAUNCHLABELS_H
