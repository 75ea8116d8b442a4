//===- Quantize.h - Stage 2: the recipe applied -----------------*- C++ -*-===//

#ifndef FP8_PIPELINES_QUANTIZE_H
#define FP8_PIPELINES_QUANTIZE_H

#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;

namespace fp8 {

struct QuantizePipelineOptions
    : public PassPipelineOptions<QuantizePipelineOptions> {
  PassOptions::Option<std::string> recipe{
      *this, "recipe",
      llvm::cl::desc("The recipe: a name (tensorwise, rowwise, blockwise, ...) "
                     "or the path "
                     "of a .yaml file"),
      llvm::cl::init("tensorwise")};
  PassOptions::ListOption<std::string> set{
      *this, "set",
      llvm::cl::desc("Set a key of the recipe, e.g. "
                     "forward.activation.format=f8E5M2")};
  PassOptions::Option<bool> printRecipe{
      *this, "print-recipe",
      llvm::cl::desc(
          "Print the effective recipe, defaults and all, to standard "
          "output"),
      llvm::cl::init(false)};
  PassOptions::Option<std::string> report{
      *this, "report",
      llvm::cl::desc("Write the verdict of every dot to this file (.json, else "
                     "a table; - is stderr)"),
      llvm::cl::init("")};
  PassOptions::Option<bool> emitRemarks{
      *this, "emit-remarks",
      llvm::cl::desc("Emit the verdict of every dot as a remark at the dot"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> failOnFallback{
      *this, "fail-on-fallback",
      llvm::cl::desc("Fail if a dot that the recipe quantizes cannot be "
                     "converted"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> dataParallel{
      *this, "data-parallel",
      llvm::cl::desc("The step runs on several ranks, each with its own rows "
                     "of the batch; the next three options imply it"),
      llvm::cl::init(false)};
  PassOptions::Option<std::string> lossReduction{
      *this, "loss-reduction",
      llvm::cl::desc("How the loss combines the rows of the batch, mean or "
                     "sum, where this cannot be proved"),
      llvm::cl::init("")};
  PassOptions::Option<unsigned> zero{
      *this, "zero",
      llvm::cl::desc("1: each rank owns the masters and moments of some "
                     "parameters"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> globalAmax{
      *this, "global-amax",
      llvm::cl::desc("Current scales follow from the amaxes of all ranks"),
      llvm::cl::init(false)};
  PassOptions::Option<unsigned> globalBatch{
      *this, "global-batch",
      llvm::cl::desc("The batch is that of this many ranks, which share its "
                     "rows"),
      llvm::cl::init(0)};
  PassOptions::Option<bool> storeScores{
      *this, "store-scores",
      llvm::cl::desc("Do not form attention ops, so that scores are stored"),
      llvm::cl::init(false)};
  PassOptions::Option<bool> trace{
      *this, "trace",
      llvm::cl::desc("Add statistics of quantized tensors to the results"),
      llvm::cl::init(false)};
};

/// Applies a recipe to the step that the import stage left, and ends with the
/// contract check. The verdicts also go to `sink` if it is not null; it must
/// outlive the run.
void buildQuantizePipeline(OpPassManager &pm,
                           const QuantizePipelineOptions &options,
                           VerdictReport *sink = nullptr);

/// Registers the pipeline as `fp8-quantize`.
void registerQuantizePipeline();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_QUANTIZE_H
