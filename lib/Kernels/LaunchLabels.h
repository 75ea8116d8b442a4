//===- LaunchLabels.h - What a launch is called -----------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_LAUNCHLABELS_H
#define FP8_LIB_KERNELS_LAUNCHLABELS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::fp8 {

/// What `ops`, which become one kernel, compute, and for which part of the
/// step: `dot_amax train.py:81:12 (forward params['wq'])`, or
/// `update params['wq']` where `state`, the path of what the kernel replaces,
/// is not empty.
std::string labelOf(ArrayRef<Operation *> ops, StringRef state);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_LAUNCHLABELS_H
