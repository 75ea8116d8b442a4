//===- SplitKeys.cpp - Scores beside those of no key ----------------------===//
//
// Models with attention sinks concatenate scores and one more element for each
// row, and drop its weight after the softmax. Here all values that follow from
// such a concatenation (or from the pad that is the gradient of dropping) are
// computed as two values: those of the keys, and that of the sink.
//
//===----------------------------------------------------------------------===//

#include "SplitKeys.h"

#include "Scores.h"

#include "../SmallTensors.h"

#include "fp8/Analysis/DataFlow.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

using namespace mlir;
using namespace mlir::fp8;
using stablehlo::BroadcastInDimOp;
using stablehlo::ConcatenateOp;
using stablehlo::PadOp;
using stablehlo::ReduceOp;

namespace {

/// Where a value is cut: dimension `dim` has `first` indices in the first part.
struct Cut {
  int64_t dim, first;

  bool operator==(const Cut &other) const {
    return dim == other.dim && first == other.first;
  }
};

/// The two parts of a value.
struct Halves {
  Value values[2];
};

class KeySplitter {
public:
  explicit KeySplitter(Block &block) : block(block) {}
  unsigned run();

private:
  bool findCuts();
  std::optional<Cut> startOf(Operation *op) const;
  std::optional<Cut> follow(Operation *op) const;
  bool isSave(Operation *op) const;
  bool isSupported(Operation *op) const;

  Halves halvesOf(Value value, const Cut &cut, OpBuilder &builder);
  Value sliceOf(Value value, const Cut &cut, unsigned part, OpBuilder &builder);
  SmallVector<int64_t> shapeOfPart(Value value, const Cut &cut, unsigned part);
  Value makePart(Operation *op, const Cut &cut, unsigned part,
                 OpBuilder &builder);
  Halves padded(PadOp op, const Cut &cut, OpBuilder &builder);
  void build(Operation *op);
  void reduceKeys(ReduceOp op, OpBuilder &builder);

  Block &block;
  /// The values that follow from the scores of attentions, element by element.
  DenseSet<Value> ofScores;
  DenseMap<Value, Cut> cuts;
  DenseMap<Value, Halves> halves;
  /// The parts of values that do not follow from scores, by their cut.
  DenseMap<std::pair<Value, std::pair<int64_t, int64_t>>, Halves> others;
};

} // namespace

//===----------------------------------------------------------------------===//
// What is split
//===----------------------------------------------------------------------===//

/// Returns the cut of a concatenation of scores and a sink, or of scores that
/// are padded by one.
std::optional<Cut> KeySplitter::startOf(Operation *op) const {
  ArrayRef<int64_t> all = shapeOf(op->getResult(0));
  if (auto concatenate = dyn_cast<ConcatenateOp>(op)) {
    if (op->getNumOperands() != 2)
      return std::nullopt;
    int64_t dim = concatenate.getDimension();
    for (unsigned sink : {0, 1})
      if (ofScores.contains(op->getOperand(1 - sink)) &&
          shapeOf(op->getOperand(sink))[dim] == 1)
        return Cut{dim, shapeOf(op->getOperand(0))[dim]};
    return std::nullopt;
  }
  auto pad = cast<PadOp>(op);
  if (!ofScores.contains(pad.getOperand()))
    return std::nullopt;
  std::optional<Cut> cut;
  for (auto [dim, size] : llvm::enumerate(shapeOf(pad.getOperand()))) {
    int64_t low = pad.getEdgePaddingLow()[dim],
            high = pad.getEdgePaddingHigh()[dim];
    if (low == 0 && high == 0 && size == all[dim])
      continue;
    if (cut || low < 0 || high < 0 || low + high != 1 || size + 1 != all[dim])
      return std::nullopt;
    cut = Cut{static_cast<int64_t>(dim), low == 1 ? 1 : size};
  }
  return cut;
}

