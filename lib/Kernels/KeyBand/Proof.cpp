//===- Proof.cpp - Proof that hidden keys change nothing ------------------===//

#include "KeyBandFinder.h"

#include "fp8/Kernels/ContractionDims.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns the number that a local buffer is filled with, if it is constant.
static std::optional<double> filledWith(Value buffer) {
  for (Operation *user : buffer.getUsers()) {
    Attribute attr;
    if (auto fill = dyn_cast<linalg::FillOp>(user))
      return matchPattern(fill.getInputs()[0], m_Constant(&attr))
                 ? numberIn(attr)
                 : std::nullopt;
  }
  return std::nullopt;
}

/// Returns true if the term of hidden pairs of one kind does not change a
/// reduction that starts with `init`.
static bool isNeutral(Operation &combiner, const PerPair &term, unsigned kind,
                      Value init) {
  const Known &hidden = term[kind];
  if (isa<arith::AddFOp>(combiner))
    return hidden.is(0);
  if (!isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner))
    return false;
  if (hidden.isHidden() && term[kSeenPair].kind == Known::Score)
    return true;
  // The maximum over a row of weights starts at 0, and weights of hidden keys
  // are 0.
  std::optional<double> begin = filledWith(init);
  return hidden.kind == Known::Constant && begin && hidden.number <= *begin;
}

/// Returns true if a result has an element for each pair. Other kernels may
/// read those of hidden pairs unless the result is local.
bool KeyBandFinder::isOfPairs(linalg::GenericOp op, unsigned result) {
  AffineMap map = op.getMatchingIndexingMap(&op.getDpsInitsMutable()[result]);
  return map.isFunctionOfDim(found.keyLoops.lookup(op)) &&
         map.isFunctionOfDim(*queriesOf(op));
}

/// Returns true if hidden pairs do not change the values of a result that
/// anything else reads.
bool KeyBandFinder::proveResult(linalg::GenericOp op, unsigned result,
                                const PerPair &yielded) {
  OpOperand &init = op.getDpsInitsMutable()[result];
  AffineMap map = op.getMatchingIndexingMap(&init);
  if (map.isFunctionOfDim(found.keyLoops.lookup(op)) && allParallel(op)) {
    // Other kernels may read a buffer that is not local.
    buffers[init.get()] = yielded;
    return found.keyDims.contains(init.get());
  }
  return true;
}

/// Returns true if the exponentials of hidden keys are zero after a difference.
/// If it subtracts the maximum of a row from the constant of hidden keys, that
/// has to be a score: it is if the row's visible keys have scores; otherwise
/// its value is checked.
bool KeyBandFinder::maximumIsVisible(linalg::GenericOp op,
                                     arith::SubFOp difference,
                                     const BodyValues &values) {
  PerPair known = values.lookup(difference.getResult());
  auto isLowest = [&](unsigned kind) {
    return known[kind].kind == Known::Lowest;
  };
  return llvm::none_of(kHiddenPairs, isLowest) ||
         values.lookup(difference.getLhs())[kSeenPair].kind == Known::Score ||
         checkRow(op, difference.getRhs());
}

/// Evaluates the body of an op for each kind of pair. Returns nullopt if that
/// rules out the band.
std::optional<BodyValues> KeyBandFinder::evaluateBody(linalg::GenericOp op) {
  BodyValues values;
  unsigned numInputs = op.getNumDpsInputs();
  for (BlockArgument argument :
       op.getBody()->getArguments().take_front(numInputs))
    values[argument] = argumentOf(op, argument);
  for (Operation &inner : op.getBody()->without_terminator()) {
    if (isa<memref::LoadOp>(inner))
      return std::nullopt;
    if (inner.getNumResults() == 1)
      values[inner.getResult(0)] = {evaluate(inner, kLatePair, values),
                                    evaluate(inner, kEarlyPair, values),
                                    evaluate(inner, kSeenPair, values)};
    if (auto difference = dyn_cast<arith::SubFOp>(inner);
        difference && !maximumIsVisible(op, difference, values))
      return std::nullopt;
  }
  return values;
}

/// Returns true if the terms of hidden pairs do not change a reduction.
bool KeyBandFinder::proveReduction(linalg::GenericOp op, unsigned result,
                                   const BodyValues &values) {
  Operation *combiner = reductionCombiner(op, result);
  Value init = op.getDpsInits()[result];
  if (!combiner || (isOfPairs(op, result) && !found.keyDims.contains(init)))
    return false;
  BlockArgument running =
      op.getBody()->getArgument(op.getNumDpsInputs() + result);
  PerPair term =
      values.lookup(combiner->getOperand(combiner->getOperand(0) == running));
  bool isMaximum = isa<arith::MaximumFOp, arith::MaxNumFOp>(combiner);
  for (unsigned hidden : kHiddenPairs)
    if (isChecking && isMaximum && term[hidden].isHidden())
      maxima.push_back(init);
    else if (!isNeutral(*combiner, term, hidden, init))
      return false;
  return true;
}

bool KeyBandFinder::proveOp(linalg::GenericOp op) {
  // A dot that writes a local buffer over keys computes scores, whatever its
  // operands are.
  if (Value scores = op.getDpsInits()[0];
      isDot(op) && found.keyDims.contains(scores)) {
    buffers[scores].fill({Known::Score});
    return true;
  }
  std::optional<BodyValues> values = evaluateBody(op);
  if (!values)
    return false;
  for (auto [i, yielded] :
       llvm::enumerate(op.getBody()->getTerminator()->getOperands()))
    if (allParallel(op) ? !proveResult(op, i, values->lookup(yielded))
                        : !proveReduction(op, i, *values))
      return false;
  return true;
}

/// Returns whether the caller can check rows of this kernel.
bool KeyBandFinder::canCheckRows() const {
  return found.keyLoop.has_value() == (checks == KeyBand::Checks::DividedRows);
}

/// Returns whether another kernel has computed all of `buffer`.
static bool isOnlyRead(Value buffer) {
  return isa<BlockArgument>(buffer) &&
         llvm::all_of(buffer.getUses(), [](OpOperand &use) {
           auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
           return generic && generic.isDpsInput(&use);
         });
}

/// Lets `row`, from which the scores of a row are subtracted, be checked.
bool KeyBandFinder::checkRow(linalg::GenericOp op, Value row) {
  auto argument = dyn_cast<BlockArgument>(skipCasts(row));
  if (!argument)
    return false;
  OpOperand &operand = op->getOpOperand(argument.getArgNumber());
  if (!isChecking || (found.keyLoop && !isOnlyRead(operand.get())))
    return false;
  if (!llvm::is_contained(found.rowsToCheck, &operand))
    found.rowsToCheck.push_back(&operand);
  return true;
}

bool KeyBandFinder::prove(bool withChecks) {
  isChecking = withChecks;
  found.rowsToCheck.clear();
  maxima.clear();
  buffers.clear();
  bool hides = false;
  for (auto op : kernel.getOps<linalg::GenericOp>()) {
    if (!found.keyLoops.contains(op))
      continue;
    if (!proveOp(op))
      return false;
    hides |= isDot(op);
  }
  // Only rows that are checked are known to have a maximum of visible keys.
  return hides && llvm::all_of(maxima, [&](Value maximum) {
           return llvm::is_contained(
               llvm::map_range(found.rowsToCheck, std::mem_fn(&OpOperand::get)),
               maximum);
         });
}
