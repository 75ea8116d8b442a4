//===- SplitHeads.cpp - Scores without merged dimensions ------------------===//
//
// Groups of heads are often merged, or heads with batches, on the way from the
// dot that makes scores to the one that contracts them: masks and biases have
// a dimension of heads, and dots of groups have two. Everything that is
// computed from scores then moves in front of the reshape that merges
// dimensions, so that all of it has the dimensions of the dots. Values that do
// not follow from scores are broadcast, or reshaped, to these.
//
//===----------------------------------------------------------------------===//

#include "KeepShapes.h"
#include "Scores.h"
#include "SplitKeys.h"

#include "../EffectiveRecipe.h"
#include "../SmallTensors.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8SPLITHEADS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

namespace {

/// The extents that each dimension of a value is the product of.
using Extents = SmallVector<SmallVector<int64_t, 2>>;

/// A value with split dimensions.
struct Fine {
  Value value;
  Extents extents;
};

/// Splits the dimensions of what follows from scores in a block.
class HeadSplitter {
public:
  explicit HeadSplitter(Block &block) : block(block), builder(&block, {}) {}
  unsigned run();

private:
  bool splitsScores();
  void visit(Operation &op);
  std::optional<Fine> rebuild(Operation &op);
  std::optional<Fine> rebuildReshape(stablehlo::ReshapeOp op);
  std::optional<Fine> rebuildDot(Dot op);
  std::optional<Fine> rebuildElementwise(Operation &op);
  std::optional<Fine> rebuildReduction(stablehlo::ReduceOp op);
  std::optional<Fine> rebuildBroadcast(stablehlo::BroadcastInDimOp op);
  std::optional<Fine> rebuildTranspose(stablehlo::TransposeOp op);
  std::optional<Fine> makeFine(Value source, ArrayRef<int64_t> merged);
  std::optional<Fine> findMerged(Value value, unsigned steps = 4);
  Value expand(Value value, const Extents &extents);
  Value expandBroadcast(stablehlo::BroadcastInDimOp op, const Extents &extents);
  const Fine *lookup(Value value) const;

  Block &block;
  OpBuilder builder;
  DenseMap<Value, Fine> fine;
  /// Everything that is computed from scores.
  DenseSet<Value> ofScores;
  unsigned count = 0;
};

} // namespace

static SmallVector<int64_t> flatten(const Extents &extents) {
  SmallVector<int64_t> shape;
  for (const auto &part : extents)
    llvm::append_range(shape, part);
  return shape;
}

/// Returns the first split dimension of each dimension, and their number.
static SmallVector<int64_t> firstDims(const Extents &extents) {
  SmallVector<int64_t> first{0};
  for (const auto &part : extents)
    first.push_back(first.back() + part.size());
  return first;
}

/// Returns the split dimensions of some dimensions.
static SmallVector<int64_t> splitDims(const Extents &extents,
                                      ArrayRef<int64_t> dims) {
  SmallVector<int64_t> first = firstDims(extents), result;
  for (int64_t dim : dims)
    llvm::append_range(result, llvm::seq(first[dim], first[dim + 1]));
  return result;
}

static bool isSplit(ArrayRef<int64_t> part) {
  return llvm::count_if(part, [](int64_t size) { return size != 1; }) > 1;
}

static Extents unsplit(ArrayRef<int64_t> shape) {
  return llvm::map_to_vector(
      shape, [](int64_t size) { return SmallVector<int64_t, 2>{size}; });
}

/// Returns how the dimensions of a shape are merged to those of another one;
/// nullopt if they are not, or if none is merged. Dimensions of one element
/// count for nothing.
static std::optional<Extents> findMerges(ArrayRef<int64_t> from,
                                         ArrayRef<int64_t> to) {
  SmallVector<int64_t> left;
  llvm::copy_if(llvm::reverse(from), std::back_inserter(left),
                [](int64_t size) { return size != 1; });
  Extents extents;
  for (int64_t size : to) {
    int64_t product = 1;
    auto &part = extents.emplace_back();
    while (product < size && !left.empty()) {
      part.push_back(left.pop_back_val());
      product *= part.back();
    }
    if (product != size)
      return std::nullopt;
    if (part.empty())
      part.push_back(1);
  }
  bool merges =
      llvm::any_of(extents, [](const auto &part) { return isSplit(part); });
  return left.empty() && merges ? std::optional(extents) : std::nullopt;
}

