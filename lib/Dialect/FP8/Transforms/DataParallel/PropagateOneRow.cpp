//===- PropagateOneRow.cpp - Layouts in loops over single rows ------------===//
//
// A loop that takes the rows of a batch one by one (lax.map, a scan over rows)
// computes with values that have no dimension of rows. Each belongs to the row
// of the turn. What the loop writes to that row's place in a stack has rows
// again, and what it adds up is a part of a sum over the rows of all ranks.
//
//===----------------------------------------------------------------------===//

#include "Propagation.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

using namespace mlir;
using namespace mlir::fp8;
using Kind = Layout::Kind;

/// Returns which of `extent` elements an index takes in each turn of a loop, if
/// it takes each once.
static std::optional<LayerSlot> matchTurn(Value index, int64_t extent) {
  std::optional<stablehlo::AffineIndex> affine =
      stablehlo::matchAffineIndex(index);
  if (!affine || std::abs(affine->scale) != 1 || affine->min != 0 ||
      affine->max != extent - 1)
    return std::nullopt;
  return LayerSlot{affine->counter, affine->scale, affine->offset, extent};
}

/// Returns the dimension of a stack along which a part is what belongs to the
/// row of a turn.
static std::optional<int64_t> findDimOfTurn(ValueRange starts, Value stack,
                                            ArrayRef<int64_t> part,
                                            const LayerSlot &turn) {
  for (auto [dim, start] : llvm::enumerate(starts))
    if (part[dim] == 1 && matchTurn(start, shapeOf(stack)[dim]) == turn)
      return dim;
  return std::nullopt;
}

std::optional<LayerSlot> Propagation::matchOneRow(Operation *op,
                                                  ArrayRef<RowDim> rows) {
  auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op);
  if (!slice || rows.size() != 1)
    return std::nullopt;
  const RowDim &row = rows.front();
  if (shapeOf(slice.getOperand())[row.dim] != row.size)
    return std::nullopt;
  return matchTurn(slice.getStartIndices()[row.dim], row.size);
}

/// Whether a value that is the same on all ranks is also the same in all turns
/// of a loop over rows. Its slices of what is drawn for rows are drawn for the
/// rank's own rows in the next run.
bool Propagation::isSameInTurns(Value value, const LayerSlot &turn) {
  Block *body = turn.counter.getOwner();
  llvm::DenseSet<Value> seen;
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!body->getParent()->isAncestor(next.getParentRegion()) ||
        !seen.insert(next).second)
      continue;
    if (auto arg = dyn_cast<BlockArgument>(next); arg && arg.getOwner() == body)
      return false;
    auto slice = next.getDefiningOp<stablehlo::DynamicSliceOp>();
    std::optional<int64_t> dim;
    if (slice)
      dim = findDimOfTurn(slice.getStartIndices(), slice.getOperand(),
                          shapeOf(slice), turn);
    if (!dim) {
      forEachSource(next, [&](Value source) { worklist.push_back(source); });
      continue;
    }
    RowDims rows{{*dim, 1, turn.count}};
    if (!isSameForRows(slice.getOperand(), rows)) {
      if (!draws.isDrawn(slice.getOperand(), rows))
        return false;
      drawn.push_back({slice.getOperand(), rows});
    }
    for (Value source : slice->getOperands())
      if (source != slice.getStartIndices()[*dim])
        worklist.push_back(source);
  }
  return true;
}

LogicalResult Propagation::requireRow(Operation *op, Value value,
                                      const LayerSlot &turn) {
  if (layoutOf(value).is(Kind::Partial) && failed(requireWhole(op, value)))
    return failure();
  Layout layout = layoutOf(value);
  if (layout.is(Kind::Unknown) || layout.turn == turn)
    return success();
  if (layout.is(Kind::Rows))
    return emitRowError(op, "it combines different rows of the batch");
  if (isTooMixed(op, value))
    return emitRowError(op,
                        "it reads a value that follows from the parameters and "
                        "the rows of all ranks");
  if (!isSameInTurns(value, turn))
    return emitRowError(op, "a row reads a value that is another one in every "
                            "turn of the loop over rows, such as a position");
  return success();
}

/// Whether an op adds to a value of a loop that nothing else reads before the
/// loop ends.
static bool addsToTotal(stablehlo::AddOp op, Value total,
                        const LayerSlot &turn) {
  Block *body = turn.counter.getOwner();
  auto nextSum = [](Value value) {
    return value.hasOneUse() ? dyn_cast<stablehlo::AddOp>(*value.user_begin())
                             : stablehlo::AddOp();
  };
  // Down to what the loop yields.
  Value sum = op.getResult();
  while (stablehlo::AddOp next = nextSum(sum))
    sum = next.getResult();
  Operation *yield = body->getTerminator();
  if (!sum.hasOneUse() || *sum.user_begin() != yield)
    return false;
  // And back from what the turn begins with.
  Value before = body->getArgument(sum.use_begin()->getOperandNumber());
  while (before != total) {
    stablehlo::AddOp next = nextSum(before);
    if (!next || next == op)
      return false;
    before = next.getResult();
  }
  return before.hasOneUse();
}

/// Handles what a loop over rows writes to a stack.
LogicalResult Propagation::visitUpdateOfRow(stablehlo::DynamicUpdateSliceOp op,
                                            const LayerSlot &turn) {
  std::optional<int64_t> dim = findDimOfTurn(
      op.getStartIndices(), op.getOperand(), shapeOf(op.getUpdate()), turn);
  RowDims rows{{*dim, 1, turn.count}};
  for (auto [other, start] : llvm::enumerate(op.getStartIndices()))
    if (static_cast<int64_t>(other) != *dim &&
        failed(requireRow(op, start, turn)))
      return failure();
  if (failed(requireRow(op, op.getUpdate(), turn)) ||
      failed(requireRows(op, op.getOperand(), rows)))
    return failure();
  Layout layout = Layout::of(Kind::Rows);
  layout.rows = rows;
  return assign(op, layout);
}

/// Handles ops that read the row of a turn.
LogicalResult Propagation::visitOneRow(Operation *op, const LayerSlot &turn) {
  if (auto add = dyn_cast<stablehlo::AddOp>(op))
    for (Value total : add->getOperands())
      if (Layout layout = layoutOf(total);
          layout.isSum() && addsToTotal(add, total, turn))
        return assign(op, *join(layout, sumOf(1)));
  if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(op);
      update && findDimOfTurn(update.getStartIndices(), update.getOperand(),
                              shapeOf(update.getUpdate()), turn))
    return visitUpdateOfRow(update, turn);
  for (Value operand : op->getOperands())
    if (failed(requireRow(op, operand, turn)))
      return failure();
  Layout layout = Layout::of(Kind::Rows);
  layout.turn = turn;
  return assign(op, layout);
}
