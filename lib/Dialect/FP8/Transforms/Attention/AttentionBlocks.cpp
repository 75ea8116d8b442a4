//===- AttentionBlocks.cpp - Attention on operands in f8 ------------------===//

#include "AttentionBlocks.h"

#include "../LayerStacks.h"
#include "../Quantize/Quantizer.h"
#include "../SmallTensors.h"
#include "Scores.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/DotOperands.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"
#include "fp8/Support/Shapes.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

/// The number of tokens of a head that share a scale.
static constexpr int64_t kBlockTokens = 64;
/// A row of weights is scaled so that its largest weight lies between three
/// quarters and three halves of this, which E4M3 (up to 448) holds.
static constexpr double kLargestWeight = 256;
/// Rows without weights, or with tiny weights only, are scaled as if this were
/// their amax.
static constexpr double kLeastAmax = 0x1p-100;

namespace {

/// Rounds the operands of a function's attention dots.
class AttentionQuantizer {
public:
  explicit AttentionQuantizer(MLIRContext *context)
      : builder(context), rounder(context), payloads(context) {}

  void roundBlocks(const RoundedOperand &operand);
  void roundScores(const Scores &scores);

private:
  Value roundInBlocks(Value value, ArrayRef<int64_t> tile);
  Value roundWeights(Value weights, const Scores::Dims &dims,
                     const Scores &scores);

  OpBuilder builder;
  Rounder rounder;
  BlockQuantizer payloads;
  /// Rounded blocks, by payload.
  DenseMap<Value, Value> blocks;
  DenseMap<Value, Value> rows;
};

} // namespace

/// Whether the operands of a dot are rounded: other types have too little range
/// for a scale, or are more exact on purpose.
static bool isRounded(Dot dot) {
  return llvm::all_of(dot->getOperandTypes(), [](Type type) {
    Type element = getElementTypeOrSelf(type);
    return element.isF32() || element.isBF16();
  });
}

static std::vector<Scores> findAllScores(func::FuncOp function) {
  std::vector<Scores> all;
  function.walk(
      [&](Block *block) { llvm::append_range(all, findScores(*block)); });
  return all;
}

//===----------------------------------------------------------------------===//
// Queries, keys, values and the gradient of the output
//===----------------------------------------------------------------------===//

/// Returns an operand that is not scores. Its tokens are the dimension that the
/// dot does not contract or, if it sums over tokens, the one that it does: the
/// longest one, if there are others of heads that share keys.
static RoundedOperand getRoundedOperand(Dot dot, unsigned side,
                                        bool contractsDepth) {
  auto [batch, contract, free] = stablehlo::getOperandDims(dot, side);
  ArrayRef<int64_t> shape = shapeOf(dot->getOperand(side));
  SmallVector<int64_t> tile(shape.size(), 1);
  for (int64_t dim : contractsDepth ? contract : ArrayRef<int64_t>(free))
    tile[dim] = ScaledType::kWhole;
  ArrayRef<int64_t> tokens =
      contractsDepth ? ArrayRef<int64_t>(free) : contract;
  auto longest = llvm::max_element(
      tokens, [&](int64_t a, int64_t b) { return shape[a] < shape[b]; });
  if (longest != tokens.end())
    tile[*longest] = kBlockTokens;
  return {&dot->getOpOperand(side), std::move(tile)};
}

static void addRoundedOperands(const Scores &scores,
                               SmallVectorImpl<RoundedOperand> &operands) {
  for (Dot dot : scores.scoreDots)
    if (isRounded(dot))
      for (unsigned side : {0u, 1u})
        operands.push_back(
            getRoundedOperand(dot, side, /*contractsDepth=*/true));
  for (Operation *reader : scores.readers)
    if (auto dot = dyn_cast<Dot>(reader); dot && isRounded(dot))
      operands.push_back(getRoundedOperand(dot, 1 - scores.scoreOperand(dot),
                                           /*contractsDepth=*/false));
}

SmallVector<RoundedOperand> fp8::findRoundedOperands(func::FuncOp function) {
  SmallVector<RoundedOperand> operands;
  for (const Scores &scores : findAllScores(function))
    addRoundedOperands(scores, operands);
  return operands;
}

/// A value that attention dots read, and the tile in which they do.
using TiledValue = std::pair<Value, SmallVector<int64_t>>;

