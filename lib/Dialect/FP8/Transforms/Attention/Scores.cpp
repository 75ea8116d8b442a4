//===- Scores.cpp - Scores of the attentions of a step --------------------===//
//
// Dimensions are followed from the results of dots through all ops that keep
// them separate: elementwise ops, transposes, reshapes that add or drop
// dimensions of one element, broadcasts and reductions. Values that meet in an
// elementwise op have the same dimensions. A connected group of values with a
// reduction over all rows or all columns of a dot is a softmax (or another
// normalization).
//
//===----------------------------------------------------------------------===//

#include "Scores.h"

#include "../EffectiveRecipe.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Support/Shapes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

bool Scores::haveQueriesAndKeys(ArrayRef<int> dims) const {
  return llvm::any_of(dims, [&](int dim) { return isQuery(dim); }) &&
         llvm::any_of(dims, [&](int dim) { return isKey(dim); });
}

bool Scores::hasExponential() const {
  return llvm::any_of(members, [](Value member) {
    return isa_and_nonnull<stablehlo::ExpOp>(member.getDefiningOp());
  });
}

bool Scores::isScore(Value value) const {
  auto it = dims.find(value);
  return it != dims.end() && isMember(value) && haveQueriesAndKeys(it->second);
}

Scores::Dims Scores::getDimsLeft(Sum sum) const {
  Dims left;
  for (auto [i, dim] : llvm::enumerate(readDims(sum)))
    if (dim >= 0 && !llvm::is_contained(sum.getDimensions(), i))
      left.push_back(dim);
  llvm::sort(left);
  return left;
}

bool Scores::isBiasGradient(Operation *reader) const {
  auto sum = dyn_cast<Sum>(reader);
  return sum && haveQueriesAndKeys(getDimsLeft(sum));
}

bool fp8::isAttentionDot(Operation *op) {
  VerdictAttr verdict = getVerdict(op);
  return isa<Dot>(op) && verdict && !verdict.isFP8() &&
         verdict.getCategory() == DotCategory::Attention;
}

Value fp8::makeReduction(OpBuilder &builder, stablehlo::ReduceOp like,
                         Value input, Value init, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (auto [dim, size] : llvm::enumerate(shapeOf(input)))
    if (!llvm::is_contained(dims, dim))
      shape.push_back(size);
  OperationState state(like.getLoc(), like->getName());
  state.addOperands({input, init});
  state.addTypes(tensorOf(like->getResult(0)).clone(shape));
  state.addAttribute("dimensions", builder.getDenseI64ArrayAttr(dims));
  IRMapping mapping;
  like.getBody().cloneInto(state.addRegion(), mapping);
  return builder.create(state)->getResult(0);
}

/// Returns `op` if it is a reduction of one tensor.
static stablehlo::ReduceOp getReduction(Operation *op) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  return reduce && reduce->getNumResults() == 1 ? reduce
                                                : stablehlo::ReduceOp();
}

/// Whether an op sums the elements of one tensor along dimensions.
static bool isSum(Operation *op) {
  stablehlo::ReduceOp reduce = getReduction(op);
  return reduce && isZero(reduce->getOperand(1)) &&
         isa_and_nonnull<stablehlo::AddOp>(
             stablehlo::getCombiner(reduce.getBody()));
}

namespace {

using Labels = SmallVector<int, 4>;
using LabelSet = llvm::SmallSet<int, 4>;

/// Numbers that may turn out to be equal: a union-find structure.
class Classes {
public:
  int make() {
    int number = count++;
    classes.insert(number);
    return number;
  }
  int find(int number) const { return classes.getLeaderValue(number); }
  void join(int a, int b) { classes.unionSets(a, b); }

private:
  llvm::EquivalenceClasses<int> classes;
  int count = 0;
};

/// The labels of dimensions, and which dimension of which dots each one is.
class DimLabels {
public:
  int make(Dot dot, unsigned dim) {
    int label = classes.make();
    dimsOf[label] = {{dot, dim}};
    return label;
  }
  int make() { return classes.make(); }
  int find(int label) const { return classes.find(label); }
  void join(int a, int b);
  bool areOfOneDot(int a, int b) const;
  bool isBatch(int label) const;

private:
  using DimOfDot = llvm::SmallDenseMap<Operation *, unsigned, 2>;

