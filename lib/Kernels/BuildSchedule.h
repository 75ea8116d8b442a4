//===- BuildSchedule.h - The step as a schedule on buffers ------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_BUILDSCHEDULE_H
#define FP8_LIB_KERNELS_BUILDSCHEDULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::fp8 {

/// Replaces `func`, a tree of launches and control flow on tensors, by the same
/// tree on buffers: a schedule. Results become arguments. Every value that goes
/// to a result, to the next iteration, out of a branch or into a stack is
/// copied there by a kernel that is a `copy`, unless it is updated in place.
/// `fp8-elide-copies` removes copies that are not needed.
LogicalResult buildSchedule(func::FuncOp func, SymbolTable &symbols);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BUILDSCHEDULE_H
