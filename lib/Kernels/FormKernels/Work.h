//===- Work.h - Which ops become kernels ------------------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_WORK_H
#define FP8_LIB_KERNELS_FORMKERNELS_WORK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Returns true if `op` is work for a kernel.
bool isWork(Operation *op);

/// Returns true if `op` only creates destinations.
bool isDestination(Operation *op);

/// Returns the operands that `op`, which is work, writes into.
MutableArrayRef<OpOperand> destinationsOf(Operation *op);

/// Returns true if the owner of `operand`, which is work or a fill, writes into
/// it.
bool isDestination(OpOperand &operand);

/// Returns the blocks whose ops become kernels: those of the control flow of
/// `func`, inner ones first, and the body of `func`.
SmallVector<Block *> scheduleBlocks(func::FuncOp func);

/// Returns true for control flow of the schedule, whose blocks hold kernels of
/// their own.
bool isControlFlow(Operation *op);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_WORK_H
