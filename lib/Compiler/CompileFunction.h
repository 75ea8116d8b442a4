//===- CompileFunction.h - The stages of one function -----------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_COMPILEFUNCTION_H
#define FP8_LIB_COMPILER_COMPILEFUNCTION_H

#include "Reports.h"
#include "fp8/Compiler/Compiler.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Returns an executable without functions that names this compiler and the
/// target.
FailureOr<Executable> beginExecutable(ModuleOp module,
                                      const CompileOptions &options);

/// Returns the public function of the module.
FailureOr<func::FuncOp> publicFunction(ModuleOp module);

/// Runs all stages after fp8 on a module with one public function, and adds
/// that to `executable`. `stats` holds the times of the previous stages.
LogicalResult compileFunction(ModuleOp module, const CompileOptions &options,
                              const CompileStats &stats, Reports &reports,
                              Executable &executable);

/// Does the same for the functions of `module` that have an `fp8.entry`, each
/// of which is moved to a module of its own.
LogicalResult compileEntries(ModuleOp module, const CompileOptions &options,
                             Executable &executable);

/// Compiles a function that accompanies the step, under the name `name`.
LogicalResult compileCompanion(ModuleOp module, StringRef name,
                               const CompileOptions &options,
                               Executable &executable);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_COMPILEFUNCTION_H
