//===- ThinStacks.h - Loops stack no more than they must --------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_THINSTACKS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_THINSTACKS_H

#include "LayerStacks.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Autodiff has a loop stack whatever its backward loop reads: the sigmoid of a
/// gate beside the gate, twice the input of a norm beside the input. Where the
/// backward loop reads a large stack that follows elementwise from others, it
/// computes it from these instead, with the same ops. A stack whose values
/// `isPayload` is left alone, and nothing is computed from it: it will hold
/// less than these values.
void thinStacks(func::FuncOp function,
                llvm::function_ref<bool(Value)> isPayload);

/// The same for stacks of what `isScore`, dots and reductions included. Copies
/// of dots are marked with `fp8.recompute`.
void thinStacksOfScores(func::FuncOp function,
                        llvm::function_ref<bool(Value)> isScore);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_THINSTACKS_H