/// The scale of repeated elements is that of the elements.
static SmallVector<int64_t> getTileBefore(stablehlo::BroadcastInDimOp spread,
                                          ArrayRef<int64_t> tile) {
  SmallVector<int64_t> before;
  for (auto [dim, size] : llvm::zip_equal(spread.getBroadcastDimensions(),
                                          shapeOf(spread.getOperand())))
    before.push_back(size == shapeOf(spread)[dim] ? tile[dim] : 1);
  return before;
}

/// Returns the tile of what is reshaped; none if the reshape joins or splits
/// dimensions along which elements share a scale.
static std::optional<SmallVector<int64_t>>
getTileBefore(stablehlo::ReshapeOp reshape, ArrayRef<int64_t> tile) {
  ArrayRef<int64_t> from = shapeOf(reshape.getOperand()), to = shapeOf(reshape);
  SmallVector<int64_t> before(from.size(), 1);
  for (const MatchedDims &dims : matchReshape(from, to)) {
    if (dims.from.size() == 1 && dims.to.size() == 1)
      before[dims.from[0]] = tile[dims.to[0]];
    else if (llvm::any_of(dims.to, [&](int64_t dim) { return tile[dim] != 1; }))
      return std::nullopt;
  }
  return before;
}

/// Returns the tile that the operand of an op has if the result has `tile`;
/// none if the op changes more than the layout, or blocks.
static std::optional<SmallVector<int64_t>>
getTileOfOperand(Operation *op, ArrayRef<int64_t> tile) {
  if (auto transpose = dyn_cast_or_null<stablehlo::TransposeOp>(op))
    return applyPermutation(
        tile, invertPermutationVector(transpose.getPermutation()));
  if (auto spread = dyn_cast_or_null<stablehlo::BroadcastInDimOp>(op))
    return getTileBefore(spread, tile);
  if (auto reshape = dyn_cast_or_null<stablehlo::ReshapeOp>(op))
    return getTileBefore(reshape, tile);
  return std::nullopt;
}

/// Returns an operand and, of each op before it that transposes or repeats it,
/// the operand of that. Reshapes are passed only on the way to such an op.
static SmallVector<TiledValue> getLayouts(const RoundedOperand &operand) {
  SmallVector<TiledValue> values = {{operand.use->get(), operand.tile}};
  size_t count = 1;
  while (true) {
    Operation *op = values.back().first.getDefiningOp();
    std::optional<SmallVector<int64_t>> tile =
        getTileOfOperand(op, values.back().second);
    if (!tile)
      break;
    values.push_back({op->getOperand(0), *tile});
    if (!isa<stablehlo::ReshapeOp>(op))
      count = values.size();
  }
  values.truncate(count);
  return values;
}

/// Returns the value of which a loop has made a stack, if `value` is a slot of
/// it; null otherwise.
static Value getStacked(Value value) {
  auto slice = stablehlo::stripReshapes(value)
                   .getDefiningOp<stablehlo::DynamicSliceOp>();
  auto loop = slice ? slice.getOperand().getDefiningOp<stablehlo::WhileOp>()
                    : stablehlo::WhileOp();
  if (!loop)
    return nullptr;
  std::optional<LayerStack> stack = matchLayerStack(
      loop, cast<OpResult>(slice.getOperand()).getResultNumber());
  Value stacked = stack ? stack->getValue() : Value();
  return stacked && stacked.getType() == value.getType() ? stacked : Value();
}

DenseMap<Value, SmallVector<int64_t>>
fp8::findValuesInBlocks(ArrayRef<RoundedOperand> operands) {
  DenseMap<Value, SmallVector<int64_t>> tiles;
  auto add = [&](Value value, ArrayRef<int64_t> tile) {
    auto [it, isNew] = tiles.try_emplace(value, tile);
    if (!isNew && it->second != tile)
      it->second.clear();
  };
  for (const RoundedOperand &operand : operands) {
    SmallVector<TiledValue> values = getLayouts(operand);
    for (const auto &[value, tile] : values)
      add(value, tile);
    if (Value stacked = getStacked(values.back().first))
      add(stacked, values.back().second);
  }
  SmallVector<Value> ambiguous;
  for (auto &[value, tile] : tiles)
    if (tile.empty())
      ambiguous.push_back(value);
  for (Value value : ambiguous)
    tiles.erase(value);
  return tiles;
}

