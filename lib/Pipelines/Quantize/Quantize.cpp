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

static void addResolveRecipe(OpPassManager &pm,
                             const QuantizePipelineOptions &options) {
  FP8ResolveRecipeOptions resolve;
  resolve.recipe = options.recipe;
  resolve.set.assign(options.set.begin(), options.set.end());
  resolve.printRecipe = options.printRecipe;
  pm.addPass(createFP8ResolveRecipe(std::move(resolve)));
}

/// Adds the passes that decide about the dots and that check the decisions.
static void addDecisions(OpPassManager &pm,
                         const QuantizePipelineOptions &options) {
  FP8DecideOptions decide;
  decide.emitRemarks = options.emitRemarks;
  pm.addPass(createFP8Decide(std::move(decide)));
  if (!options.report.empty())
    pm.addPass(createFP8ReportVerdicts(
        {options.report, /*update=*/false, /*dotsAlone=*/true}));
  pm.addPass(createFP8CheckVerdicts({options.failOnFallback}));
}

/// Adds the passes that carry out the decisions.
static void addRewrites(OpPassManager &pm,
                        const QuantizePipelineOptions &options) {
  if (!options.storeScores) {
    pm.addPass(createFP8SplitHeads());
    pm.addPass(createFP8RecomputeAttention());
    // Drop the stacks that hold no scores any more.
    pm.addPass(stablehlo::createCanonicalizeLoops());
  }
  pm.addPass(createFP8SaveActivations());
  pm.addPass(createFP8QuantizeDots({/*nameTensors=*/options.trace}));
  pm.addPass(createFP8StoreGradients({/*nameTensors=*/options.trace}));
  pm.addPass(createFP8ComputeTypes());
  if (options.trace)
    pm.nest<func::FuncOp>().addPass(createFP8TraceUpdates());
  pm.addPass(createFP8StoreState({options.emitRemarks}));
  // Merge equal quantizations of several dots.
  pm.addPass(createCSEPass());
  pm.nest<func::FuncOp>().addPass(createFP8NarrowGathers());
}

/// Adds the passes that drop what nobody reads any more: ops that only the
/// rewritten dots read, and stacks whose slots are quantized where they are
/// read.
static void addCleanup(OpPassManager &pm,
                       const QuantizePipelineOptions &options) {
  pm.addPass(createCSEPass());
  pm.nest<func::FuncOp>().addPass(createFP8SavePayloads());
  // Drop the stacks that payloads have replaced.
  pm.addPass(stablehlo::createCanonicalizeLoops());
  // Trace afterwards, so that a tensor that is quantized once is traced once.
  if (options.trace) {
    pm.addPass(createCSEPass());
    pm.nest<func::FuncOp>().addPass(createFP8Trace());
  }
  pm.addPass(createCSEPass());
}

void fp8::buildQuantizePipeline(OpPassManager &pm,
                                const QuantizePipelineOptions &options,
                                VerdictReport *sink) {
  addResolveRecipe(pm, options);
  // Do this before anything is quantized, so that whole values are quantized
  // alike on all ranks.
  if (options.dataParallel || options.zero > 0 || options.globalAmax ||
      options.globalBatch > 0 || !options.lossReduction.empty()) {
    pm.addPass(
        createFP8DataParallel({options.lossReduction, options.zero,
                               options.globalAmax, options.globalBatch}));
    // A rank that shares a batch (by an option, or as a jit says) may have a
    // single row, so that sums over it are none.
    pm.nest<func::FuncOp>().addPass(stablehlo::createSimplify());
  }
  // Slice after it, because it rejects ops on rows that are in loops.
  pm.addPass(createFP8SliceLogits({options.emitRemarks}));
  if (options.trace)
    pm.nest<func::FuncOp>().addPass(createFP8TraceAlignment());
  FP8SmoothSwiGLUOptions smooth;
  smooth.emitRemarks = options.emitRemarks;
  pm.addPass(createFP8SmoothSwiGLU(std::move(smooth)));
  addDecisions(pm, options);
  addRewrites(pm, options);
  pm.addPass(
      createFP8FormAttention({options.emitRemarks, options.storeScores}));
  pm.addPass(createFP8DeferDivision());
  if (sink || !options.report.empty())
    pm.addPass(createReportVerdictsPass(
        {options.report, /*update=*/true, /*dotsAlone=*/false}, sink));
  pm.addPass(createFP8DropVerdicts());
  addCleanup(pm, options);
  pm.addPass(createFP8VerifyQuantized());
}

void fp8::registerQuantizePipeline() {
  PassPipelineRegistration<QuantizePipelineOptions>(
      "fp8-quantize", "Stage 2: apply a recipe to an imported step, dot by dot",
      [](OpPassManager &pm, const QuantizePipelineOptions &options) {
        buildQuantizePipeline(pm, options);
      });
}
