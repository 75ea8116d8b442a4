//===- Import.cpp - Stage 1: StableHLO text to a clean step ---------------===//

#include "fp8/Pipelines/Import.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

void fp8::buildImportPipeline(OpPassManager &pm, const ImportConfig &config) {
  pm.addPass(stablehlo::createOneRank());
  pm.addPass(stablehlo::createLowerCollectives());
  pm.addPass(stablehlo::createDropSharding());
  stablehlo::InlineCallsOptions inlining;
  inlining.entry = config.entry;
  pm.addPass(stablehlo::createInlineCalls(inlining));
  pm.addNestedPass<func::FuncOp>(stablehlo::createSimplify());
  pm.addNestedPass<func::FuncOp>(stablehlo::createConvolutionsToDots());
  // Merge what inlining repeated. Rematerialized copies stay apart, because
  // they are behind an optimization_barrier.
  pm.addNestedPass<func::FuncOp>(createCSEPass());
  pm.addNestedPass<func::FuncOp>(stablehlo::createCanonicalizeLoops());
  pm.addNestedPass<func::FuncOp>(stablehlo::createSimplify());
  pm.addPass(stablehlo::createVerifyImport({/*opsAlone=*/true}));
  pm.addPass(stablehlo::createAnalyzeSignaturePass(config.signature));
  pm.addPass(stablehlo::createVerifyImport());
}

namespace {
struct ImportOptions : public PassPipelineOptions<ImportOptions> {
  Option<std::string> entry{
      *this, "entry",
      llvm::cl::desc("Function to keep; the only public one if empty"),
      llvm::cl::init("")};
  Option<fp8::FunctionKind> kind{
      *this, "kind", llvm::cl::desc("What the function is"),
      llvm::cl::values(
          clEnumValN(fp8::FunctionKind::Auto, "auto", "What its results show"),
          clEnumValN(fp8::FunctionKind::Step, "step", "A training step"),
          clEnumValN(fp8::FunctionKind::Function, "function",
                     "Any other function")),
      llvm::cl::init(fp8::FunctionKind::Auto)};
  Option<std::string> loss{*this, "loss",
                           llvm::cl::desc("Path of the loss, if the guess is "
                                          "wrong"),
                           llvm::cl::init("")};
};
} // namespace

void fp8::registerImportPipeline() {
  PassPipelineRegistration<ImportOptions>(
      "fp8-import",
      "Stage 1: StableHLO as JAX prints it becomes one function whose "
      "arguments and results are marked",
      [](OpPassManager &pm, const ImportOptions &options) {
        ImportConfig config;
        config.entry = options.entry;
        config.signature.loss = options.loss;
        config.signature.functionKind = options.kind;
        buildImportPipeline(pm, config);
      });
}