Value BlockQuantizer::get(Value value, ArrayRef<int64_t> tile) {
  Value &result = payloads[{value, builder.getDenseI64ArrayAttr(tile)}];
  if (result)
    return result;
  Location loc = value.getLoc();
  Value narrow = value;
  if (getElementTypeOrSelf(value.getType()).isF32())
    narrow = rounder.get(value);
  setInsertionPointToQuantize(builder, narrow);
  Type format = builder.getType<Float8E4M3FNType>();
  auto scaled = ScaledType::get(tensorOf(narrow).clone(format), tile,
                                builder.getF32Type());
  auto amax = AmaxOp::create(builder, loc, narrow, scaled);
  auto scale =
      ComputeScaleOp::create(builder, loc, amax, ScaleRule::Pow2, format);
  return result = QuantizeOp::create(builder, loc, scaled, narrow,
                                     scale.getScale(), scale.getQuantizer());
}

/// Whether the backward pass restores a value from such blocks.
static bool isInBlocks(Value value, ArrayRef<int64_t> tile) {
  Value stacked = getStacked(value);
  auto restored = (stacked ? stacked : value).getDefiningOp<DequantizeOp>();
  if (!restored)
    return false;
  auto type = cast<ScaledType>(restored.getInput().getType());
  return type.getTile() == tile &&
         isa<Float8E4M3FNType>(type.getPayloadType().getElementType());
}

/// Returns `value` rounded in blocks, as bf16, which holds the results exactly.
Value AttentionQuantizer::roundInBlocks(Value value, ArrayRef<int64_t> tile) {
  if (isInBlocks(value, tile))
    return getElementTypeOrSelf(value.getType()).isBF16() ? value
                                                          : rounder.get(value);
  Value payload = payloads.get(value, tile);
  Value &result = blocks[payload];
  if (result)
    return result;
  builder.setInsertionPointAfterValue(payload);
  return result = DequantizeOp::create(
             builder, value.getLoc(),
             tensorOf(value).clone(builder.getBF16Type()), payload);
}

/// Rounds an operand. One behind transposes is rounded once for all dots, one
/// that is repeated before.
void AttentionQuantizer::roundBlocks(const RoundedOperand &operand) {
  SmallVector<TiledValue> values = getLayouts(operand);
  auto [source, tile] = values.pop_back_val();
  Value rounded = roundInBlocks(source, tile);
  builder.setInsertionPoint(operand.use->getOwner());
  for (const TiledValue &value : llvm::reverse(values)) {
    Operation *layout = value.first.getDefiningOp();
    IRMapping mapping;
    mapping.map(layout->getOperand(0), rounded);
    rounded = builder.clone(*layout, mapping)->getResult(0);
    rounded.setType(tensorOf(value.first).clone(builder.getBF16Type()));
  }
  operand.use->set(rounded);
}

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

/// Whether a factor does not depend on scores: it is broadcast from rows over
/// the keys, or comes from outside.
static bool isOfRows(Value factor, const Scores &scores) {
  Operation *op = factor.getDefiningOp();
  if (isa_and_nonnull<stablehlo::BroadcastInDimOp, stablehlo::TransposeOp,
                      stablehlo::ReshapeOp, stablehlo::ConvertOp>(op))
    return isOfRows(op->getOperand(0), scores);
  return !scores.isScore(factor);
}

/// Whether scores are weights: exponentials, multiplied and divided by values
/// that do not depend on scores. (The gradient of scores is not.)
static bool areWeights(Value value, const Scores &scores) {
  Operation *op = value.getDefiningOp();
  if (!op || !scores.isScore(value))
    return false;
  if (isa<stablehlo::ExpOp>(op))
    return true;
  if (isa<stablehlo::ConvertOp, stablehlo::TransposeOp, stablehlo::ReshapeOp>(
          op))
    return areWeights(op->getOperand(0), scores);
  if (isa<stablehlo::DivOp>(op))
    return areWeights(op->getOperand(0), scores) &&
           isOfRows(op->getOperand(1), scores);
  if (!isa<stablehlo::MulOp, stablehlo::SelectOp>(op))
    return false;
  bool any = false;
  for (Value operand : op->getOperands().take_back(2)) {
    bool isWeight = areWeights(operand, scores);
    if (!isWeight && !isOfRows(operand, scores))
      return false;
    any |= isWeight;
  }
  return any;
}

