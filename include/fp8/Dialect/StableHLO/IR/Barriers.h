//===- Barriers.h - Values behind optimization barriers ---------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_BARRIERS_H
#define FP8_DIALECT_STABLEHLO_IR_BARRIERS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::stablehlo {

/// Returns the value that `value` is, before any optimization barrier.
inline Value skipBarriers(Value value) {
  while (auto barrier = value.getDefiningOp<OptimizationBarrierOp>())
    value = barrier->getOperand(cast<OpResult>(value).getResultNumber());
  return value;
}

} // namespace mlir::stablehlo

#endif // FP8_DIALECT_STABLEHLO_IR_BARRIERS_H
