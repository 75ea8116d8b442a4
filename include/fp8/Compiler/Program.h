//===- Program.h - Compilation of a whole program ---------------*- C++ -*-===//
//
// The common part of all front ends of the compiler: reads the files of a step,
// of its initializer and of its evaluation, compiles them or takes them from
// the cache, and merges the functions into one executable.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_PROGRAM_H
#define FP8_COMPILER_PROGRAM_H

#include "fp8/Compiler/Compiler.h"

#include <functional>

namespace mlir {
class Diagnostic;
} // namespace mlir

namespace mlir::fp8 {

/// Tells users how a function was obtained.
struct CompiledNotice {
  StringRef name;
  const CompileStats &stats;
  bool isFromCache;
  /// The time that it took in this process.
  double seconds;
};

struct ProgramOptions {
  /// A StableHLO module each. `init` may be a safetensors file instead; `init`
  /// and `eval` may be empty.
  std::string stepFile, initFile, evalFile;
  /// The options for the step. The evaluation has the same recipe.
  CompileOptions compile;
  /// If not empty, the run resumes from the newest checkpoint in this
  /// directory, which takes the place of the initial values.
  std::string resumeDirectory;
  /// If not null, checks what the evaluation is to be given: before the step
  /// is compiled, too, which may take long (compile.checkArguments is for the
  /// step).
  CheckArguments checkEvaluation;
  /// If not null, called for every function as soon as it is ready.
  std::function<void(const CompiledNotice &)> notice;
};

/// Returns true if `file`, by its name, is an initializer rather than tensors.
bool isInitializer(StringRef file);

/// Compiles all that a training run needs: `step` and its companions (see
/// compile), `init`, `eval` and, for an export, `check`, which is the
/// evaluation without the recipe. Takes functions and kernels from
/// CompileOptions::cache if it has them. Errors and warnings go to the
/// context's diagnostics.
FailureOr<Executable> compileProgram(const ProgramOptions &options,
                                     MLIRContext &context);

/// Does the same for one function of one file, called CompileOptions::name.
FailureOr<Executable>
compileFile(StringRef file, const CompileOptions &options, MLIRContext &context,
            const std::function<void(const CompiledNotice &)> &notice = {});

/// Returns the tensors of a run's initial values as far as files determine
/// them: those of the newest checkpoint in `resumeDirectory`, else those of
/// `initFile` if that holds tensors.
FailureOr<SmallVector<TreeLeaf>> readInitialValues(StringRef resumeDirectory,
                                                   StringRef initFile,
                                                   MLIRContext &context);

/// Formats a diagnostic as one line, `FILE:LINE:COLUMN: TEXT`. Looks for its
/// location inside of names, call sites and fusions.
std::string formatMessage(Diagnostic &diagnostic);

/// Formats an error or a warning with its notes as front ends show them, one
/// line each: `error: FILE:LINE:COLUMN: TEXT`. Returns nothing for a remark.
SmallVector<std::string> formatDiagnostic(Diagnostic &diagnostic);

} // namespace mlir::fp8

#endif // FP8_COMPILER_PROGRAM_H
