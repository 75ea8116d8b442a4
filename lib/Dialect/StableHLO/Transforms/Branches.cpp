//===- Branches.cpp - Simplifying branches --------------------------------===//

#include "LoopRewriting.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;
using namespace mlir::stablehlo;

static bool inlineBranch(Operation *op, Region &branch) {
  SmallVector<Value> values = moveBefore(op, branch.front(), {});
  op->replaceAllUsesWith(values);
  op->erase();
  return true;
}

/// Returns the value outside that replaces a result that no branch computes;
/// null if there is none. `predicate` selects between the two branches of an
/// `if`.
static Value findOutside(OpResult result, Value predicate) {
  Operation *op = result.getOwner();
  SmallVector<Value> values;
  for (Region &region : op->getRegions())
    values.push_back(
        region.front().getTerminator()->getOperand(result.getResultNumber()));
  if (!llvm::all_of(values, [&](Value v) { return isOutside(v, op); }))
    return {};
  if (llvm::all_equal(values))
    return values[0];
  if (!predicate)
    return {};
  OpBuilder b(op);
  return SelectOp::create(b, op->getLoc(), result.getType(), predicate,
                          values[0], values[1]);
}

/// Replaces `op` by one without the results in `drop`, which nobody reads.
static void eraseResults(Operation *op, const llvm::BitVector &drop) {
  SmallVector<Type> types;
  SmallVector<Value> kept;
  for (OpResult result : op->getResults())
    if (!drop[result.getResultNumber()]) {
      types.push_back(result.getType());
      kept.push_back(result);
    }
  if (kept.empty()) {
    op->erase();
    return;
  }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(types);
  state.addAttributes(op->getAttrs());
  for (Region &region : op->getRegions()) {
    region.front().getTerminator()->eraseOperands(drop);
    state.addRegion()->takeBody(region);
  }
  OpBuilder b(op);
  Operation *replacement = b.create(state);
  for (auto [old, value] : llvm::zip(kept, replacement->getResults()))
    old.replaceAllUsesWith(value);
  op->erase();
}

/// Drops results that nobody reads, and results that no branch computes.
static bool dropResults(Operation *op, Value predicate) {
  llvm::BitVector drop(op->getNumResults());
  for (OpResult result : op->getResults()) {
    if (!result.use_empty()) {
      Value outside = findOutside(result, predicate);
      if (!outside)
        continue;
      result.replaceAllUsesWith(outside);
    }
    drop.set(result.getResultNumber());
  }
  if (drop.none())
    return false;
  eraseResults(op, drop);
  return true;
}

bool stablehlo::canonicalizeIf(IfOp op) {
  for (Region &region : op->getRegions())
    eraseDeadOps(region.front());
  DenseElementsAttr predicate;
  if (matchPattern(op.getPred(), m_Constant(&predicate)))
    return inlineBranch(op, predicate.getSplatValue<bool>()
                                ? op.getTrueBranch()
                                : op.getFalseBranch());
  return dropResults(op, op.getPred());
}

bool stablehlo::canonicalizeCase(CaseOp op) {
  for (Region &region : op->getRegions())
    eraseDeadOps(region.front());
  unsigned last = op.getBranches().size() - 1;
  std::optional<int64_t> index = matchConstantInteger(op.getIndex());
  if (last == 0)
    index = 0;
  if (index)
    return inlineBranch(op,
                        op.getBranches()[*index < 0 || *index > int64_t(last)
                                             ? last
                                             : unsigned(*index)]);
  // JAX writes every choice of two like this.
  if (auto convert = op.getIndex().getDefiningOp<ConvertOp>();
      convert && last == 1 &&
      getElementTypeOrSelf(convert.getOperand().getType()).isInteger(1)) {
    OpBuilder b(op);
    auto branch =
        IfOp::create(b, op.getLoc(), op.getResultTypes(), convert.getOperand());
    branch.getTrueBranch().takeBody(op.getBranches()[1]);
    branch.getFalseBranch().takeBody(op.getBranches()[0]);
    op->replaceAllUsesWith(branch);
    op.erase();
    canonicalizeIf(branch);
    return true;
  }
  return dropResults(op, {});
}
