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

/// Returns which part of the step an op that is no dot belongs to: its location
/// and the weight that it reads, or else the layer of the next dot, such as
/// `train.py:56:12 (mul) for forward params['wq']`.
std::string placeOf(Operation *op);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_LAUNCHLABELS_H
