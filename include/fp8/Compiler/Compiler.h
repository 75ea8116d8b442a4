//===- Compiler.h - Compilation of StableHLO --------------------*- C++ -*-===//
//
// Runs all stages in one call, for fp8-run and the Python package.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_COMPILER_H
#define FP8_COMPILER_COMPILER_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Compiler/Executable.h"
#include "fp8/Compiler/Export.h"

#include "mlir/IR/BuiltinOps.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace mlir::fp8 {

class Cache;

/// Checks what a function is to be given, by its arguments; reports a mistake.
using CheckArguments =
    std::function<LogicalResult(ArrayRef<TensorDescription> arguments)>;

struct CompileOptions {
  /// The name for messages: "step", "init", "eval".
  std::string name = "function";
  /// The function to compile; if empty, the only public one.
  std::string entry;
  /// The name or file of the recipe. "none" does not change numerics.
  std::string recipe = "none";
  /// Keys of the recipe to set, `key.key=value` each.
  std::vector<std::string> recipeOverrides;
  bool failOnFallback = false;
  /// Whether there is data for the step; without any, batch arguments are an
  /// error.
  bool hasData = true;
  /// Whether the step runs on several ranks, each with its own rows of the
  /// batch.
  bool dataParallel = false;
  /// How the loss reduces over the rows, mean or sum, for when that cannot be
  /// proved.
  std::string lossReduction;
  /// 1: distribute masters and moments over the ranks (with dataParallel).
  unsigned zero = 0;
  /// Whether current scales use the amaxes of all ranks (with dataParallel).
  bool globalAmax = false;
  /// The number of ranks that share the batch of the step (with dataParallel);
  /// 0: each rank has a batch of that size.
  unsigned globalBatch = 0;
  /// Whether the step returns statistics of quantized tensors.
  bool trace = false;
  SignatureOptions signature;
  /// If not null, called as soon as the arguments are known; a failure ends the
  /// compilation.
  CheckArguments checkArguments;
  /// The CPU that code is generated for: "native", or LLVM's name of a CPU.
  std::string targetCPU = "native";
  /// The NVIDIA GPU that runs the kernels (sm_90a, ...). If empty, the CPU runs
  /// them. The CPU always runs the schedule.
  std::string targetGPU;
  /// The form of a GPU's kernels: bitcode, ptx or cubin. If empty, cubin if
  /// CUDA's assembler is found, else ptx.
  std::string gpuImage;
  /// The GPU counts counted loops of more launches than this (see
  /// fp8-plan-graph).
  int64_t gpuExpand = 2048;
  /// The number of threads for code generation; 0: one per core.
  unsigned threads = 0;
  /// The number of threads for which kernels are divided into tasks (no result
  /// depends on it); 0: one per core.
  unsigned runThreads = 0;
  /// Whether LLVM optimizes. Without optimizations, compilation takes half the
  /// time; the code is slower but computes the same bits.
  bool optimize = true;
  /// Whether the step also returns the result of the head, if that is one dot,
  /// as the result FP8_LOGITS_NAME.
  bool returnLogits = false;
  /// If set, also compile functions that write the parameters of a step in this
  /// format and read them back.
  std::optional<ExportFormat> exportFormat;
  /// If not null, kernels in this cache are not compiled again.
  const Cache *cache = nullptr;
  /// If not empty, the IR after each stage is written to
  /// DIR/<name>-<stage>.mlir.
  std::string dumpDir;

  /// Sets targetGPU from `cpu` or `nvptx:GPU`. Returns a mistake, or "".
  std::string setTarget(StringRef text);
};

/// Parses a file of StableHLO (text or bytecode). Errors go to the context's
/// diagnostics.
OwningOpRef<ModuleOp> parseModule(StringRef file, MLIRContext &context);

/// Runs the import stage alone and returns the signature.
FailureOr<Signature> importModule(ModuleOp module,
                                  const CompileOptions &options);

/// Does the same and returns the arguments as far as they are known then.
FailureOr<std::vector<TensorDescription>>
importArguments(ModuleOp module, const CompileOptions &options);

/// Compiles `module`, which is consumed, for this machine. Besides the function
/// called CompileOptions::name, the result has `store` and `load` if they are
/// needed, which convert the state from the user's form to the form in which
/// the step stores it and back. With CompileOptions::exportFormat it also has
/// `export` and `import`. Errors go to the context's diagnostics.
FailureOr<Executable> compile(ModuleOp module, const CompileOptions &options);

} // namespace mlir::fp8

#endif // FP8_COMPILER_COMPILER_H
