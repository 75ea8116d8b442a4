//===- StoreState.cpp - Changes how the optimizer's state is stored -------===//

#include "../EffectiveRecipe.h"
#include "../TakenUpdate.h"
#include "StateFunctions.h"
#include "StateStorer.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Binding/PathBinding.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Support/FunctionAttributes.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8STORESTATE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// Removes results of branches that are no longer read.
static void dropUnusedResults(func::FuncOp function) {
  OpBuilder builder(function.getContext());
  SmallVector<Operation *> branches;
  function.walk([&](Operation *op) {
    if (stablehlo::isBranch(op))
      branches.push_back(op);
  });
  // Outer branches first: inner ones need not return what outer ones do not.
  for (Operation *op : llvm::reverse(branches)) {
    SmallVector<unsigned> kept;
    SmallVector<Type> types;
    for (OpResult result : op->getResults())
      if (!result.use_empty()) {
        kept.push_back(result.getResultNumber());
        types.push_back(result.getType());
      }
    if (kept.size() == op->getNumResults())
      continue;
    for (Region &region : op->getRegions()) {
      Operation *yield = region.front().getTerminator();
      SmallVector<Value> values;
      for (unsigned index : kept)
        values.push_back(yield->getOperand(index));
      yield->setOperands(values);
    }
    builder.setInsertionPoint(op);
    OperationState state(op->getLoc(), op->getName(), op->getOperands(), types,
                         op->getAttrs());
    for (Region &region : op->getRegions())
      state.addRegion()->takeBody(region);
    Operation *copy = builder.create(state);
    for (auto [index, result] : llvm::enumerate(copy->getResults()))
      op->getResult(kept[index]).replaceAllUsesWith(result);
    op->erase();
  }
}

LogicalResult StateStorer::run() {
  decide();
  if (recipe.optimizer.clipUpdate)
    clip();
  if (arrays.empty())
    return success();
  // Find this before the step is changed.
  std::optional<TakenUpdate> when;
  if (llvm::any_of(arrays, [](const StoredArray &array) {
        return array.recipe.scaling == Scaling::Delayed;
      }))
    when = findTakenUpdate(function);
  if (llvm::any_of(arrays, [](const StoredArray &array) {
        return array.recipe.rounding == Rounding::Stochastic;
      }))
    seeds.prepare();
  for (StoredArray &array : arrays)
    changeArgument(array);
  resultOfState = resultsByState(function);
  for (StoredArray &array : arrays)
    if (failed(storeResult(array))) {
      delayed.getSignature().apply();
      return failure();
    }
  for (StoredArray &array : arrays)
    if (array.changesType())
      loadInBranches(array);
  delayed.getSignature().apply();
  Block &body = function.getBody().front();
  function.setType(builder.getFunctionType(
      body.getArgumentTypes(), body.getTerminator()->getOperandTypes()));
  if (when)
    delayed.addResults(*when);
  dropUnusedResults(function);
  if (llvm::any_of(
          arrays, [](const StoredArray &array) { return array.changesType(); }))
    makeStateFunctions();
  return success();
}

namespace {
struct StoreState : fp8::impl::FP8StoreStateBase<StoreState> {
  using FP8StoreStateBase::FP8StoreStateBase;

  void runOnOperation() override;

private:
  LogicalResult store(func::FuncOp function, const Recipe &recipe);
};
} // namespace

static void emitStateRemark(Location loc, const StateDecision &decision) {
  InFlightDiagnostic diag = emitRemark(loc);
  diag << (decision.changed ? "stored as " : "stays ")
       << printType(decision.to);
  if (decision.tile)
    diag << " (scales: " << stringifyStorageTiling(*decision.tile) << ")";
  diag << ": " << decision.kind << " " << decision.path;
  if (!decision.parameter.empty())
    diag << " of " << decision.parameter;
  diag << ", " << decision.elements << " elements of "
       << printType(decision.from) << ": " << decision.reason;
  for (const std::string &note : decision.notes)
    diag << "; " << note;
}

/// Checks that each path that the recipe keeps is one of a parameter.
static LogicalResult checkKept(func::FuncOp function,
                               ArrayRef<StateDecision> decisions,
                               ArrayRef<std::string> globs) {
  for (const std::string &glob : globs)
    if (llvm::none_of(decisions, [&](const StateDecision &decision) {
          return fp8binding::matchesPath(glob, decision.kind == "parameter"
                                                   ? decision.path
                                                   : decision.parameter);
        }))
      return function.emitError()
             << "expected the path '" << glob
             << "' of optimizer.keep to match a parameter of the step, but it "
                "matches none";
  return success();
}

LogicalResult StoreState::store(func::FuncOp function, const Recipe &recipe) {
  if (!replacesState(function))
    return success();
  if (failed(Signature::fromAttributes(function)))
    return failure();
  StateStorer storer(function, recipe);
  if (failed(storer.run()) ||
      failed(checkKept(function, storer.decisions, recipe.optimizer.keep)))
    return failure();
  DenseMap<unsigned, Attribute> verdicts;
  for (const StateDecision &decision : storer.decisions) {
    if (emitRemarks)
      emitStateRemark(function.getArgument(decision.argument).getLoc(),
                      decision);
    verdicts[decision.argument] = decision.getAttribute(&getContext());
    ++numArrays;
    numStored += decision.changed;
  }
  updateArgAttrs(function, [&](unsigned index, NamedAttrList &attributes) {
    if (Attribute verdict = verdicts.lookup(index))
      attributes.set(FP8Dialect::kStateVerdictAttrName, verdict);
  });
  return success();
}

void StoreState::runOnOperation() {
  FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
  if (failed(recipe))
    return signalPassFailure();
  if (recipe->optimizer.changesNothing() && !recipe->gradients.changes())
    return markAllAnalysesPreserved();
  for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
    if (failed(store(function, *recipe)))
      return signalPassFailure();
}