const Fine *HeadSplitter::lookup(Value value) const {
  auto it = fine.find(value);
  return it == fine.end() ? nullptr : &it->second;
}

/// Marks everything that is computed from scores, and returns whether a reshape
/// splits or merges dimensions of it.
bool HeadSplitter::splitsScores() {
  bool found = false;
  for (Operation &op : block) {
    bool follows = op.getNumResults() == 1 &&
                   (stablehlo::worksByElement(&op) ||
                    isa<stablehlo::TransposeOp, stablehlo::ReduceOp,
                        stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(op));
    bool readsScores = llvm::any_of(op.getOperands(), [&](Value operand) {
      return ofScores.contains(operand);
    });
    // Dots of scores result in outputs and gradients.
    if (isAttentionDot(&op) ? readsScores : !(follows && readsScores))
      continue;
    ofScores.insert(op.getResult(0));
    if (isa<stablehlo::ReshapeOp>(op)) {
      ArrayRef<int64_t> from = shapeOf(op.getOperand(0)),
                        to = shapeOf(op.getResult(0));
      found |= findMerges(from, to) || findMerges(to, from);
    }
  }
  return found;
}

/// Returns `source`, of which a reshape to `merged` merges dimensions.
std::optional<Fine> HeadSplitter::makeFine(Value source,
                                           ArrayRef<int64_t> merged) {
  auto extents = findMerges(shapeOf(source), merged);
  if (!extents)
    return std::nullopt;
  return Fine{makeReshape(builder, source.getLoc(), source, flatten(*extents)),
              *extents};
}

/// Returns how the operand of a dot is merged: a reshape in front of it, or in
/// front of a transpose or an elementwise op.
std::optional<Fine> HeadSplitter::findMerged(Value value, unsigned steps) {
  if (const Fine *known = lookup(value))
    return *known;
  Operation *op = value.getDefiningOp();
  if (!op || op->getBlock() != &block || steps == 0)
    return std::nullopt;
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op)) {
    Value source = reshape.getOperand();
    builder.setInsertionPointAfter(op);
    return makeFine(source, shapeOf(value));
  }
  if (!stablehlo::worksByElement(op) && !isa<stablehlo::TransposeOp>(op))
    return std::nullopt;
  for (Value operand : op->getOperands())
    if (auto merged = findMerged(operand, steps - 1))
      fine[operand] = *merged;
  builder.setInsertionPointAfter(op);
  std::optional<Fine> result = rebuild(*op);
  if (result)
    fine[value] = *result;
  return result;
}

//===----------------------------------------------------------------------===//
// Values that do not follow from scores
//===----------------------------------------------------------------------===//

Value HeadSplitter::expandBroadcast(stablehlo::BroadcastInDimOp op,
                                    const Extents &extents) {
  SmallVector<int64_t> first = firstDims(extents), shape, dims;
  for (auto [i, dim] : llvm::enumerate(op.getBroadcastDimensions())) {
    int64_t size = shapeOf(op.getOperand())[i];
    bool isWhole = size != 1;
    for (auto [j, part] : llvm::enumerate(extents[dim])) {
      if (!isWhole && j > 0)
        break;
      shape.push_back(isWhole ? part : 1);
      dims.push_back(first[dim] + j);
    }
  }
  Value source = makeReshape(builder, op.getLoc(), op.getOperand(), shape);
  return stablehlo::BroadcastInDimOp::create(
      builder, op.getLoc(), tensorOf(op).clone(flatten(extents)), source,
      builder.getDenseI64ArrayAttr(dims));
}