  /// Returns the dimensions that a label is.
  const DimOfDot &get(int label) const {
    static const DimOfDot none;
    auto it = dimsOf.find(find(label));
    return it == dimsOf.end() ? none : it->second;
  }

  Classes classes;
  DenseMap<int, DimOfDot> dimsOf; ///< By the leader of each class.
};

/// Follows dimensions through a block.
class ScoreFinder {
public:
  explicit ScoreFinder(Block &block) : block(block) {}
  std::vector<Scores> run(std::vector<Scores> *lost);

private:
  std::optional<Scores> findLost(Dot dot) const;
  void follow(Operation &op);
  void followDot(Dot dot);
  void followElementwise(Operation &op);
  void followReduction(stablehlo::ReduceOp reduce);
  void followShape(Value from, Value to, ArrayRef<int> places);
  void set(Value value, Labels labels, int group);

  Labels rootsOf(Value value) const;
  LabelSet rootSet(ArrayRef<int> labels) const;
  bool isNormOfOutput(const Scores &scores) const;
  std::optional<Scores> findSoftmax(int group, ArrayRef<Dot> dots,
                                    ArrayRef<stablehlo::ReduceOp> reductions);
  std::optional<Scores> findWithSavedRows(int group, ArrayRef<Dot> dots);
  bool readsRows(const Scores &scores) const;
  bool chooseDims(Scores &scores, Dot dot, const LabelSet &reduced);
  bool translate(const Scores &scores, Value value, Scores::Dims &dims) const;
  bool isMember(const Scores &scores, Operation &op) const;
  void collectMembers(Scores &scores, int group);
  bool reachesScores(const Scores &scores, Operation *reader) const;
  void checkUses(Scores &scores);

  Block &block;
  DimLabels labels;
  Classes groups;
  DenseMap<Value, Labels> labelsOf;
  DenseMap<Value, int> groupOf;
  /// The ops that compute the values of each group, in the block's order.
  DenseMap<int, SmallVector<Operation *>> opsOf;
  /// The dimension of each class of labels in the scores being examined.
  DenseMap<int, int> dimOf;
};

} // namespace

void DimLabels::join(int a, int b) {
  a = find(a);
  b = find(b);
  if (a == b)
    return;
  DimOfDot dims = dimsOf.lookup(a), others = dimsOf.lookup(b);
  if (dims.size() < others.size())
    std::swap(dims, others);
  dims.insert(others.begin(), others.end());
  classes.join(a, b);
  dimsOf[find(a)] = std::move(dims);
}

/// Whether two labels are different dimensions of one dot's result: its rows
/// and its columns.
bool DimLabels::areOfOneDot(int a, int b) const {
  const DimOfDot &dims = get(a), &others = get(b);
  return llvm::any_of(dims, [&](const auto &each) {
    auto other = others.find(each.first);
    return other != others.end() && other->second != each.second;
  });
}

/// Whether a label is one of the batches and heads of a dot.
bool DimLabels::isBatch(int label) const {
  return llvm::any_of(get(label), [](const auto &each) {
    return each.second < cast<Dot>(each.first)
                             .getDotDimensionNumbers()
                             .getLhsBatchingDimensions()
                             .size();
  });
}

void ScoreFinder::set(Value value, Labels valueLabels, int group) {
  labelsOf[value] = std::move(valueLabels);
  groupOf[value] = group;
}

/// Gives `to` the dimensions of `from` at `places`; its others are new.
void ScoreFinder::followShape(Value from, Value to, ArrayRef<int> places) {
  Labels old = labelsOf.lookup(from);
  Labels next;
  for (int64_t size : shapeOf(to))
    next.push_back(size == 1 ? -1 : -2);
  for (auto [i, place] : llvm::enumerate(places))
    if (place >= 0 && old[i] >= 0 && shapeOf(from)[i] == shapeOf(to)[place])
      next[place] = old[i];
  for (int &label : next)
    if (label == -2)
      label = labels.make();
  set(to, std::move(next), groupOf.lookup(from));
}

