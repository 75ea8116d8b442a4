//===- DescribeSignature.h - Arguments and results --------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_DESCRIBESIGNATURE_H
#define FP8_LIB_COMPILER_DESCRIBESIGNATURE_H

#include "fp8/Compiler/Executable.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Describes the arguments and results of `function`: its signature after the
/// fp8 stage, in the order of the schedule's buffers.
LogicalResult describeSignature(func::FuncOp function,
                                ExecutableFunction &result);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_DESCRIBESIGNATURE_H
