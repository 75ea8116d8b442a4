//===- SplitAttention.cpp - Attention in several ops ----------------------===//
//
// A kernel can divide a loop among its blocks, or run it in order, only if
// nothing in it needs the whole of a sum over that loop. The softmax of an
// attention needs whole rows of scores: their maximum, and then the sum of
// their exponentials. The ops that this pass makes of an attention pass such
// values of rows on, and compute the scores again.
//
//  - In the backward pass, sums over queries (the gradients of keys and values)
//    are divided by keys, and everything else by queries.
//  - If rows are too long for a block, values of rows are computed by ops of
//    their own, one for each level of dependence. All ops then have tiles of
//    scores. What an output computes from sums over keys, such as their
//    quotient, follows the attention as ordinary ops.
//
//===----------------------------------------------------------------------===//

#include "LoopClasses.h"
#include "SumOrder.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SPLITATTENTION
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// With at most this many keys, one block has all of them anyway.
static constexpr int64_t kFewKeys = 64;
/// With more keys, rows of scores do not fit into the shared memory of a block,
/// or only so few of them that blocks read keys and values too often.
static constexpr int64_t kManyKeys = 256;

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
  explicit AttentionSplitter(Operation *op)
      : op(op), body(op->getRegion(0).front()), generics(opsOnScores(body)),
        classes(generics) {}

  /// Splits the op. Fails and changes nothing if that is not possible or not
  /// worth it.
  LogicalResult run();

private:
  Value behindConversions(Value row) const;
  void findRows();
  bool haveSameLoops() const;
  bool runsOverKeys(linalg::GenericOp generic,
                    utils::IteratorType iterator) const;
  bool hasKeys(Value result) const;
  bool sumsKeys(Value result) const;
  bool isRow(Value result) const { return llvm::is_contained(rows, result); }
  SmallVector<SmallVector<Value>> rowsByLevel() const;
  bool collectSums(Value value);
  bool findSums(ArrayRef<Value> results);
  void layOutSums();
  SmallVector<SmallVector<Value>> chooseParts();
  Operation *clonePart(ArrayRef<Value> results) const;
  ResultRange knownResults(Operation *part) const;
  void emitBehind();

  Operation *op;
  Block &body;
  SmallVector<linalg::GenericOp> generics;
  LoopClasses classes;
  /// The loops over keys of the ops that reduce over them.
  SmallVector<Loop> keys;
  /// The results of these ops or conversions of them, which have an element for
  /// each row of scores.
  SmallVector<Value> rows;
  /// The sums over keys from which the results follow element by element, and
  /// the ops that compute the results from them.
  llvm::SetVector<Value> sums;
  llvm::SetVector<Operation *> behind;
  /// The results of the parts, by the values of the body.
  DenseMap<Value, Value> known;
};

} // namespace

static bool isParallel(linalg::GenericOp generic, unsigned loop) {
  return generic.getIteratorTypesArray()[loop] == utils::IteratorType::parallel;
}

/// Returns a value of rows as its readers need it, behind conversions that are
/// its only readers.
Value AttentionSplitter::behindConversions(Value row) const {
  while (row.hasOneUse()) {
    auto reader = dyn_cast<linalg::GenericOp>(*row.user_begin());
    if (!reader || !allParallel(reader) || reader.getNumDpsInputs() != 1 ||
        reader->getNumResults() != 1 ||
        reader.getNumLoops() !=
            cast<RankedTensorType>(row.getType()).getRank() ||
        !llvm::is_contained(generics, reader))
      break;
    row = reader->getResult(0);
  }
  return row;
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
        if (Value row = behindConversions(result); !isRow(row))
          rows.push_back(row);
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

/// Whether a loop of `generic` is a loop over keys of this kind.
bool AttentionSplitter::runsOverKeys(linalg::GenericOp generic,
                                     utils::IteratorType iterator) const {
  return llvm::any_of(keys, [&](const Loop &loop) {
    return llvm::any_of(classes.loopsOf(generic, loop), [&](unsigned own) {
      return generic.getIteratorTypesArray()[own] == iterator;
    });
  });
}

/// Whether a result has a dimension of keys, as a sum over queries has.
bool AttentionSplitter::hasKeys(Value result) const {
  auto generic = result.getDefiningOp<linalg::GenericOp>();
  return generic && runsOverKeys(generic, utils::IteratorType::parallel);
}

/// Whether a result is a sum over keys, perhaps in another type or order.
bool AttentionSplitter::sumsKeys(Value result) const {
  auto generic = result.getDefiningOp<linalg::GenericOp>();
  while (generic && allParallel(generic) && generic.getNumDpsInputs() == 1)
    generic = generic.getInputs()[0].getDefiningOp<linalg::GenericOp>();
  return generic && runsOverKeys(generic, utils::IteratorType::reduction);
}

static int64_t numElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 1;
}

