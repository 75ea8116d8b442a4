//===- PropagateControlFlow.cpp - Layouts through loops and branches ------===//

#include "Propagation.h"

#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

/// Updates the number of elements of a carried sum: a loop that adds to it in
/// every iteration multiplies it by the trip count; after other loops it is
/// unknown.
static void scaleCountByTrips(stablehlo::WhileOp loop, unsigned index,
                              Layout &layout) {
  if (!layout.isCounted)
    return;
  Operation *yielded =
      loop.getBody().front().getTerminator()->getOperand(index).getDefiningOp();
  if (isa_and_nonnull<stablehlo::DynamicUpdateSliceOp>(yielded))
    return;
  std::optional<stablehlo::CountedLoop> counted =
      stablehlo::matchCountedLoop(loop);
  bool adds = isa_and_nonnull<stablehlo::AddOp>(yielded) && counted &&
              llvm::is_contained(yielded->getOperands(),
                                 loop.getBody().getArgument(index));
  if (adds) {
    layout.elements *= counted->trips;
    return;
  }
  layout.elements = 0;
}

/// Visits the condition and the body of a loop whose values have these layouts.
LogicalResult Propagation::visitTurn(stablehlo::WhileOp loop,
                                     ArrayRef<Layout> carries) {
  Block &cond = loop.getCond().front(), &body = loop.getBody().front();
  for (auto [index, carry] : llvm::enumerate(carries)) {
    // (A reference into the map ends where the map grows.)
    layouts[cond.getArgument(index)] = carry;
    layouts[body.getArgument(index)] = carry;
  }
  return failure(failed(visitBlock(cond)) || failed(visitBlock(body)));
}

/// Joins the layout that a value of a loop had in a turn with that of what the
/// turn yields.
LogicalResult Propagation::joinYielded(stablehlo::WhileOp loop, unsigned index,
                                       Layout &carry, bool &changed) {
  Value yielded = loop.getBody().front().getTerminator()->getOperand(index);
  Value init = loop->getOperand(index);
  std::optional<Layout> both = join(carry, layoutOf(yielded));
  if (!both) {
    for (Value value : {yielded, init})
      if (layoutOf(value).is(Kind::Partial)) {
        found = true;
        whole.insert(value);
      }
    both = join(layoutOf(init), layoutOf(yielded));
    if (!both)
      return emitRowError(loop, "a value of the loop is rows in one turn and a "
                                "sum over rows in another");
    changed = true;
  }
  if (both->turn && both->turn->counter.getOwner() == &loop.getBody().front())
    return emitRowError(loop, "each turn has its own row, and reads a value "
                              "that the turn before it has left");
  if (both->is(Kind::Rows) && failed(requireLike(loop, init, *both)))
    return failure();
  changed |= *both != carry;
  carry = *both;
  return success();
}

/// Emits an error unless a loop yields rows where its next turn reads rows.
LogicalResult Propagation::requireYieldedRows(stablehlo::WhileOp loop,
                                              ArrayRef<Layout> carries) {
  Operation *yield = loop.getBody().front().getTerminator();
  for (auto [index, carry] : llvm::enumerate(carries))
    if (carry.is(Kind::Rows) &&
        failed(requireLike(loop, yield->getOperand(index), carry)))
      return failure();
  return success();
}

/// Sets the layouts of the results of a loop.
void Propagation::setResults(stablehlo::WhileOp loop,
                             ArrayRef<Layout> carries) {
  for (auto [index, result] : llvm::enumerate(loop->getResults())) {
    Layout layout = carries[index];
    scaleCountByTrips(loop, index, layout);
    layouts[result] = layout;
  }
}

LogicalResult Propagation::visitWhile(stablehlo::WhileOp loop) {
  // Layouts only gain information from one iteration to the next, except for
  // values that become whole, so few turns are enough.
  constexpr unsigned kMostTurns = 64;
  SmallVector<Layout> carries;
  for (Value init : loop->getOperands())
    carries.push_back(layoutOf(init));
  unsigned turns = 0;
  for (bool changed = true; changed;) {
    changed = false;
    if (++turns > kMostTurns)
      return emitRowError(loop,
                          "what its values are changes from turn to turn");
    ++suppressErrors;
    LogicalResult turned = visitTurn(loop, carries);
    --suppressErrors;
    if (failed(turned))
      return failure();
    for (auto [index, carry] : llvm::enumerate(carries))
      if (failed(joinYielded(loop, index, carry, changed)))
        return failure();
  }
  Value condition = loop.getCond().front().getTerminator()->getOperand(0);
  if (failed(visitTurn(loop, carries)) ||
      failed(requireYieldedRows(loop, carries)) ||
      failed(requireWhole(loop, condition)))
    return failure();
  setResults(loop, carries);
  return success();
}

LogicalResult Propagation::visitBranches(Operation *op) {
  if (failed(requireWhole(op, op->getOperand(0))))
    return failure();
  for (Region &region : op->getRegions())
    if (failed(visitBlock(region.front())))
      return failure();
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    auto yielded = [&, index = index](Region &region) {
      return region.front().getTerminator()->getOperand(index);
    };
    Layout layout;
    bool agree = true;
    for (Region &region : op->getRegions()) {
      std::optional<Layout> both = join(layout, layoutOf(yielded(region)));
      agree &= both.has_value();
      if (both)
        layout = *both;
    }
    if (!agree) {
      layout = Layout();
      for (Region &region : op->getRegions()) {
        if (failed(requireWhole(op, yielded(region))))
          return failure();
        layout = join(layout, layoutOf(yielded(region))).value_or(layout);
      }
    }
    if (layout.is(Kind::Rows))
      for (Region &region : op->getRegions())
        if (failed(requireLike(op, yielded(region), layout)))
          return failure();
    layouts[result] = layout;
  }
  return success();
}
