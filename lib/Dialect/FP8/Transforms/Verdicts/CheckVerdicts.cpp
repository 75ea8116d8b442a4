//===- CheckVerdicts.cpp - Rules that decide, dots that convert -----------===//

#include "../EffectiveRecipe.h"
#include "../State/StateFunctions.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8CHECKVERDICTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// Checks that all dots that the recipe quantizes become FP8.
static LogicalResult checkFallbacks(func::FuncOp function,
                                    const Recipe &recipe) {
  LogicalResult result = success();
  function.walk([&](stablehlo::DotGeneralOp dot) {
    VerdictAttr verdict = getVerdict(dot);
    if (verdict.getKind() != Verdict::Fallback)
      return;
    StringAttr layer = verdict.getLayer();
    result = dot.emitError()
             << "recipe '" << recipe.name << "' quantizes this "
             << stringifyDotRole(verdict.getRole()) << " dot of layer '"
             << (layer ? layer.getValue() : "")
             << "', but it cannot be converted: "
             << verdict.getReason().getValue();
  });
  return result;
}

/// Whether the only condition of a rule is the part of the model. Such a rule
/// is about heads in general and need not match any dot.
static bool hasOnlyPartCondition(const RecipeRule &rule) {
  RecipeRule partAlone;
  partAlone.part = rule.part;
  return rule.getConditions() == partAlone.getConditions();
}

/// Checks that every rule decides about a dot, if the function is a training
/// step.
static LogicalResult checkRules(func::FuncOp function, const Recipe &recipe) {
  if (!replacesState(function))
    return success();
  llvm::SmallDenseSet<int64_t> used;
  function.walk([&](stablehlo::DotGeneralOp dot) {
    used.insert(getVerdict(dot).getRule());
  });
  LogicalResult result = success();
  for (const RecipeRule &rule : recipe.rules) {
    if (used.contains(rule.number) || hasOnlyPartCondition(rule))
      continue;
    InFlightDiagnostic diag = emitError(rule.loc)
                              << "rule " << rule.number << " ("
                              << rule.getConditions()
                              << ") decides about no dot of the step";
    diag.attachNote(function.getLoc())
        << "a dot is decided by the first rule that matches it; --verdicts or "
           "the report lists every dot";
    result = diag;
  }
  return result;
}

namespace {
struct CheckVerdicts : fp8::impl::FP8CheckVerdictsBase<CheckVerdicts> {
  using FP8CheckVerdictsBase::FP8CheckVerdictsBase;

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe) || failed(verifyDecided(getOperation())))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if ((failOnFallback && failed(checkFallbacks(function, *recipe))) ||
          failed(checkRules(function, *recipe)))
        signalPassFailure();
    markAllAnalysesPreserved();
  }
};
} // namespace
