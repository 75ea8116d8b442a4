//===- ReportCost.cpp - How long a step would take ------------------------===//

#include "fp8/Pipelines/ReportCost.h"

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
struct ReportCostPipelineOptions
    : PassPipelineOptions<ReportCostPipelineOptions> {
  Option<std::string> card{
      *this, "card",
      llvm::cl::desc("Where it would run: h100, h200, rtx4090, rtx5090 or cpu"),
      llvm::cl::init("h100")};
  Option<std::string> recipe{
      *this, "recipe",
      llvm::cl::desc("The recipe: a name or the path of a .yaml file"),
      llvm::cl::init("none")};
  ListOption<std::string> set{
      *this, "set",
      llvm::cl::desc("Set a key of the recipe, e.g. compute.saved=bf16")};
  Option<std::string> limits{
      *this, "limits",
      llvm::cl::desc("The cost.json of fp8-run --profile that has the limits "
                     "of the CPU"),
      llvm::cl::init("")};
  Option<int64_t> ranks{
      *this, "ranks",
      llvm::cl::desc("How many ranks run the step, data parallel"),
      llvm::cl::init(1)};
  Option<std::string> network{
      *this, "network",
      llvm::cl::desc("What joins the ranks: nvlink4, nvlink5, infiniband-ndr, "
                     "infiniband-hdr, ethernet-100g, or GB/s:microseconds"),
      llvm::cl::init("infiniband-ndr")};
  Option<unsigned> zero{
      *this, "zero",
      llvm::cl::desc("1: masters and moments are dealt to the ranks"),
      llvm::cl::init(0)};
  Option<std::string> lossReduction{
      *this, "loss-reduction",
      llvm::cl::desc("How the loss combines the rows of the batch, mean or "
                     "sum, where this cannot be proved"),
      llvm::cl::init("")};
  Option<bool> json{*this, "json",
                    llvm::cl::desc("Print JSON, launch by launch"),
                    llvm::cl::init(false)};
};
} // namespace

void fp8::registerReportCostPipeline() {
  PassPipelineRegistration<ReportCostPipelineOptions>(
      "report-cost",
      "Stages 1 to 4, and how long the step would take on a card, and why",
      [](OpPassManager &pm, const ReportCostPipelineOptions &options) {
        buildImportPipeline(pm);
        QuantizePipelineOptions quantize;
        quantize.recipe = options.recipe;
        for (const std::string &assignment : options.set)
          quantize.set.push_back(assignment);
        quantize.dataParallel = options.ranks > 1;
        quantize.zero = options.zero;
        quantize.lossReduction = options.lossReduction;
        buildQuantizePipeline(pm, quantize);
        // Keep only the step, without the functions that store and load its
        // state.
        pm.addPass(createSymbolDCEPass());
        buildStructurePipeline(pm);
        // All cards but the CPU are GPUs.
        buildKernelsPipeline(pm,
                             options.card == "cpu" ? PayloadLayouts::AsTensors
                                                   : PayloadLayouts::AlongK,
                             PlanMemoryOptions());
        ReportCostOptions report;
        report.card = options.card;
        report.limits = options.limits;
        report.ranks = options.ranks;
        report.network = options.network;
        report.asJSON = options.json;
        pm.addPass(createReportCost(report));
      });
}
