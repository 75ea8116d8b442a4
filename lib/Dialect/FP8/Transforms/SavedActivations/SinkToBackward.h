//===- SinkToBackward.h - Moving ops out of the forward pass ----*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_SINKTOBACKWARD_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_SINKTOBACKWARD_H

#include "fp8/Analysis/LinearLayers/LinearLayers.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Moves ops whose results only the backward pass reads out of the forward
/// pass, each to its first reader.
void sinkToBackward(func::FuncOp function, const LinearLayers &layers);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_SINKTOBACKWARD_H
