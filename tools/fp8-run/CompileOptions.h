//===- CompileOptions.h - What fp8-run asks the compiler for ----*- C++ -*-===//

#ifndef FP8_TOOLS_FP8RUN_COMPILEOPTIONS_H
#define FP8_TOOLS_FP8RUN_COMPILEOPTIONS_H

#include "Options.h"
#include "fp8/Compiler/Program.h"

#include <functional>

namespace mlir::fp8 {

/// Returns the options of the run that do not concern the compiler.
fp8run::RunOptions makeRunOptions(const Options &flags);

/// Makes each argument that is fed from a file data, whatever it looks like.
void addBatches(const fp8run::RunOptions &run, SignatureOptions &signature);

/// Returns the options to compile the step, or the function of --entry.
CompileOptions makeCompileOptions(const Options &flags,
                                  const SignatureOptions &signature,
                                  const Cache *cache);

/// Returns the options to compile the functions of the run or package.
ProgramOptions makeProgramOptions(const Options &flags,
                                  const fp8run::RunOptions &run,
                                  SignatureOptions signature,
                                  const Cache *cache);

/// Returns what prints one line for each function that is ready; nothing with
/// --quiet.
std::function<void(const CompiledNotice &)> makeNotice(const Options &flags);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_COMPILEOPTIONS_H
