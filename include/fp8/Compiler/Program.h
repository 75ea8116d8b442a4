//===- Program.h - From files to what a run needs ---------------*- C++ -*-===//
//
// What every front end of the compiler does: reads the files of a step, of its
// initializer and of its evaluation, compiles them or takes them from the
// cache, and puts the functions together as one executable.
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

/// How a function came about, for people.
struct CompiledNotice {
  StringRef name;
  const CompileStats &stats;
  bool isFromCache;
  /// What it took now.
  double seconds;
};

struct ProgramOptions {
  /// A StableHLO module each; `init` may be a safetensors file, and the last
  /// two empty.
  std::string stepFile, initFile, evalFile;
  /// How the step is compiled. Its recipe is that of the evaluation too.
  CompileOptions compile;
  /// When set, the run goes on from the newest checkpoint in this directory,
  /// which stands for the initial values.
  std::string resumeDirectory;
  /// Told of every function as soon as it is ready; may be null.
  std::function<void(const CompiledNotice &)> notice;
};

/// Whether the name of a file with initial values is that of a function.
bool isInitializer(StringRef file);

/// Compiles all that a run of training needs: `step` with what belongs to it
/// (see compile), `init`, `eval` and, for an export, `check`, which is the
/// evaluation without the recipe. Steps and kernels that CompileOptions::cache
/// has are taken from there. Errors and warnings go to the context's
/// diagnostics.
FailureOr<Executable> compileProgram(const ProgramOptions &options,
                                     MLIRContext &context);

/// The same for one function of one file, called CompileOptions::name.
FailureOr<Executable>
compileFile(StringRef file, const CompileOptions &options, MLIRContext &context,
            const std::function<void(const CompiledNotice &)> &notice = {});

/// What files say of a run's initial values: the newest checkpoint in
/// `resumeDirectory`, else `initFile`, if these are files with tensors.
FailureOr<SmallVector<TreeLeaf>> readInitialValues(StringRef resumeDirectory,
                                                   StringRef initFile,
                                                   MLIRContext &context);

/// An error or a warning and its notes as front ends show them, a line each:
/// `error: FILE:LINE:COLUMN: TEXT`. Nothing for a remark.
SmallVector<std::string> formatDiagnostic(Diagnostic &diagnostic);

} // namespace mlir::fp8

#endif // FP8_COMPILER_PROGRAM_H