/// Joins the dimensions of the operands. What combines rows with columns (the
/// gradient of a vector that makes a bias for both) ends the scores.
void ScoreFinder::followElementwise(Operation &op) {
  Value result = op.getResult(0), first;
  for (Value operand : op.getOperands()) {
    if (!labelsOf.contains(operand) || shapeOf(operand) != shapeOf(result))
      continue;
    if (!first) {
      first = operand;
      continue;
    }
    Labels a = labelsOf.lookup(first), b = labelsOf.lookup(operand);
    if (llvm::any_of(llvm::zip(a, b), [&](auto pair) {
          auto [x, y] = pair;
          return x >= 0 && y >= 0 && labels.areOfOneDot(x, y);
        }))
      return;
    for (auto [x, y] : llvm::zip(a, b))
      if (x >= 0)
        labels.join(x, y);
    groups.join(groupOf.lookup(first), groupOf.lookup(operand));
  }
  if (first)
    set(result, labelsOf.lookup(first), groupOf.lookup(first));
}

/// Returns the index of each dimension after a reshape that only adds or drops
/// dimensions of one element; nullopt for other reshapes.
static std::optional<SmallVector<int>> placesAfterReshape(Value from,
                                                          Value to) {
  ArrayRef<int64_t> old = shapeOf(from), next = shapeOf(to);
  SmallVector<int> places;
  unsigned place = 0;
  for (int64_t size : old) {
    if (size == 1) {
      places.push_back(-1);
      continue;
    }
    while (place < next.size() && next[place] == 1)
      ++place;
    if (place == next.size() || next[place] != size)
      return std::nullopt;
    places.push_back(place++);
  }
  for (; place < next.size(); ++place)
    if (next[place] != 1)
      return std::nullopt;
  return places;
}

void ScoreFinder::followDot(Dot dot) {
  Labels fresh;
  for (auto [dim, size] : llvm::enumerate(shapeOf(dot.getResult())))
    fresh.push_back(size == 1 ? -1 : labels.make(dot, dim));
  set(dot.getResult(), std::move(fresh), groups.make());
}

/// A sum over batches or heads, or over all dimensions, is no row's: it ends
/// the scores. (Sums of different attentions meet in the gradient of a bias
/// that they share, and in the norm of all gradients.)
void ScoreFinder::followReduction(stablehlo::ReduceOp reduce) {
  Value from = reduce->getOperand(0);
  Labels old = labelsOf.lookup(from);
  SmallVector<int> places;
  int place = 0;
  bool isLeft = false;
  for (auto [dim, label] : llvm::enumerate(old)) {
    bool isReduced = llvm::is_contained(reduce.getDimensions(), dim);
    if (isReduced && label >= 0 && labels.isBatch(label))
      return;
    isLeft |= !isReduced && label >= 0;
    places.push_back(isReduced ? -1 : place++);
  }
  if (isLeft)
    followShape(from, reduce->getResult(0), places);
}

void ScoreFinder::follow(Operation &op) {
  if (isAttentionDot(&op))
    return followDot(cast<Dot>(op));
  if (stablehlo::worksByElement(&op))
    return followElementwise(op);
  if (op.getNumOperands() == 0 || op.getNumResults() != 1 ||
      !labelsOf.contains(op.getOperand(0)))
    return;
  Value from = op.getOperand(0), to = op.getResult(0);
  SmallVector<int> places;
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    places.resize(shapeOf(from).size());
    for (auto [place, dim] : llvm::enumerate(transpose.getPermutation()))
      places[dim] = place;
    return followShape(from, to, places);
  }
  if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
    places.assign(dims.begin(), dims.end());
    return followShape(from, to, places);
  }
  if (isa<stablehlo::ReshapeOp>(op)) {
    if (auto found = placesAfterReshape(from, to))
      followShape(from, to, *found);
    return;
  }
  if (stablehlo::ReduceOp reduce = getReduction(&op))
    followReduction(reduce);
}

