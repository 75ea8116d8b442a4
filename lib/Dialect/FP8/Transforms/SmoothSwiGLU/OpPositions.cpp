//===- OpPositions.cpp - Which of two ops comes first ---------------------===//

#include "OpPositions.h"

#include "mlir/Transforms/RegionUtils.h"

namespace mlir::fp8::smooth {

OpPositions::OpPositions(func::FuncOp function) : dominance(function) {
  function.walk([&](Operation *op) { positions[op] = positions.size() + 1; });
}

/// Returns the last op at or before `op` that the function had before, and its
/// position; null and 0 if there is none.
std::pair<Operation *, unsigned> OpPositions::getPosition(Operation *op) const {
  for (; op; op = op->getPrevNode())
    if (auto known = positions.find(op); known != positions.end())
      return *known;
  return {nullptr, 0};
}

/// Returns true if `first` comes before `second` in their block.
bool OpPositions::isBefore(Operation *first, Operation *second) const {
  auto [firstOld, firstPosition] = getPosition(first);
  auto [secondOld, secondPosition] = getPosition(second);
  if (firstOld != secondOld)
    return firstPosition < secondPosition;
  return first == firstOld ||
         (second != secondOld && first->isBeforeInBlock(second));
}

bool OpPositions::dominates(Value value, Operation *op) {
  Operation *def = value.getDefiningOp();
  return def && def->getBlock() == op->getBlock()
             ? isBefore(def, op)
             : dominance.properlyDominates(value, op);
}

/// Forgets the positions of ops that moved from behind `behind` to before it.
void OpPositions::forgetMoved(Operation *behind) {
  for (Operation *op = behind->getPrevNode(); op; op = op->getPrevNode()) {
    auto known = positions.find(op);
    if (known == positions.end())
      continue;
    if (known->second < positions.lookup(behind))
      return;
    positions.erase(known);
  }
}

LogicalResult OpPositions::moveBefore(RewriterBase &rewriter, ValueRange values,
                                      Operation *op) {
  if (failed(moveValueDefinitions(rewriter, values, op, dominance)))
    return failure();
  forgetMoved(op);
  return success();
}

void OpPositions::setInsertionPointAfter(OpBuilder &builder, Value a, Value b) {
  Operation *first = a.getDefiningOp(), *second = b.getDefiningOp();
  if (!first)
    builder.setInsertionPointAfterValue(b);
  else if (!second)
    builder.setInsertionPointAfterValue(a);
  else if (first->getBlock() == second->getBlock()
               ? isBefore(first, second)
               : dominance.properlyDominates(first, second))
    builder.setInsertionPointAfter(second);
  else
    builder.setInsertionPointAfter(first);
}

} // namespace mlir::fp8::smooth