/// Returns the amax of each row, at least `kLeastAmax`; NaN if a weight is NaN.
/// (A factor of the weights may be negative.)
static Value rowAmax(OpBuilder &b, Location loc, Value weights,
                     ArrayRef<int64_t> keys) {
  auto scalar = RankedTensorType::get({}, tensorOf(weights).getElementType());
  Value largest = makeReduction<stablehlo::MaxOp>(
      b, loc, stablehlo::AbsOp::create(b, loc, weights.getType(), weights),
      makeSplat(b, loc, scalar, 0), keys);
  return stablehlo::MaxOp::create(
      b, loc, largest, makeSplat(b, loc, tensorOf(largest), kLeastAmax));
}

/// Rounds each element to the nearest power of two.
static Value nearestPowerOfTwo(OpBuilder &b, Location loc, Value value) {
  return stablehlo::ReducePrecisionOp::create(b, loc, value.getType(), value,
                                              b.getI32IntegerAttr(8),
                                              b.getI32IntegerAttr(0));
}

/// Returns the weights rounded with a scale for each row, as bf16. The ops are
/// of kinds that an attention may contain.
Value AttentionQuantizer::roundWeights(Value weights, const Scores::Dims &dims,
                                       const Scores &scores) {
  Value &result = rows[weights];
  if (result)
    return result;
  OpBuilder &b = builder;
  Location loc = weights.getLoc();
  b.setInsertionPointAfterValue(weights);
  RankedTensorType type = tensorOf(weights).clone(b.getF32Type());
  Value wide = weights;
  if (type != weights.getType())
    wide = stablehlo::ConvertOp::create(b, loc, type, wide);
  SmallVector<int64_t> keys, kept;
  for (auto [place, dim] : llvm::enumerate(dims))
    (dim >= 0 && scores.isKey(dim) ? keys : kept).push_back(place);
  Value power = nearestPowerOfTwo(b, loc, rowAmax(b, loc, wide, keys));
  Value largest = makeSplat(b, loc, tensorOf(power), kLargestWeight);
  auto spread = [&](Value row) -> Value {
    return stablehlo::BroadcastInDimOp::create(b, loc, type, row,
                                               b.getDenseI64ArrayAttr(kept));
  };
  Value quantizer =
      spread(stablehlo::DivOp::create(b, loc, largest, power).getResult());
  Value scale =
      spread(stablehlo::DivOp::create(b, loc, power, largest).getResult());
  Value product = stablehlo::MulOp::create(b, loc, wide, quantizer);
  Value payload = stablehlo::ConvertOp::create(
      b, loc, type.clone(b.getType<Float8E4M3FNType>()), product);
  Value back = stablehlo::ConvertOp::create(b, loc, type, payload);
  Value rounded = stablehlo::MulOp::create(b, loc, back, scale);
  return result = stablehlo::ConvertOp::create(
             b, loc, type.clone(b.getBF16Type()), rounded);
}

//===----------------------------------------------------------------------===//
// Dots
//===----------------------------------------------------------------------===//

/// Rounds the operands that are scores.
void AttentionQuantizer::roundScores(const Scores &scores) {
  for (Operation *reader : scores.readers) {
    auto dot = dyn_cast<Dot>(reader);
    if (!dot || !isRounded(dot))
      continue;
    unsigned side = scores.scoreOperand(dot);
    Value value = dot->getOperand(side);
    if (areWeights(value, scores))
      dot->setOperand(
          side, roundWeights(value, scores.dims.find(value)->second, scores));
    else if (getElementTypeOrSelf(value.getType()).isF32())
      dot->setOperand(side, rounder.get(value));
  }
}

void fp8::quantizeAttention(func::FuncOp function) {
  AttentionQuantizer quantizer(function.getContext());
  for (const Scores &scores : findAllScores(function)) {
    SmallVector<RoundedOperand> operands;
    addRoundedOperands(scores, operands);
    for (const RoundedOperand &operand : operands)
      quantizer.roundBlocks(operand);
    quantizer.roundScores(scores);
  }
}