Labels ScoreFinder::rootsOf(Value value) const {
  Labels roots;
  for (int label : labelsOf.lookup(value))
    roots.push_back(label < 0 ? -1 : labels.find(label));
  return roots;
}

LabelSet ScoreFinder::rootSet(ArrayRef<int> some) const {
  LabelSet result;
  for (int label : some)
    if (label >= 0)
      result.insert(labels.find(label));
  return result;
}

/// Sets the dimensions of scores made by `dot` whose keys are `reduced`: all
/// its rows or all its columns. Returns false if this does not fit.
bool ScoreFinder::chooseDims(Scores &scores, Dot dot, const LabelSet &reduced) {
  auto numbers = dot.getDotDimensionNumbers();
  Labels all = rootsOf(dot.getResult());
  unsigned batch = numbers.getLhsBatchingDimensions().size();
  unsigned rows = shapeOf(dot.getLhs()).size() - batch -
                  numbers.getLhsContractingDimensions().size();
  ArrayRef<int> ofBatch = ArrayRef(all).take_front(batch);
  ArrayRef<int> ofLhs = ArrayRef(all).slice(batch, rows);
  ArrayRef<int> ofRhs = ArrayRef(all).drop_front(batch + rows);
  bool keysAreRows = rootSet(ofLhs) == reduced;
  if (!keysAreRows && rootSet(ofRhs) != reduced)
    return false;
  if (keysAreRows)
    std::swap(ofLhs, ofRhs);
  dimOf.clear();
  auto add = [&](ArrayRef<int> part, Value value, unsigned from) {
    unsigned count = 0;
    for (auto [i, label] : llvm::enumerate(part))
      if (label >= 0) {
        if (!dimOf.try_emplace(label, scores.sizes.size()).second)
          return -1;
        scores.sizes.push_back(shapeOf(value)[from + i]);
        ++count;
      }
    return static_cast<int>(count);
  };
  Value result = dot.getResult();
  int numBatch = add(ofBatch, result, 0);
  int numQueries = add(ofLhs, result, ofLhs.data() - all.data());
  int numKeys = add(ofRhs, result, ofRhs.data() - all.data());
  scores.numBatch = numBatch;
  scores.numQueries = numQueries;
  if (numBatch >= 0 && numQueries > 0 && numKeys > 0)
    return true;
  scores.sizes.clear();
  return false;
}

/// Whether the supposed scores are the output of an attention, and their sums
/// those of a norm along each head: a dot makes them of another softmax's
/// weights, and they have no exponential themselves.
bool ScoreFinder::isNormOfOutput(const Scores &scores) const {
  auto isExponential = [](Operation *op) {
    return isa_and_nonnull<stablehlo::ExpOp>(op);
  };
  auto isWeight = [&](Value value) {
    auto group = groupOf.find(value);
    return group != groupOf.end() &&
           llvm::any_of(opsOf.lookup(groups.find(group->second)),
                        isExponential);
  };
  return !scores.hasExponential() &&
         llvm::any_of(scores.scoreDots, [&](Dot dot) {
           return llvm::any_of(dot->getOperands(), isWeight);
         });
}

/// Returns the softmax of a group. Of all reductions of rows or columns of a
/// dot this is the first one that leaves no problem, or else the first one
/// whose results are contracted; none if there is no such reduction.
std::optional<Scores>
ScoreFinder::findSoftmax(int group, ArrayRef<Dot> dots,
                         ArrayRef<stablehlo::ReduceOp> reductions) {
  std::optional<Scores> found;
  for (stablehlo::ReduceOp reduce : reductions) {
    Labels all = rootsOf(reduce->getOperand(0)), reduced;
    for (int64_t dim : reduce.getDimensions())
      reduced.push_back(all[dim]);
    LabelSet keys = rootSet(reduced);
    for (Dot dot : dots) {
      Scores scores;
      if (keys.empty() || rootSet(rootsOf(dot.getResult())) != rootSet(all) ||
          !chooseDims(scores, dot, keys))
        continue;
      collectMembers(scores, group);
      checkUses(scores);
      if (scores.scoreDots.empty() || scores.readers.empty() ||
          isNormOfOutput(scores))
        continue;
      if (scores.problem.empty())
        return scores;
      if (!found)
        found = std::move(scores);
    }
  }
  return found;
}

