//===- ThinStacks.h - Recomputing what loops would stack --------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_THINSTACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_THINSTACKS_H

#include "../LayerStacks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Autodiff makes a loop stack all values that its backward loop reads: the
/// sigmoid of a gate beside the gate, twice the input of a norm beside the
/// input. Where the backward loop reads a large stack that follows elementwise
/// from others, this makes it compute the values from those instead, with the
/// same ops. A stack whose values `isPayload` stays, and nothing is computed
/// from it, because payloads will replace its values.
void thinStacks(func::FuncOp function,
                llvm::function_ref<bool(Value)> isPayload);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_THINSTACKS_H
