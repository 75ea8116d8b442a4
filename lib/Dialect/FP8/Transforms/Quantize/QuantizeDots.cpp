//===- QuantizeDots.cpp - Compute dots in FP8 -----------------------------===//

#include "../EffectiveRecipe.h"
#include "../OperandRows.h"
#include "../State/StateFunctions.h"
#include "Quantizer.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8QUANTIZEDOTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// Returns how this operand of a dot is quantized.
static OperandPlan getPlan(stablehlo::DotGeneralOp dot, unsigned operand,
                           const Recipe &recipe) {
  VerdictAttr verdict = getVerdict(dot);
  OperandKind kind = operand == 0 ? verdict.getLhs() : verdict.getRhs();
  OperandPlan plan;
  plan.recipe = *getOperandRecipe(recipe, verdict.getRole(), kind);
  plan.isWeight = kind == OperandKind::Weight;
  if (plan.isWeight && verdict.getCurrentScale())
    plan.recipe.scaling = Scaling::Current;
  if (verdict.getRole() == DotRole::Wgrad && kind == OperandKind::Activation)
    plan.copy = recipe.wgrad->copy;
  // Blocks along the contraction consist of a rank's own rows.
  OperandRows rows = getOperandRows(dot, operand);
  plan.overRanks =
      (rows != OperandRows::None && plan.recipe.tile == Tiling::Tensor) ||
      (rows == OperandRows::Contracted && plan.recipe.tile == Tiling::Row);
  StringAttr layer = verdict.getLayer();
  plan.name = (kStatePrefix + (layer ? layer.getValue() : "") + "." +
               stringifyOperandKind(kind))
                  .str();
  return plan;
}

static AccumulatorRecipe getAccumulator(DotRole role, const Recipe &recipe) {
  switch (role) {
  case DotRole::Forward:
    return recipe.forward->accumulator;
  case DotRole::Dgrad:
    return recipe.dgrad->accumulator;
  default:
    return recipe.wgrad->accumulator;
  }
}

/// Checks that the recipe is the one that the verdicts follow.
static LogicalResult verifyRecipe(stablehlo::DotGeneralOp dot,
                                  const Recipe &recipe) {
  VerdictAttr verdict = getVerdict(dot);
  if (!verdict.isFP8() ||
      getOperandRecipe(recipe, verdict.getRole(), verdict.getLhs()))
    return success();
  return dot.emitOpError() << "expected recipe '" << recipe.name
                           << "' to have the key '"
                           << stringifyDotRole(verdict.getRole())
                           << "', since the verdict of this dot is fp8";
}

namespace {
struct QuantizeDots : fp8::impl::FP8QuantizeDotsBase<QuantizeDots> {
  using FP8QuantizeDotsBase::FP8QuantizeDotsBase;

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe) || failed(verifyDecided(getOperation())))
      return signalPassFailure();
    // Copy the list first, because functions that store weight copies are
    // added.
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (failed(quantize(function, *recipe)))
        signalPassFailure();
  }

  LogicalResult quantize(func::FuncOp function, const Recipe &recipe) {
    // A function that replaces no state has no next step to make copies for.
    Quantizer quantizer(function, recipe.seed, nameTensors,
                        replacesState(function) ? recipe.weightCopies
                                                : WeightCopyTime::Step);
    SmallVector<stablehlo::DotGeneralOp> dots;
    function.walk([&](stablehlo::DotGeneralOp dot) { dots.push_back(dot); });
    for (stablehlo::DotGeneralOp dot : dots) {
      VerdictAttr verdict = getVerdict(dot);
      if (failed(verifyRecipe(dot, recipe)))
        return failure();
      if (verdict.isFP8())
        quantizer.add({dot, getPlan(dot, 0, recipe), getPlan(dot, 1, recipe),
                       getAccumulator(verdict.getRole(), recipe)});
    }
    if (failed(quantizer.rewrite()))
      return failure();
    numQuantized += quantizer.getNumQuantized();
    return success();
  }
};
} // namespace