/// Whether an op combines scores with one number for each of their rows.
bool ScoreFinder::readsRows(const Scores &scores) const {
  auto isOfRows = [&](Value operand, ArrayRef<int> dims) {
    auto broadcast = operand.getDefiningOp<stablehlo::BroadcastInDimOp>();
    if (!broadcast || dims.empty())
      return false;
    llvm::SmallBitVector given(dims.size());
    for (auto [from, to] : llvm::enumerate(broadcast.getBroadcastDimensions()))
      if (shapeOf(broadcast.getOperand())[from] != 1)
        given.set(to);
    return llvm::all_of(llvm::enumerate(dims), [&](auto each) {
      auto [place, dim] = each;
      return dim < 0 || given.test(place) != scores.isKey(dim);
    });
  };
  return llvm::any_of(scores.members, [&](Value member) {
    Operation *op = member.getDefiningOp();
    return scores.isScore(member) && stablehlo::worksByElement(op) &&
           llvm::any_of(op->getOperands(), [&](Value operand) {
             return !scores.isMember(operand) &&
                    isOfRows(operand, scores.dims.find(member)->second);
           });
  });
}

/// Returns the softmax of a group without reductions: a backward pass that
/// reads the sums of rows, which the forward pass has saved. They say which
/// dimensions are the keys'.
std::optional<Scores> ScoreFinder::findWithSavedRows(int group,
                                                     ArrayRef<Dot> dots) {
  for (Dot dot : dots) {
    auto numbers = dot.getDotDimensionNumbers();
    unsigned batch = numbers.getLhsBatchingDimensions().size();
    unsigned rows = shapeOf(dot.getLhs()).size() - batch -
                    numbers.getLhsContractingDimensions().size();
    Labels all = rootsOf(dot.getResult());
    ArrayRef<int> free = ArrayRef(all).drop_front(batch);
    for (ArrayRef<int> keys : {free.drop_front(rows), free.take_front(rows)}) {
      Scores scores;
      if (!chooseDims(scores, dot, rootSet(keys)))
        continue;
      collectMembers(scores, group);
      checkUses(scores);
      if (scores.problem.empty() && !scores.readers.empty() &&
          scores.hasExponential() && readsRows(scores))
        return scores;
    }
  }
  return std::nullopt;
}

/// Translates the dimensions of `value` to those of the attention. Returns
/// false if a dimension is not one of them, or if two are the same.
bool ScoreFinder::translate(const Scores &scores, Value value,
                            Scores::Dims &dims) const {
  LabelSet seen;
  for (int root : rootsOf(value)) {
    auto it = dimOf.find(root);
    if (root >= 0 && (it == dimOf.end() || !seen.insert(root).second))
      return false;
    dims.push_back(root < 0 ? -1 : it->second);
  }
  return true;
}

/// Whether an op computes scores, or one value for each row of them, from
/// members (and from other values with the same dimensions).
bool ScoreFinder::isMember(const Scores &scores, Operation &op) const {
  if (!stablehlo::worksByElement(&op) && !getReduction(&op) &&
      !isa<stablehlo::TransposeOp, stablehlo::BroadcastInDimOp,
           stablehlo::ReshapeOp>(op))
    return false;
  if (llvm::none_of(op.getOperands(),
                    [&](Value operand) { return scores.isMember(operand); }))
    return false;
  stablehlo::ReduceOp reduce = getReduction(&op);
  if (!reduce)
    return true;
  // A sum over dimensions other than keys combines several rows.
  auto it = scores.dims.find(op.getOperand(0));
  if (it == scores.dims.end())
    return false;
  unsigned keys = 0;
  for (int64_t dim : reduce.getDimensions()) {
    int place = it->second[dim];
    if (place >= 0 && !scores.isKey(place))
      return false;
    keys += place >= 0;
  }
  return keys == scores.sizes.size() - scores.numBatch - scores.numQueries;
}