/// Collects the sums over keys from which `value` follows element by element,
/// and the ops that compute it from them. Returns false if it needs anything
/// else that has been computed from scores, or a tensor that is larger than
/// all results, such as a mask of all queries and keys.
bool AttentionSplitter::collectSums(Value value) {
  Operation *def = value.getDefiningOp();
  if (!def || isRow(value) || behind.contains(def))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(def);
  if (generic && runsOverKeys(generic, utils::IteratorType::reduction)) {
    sums.insert(value);
    return true;
  }
  if (generic && llvm::is_contained(generics, generic) &&
      (!allParallel(generic) ||
       runsOverKeys(generic, utils::IteratorType::parallel)))
    return false;
  if (llvm::none_of(op->getResults(), [&](Value result) {
        return numElements(result) >= numElements(value);
      }))
    return false;
  if (!llvm::all_of(def->getOperands(),
                    [&](Value operand) { return collectSums(operand); }))
    return false;
  behind.insert(def);
  return true;
}

/// Finds the sums over keys that the results are, or from which they follow.
/// Returns false and finds nothing if there is another result.
bool AttentionSplitter::findSums(ArrayRef<Value> results) {
  if (llvm::all_of(results, [&](Value result) { return sumsKeys(result); })) {
    sums.insert_range(results);
    return true;
  }
  if (llvm::all_of(results, [&](Value result) { return collectSums(result); }))
    return true;
  sums.clear();
  behind.clear();
  return false;
}

/// Gives a sum the order of dimensions in which the only op behind it writes
/// its result, so that this op does not transpose.
void AttentionSplitter::layOutSums() {
  for (Value sum : sums)
    if (sum.hasOneUse() && behind.contains(*sum.user_begin()))
      writeInOrderOfReader(*sum.use_begin());
}

/// Returns the values of rows by levels, a topological order: level 0 is
/// computed from no other value of rows, level n from levels below n.
SmallVector<SmallVector<Value>> AttentionSplitter::rowsByLevel() const {
  SmallVector<SmallVector<Value>> levels;
  DenseMap<Value, unsigned> levelOf;
  for (Value row : rows) { // in program order
    unsigned level = 0;
    llvm::SetVector<Operation *> needed;
    BackwardSliceOptions options;
    options.omitBlockArguments = true;
    (void)getBackwardSlice(row, &needed, options);
    for (auto [other, own] : levelOf)
      if (needed.contains(other.getDefiningOp()) &&
          other.getDefiningOp() != row.getDefiningOp())
        level = std::max(level, own + 1);
    levelOf[row] = level;
    levels.resize(std::max<size_t>(levels.size(), level + 1));
    levels[level].push_back(row);
  }
  return levels;
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

/// Makes an op like `op` of the ops in `copy` that `yields` needs. `inputs` are
/// those of the copy's arguments, which the op keeps if it needs them.
static Operation *makePart(Operation *op, Block *copy,
                           SmallVector<Value> inputs, ValueRange yields) {
  OpBuilder builder(op), inner(op->getContext());
  inner.setInsertionPointToEnd(copy);
  YieldOp::create(inner, op->getLoc(), yields);
  eraseUnused(*copy);
  for (unsigned i = inputs.size(); i-- > 0;)
    if (copy->getArgument(i).use_empty()) {
      copy->eraseArgument(i);
      inputs.erase(inputs.begin() + i);
    }
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(inputs);
  state.addTypes(SmallVector<Type>(yields.getTypes()));
  state.addAttributes(op->getDiscardableAttrDictionary().getValue());
  state.addRegion()->push_back(copy);
  return builder.create(state);
}

/// Copies the ops of a body, but not what it yields.
static Block *copyOf(Block &body, IRMapping &mapping) {
  auto *copy = new Block;
  for (BlockArgument argument : body.getArguments())
    mapping.map(argument,
                copy->addArgument(argument.getType(), argument.getLoc()));
  OpBuilder inner(body.getParentOp()->getContext());
  inner.setInsertionPointToEnd(copy);
  for (Operation &each : body.without_terminator())
    inner.clone(each, mapping);
  return copy;
}

/// Clones the op with these values of its body as results. Values of rows that
/// are known become inputs.
Operation *AttentionSplitter::clonePart(ArrayRef<Value> results) const {
  IRMapping mapping;
  Block *copy = copyOf(body, mapping);
  SmallVector<Value> inputs(op->getOperands()), yields;
  for (Value row : rows)
    if (Value value = known.lookup(row)) {
      inputs.push_back(value);
      mapping.lookup(row).replaceAllUsesWith(
          copy->addArgument(row.getType(), row.getLoc()));
    }
  for (Value result : results)
    yields.push_back(mapping.lookup(result));
  return makePart(op, copy, inputs, yields);
}

/// Returns whether two ops of attention compute the same.
static bool areSame(Operation *a, Operation *b) {
  return a->getOperands() == b->getOperands() &&
         a->getResultTypes() == b->getResultTypes() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a->getRegion(0), &b->getRegion(0),
             OperationEquivalence::IgnoreLocations);
}

