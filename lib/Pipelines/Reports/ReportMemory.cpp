//===- ReportMemory.cpp - How much memory a step would take ---------------===//

#include "fp8/Pipelines/ReportMemory.h"

#include "fp8/Kernels/Passes.h"
#include "fp8/Pipelines/Import.h"
#include "fp8/Pipelines/Lowering.h"
#include "fp8/Pipelines/Quantize.h"
#include "fp8/Pipelines/Structure.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct ReportMemoryOptions : PassPipelineOptions<ReportMemoryOptions> {
  Option<std::string> recipe{
      *this, "recipe",
      llvm::cl::desc("The recipe: a name or the path of a .yaml file"),
      llvm::cl::init("none")};
  ListOption<std::string> set{
      *this, "set",
      llvm::cl::desc("Set a key of the recipe, e.g. compute.saved=bf16")};
  Option<std::string> budget{
      *this, "budget",
      llvm::cl::desc("Say what fits in this much memory: 80GB, 512MiB, 4096"),
      llvm::cl::init("")};
  Option<std::string> file{
      *this, "file",
      llvm::cl::desc("Where the report goes: JSON if it ends in .json, else a "
                     "table; - is stdout"),
      llvm::cl::init("-")};
  Option<bool> gpu{*this, "gpu",
                   llvm::cl::desc("Report the step for a GPU, which keeps FP8 "
                                  "operands of dots contiguous along k"),
                   llvm::cl::init(false)};
  Option<bool> buffers{
      *this, "buffers",
      llvm::cl::desc("Add every buffer, its category and where it comes from"),
      llvm::cl::init(false)};
};
} // namespace

void fp8::registerReportMemoryPipeline() {
  PassPipelineRegistration<ReportMemoryOptions>(
      "report-memory",
      "Stages 1 to 4, and what the step would keep in memory, and why",
      [](OpPassManager &pm, const ReportMemoryOptions &options) {
        buildImportPipeline(pm);
        QuantizePipelineOptions quantize;
        quantize.recipe = options.recipe;
        for (const std::string &assignment : options.set)
          quantize.set.push_back(assignment);
        buildQuantizePipeline(pm, quantize);
        // Keep only the step, without the functions that store and load its
        // state.
        pm.addPass(createSymbolDCEPass());
        buildStructurePipeline(pm);
        PlanMemoryOptions plan;
        plan.report = options.file;
        plan.budget = options.budget;
        plan.printBuffers = options.buffers;
        buildKernelsPipeline(pm,
                             options.gpu ? PayloadLayouts::AlongK
                                         : PayloadLayouts::AsTensors,
                             plan);
      });
}