void ScoreFinder::collectMembers(Scores &scores, int group) {
  for (Operation *op : opsOf.find(group)->second) {
    Value result = op->getResult(0);
    Scores::Dims dims;
    if (!translate(scores, result, dims))
      continue;
    auto dot = dyn_cast<Dot>(op);
    if (dot ? !scores.haveQueriesAndKeys(dims) : !isMember(scores, *op))
      continue;
    scores.dims[result] = std::move(dims);
    scores.members.insert(result);
    if (dot)
      scores.scoreDots.push_back(dot);
  }
}

/// Whether exactly one operand of a dot is scores, and the dot contracts all of
/// their keys or all of their queries.
static bool readsWhole(const Scores &scores, Dot dot) {
  if (scores.isMember(dot.getLhs()) == scores.isMember(dot.getRhs()))
    return false;
  unsigned side = scores.scoreOperand(dot);
  if (!scores.isScore(dot->getOperand(side)))
    return false;
  stablehlo::OperandDims own = stablehlo::getOperandDims(dot, side);
  const Scores::Dims &dims = scores.dims.find(dot->getOperand(side))->second;
  unsigned batch = 0, queries = 0, keys = 0;
  for (int64_t dim : own.batching) {
    if (dims[dim] >= static_cast<int>(scores.numBatch))
      return false;
    batch += dims[dim] >= 0;
  }
  for (int64_t dim : own.contracting) {
    queries += scores.isQuery(dims[dim]);
    keys += scores.isKey(dims[dim]);
    if (dims[dim] >= 0 && dims[dim] < static_cast<int>(scores.numBatch))
      return false;
  }
  unsigned numKeys = scores.sizes.size() - scores.numBatch - scores.numQueries;
  return batch == scores.numBatch &&
         ((queries == 0 && keys == numKeys) ||
          (keys == 0 && queries == scores.numQueries));
}

/// Whether scores are computed from the result of `reader`.
bool ScoreFinder::reachesScores(const Scores &scores, Operation *reader) const {
  Operation *last = scores.members.back().getDefiningOp();
  DenseSet<Operation *> seen;
  SmallVector<Operation *> worklist{reader};
  while (!worklist.empty())
    for (Operation *user : worklist.pop_back_val()->getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (!ancestor || last->isBeforeInBlock(ancestor) ||
          !seen.insert(ancestor).second)
        continue;
      if (ancestor->getNumResults() == 1 &&
          scores.isMember(ancestor->getResult(0)))
        return true;
      worklist.push_back(ancestor);
    }
  return false;
}

/// Finds the ops that contract scores, and any other readers.
void ScoreFinder::checkUses(Scores &scores) {
  llvm::SmallSetVector<Operation *, 8> reading;
  auto fail = [&](Operation *op, const Twine &why) {
    if (!scores.problem.empty())
      return;
    scores.problem = why.str();
    scores.obstacle = op;
  };
  for (Dot dot : scores.scoreDots)
    if (llvm::count_if(scores.dims.find(dot.getResult())->second, [](int dim) {
          return dim >= 0;
        }) != static_cast<int64_t>(scores.sizes.size()))
      fail(dot, "scores without all of the dimensions");
  for (Value value : scores.members) {
    if (!scores.isScore(value))
      continue;
    for (Operation *user : value.getUsers()) {
      if (user->getNumResults() == 1 && scores.isMember(user->getResult(0)))
        continue;
      Operation *reader = block.findAncestorOpInBlock(*user);
      if (reader != user) {
        fail(reader, "scores are read in " + reader->getName().getStringRef());
        continue;
      }
      auto dot = dyn_cast<Dot>(user);
      if ((dot && isAttentionDot(dot) && readsWhole(scores, dot)) ||
          (isSum(user) && !reachesScores(scores, user)))
        reading.insert(user);
      else
        fail(user, "scores are read by " + user->getName().getStringRef());
    }
  }
  scores.readers = reading.takeVector();
}

/// Whether a dot is one of an attention or of a layer, behind which there are
/// no scores of another one.
static bool endsScores(Operation *op) {
  VerdictAttr verdict = getVerdict(op);
  return isa<DotGeneralOp>(op) || isAttentionDot(op) ||
         (verdict && (verdict.getCategory() == DotCategory::Linear ||
                      verdict.getCategory() == DotCategory::Head));
}

