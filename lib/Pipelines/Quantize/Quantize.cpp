//===- Quantize.cpp - Stage 2: the recipe applied -------------------------===//

#include "fp8/Pipelines/Quantize.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::fp8;

void fp8::buildQuantizePipeline(OpPassManager &pm,
                                const QuantizePipelineOptions &options,
                                VerdictReport *sink) {
  if (options.trace)
    pm.nest<func::FuncOp>().addPass(createFP8TraceAlignment());
  FP8SmoothSwiGLUOptions smooth;
  smooth.recipe = options.recipe;
  smooth.set.assign(options.set.begin(), options.set.end());
  smooth.emitRemarks = options.emitRemarks;
  pm.addPass(createFP8SmoothSwiGLU(std::move(smooth)));
  FP8ApplyRecipeOptions apply;
  apply.recipe = options.recipe;
  apply.set.assign(options.set.begin(), options.set.end());
  apply.printRecipe = options.printRecipe;
  apply.report = options.report;
  apply.emitRemarks = options.emitRemarks;
  apply.failOnFallback = options.failOnFallback;
  apply.nameTensors = options.trace;
  // What the passes that follow add to the report is added to that of the dots.
  auto verdicts = sink ? std::shared_ptr<VerdictReport>(
                             std::shared_ptr<VerdictReport>(), sink)
                       : std::make_shared<VerdictReport>();
  pm.addPass(createApplyRecipePass(std::move(apply), verdicts.get()));
  if (options.trace)
    pm.nest<func::FuncOp>().addPass(createFP8TraceUpdates());
  FP8StoreStateOptions store;
  store.recipe = options.recipe;
  store.set.assign(options.set.begin(), options.set.end());
  store.report = options.report;
  store.emitRemarks = options.emitRemarks;
  pm.addPass(createStoreStatePass(std::move(store), verdicts));
  // Removes what only the rewritten dots read.
  pm.addPass(createCSEPass());
  pm.nest<func::FuncOp>().addPass(createFP8SavePayloads());
  // Drops the stacks that are now payloads.
  pm.addPass(stablehlo::createCanonicalizeLoops());
  // After it: what is not quantized twice is not traced twice either.
  if (options.trace) {
    pm.addPass(createCSEPass());
    pm.nest<func::FuncOp>().addPass(createFP8Trace());
  }
  pm.addPass(createCSEPass());
  pm.addPass(createFP8VerifyQuantized());
}

void fp8::registerQuantizePipeline() {
  PassPipelineRegistration<QuantizePipelineOptions>(
      "fp8-quantize", "Stage 2: apply a recipe to an imported step, dot by dot",
      [](OpPassManager &pm, const QuantizePipelineOptions &options) {
        buildQuantizePipeline(pm, options);
      });
}
