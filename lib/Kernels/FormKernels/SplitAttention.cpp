//===- SplitAttention.cpp - Attention backward in two ops -----------------===//
//
// In the gradient of an attention, sums over queries (the gradients of keys and
// values) can be divided among blocks by their keys, and everything else by its
// queries. What a block of keys cannot compute is what sums over all keys: the
// row maxima and row sums of the softmax. One op computes these and the
// gradient of the queries, another one reads them.
//
//===----------------------------------------------------------------------===//

#include "LoopClasses.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/BitVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SPLITATTENTION
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// With at most this many keys, one block has all of them anyway.
static constexpr int64_t kFewKeys = 64;

/// Returns the dots of `body` and all ops that need their results. Others, such
/// as the numbers of rows from which a mask is made, may be read along queries
/// and along keys.
static SmallVector<linalg::GenericOp> opsOnScores(Block &body) {
  llvm::SetVector<Operation *> ops;
  ForwardSliceOptions withDot;
  withDot.inclusive = true;
  for (auto generic : body.getOps<linalg::GenericOp>())
    if (isDot(generic))
      getForwardSlice(generic.getOperation(), &ops, withDot);
  SmallVector<linalg::GenericOp> result;
  for (auto generic : body.getOps<linalg::GenericOp>())
    if (ops.contains(generic))
      result.push_back(generic);
  return result;
}

namespace {

using Loop = LoopClasses::Loop;

/// Splits one op.
class AttentionSplitter {
public:
  explicit AttentionSplitter(AttentionBackwardOp op)
      : op(op), body(op.getBody().front()), generics(opsOnScores(body)),
        classes(generics) {}

  /// Splits the op. Fails and changes nothing if that is not possible.
  LogicalResult run();

private:
  void findRows();
  bool haveSameLoops() const;
  bool hasKeys(Value result) const;
  Operation *clonePart(const llvm::BitVector &parts, ValueRange rowResults,
                       bool readsRows);

  AttentionBackwardOp op;
  Block &body;
  SmallVector<linalg::GenericOp> generics;
  LoopClasses classes;
  /// The loops over keys of the ops that reduce over them.
  SmallVector<Loop> keys;
  /// The results of these ops, which have an element for each row of scores.
  SmallVector<Value> rows;
};

} // namespace

static bool isParallel(linalg::GenericOp generic, unsigned loop) {
  return generic.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
}

/// Finds the ops that reduce along a loop that is parallel in an op that needs
/// their result.
void AttentionSplitter::findRows() {
  for (linalg::GenericOp generic : generics) {
    llvm::SetVector<Operation *> readers;
    getForwardSlice(generic.getOperation(), &readers);
    for (unsigned loop = 0; loop < generic.getNumLoops(); ++loop) {
      if (isParallel(generic, loop))
        continue;
      bool isOfRows = llvm::any_of(readers, [&](Operation *reader) {
        auto other = dyn_cast<linalg::GenericOp>(reader);
        if (!other || other->getBlock() != &body)
          return false;
        return llvm::any_of(
            classes.loopsOf(other, {generic, loop}),
            [&](unsigned own) { return isParallel(other, own); });
      });
      if (!isOfRows)
        continue;
      keys.push_back({generic, loop});
      for (Value result : generic->getResults())
        if (!llvm::is_contained(rows, result))
          rows.push_back(result);
    }
  }
}

/// Whether all row values run over the same batches, heads and queries. (The
/// loops of a kernel's domain are those that all of its results have.)
bool AttentionSplitter::haveSameLoops() const {
  auto first = rows.front().getDefiningOp<linalg::GenericOp>();
  return llvm::all_of(rows, [&](Value row) {
    auto generic = row.getDefiningOp<linalg::GenericOp>();
    if (generic.getNumParallelLoops() != first.getNumParallelLoops())
      return false;
    return llvm::all_of(llvm::seq(generic.getNumLoops()), [&](unsigned loop) {
      return !isParallel(generic, loop) ||
             classes.loopOf(first, {generic, loop});
    });
  });
}