/// Splits the dimensions of any value.
Value HeadSplitter::expand(Value value, const Extents &extents) {
  if (const Fine *known = lookup(value); known && known->extents == extents)
    return known->value;
  RankedTensorType type = tensorOf(value).clone(flatten(extents));
  if (Value splat = resizeSplat(builder, value.getLoc(), value, type))
    return splat;
  if (auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>())
    return expandBroadcast(broadcast, extents);
  return makeReshape(builder, value.getLoc(), value, type.getShape());
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

std::optional<Fine> HeadSplitter::rebuildReshape(stablehlo::ReshapeOp op) {
  const Fine *known = lookup(op.getOperand());
  if (!known && !ofScores.contains(op.getOperand()))
    return std::nullopt;
  Value source = known ? known->value : op.getOperand();
  if (shapeOf(source) == shapeOf(op))
    return Fine{source, unsplit(shapeOf(op))};
  return makeFine(source, shapeOf(op));
}

/// Makes pairs of dimensions of a dot's operands split alike: one of the two is
/// split as the other one is. Fails if both are split in different ways.
static LogicalResult splitAlike(Extents &lhs, ArrayRef<int64_t> lhsDims,
                                Extents &rhs, ArrayRef<int64_t> rhsDims) {
  for (auto [l, r] : llvm::zip_equal(lhsDims, rhsDims)) {
    auto &a = lhs[l], &b = rhs[r];
    if (isSplit(a) && isSplit(b) && a != b)
      return failure();
    if (isSplit(a))
      b = a;
    else
      a = b;
  }
  return success();
}

/// Returns the dimensions of a dot's result.
static Extents resultExtents(stablehlo::DotDimensionNumbersAttr numbers,
                             const Extents &lhs, const Extents &rhs) {
  Extents result;
  for (int64_t dim : numbers.getLhsBatchingDimensions())
    result.push_back(lhs[dim]);
  for (int64_t dim :
       stablehlo::getFreeDims(lhs.size(), numbers.getLhsBatchingDimensions(),
                              numbers.getLhsContractingDimensions()))
    result.push_back(lhs[dim]);
  for (int64_t dim :
       stablehlo::getFreeDims(rhs.size(), numbers.getRhsBatchingDimensions(),
                              numbers.getRhsContractingDimensions()))
    result.push_back(rhs[dim]);
  return result;
}

/// Splits the dimensions of a dot of two activations.
std::optional<Fine> HeadSplitter::rebuildDot(Dot op) {
  if (!isAttentionDot(op))
    return std::nullopt;
  std::optional<Fine> operands[2];
  Extents extents[2];
  for (unsigned i : {0, 1}) {
    operands[i] = findMerged(op->getOperand(i));
    extents[i] = operands[i] ? operands[i]->extents
                             : unsplit(shapeOf(op->getOperand(i)));
  }
  auto dims = op.getDotDimensionNumbers();
  if ((!operands[0] && !operands[1]) ||
      failed(splitAlike(extents[0], dims.getLhsBatchingDimensions(), extents[1],
                        dims.getRhsBatchingDimensions())) ||
      failed(splitAlike(extents[0], dims.getLhsContractingDimensions(),
                        extents[1], dims.getRhsContractingDimensions())))
    return std::nullopt;
  builder.setInsertionPoint(op);
  Value values[2];
  for (unsigned i : {0, 1})
    values[i] =
        makeReshape(builder, op.getLoc(),
                    operands[i] ? operands[i]->value : op->getOperand(i),
                    flatten(extents[i]));
  auto numbers = stablehlo::DotDimensionNumbersAttr::get(
      op.getContext(), splitDims(extents[0], dims.getLhsBatchingDimensions()),
      splitDims(extents[1], dims.getRhsBatchingDimensions()),
      splitDims(extents[0], dims.getLhsContractingDimensions()),
      splitDims(extents[1], dims.getRhsContractingDimensions()));
  Extents result = resultExtents(dims, extents[0], extents[1]);
  auto dot = Dot::create(
      builder, op.getLoc(), tensorOf(op).clone(flatten(result)), values[0],
      values[1], numbers, op.getPrecisionConfigAttr(), op.getAlgorithmAttr());
  dot->setAttr(FP8Dialect::kVerdictAttrName, getVerdict(op));
  return Fine{dot.getResult(), result};
}

std::optional<Fine> HeadSplitter::rebuildElementwise(Operation &op) {
  Value result = op.getResult(0);
  const Fine *first = nullptr;
  for (Value operand : op.getOperands())
    if (const Fine *known = lookup(operand);
        known && !first && shapeOf(operand) == shapeOf(result))
      first = known;
  if (!first)
    return std::nullopt;
  Extents extents = first->extents;
  SmallVector<Value> operands;
  for (Value operand : op.getOperands())
    operands.push_back(shapeOf(operand) == shapeOf(result)
                           ? expand(operand, extents)
                           : operand);
  Operation *copy =
      builder.create(op.getLoc(), op.getName().getIdentifier(), operands,
                     {tensorOf(result).clone(flatten(extents))}, op.getAttrs());
  return Fine{copy->getResult(0), extents};
}

std::optional<Fine> HeadSplitter::rebuildReduction(stablehlo::ReduceOp op) {
  const Fine *known =
      op->getNumResults() == 1 ? lookup(op->getOperand(0)) : nullptr;
  if (!known)
    return std::nullopt;
  Extents left;
  for (auto [dim, part] : llvm::enumerate(known->extents))
    if (!llvm::is_contained(op.getDimensions(), dim))
      left.push_back(part);
  Value result = makeReduction(builder, op, known->value, op->getOperand(1),
                               splitDims(known->extents, op.getDimensions()));
  return Fine{result, left};
}

std::optional<Fine>
HeadSplitter::rebuildBroadcast(stablehlo::BroadcastInDimOp op) {
  const Fine *known = lookup(op.getOperand());
  if (!known)
    return std::nullopt;
  Extents extents = unsplit(shapeOf(op));
  for (auto [i, dim] : llvm::enumerate(op.getBroadcastDimensions()))
    if (shapeOf(op.getOperand())[i] == shapeOf(op)[dim])
      extents[dim] = known->extents[i];
    else if (known->extents[i].size() != 1)
      return std::nullopt;
  Value result = stablehlo::BroadcastInDimOp::create(
      builder, op.getLoc(), tensorOf(op).clone(flatten(extents)), known->value,
      builder.getDenseI64ArrayAttr(
          splitDims(extents, op.getBroadcastDimensions())));
  return Fine{result, extents};
}

std::optional<Fine> HeadSplitter::rebuildTranspose(stablehlo::TransposeOp op) {
  const Fine *known = lookup(op.getOperand());
  if (!known)
    return std::nullopt;
  Extents extents;
  for (int64_t dim : op.getPermutation())
    extents.push_back(known->extents[dim]);
  Value result = stablehlo::TransposeOp::create(
      builder, op.getLoc(), tensorOf(op).clone(flatten(extents)), known->value,
      builder.getDenseI64ArrayAttr(
          splitDims(known->extents, op.getPermutation())));
  return Fine{result, extents};
}

/// Returns the result of an op, computed with split dimensions.
std::optional<Fine> HeadSplitter::rebuild(Operation &op) {
  if (op.getNumResults() != 1)
    return std::nullopt;
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op))
    return rebuildReshape(reshape);
  if (auto dot = dyn_cast<Dot>(op))
    return rebuildDot(dot);
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op))
    return rebuildReduction(reduce);
  if (auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op))
    return rebuildBroadcast(broadcast);
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op))
    return rebuildTranspose(transpose);
  return stablehlo::worksByElement(&op) ? rebuildElementwise(op) : std::nullopt;
}

void HeadSplitter::visit(Operation &op) {
  builder.setInsertionPoint(&op);
  std::optional<Fine> result = rebuild(op);
  if (!result)
    return;
  ++count;
  Value old = op.getResult(0);
  Value merged = makeReshape(builder, op.getLoc(), result->value, shapeOf(old));
  old.replaceAllUsesWith(merged);
  op.erase();
  if (merged != result->value)
    fine[merged] = std::move(*result);
}

unsigned HeadSplitter::run() {
  if (!splitsScores())
    return 0;
  for (Operation &op : llvm::make_early_inc_range(block))
    visit(op);
  return count;
}

namespace {
struct SplitHeads : fp8::impl::FP8SplitHeadsBase<SplitHeads> {
  void runOnOperation() override {
    if (failed(verifyDecided(getOperation())))
      return signalPassFailure();
    SmallVector<Block *> blocks;
    getOperation().walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      numSplit +=
          keepShapes(*block) + splitKeys(*block) + HeadSplitter(*block).run();
  }
};
} // namespace
