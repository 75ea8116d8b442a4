//===- DescribeFunction.h - A lowered function for the runtime --*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_DESCRIBEFUNCTION_H
#define FP8_LIB_COMPILER_DESCRIBEFUNCTION_H

#include "fp8/Compiler/Executable.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Describes the memory, launches, constants and kernels of a function, whose
/// kernels are lowered and whose schedule is not. `result` has its arguments.
void describeFunction(ModuleOp module, ExecutableFunction &result);

/// Returns the JSON of what computes each dot, if the target may use cuBLASLt;
/// else "".
std::string dotChoicesOf(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_DESCRIBEFUNCTION_H
