//===- Options.h - The options of fp8-run -----------------------*- C++ -*-===//

#ifndef FP8_TOOLS_FP8RUN_OPTIONS_H
#define FP8_TOOLS_FP8RUN_OPTIONS_H

#include "fp8/Run/OptionTable.h"

#include "mlir/Support/LLVM.h"
#include "llvm/Support/CommandLine.h"

#include <memory>

namespace mlir::fp8 {

namespace cl = llvm::cl;

/// What --help shows.
extern cl::OptionCategory category;

/// The parsed command line. Constructed after LLVM's own options are removed
/// (some have the same names).
struct Options {
  Options();
  Options(const Options &) = delete;
  Options &operator=(const Options &) = delete;

  /// Returns a mistake, or one that only a run or a package can have; "" if
  /// there is none.
  std::string findMistake() const;
  std::string findExportMistake() const;

  /// A function of --entry is usually no step, so its default recipe is none.
  std::string recipeName() const;

  fp8run::RunOptions run;
  // LLVM's options of the table refer to it.
  std::vector<fp8run::Option> table = fp8run::runOptionTable(run);
  std::vector<std::unique_ptr<cl::Option>> ofTable;

  // Required, but main checks that, for its own error message.
  cl::list<std::string> files{cl::Positional, cl::desc("STEP.mlir"),
                              cl::cat(category)};
  std::string stepFile;
  cl::opt<std::string> initFile{
      "init",
      cl::desc("Initial values: a function (.mlir) or a safetensors "
               "file, by tree path"),
      cl::value_desc("INIT.mlir|W.safetensors"), cl::cat(category)};
  cl::opt<std::string> recipe{
      "recipe", cl::init("fp8"),
      cl::desc("Recipe: a name (default: fp8; with --entry none) or a .yaml "
               "file"),
      cl::value_desc("NAME|FILE.yaml"), cl::cat(category)};
  cl::list<std::string> set{
      "set",
      cl::desc("Set a key of the recipe, e.g. forward.activation.format"),
      cl::value_desc("KEY=VALUE"), cl::cat(category)};
  cl::opt<bool> printRecipe{
      "print-recipe",
      cl::desc("Print the effective recipe with its defaults, and stop"),
      cl::cat(category)};
  cl::opt<std::string> evalFile{"eval",
                                cl::desc("Function that gives the loss "
                                         "(and metrics) on held-out data"),
                                cl::value_desc("EVAL.mlir"), cl::cat(category)};
  cl::opt<std::string> targetCPU{
      "target-cpu", cl::init("native"),
      cl::desc("CPU to generate code for: native, or LLVM's name of it "
               "(x86-64-v3, znver4, ...)"),
      cl::value_desc("CPU"), cl::cat(category)};
  cl::opt<std::string> target{
      "target",
      cl::desc("Where kernels run: cpu, or nvptx: with an NVIDIA GPU "
               "(nvptx:sm_89, nvptx:sm_90a, nvptx:sm_100a, nvptx:sm_120a); "
               "with nvptx:sm_90a,cublaslt cuBLASLt computes large dots, with "
               "nvptx:sm_90a,cublaslt=all every dot that it supports"),
      cl::value_desc("TARGET"), cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> gpuImage{
      "gpu-image",
      cl::desc("Form of a GPU's kernels: cubin, ptx (the driver "
               "compiles it) or bitcode; default: cubin if CUDA's "
               "assembler is found, else ptx"),
      cl::value_desc("IMAGE"), cl::cat(category)};
  cl::opt<int64_t> gpuExpand{
      "gpu-expand",
      cl::desc(
          "On a GPU, loops of up to this many launches are expanded in the "
          "step's graph; the GPU counts the others"),
      cl::value_desc("LAUNCHES"), cl::init(2048), cl::cat(category)};
  cl::opt<bool> noOptimize{"no-optimize",
                           cl::desc("Skip LLVM's optimizations, for tests "
                                    "that compile more than they run"),
                           cl::Hidden, cl::cat(category)};
  cl::opt<bool> failOnFallback{
      "fail-on-fallback",
      cl::desc("Fail if a dot that the recipe quantizes "
               "cannot be converted"),
      cl::cat(category)};
  cl::opt<std::string> lossReduction{
      "loss-reduction",
      cl::desc(
          "With --data-parallel, if it cannot be proved: whether the loss is "
          "the mean or the sum over the rows of the batch"),
      cl::value_desc("mean|sum"), cl::cat(category)};
  cl::opt<unsigned, true> zero{
      "zero",
      cl::location(run.zero),
      cl::desc("With --data-parallel: 1 distributes masters "
               "and moments over the ranks, "
               "each of which updates its own (ZeRO-1)"),
      cl::value_desc("0|1"),
      cl::init(0),
      cl::cat(category)};
  cl::opt<bool, true> globalAmax{
      "global-amax", cl::location(run.globalAmax),
      cl::desc(
          "With --data-parallel: compute current scales from the amaxes of "
          "all ranks, not only of a rank's own rows"),
      cl::cat(category)};
  cl::opt<unsigned, true> globalBatch{
      "global-batch",
      cl::location(run.globalBatch),
      cl::desc("With --data-parallel: the batch of the step is that of this "
               "many ranks together, which share its rows"),
      cl::value_desc("RANKS"),
      cl::init(0),
      cl::cat(category)};
  cl::opt<bool> explain{
      "explain-signature",
      cl::desc("Print every argument's role and why, and stop"),
      cl::cat(category)};
  cl::list<std::string> roles{"role", cl::desc("Override an argument's role"),
                              cl::value_desc("PATH=ROLE"), cl::cat(category)};
  cl::list<std::string> states{"state",
                               cl::desc("Override which result replaces an "
                                        "argument"),
                               cl::value_desc("ARG=RESULT"), cl::cat(category)};
  cl::opt<std::string> lossPath{"loss", cl::desc("Which result is the loss"),
                                cl::value_desc("PATH"), cl::cat(category)};
  cl::opt<std::string> entry{"entry",
                             cl::desc("Run this function once instead of "
                                      "training"),
                             cl::value_desc("FUNCTION"), cl::cat(category)};
  cl::opt<std::string> inputs{"inputs", cl::desc("Arguments of --entry"),
                              cl::value_desc("IN.safetensors"),
                              cl::cat(category)};
  cl::opt<std::string> outputs{"outputs", cl::desc("Results of --entry"),
                               cl::value_desc("OUT.safetensors"),
                               cl::cat(category)};
  cl::opt<std::string> dumpIR{
      "dump-ir", cl::desc("Write the IR after each stage to this directory"),
      cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<std::string> exportFormat{
      "export-format", cl::init("f32"),
      cl::desc("Format of --export-weights: f32, bf16, or f8E4M3FN with "
               "scales (bf16 for tensors outside of linear layers)"),
      cl::value_desc("f32|bf16|f8E4M3FN"), cl::cat(category)};
  cl::opt<std::string> packageDir{
      "emit-package",
      cl::desc("Write the compiled functions to a directory that fp8-train "
               "runs without a compiler, and stop (options of runs, such as "
               "--steps, do nothing)"),
      cl::value_desc("DIR"), cl::cat(category)};
  cl::opt<bool> noCache{
      "no-cache", cl::desc("Compile everything, even if the cache has it"),
      cl::cat(category)};
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_OPTIONS_H
