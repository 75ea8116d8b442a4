//===- RunStage.h - One stage of a compilation ------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_RUNSTAGE_H
#define FP8_LIB_COMPILER_RUNSTAGE_H

#include "fp8/Compiler/Compiler.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Pass/PassManager.h"

namespace mlir::fp8 {

/// Runs and times the pipeline that `build` creates, and dumps its result.
LogicalResult runStage(ModuleOp module, const CompileOptions &options,
                       StringRef stage, double &seconds,
                       function_ref<void(OpPassManager &)> build,
                       StageInput input = StageInput::CompilersOwn);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_RUNSTAGE_H