/// Whether the two parts of a row can be reduced alone.
static bool isCombinable(ReduceOp reduce) {
  if (reduce->getNumResults() != 1)
    return false;
  Operation *combiner = stablehlo::getCombiner(reduce.getBody());
  return isa_and_nonnull<stablehlo::MaxOp, stablehlo::MinOp>(combiner) ||
         (isa_and_nonnull<stablehlo::AddOp>(combiner) &&
          isZero(reduce->getOperand(1)));
}

/// Returns the cut of the result of an op on values that are cut; none if the
/// result is not cut.
std::optional<Cut> KeySplitter::follow(Operation *op) const {
  auto found = cuts.end();
  for (Value operand : op->getOperands())
    if (auto it = cuts.find(operand); it != cuts.end()) {
      if (found != cuts.end() && !(it->second == found->second))
        return std::nullopt;
      found = it;
    }
  Cut cut = found->second;
  if (stablehlo::worksByElement(op))
    return shapeOf(op->getResult(0)) == shapeOf(found->first)
               ? std::optional(cut)
               : std::nullopt;
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    cut.dim = llvm::find(transpose.getPermutation(), cut.dim) -
              transpose.getPermutation().begin();
    return cut;
  }
  auto reduce = dyn_cast<ReduceOp>(op);
  if (!reduce || !isCombinable(reduce) ||
      llvm::is_contained(reduce.getDimensions(), cut.dim))
    return std::nullopt;
  cut.dim -= llvm::count_if(reduce.getDimensions(),
                            [&](int64_t dim) { return dim < cut.dim; });
  return cut;
}

/// Whether an op saves a whole value for the backward pass: returns it, or
/// gives it one more dimension, that of a stack.
bool KeySplitter::isSave(Operation *op) const {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return true;
  Value source = op->getNumResults() == 1
                     ? stablehlo::getReshapeSource(op->getResult(0))
                     : Value();
  if (!source)
    return false;
  auto withoutUnits = [](ArrayRef<int64_t> shape) {
    return llvm::to_vector(
        llvm::make_filter_range(shape, [](int64_t size) { return size != 1; }));
  };
  return withoutUnits(shapeOf(source)) ==
         withoutUnits(shapeOf(op->getResult(0)));
}

/// Whether an op that reads a cut value reads one part, or can be split.
bool KeySplitter::isSupported(Operation *op) const {
  if (op->getNumResults() == 1 && cuts.contains(op->getResult(0)))
    return true;
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return isCombinable(reduce);
  auto slice = dyn_cast<stablehlo::SliceOp>(op);
  if (!slice)
    return isSave(op);
  const Cut &cut = cuts.find(slice.getOperand())->second;
  return slice.getLimitIndices()[cut.dim] <= cut.first ||
         slice.getStartIndices()[cut.dim] >= cut.first;
}

/// Finds all values that are cut. Returns false if there are none, or if an op
/// needs one whole.
bool KeySplitter::findCuts() {
  for (Operation &op : block) {
    if (op.getNumResults() != 1)
      continue;
    Value result = op.getResult(0);
    bool followsScores = llvm::any_of(op.getOperands(), [&](Value operand) {
      return ofScores.contains(operand);
    });
    if (isAttentionDot(&op) ||
        (followsScores &&
         (stablehlo::worksByElement(&op) ||
          isa<stablehlo::TransposeOp, stablehlo::ReshapeOp>(&op))))
      ofScores.insert(result);
    bool readsCut = llvm::any_of(op.getOperands(), [&](Value operand) {
      return cuts.contains(operand);
    });
    std::optional<Cut> cut;
    if (readsCut)
      cut = follow(&op);
    else if (isa<ConcatenateOp, PadOp>(op))
      cut = startOf(&op);
    if (cut)
      cuts[result] = *cut;
  }
  return !cuts.empty() && llvm::all_of(cuts, [&](auto &entry) {
    return llvm::all_of(entry.first.getUsers(), [&](Operation *user) {
      return user->getBlock() == &block && isSupported(user);
    });
  });
}

