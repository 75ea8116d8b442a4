//===- Compiler.h - StableHLO text to an executable -------------*- C++ -*-===//
//
// All stages in one call: what fp8-run, and later the Python package, use.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_COMPILER_H
#define FP8_COMPILER_COMPILER_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Compiler/Executable.h"
#include "fp8/Compiler/Export.h"

#include "mlir/IR/BuiltinOps.h"
#include <memory>
#include <string>
#include <vector>

namespace mlir::fp8 {

class Cache;

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
  /// The step runs on several ranks, each with its own rows of the batch.
  bool dataParallel = false;
  /// What the loss is over the rows, where that cannot be proved: mean or sum.
  std::string lossReduction;
  /// 1: masters and moments are dealt to the ranks (with dataParallel).
  unsigned zero = 0;
  /// Current scales follow from the amaxes of all ranks (with dataParallel).
  bool globalAmax = false;
  /// Statistics of what is quantized become results of the step.
  bool trace = false;
  SignatureOptions signature;
  /// What code is generated for: "native", or LLVM's name of a CPU.
  std::string targetCPU = "native";
  /// An NVIDIA GPU for the kernels (sm_90a, ...); empty: they are for the CPU,
  /// which runs the schedule either way.
  std::string targetGPU;
  /// What kernels of a GPU are compiled to: bitcode, ptx or cubin; empty:
  /// cubins where CUDA's assembler is found, else ptx.
  std::string gpuImage;
  /// Counted loops of more launches than this are counted by the GPU (see
  /// fp8-plan-graph).
  int64_t gpuExpand = 2048;
  /// Threads of code generation; 0: one a core.
  unsigned threads = 0;
  /// Without it LLVM's optimizations are left out: code comes out in half the
  /// time, runs slower, and computes the same bits.
  bool optimize = true;
  /// Return what the head computes as well, if that is one dot: the result
  /// FP8_LOGITS_NAME.
  bool returnLogits = false;
  /// When set, functions are made that write the parameters of a step in this
  /// format and read them back.
  std::optional<ExportFormat> exportFormat;
  /// Kernels that it has are not compiled again; or null.
  const Cache *cache = nullptr;
  /// When set, the IR after each stage is written to DIR/<name>-<stage>.mlir.
  std::string dumpDir;
};

/// Parses a file of StableHLO (text or bytecode). Errors go to the context's
/// diagnostics.
OwningOpRef<ModuleOp> parseModule(StringRef file, MLIRContext &context);

/// Runs the import stage alone and returns the signature.
FailureOr<Signature> importModule(ModuleOp module,
                                  const CompileOptions &options);

/// Compiles `module`, which is consumed, for this machine. Beside the function
/// called CompileOptions::name there are, where they are needed, `store` and
/// `load` (from the state as the user has it to the form in which the step
/// stores it, and back), and with CompileOptions::exportFormat `export` and
/// `import`. Errors go to the context's diagnostics.
FailureOr<Executable> compile(ModuleOp module, const CompileOptions &options);

/// The same for a module that has been through the fp8 stage: one public
/// function, and beside it those with `fp8.entry`.
FailureOr<Executable> compileQuantized(ModuleOp module,
                                       const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_COMPILER_COMPILER_H