/// Looks for an exponential of no fewer elements than `dot` has, before the
/// next dot of an attention or layer, and for the first op on the way whose
/// dimensions are unknown.
std::optional<Scores> ScoreFinder::findLost(Dot dot) const {
  int64_t size = tensorOf(dot).getNumElements();
  Operation *obstacle = nullptr;
  bool isSoftmax = false;
  llvm::SetVector<Operation *> reached;
  reached.insert(dot);
  for (unsigned i = 0; i < reached.size(); ++i)
    for (Operation *user : reached[i]->getUsers()) {
      Operation *op = block.findAncestorOpInBlock(*user);
      if (!op || endsScores(op) || op->hasTrait<OpTrait::IsTerminator>())
        continue;
      if (op->getNumResults() != 1 || !labelsOf.contains(op->getResult(0)))
        obstacle = obstacle ? obstacle : op;
      bool hasScores = llvm::any_of(op->getResultTypes(), [&](Type type) {
        auto shaped = dyn_cast<ShapedType>(type);
        return !shaped || shaped.getNumElements() >= size;
      });
      isSoftmax |= hasScores && isa<stablehlo::ExpOp>(op);
      if (hasScores)
        reached.insert(op);
    }
  if (!isSoftmax)
    return std::nullopt;
  Scores scores;
  scores.scoreDots.push_back(dot);
  for (Operation *op :
       opsOf.find(groups.find(groupOf.lookup(dot.getResult())))->second)
    scores.members.insert(op->getResult(0));
  auto numbers = dot.getDotDimensionNumbers();
  llvm::append_range(scores.sizes, shapeOf(dot.getResult()));
  scores.numBatch = numbers.getLhsBatchingDimensions().size();
  scores.numQueries = shapeOf(dot.getLhs()).size() - scores.numBatch -
                      numbers.getLhsContractingDimensions().size();
  ArrayRef<int64_t> rows = ArrayRef(scores.sizes).drop_front(scores.numBatch);
  if (obstacle)
    scores.problem =
        ("scores are read by " + obstacle->getName().getStringRef()).str();
  else if (ShapedType::getNumElements(rows.take_front(scores.numQueries)) == 1)
    scores.problem = "there is a single query";
  else if (ShapedType::getNumElements(rows.drop_front(scores.numQueries)) == 1)
    scores.problem = "there is a single key";
  else
    scores.problem = "what is normalized are neither all queries nor all keys";
  scores.obstacle = obstacle;
  return scores;
}

std::vector<Scores> ScoreFinder::run(std::vector<Scores> *lost) {
  llvm::MapVector<int, SmallVector<Dot>> dots;
  DenseMap<int, SmallVector<stablehlo::ReduceOp>> reductions;
  for (Operation &op : block)
    follow(op);
  for (Operation &op : block) {
    if (op.getNumResults() == 1)
      if (auto it = groupOf.find(op.getResult(0)); it != groupOf.end())
        opsOf[groups.find(it->second)].push_back(&op);
    if (isAttentionDot(&op))
      dots[groups.find(groupOf.lookup(op.getResult(0)))].push_back(
          cast<Dot>(op));
    else if (stablehlo::ReduceOp reduce = getReduction(&op))
      if (auto it = groupOf.find(op.getOperand(0)); it != groupOf.end())
        reductions[groups.find(it->second)].push_back(reduce);
  }
  std::vector<Scores> found;
  for (auto &[group, some] : dots) {
    std::optional<Scores> scores =
        findSoftmax(group, some, reductions.lookup(group));
    if (!scores)
      scores = findWithSavedRows(group, some);
    if (scores)
      found.push_back(std::move(*scores));
    else if (lost)
      for (Dot dot : some)
        if (std::optional<Scores> scores = findLost(dot))
          lost->push_back(std::move(*scores));
  }
  return found;
}

std::vector<Scores> fp8::findScores(Block &block, std::vector<Scores> *lost) {
  return ScoreFinder(block).run(lost);
}
