//===- Compiler.h - StableHLO text to a runnable executable -----*- C++ -*-===//
//
// All stages in one call: what fp8-run, and later the Python package, use.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_COMPILER_H
#define FP8_COMPILER_COMPILER_H

#include "fp8-c/Runtime.h"
#include "fp8/Analysis/Signature.h"
#include "fp8/Compiler/Export.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::fp8 {

struct MemoryReport;

struct CompileOptions {
  /// For messages: "step", "init", "eval".
  std::string name = "function";
  /// The function to compile; empty: the only public one.
  std::string entry;
  /// Recipe name or file. "none" leaves numerics as they are.
  std::string recipe = "none";
  /// Keys of the recipe to set, `key.key=value` each.
  std::vector<std::string> recipeOverrides;
  bool failOnFallback = false;
  /// Statistics of what is quantized become results of the step.
  bool trace = false;
  SignatureOptions signature;
  /// Threads of code generation; 0: one a core.
  unsigned threads = 0;
  /// Return what the head computes as well, if that is one dot.
  bool returnLogits = false;
  /// When set, functions are made that write the parameters of a step in this
  /// format and read them back.
  std::optional<ExportFormat> exportFormat;
  /// When set, the IR after each stage is written to DIR/<name>-<stage>.mlir.
  std::string dumpDir;
};

/// Where compile time went, and what came out.
struct CompileStats {
  double importSeconds = 0, fp8Seconds = 0, structureSeconds = 0,
         kernelsSeconds = 0, codegenSeconds = 0, llvmSeconds = 0;
  int64_t launches = 0, kernels = 0;

  double totalSeconds() const {
    return importSeconds + fp8Seconds + structureSeconds + kernelsSeconds +
           codegenSeconds + llvmSeconds;
  }
};

/// A compiled function: machine code and its description for the runtime.
class CompiledFunction {
public:
  CompiledFunction();
  virtual ~CompiledFunction();

  /// Valid as long as this object.
  virtual const fp8_executable *executable() const = 0;

  /// Arguments and results as imported. What the recipe adds, and the form in
  /// which it stores state, are the executable's.
  Signature signature;
  /// The state that the function returns as it came.
  llvm::SmallVector<std::string> unchangedState;
  VerdictReport verdicts;
  /// What the plan of the arena holds.
  std::unique_ptr<MemoryReport> memory;
  CompileStats stats;
  /// What turns the state as the user has it into the form in which the step
  /// stores it, and back; null if these are the same.
  std::unique_ptr<CompiledFunction> store, load;
  /// What the parameters are exported by, and the text that says of what (see
  /// fp8_export); null without CompileOptions::exportFormat.
  std::unique_ptr<CompiledFunction> encode, decode;
  std::string exportManifest;
  /// The path of the result that CompileOptions::returnLogits added, or empty.
  std::string logits;
};

/// Parses a file of StableHLO (text or bytecode). Errors go to the context's
/// diagnostics.
OwningOpRef<ModuleOp> parseModule(StringRef file, MLIRContext &context);

/// Runs the import stage alone and returns the signature.
FailureOr<Signature> importModule(ModuleOp module,
                                  const CompileOptions &options);

/// Compiles `module`, which is consumed, for this machine. Errors go to the
/// context's diagnostics.
FailureOr<std::unique_ptr<CompiledFunction>>
compile(ModuleOp module, const CompileOptions &options);

/// The same for a module that has been through the fp8 stage: one public
/// function, and beside it those with `fp8.entry`.
FailureOr<std::unique_ptr<CompiledFunction>>
compileQuantized(ModuleOp module, const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_COMPILER_COMPILER_H
