//===- Work.h - Which ops become kernels ------------------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_WORK_H
#define FP8_LIB_KERNELS_FORMKERNELS_WORK_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Is `op` work for a kernel?
bool isWork(Operation *op);

/// Does `op` only make what others write into?
bool isDestination(Operation *op);

/// Operands that `op`, which is work, writes into.
MutableArrayRef<OpOperand> destinationsOf(Operation *op);

/// Does the owner of `operand`, which is work or a fill, write into it?
bool isDestination(OpOperand &operand);

/// The blocks whose ops become kernels: the body of `func` and, from the inside
/// out, those of its control flow.
SmallVector<Block *> scheduleBlocks(func::FuncOp func);

/// Control flow of the schedule: its blocks hold kernels of their own.
bool isControlFlow(Operation *op);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_WORK_H