//===----------------------------------------------------------------------===//
// Splitting
//===----------------------------------------------------------------------===//

SmallVector<int64_t> KeySplitter::shapeOfPart(Value value, const Cut &cut,
                                              unsigned part) {
  SmallVector<int64_t> shape(shapeOf(value));
  shape[cut.dim] = part == 0 ? cut.first : shape[cut.dim] - cut.first;
  return shape;
}

/// Returns a part of a value that does not follow from scores.
Value KeySplitter::sliceOf(Value value, const Cut &cut, unsigned part,
                           OpBuilder &builder) {
  Location loc = value.getLoc();
  SmallVector<int64_t> shape = shapeOfPart(value, cut, part);
  RankedTensorType type = tensorOf(value).clone(shape);
  if (Value splat = resizeSplat(builder, loc, value, type))
    return splat;
  auto broadcast = value.getDefiningOp<BroadcastInDimOp>();
  if (broadcast) {
    ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
    const int64_t *place = llvm::find(dims, cut.dim);
    if (place == dims.end() ||
        shapeOf(broadcast.getOperand())[place - dims.begin()] == 1)
      return BroadcastInDimOp::create(builder, loc, type,
                                      broadcast.getOperand(),
                                      broadcast.getBroadcastDimensionsAttr());
  }
  // Follow elementwise ops to broadcasts.
  if (Operation *op = value.getDefiningOp();
      op && stablehlo::worksByElement(op) && op->getBlock() == &block)
    return makePart(op, cut, part, builder);
  SmallVector<int64_t> starts(shape.size(), 0), limits(shape),
      strides(shape.size(), 1);
  if (part == 1) {
    starts[cut.dim] = cut.first;
    limits[cut.dim] += cut.first;
  }
  return stablehlo::SliceOp::create(builder, loc, type, value,
                                    builder.getDenseI64ArrayAttr(starts),
                                    builder.getDenseI64ArrayAttr(limits),
                                    builder.getDenseI64ArrayAttr(strides));
}

Halves KeySplitter::halvesOf(Value value, const Cut &cut, OpBuilder &builder) {
  auto it = halves.find(value);
  if (it != halves.end())
    return it->second;
  std::pair<Value, std::pair<int64_t, int64_t>> key(value,
                                                    {cut.dim, cut.first});
  if (auto other = others.find(key); other != others.end())
    return other->second;
  Halves result;
  for (unsigned part : {0, 1})
    result.values[part] = sliceOf(value, cut, part, builder);
  return others[key] = result;
}

/// Computes a part of the result of an op, which is cut there.
Value KeySplitter::makePart(Operation *op, const Cut &cut, unsigned part,
                            OpBuilder &builder) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return makeReduction(builder, reduce,
                         halves.lookup(reduce->getOperand(0)).values[part],
                         reduce->getOperand(1), reduce.getDimensions());
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (isa<stablehlo::TransposeOp>(op))
      operands.push_back(halves.lookup(operand).values[part]);
    else if (shapeOf(operand).empty())
      operands.push_back(operand);
    else
      operands.push_back(halvesOf(operand, cut, builder).values[part]);
  }
  Value result = op->getResult(0);
  return builder
      .create(op->getLoc(), op->getName().getIdentifier(), operands,
              TypeRange{tensorOf(result).clone(shapeOfPart(result, cut, part))},
              op->getAttrs())
      ->getResult(0);
}

/// Reduces both parts of each row, and combines them.
void KeySplitter::reduceKeys(ReduceOp op, OpBuilder &builder) {
  Halves input = halves.lookup(op->getOperand(0));
  Value parts[2];
  bool hasInitial = false;
  for (unsigned part : {0, 1}) {
    Value value = input.values[part];
    bool isOne = llvm::all_of(op.getDimensions(), [&](int64_t dim) {
      return shapeOf(value)[dim] == 1;
    });
    // A single element is its own maximum if the other part has the initial
    // value.
    if (isOne && (part == 0 || hasInitial)) {
      parts[part] =
          makeReshape(builder, op.getLoc(), value, shapeOf(op->getResult(0)));
      continue;
    }
    parts[part] = makeReduction(builder, op, value, op->getOperand(1),
                                op.getDimensions());
    hasInitial = true;
  }
  Operation *combiner = stablehlo::getCombiner(op.getBody());
  Value whole = builder
                    .create(op.getLoc(), combiner->getName().getIdentifier(),
                            {parts[0], parts[1]}, {parts[0].getType()})
                    ->getResult(0);
  op->getResult(0).replaceAllUsesWith(whole);
}