/// Returns whether an op computes this result as `part`, which has no other
/// one, does.
static bool computesAs(OpResult result, Operation *part) {
  Operation *op = result.getOwner();
  auto isRead = [&](Value value) {
    return llvm::is_contained(op->getOperands(), value);
  };
  if (result.getType() != part->getResult(0).getType() ||
      !llvm::all_of(part->getOperands(), isRead))
    return false;
  Block &body = op->getRegion(0).front();
  IRMapping mapping;
  Block *copy = copyOf(body, mapping);
  Value yielded = body.getTerminator()->getOperand(result.getResultNumber());
  Operation *own = makePart(op, copy, SmallVector<Value>(op->getOperands()),
                            mapping.lookup(yielded));
  bool isSame = areSame(own, part);
  own->erase();
  return isSame;
}

/// Returns the results of an earlier attention that computes the same as
/// `part`, as the forward pass has computed the values of rows of the backward
/// pass; none if there is no such attention.
ResultRange AttentionSplitter::knownResults(Operation *part) const {
  for (Operation *other : llvm::to_vector(part->getOperand(0).getUsers())) {
    if (!isa<AttentionOp>(other) || other->getBlock() != part->getBlock() ||
        !other->isBeforeInBlock(part))
      continue;
    if (areSame(other, part))
      return other->getResults();
    if (part->getNumResults() == 1)
      for (OpResult result : other->getResults())
        if (computesAs(result, part))
          return other->getResults().slice(result.getResultNumber(), 1);
  }
  return part->getResults().take_front(0);
}

/// Returns the values that each part computes; none if there is only one part.
SmallVector<SmallVector<Value>> AttentionSplitter::chooseParts() {
  if (rows.empty() || !haveSameLoops())
    return {};
  auto [reduction, loop] = keys.front();
  int64_t numKeys =
      cast<linalg::GenericOp>(reduction).getStaticLoopRanges()[loop];
  SmallVector<Value> ofQueries, ofKeys;
  for (Value result : body.getTerminator()->getOperands())
    if (!isRow(result))
      (hasKeys(result) ? ofKeys : ofQueries).push_back(result);
  SmallVector<SmallVector<Value>> parts;
  if (numKeys > kManyKeys && findSums(ofQueries)) {
    parts = rowsByLevel();
    if (!sums.empty())
      parts.emplace_back(sums.begin(), sums.end());
  } else {
    parts.push_back(ofQueries);
    llvm::append_range(parts.back(), rows);
  }
  if (!ofKeys.empty())
    parts.push_back(ofKeys);
  return numKeys > kFewKeys && parts.size() > 1
             ? parts
             : SmallVector<SmallVector<Value>>();
}

/// Computes the results that follow from sums over keys.
void AttentionSplitter::emitBehind() {
  IRMapping mapping;
  mapping.map(body.getArguments(), op->getOperands());
  for (auto [value, result] : known)
    mapping.map(value, result);
  OpBuilder builder(op);
  for (Operation *each : behind) {
    builder.clone(*each, mapping);
    for (Value result : each->getResults())
      known[result] = mapping.lookup(result);
  }
}

LogicalResult AttentionSplitter::run() {
  findRows();
  SmallVector<SmallVector<Value>> parts = chooseParts();
  if (parts.empty())
    return failure();
  layOutSums();
  for (ArrayRef<Value> results : parts) {
    Operation *part = clonePart(results);
    ResultRange values = knownResults(part);
    if (values.empty())
      values = part->getResults();
    else
      part->erase();
    for (auto [result, value] : llvm::zip_equal(results, values))
      known[result] = value;
  }
  emitBehind();
  for (auto [result, value] :
       llvm::zip(op->getResults(), body.getTerminator()->getOperands()))
    result.replaceAllUsesWith(known.lookup(value));
  op->erase();
  return success();
}

namespace {

class SplitAttention : public fp8::impl::SplitAttentionBase<SplitAttention> {
public:
  void runOnOperation() override {
    getOperation().walk([&](Operation *op) {
      if (isa<AttentionOp, AttentionBackwardOp>(op) &&
          succeeded(AttentionSplitter(op).run()))
        ++numSplit;
    });
  }
};

} // namespace
