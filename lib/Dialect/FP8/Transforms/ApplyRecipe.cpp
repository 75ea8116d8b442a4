//===- ApplyRecipe.cpp - Compute the dots that a recipe names in FP8 ------===//

#include "ComputeType.h"
#include "Decider.h"
#include "Quantizer.h"
#include "SavedActivations.h"
#include "StateFunctions.h"
#include "StoreGradients.h"

#include "fp8/Analysis/LinearLayers.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <deque>

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8APPLYRECIPE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

static const AccumulatorRecipe *getAccumulator(const Recipe &recipe,
                                               DotRole role) {
  switch (role) {
  case DotRole::Forward:
    return recipe.forward ? &recipe.forward->accumulator : nullptr;
  case DotRole::Dgrad:
    return recipe.dgrad ? &recipe.dgrad->accumulator : nullptr;
  case DotRole::Wgrad:
    return recipe.wgrad ? &recipe.wgrad->accumulator : nullptr;
  default:
    return nullptr;
  }
}

/// What the scale state of an operand is called.
static std::string getStateName(const DotInfo &info, OperandKind kind) {
  StringRef part = kind == OperandKind::Weight       ? "weight"
                   : kind == OperandKind::Activation ? "activation"
                                                     : "gradient";
  return ("fp8." + info.layer + "." + part).str();
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static void emitVerdictRemark(Operation *dot, const DotVerdict &verdict) {
  InFlightDiagnostic diag = dot->emitRemark();
  diag << stringifyVerdict(verdict.kind) << ": " << verdict.role;
  if (!verdict.layer.empty())
    diag << " of " << verdict.layer;
  diag << " (batch " << verdict.batch << ", M " << verdict.m << ", N "
       << verdict.n << ", K " << verdict.k << "; " << verdict.lhsFormat << " x "
       << verdict.rhsFormat << "): " << verdict.reason;
  for (const std::string &note : verdict.notes)
    diag << "; " << note;
}

namespace {
struct ApplyRecipe : public fp8::impl::FP8ApplyRecipeBase<ApplyRecipe> {
  using FP8ApplyRecipeBase::FP8ApplyRecipeBase;
  ApplyRecipe(FP8ApplyRecipeOptions options, VerdictReport *sink)
      : FP8ApplyRecipeBase(std::move(options)), sink(sink) {}

  LogicalResult initialize(MLIRContext *context) override {
    FailureOr<Recipe> loaded = loadRecipe(this->recipe, context, *set);
    if (failed(loaded))
      return failure();
    effective = std::move(*loaded);
    if (printRecipe)
      effective.print(llvm::outs());
    return success();
  }

  void runOnOperation() override {
    VerdictReport verdicts;
    verdicts.recipe = effective.name;
    bool failed = false;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      failed |= mlir::failed(apply(function, verdicts));
    if (failed)
      signalPassFailure();
    if (!report.empty()) {
      std::string error;
      if (mlir::failed(verdicts.write(report, error))) {
        emitError(UnknownLoc::get(&getContext())) << error;
        signalPassFailure();
      }
    }
    if (sink)
      *sink = std::move(verdicts);
  }

  LogicalResult apply(func::FuncOp function, VerdictReport &verdicts);
  LogicalResult checkRules(func::FuncOp function, const llvm::BitVector &used);

  Recipe effective;
  VerdictReport *sink = nullptr;
};
} // namespace

/// Decides about the dots of one function and rewrites those that become FP8.
LogicalResult ApplyRecipe::apply(func::FuncOp function,
                                 VerdictReport &verdicts) {
  if (auto units =
          function->getAttrOfType<ArrayAttr>(FP8Dialect::kGatedUnitsAttrName)) {
    for (auto unit : units.getAsRange<DictionaryAttr>())
      verdicts.gatedUnits.push_back(GatedUnitVerdict::get(unit));
    function->removeAttr(FP8Dialect::kGatedUnitsAttrName);
  }
  Decider decider(effective, function);
  // What no step updates has no other copy after it.
  Quantizer quantizer(function, effective.seed, nameTensors,
                      replacesState(function) ? effective.weightCopies
                                              : WeightCopyTime::Step);
  std::vector<DotPlan> plans;
  SmallVector<Operation *> wgrads;
  std::deque<OperandRecipe> smoothed;
  bool fallback = false;
  for (const DotInfo &info : decider.getLayers().getDots()) {
    FailureOr<DotVerdict> verdict = decider.getVerdict(info);
    if (failed(verdict))
      return failure();
    auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
    ++numDots;
    // What a rule keeps in high precision is kept whole.
    bool isKept = verdict->kind != DotVerdict::Kind::FP8 && verdict->rule != 0;
    if (info.role == DotRole::Wgrad && !isKept)
      wgrads.push_back(dot);
    if (emitRemarks)
      emitVerdictRemark(dot, *verdict);
    if (verdict->kind == DotVerdict::Kind::FP8) {
      ++numFP8Dots;
      auto plan = [&](OperandKind kind) -> OperandPlan {
        bool isSecondCopy =
            info.role == DotRole::Wgrad && kind == OperandKind::Activation;
        const OperandRecipe *operand =
            getOperandRecipe(effective, info.role, kind);
        if (needsCurrentScale(*operand, info, kind)) {
          smoothed.push_back(*operand);
          smoothed.back().scaling = Scaling::Current;
          operand = &smoothed.back();
        }
        return {operand, kind == OperandKind::Weight,
                isSecondCopy ? effective.wgrad->copy : SecondPayload::Saved,
                getStateName(info, kind)};
      };
      plans.push_back({dot, plan(info.lhs), plan(info.rhs),
                       getAccumulator(effective, info.role)});
    } else if (verdict->kind == DotVerdict::Kind::Fallback && failOnFallback) {
      dot.emitError() << "recipe '" << effective.name << "' quantizes this "
                      << verdict->role << " dot of layer '" << verdict->layer
                      << "', but it cannot be converted: " << verdict->reason;
      fallback = true;
    }
    verdicts.dots.push_back(std::move(*verdict));
  }
  if (fallback || failed(checkRules(function, decider.getUsedRules())))
    return failure();
  saveActivations(function, decider.getLayers(), effective.compute,
                  [&](Operation *op) {
                    return llvm::any_of(plans, [&](const DotPlan &plan) {
                      return plan.dot == op;
                    });
                  });
  for (const DotPlan &plan : plans)
    quantizer.add(plan);
  if (failed(quantizer.rewrite()))
    return failure();
  numQuantized += quantizer.getNumQuantized();
  SmallVector<Value> gradients;
  for (Operation *dot : wgrads) {
    Value result = quantizer.getResult(dot);
    gradients.push_back(result ? result : dot->getResult(0));
  }
  Seeds seeds(function, effective.seed);
  FailureOr<int64_t> stored =
      storeGradients(gradients, effective.gradients, seeds);
  if (failed(stored))
    return failure();
  numGradients += *stored;
  if (effective.compute.unquantizedDots == ComputeFormat::BF16)
    readBF16InDots(function);
  return success();
}

/// A rule that decides about no dot of a training step is a mistake. One of a
/// part alone says what the recipe thinks of heads, whether there is one or
/// not.
LogicalResult ApplyRecipe::checkRules(func::FuncOp function,
                                      const llvm::BitVector &used) {
  if (!replacesState(function))
    return success();
  bool unused = false;
  for (auto [i, rule] : llvm::enumerate(effective.rules)) {
    RecipeRule partAlone;
    partAlone.part = rule.part;
    std::string conditions = rule.getConditions();
    if (used.test(i) || conditions == partAlone.getConditions())
      continue;
    unused = true;
    InFlightDiagnostic diag = emitError(rule.loc)
                              << "rule " << rule.number << " (" << conditions
                              << ") decides about no dot of the step";
    diag.attachNote(function.getLoc())
        << "a dot is decided by the first rule that matches it; --verdicts or "
           "the report lists every dot";
  }
  return failure(unused);
}

std::unique_ptr<Pass> fp8::createApplyRecipePass(FP8ApplyRecipeOptions options,
                                                 VerdictReport *sink) {
  return std::make_unique<ApplyRecipe>(std::move(options), sink);
}