/// Returns the parts of padded scores.
Halves KeySplitter::padded(PadOp op, const Cut &cut, OpBuilder &builder) {
  unsigned sink = op.getEdgePaddingLow()[cut.dim] == 1 ? 0 : 1;
  Halves parts;
  parts.values[1 - sink] = op.getOperand();
  parts.values[sink] = BroadcastInDimOp::create(
      builder, op.getLoc(),
      op.getType().clone(shapeOfPart(op.getResult(), cut, sink)),
      op.getPaddingValue(), builder.getDenseI64ArrayAttr({}));
  return parts;
}

void KeySplitter::build(Operation *op) {
  OpBuilder builder(op);
  Value result = op->getResult(0);
  if (auto cut = cuts.find(result); cut != cuts.end()) {
    Halves parts;
    if (isa<ConcatenateOp>(op))
      parts = {{op->getOperand(0), op->getOperand(1)}};
    else if (auto pad = dyn_cast<PadOp>(op))
      parts = padded(pad, cut->second, builder);
    else
      for (unsigned part : {0, 1})
        parts.values[part] = makePart(op, cut->second, part, builder);
    halves[result] = parts;
    return;
  }
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return reduceKeys(reduce, builder);
  auto slice = cast<stablehlo::SliceOp>(op);
  const Cut &cut = cuts.find(slice.getOperand())->second;
  unsigned part = slice.getStartIndices()[cut.dim] >= cut.first;
  SmallVector<int64_t> starts(slice.getStartIndices()),
      limits(slice.getLimitIndices());
  if (part == 1) {
    starts[cut.dim] -= cut.first;
    limits[cut.dim] -= cut.first;
  }
  Value source = halves.lookup(slice.getOperand()).values[part];
  result.replaceAllUsesWith(builder.createOrFold<stablehlo::SliceOp>(
      op->getLoc(), result.getType(), source,
      builder.getDenseI64ArrayAttr(starts),
      builder.getDenseI64ArrayAttr(limits), slice.getStridesAttr()));
}

unsigned KeySplitter::run() {
  if (!findCuts())
    return 0;
  SmallVector<Operation *> split;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    bool readsCut = llvm::any_of(op.getOperands(), [&](Value operand) {
      return cuts.contains(operand);
    });
    bool isCut = op.getNumResults() == 1 && cuts.contains(op.getResult(0));
    if (!isCut && !(readsCut && !isSave(&op)))
      continue;
    build(&op);
    split.push_back(&op);
  }
  // What is saved whole is joined again.
  for (Operation *op : split) {
    auto parts = halves.find(op->getResult(0));
    if (parts == halves.end() ||
        llvm::none_of(op->getUsers(),
                      [&](Operation *user) { return isSave(user); }))
      continue;
    OpBuilder builder(op);
    builder.setInsertionPointAfter(op);
    Value whole =
        ConcatenateOp::create(builder, op->getLoc(), op->getResult(0).getType(),
                              ValueRange(parts->second.values),
                              cuts.find(op->getResult(0))->second.dim);
    op->getResult(0).replaceUsesWithIf(
        whole, [&](OpOperand &use) { return isSave(use.getOwner()); });
  }
  for (Operation *op : llvm::reverse(split))
    if (op->use_empty())
      op->erase();
  return split.size();
}

unsigned fp8::splitKeys(Block &block) { return KeySplitter(block).run(); }