/// Whether a result has a dimension of keys, as a sum over queries has.
bool AttentionSplitter::hasKeys(Value result) const {
  auto generic = result.getDefiningOp<linalg::GenericOp>();
  return generic && llvm::any_of(keys, [&](const Loop &loop) {
           return llvm::any_of(
               classes.loopsOf(generic, loop),
               [&](unsigned own) { return isParallel(generic, own); });
         });
}

/// Erases the ops of a body that no result needs.
static void eraseUnused(Block &body) {
  Operation *op = body.getTerminator()->getPrevNode();
  while (op) {
    Operation *before = op->getPrevNode();
    if (op->use_empty())
      op->erase();
    op = before;
  }
}

/// Clones the op with those of its results that are in `parts`, and with more
/// results or inputs for the values of rows.
Operation *AttentionSplitter::clonePart(const llvm::BitVector &parts,
                                        ValueRange rowResults, bool readsRows) {
  OpBuilder builder(op);
  Block *copy = new Block;
  IRMapping mapping;
  for (BlockArgument argument : body.getArguments())
    mapping.map(argument,
                copy->addArgument(argument.getType(), argument.getLoc()));
  OpBuilder inner(op.getContext());
  inner.setInsertionPointToEnd(copy);
  for (Operation &each : body.without_terminator())
    inner.clone(each, mapping);
  SmallVector<Value> inputs(op.getInputs()), yields;
  for (unsigned i : parts.set_bits())
    yields.push_back(mapping.lookup(body.getTerminator()->getOperand(i)));
  for (Value row : rows)
    if (!readsRows)
      yields.push_back(mapping.lookup(row));
  for (auto [row, result] : llvm::zip(rows, rowResults)) {
    inputs.push_back(result);
    mapping.lookup(row).replaceAllUsesWith(
        copy->addArgument(row.getType(), row.getLoc()));
  }
  YieldOp::create(inner, op.getLoc(), yields);
  eraseUnused(*copy);
  for (unsigned i = inputs.size(); i-- > 0;)
    if (copy->getArgument(i).use_empty()) {
      copy->eraseArgument(i);
      inputs.erase(inputs.begin() + i);
    }
  SmallVector<Type> types(ValueRange(yields).getTypes());
  auto part = AttentionBackwardOp::create(builder, op.getLoc(), types, inputs);
  part->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  part.getBody().push_back(copy);
  return part;
}

LogicalResult AttentionSplitter::run() {
  findRows();
  if (rows.empty() || !haveSameLoops())
    return failure();
  auto [first, loop] = keys.front();
  if (cast<linalg::GenericOp>(first).getStaticLoopRanges()[loop] <= kFewKeys)
    return failure();
  Operation *end = body.getTerminator();
  llvm::BitVector ofKeys(end->getNumOperands());
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    if (hasKeys(value))
      ofKeys.set(i);
  if (ofKeys.none())
    return failure();
  llvm::BitVector ofQueries = ofKeys;
  ofQueries.flip();
  Operation *early = clonePart(ofQueries, {}, /*readsRows=*/false);
  ValueRange rowResults = early->getResults().take_back(rows.size());
  Operation *late = clonePart(ofKeys, rowResults, /*readsRows=*/true);
  unsigned fromEarly = 0, fromLate = 0;
  for (OpResult result : op->getResults())
    result.replaceAllUsesWith(ofKeys.test(result.getResultNumber())
                                  ? late->getResult(fromLate++)
                                  : early->getResult(fromEarly++));
  op.erase();
  return success();
}

namespace {

class SplitAttention : public fp8::impl::SplitAttentionBase<SplitAttention> {
public:
  void runOnOperation() override {
    getOperation().walk([&](AttentionBackwardOp op) {
      if (succeeded(AttentionSplitter(op).run()))
        ++numSplit;
    });
  }
};

} // namespace
