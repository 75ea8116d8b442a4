//===- Factors.cpp - The factors of gated units ---------------------------===//

#include "Factors.h"

#include "../Quantize/Quantizer.h"
#include "../Quantize/RankGroups.h"
#include "../SmallTensors.h"

#include "fp8/Support/Shapes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::fp8::smooth {

std::string getStateName(const DotInfo &down) {
  return (kStatePrefix + down.layer + ".smooth").str();
}

/// Returns how the factor is scaled, as settings of an operand. With the format
/// of the product, h/s lies just below the largest code.
OperandRecipe Factors::getStateRecipe() const {
  OperandRecipe state;
  state.format =
      recipe.forward ? recipe.forward->activation.format : Format::F8E4M3FN;
  state.scale = smooth.scale;
  state.margin = smooth.margin;
  state.scaling = smooth.scaling;
  state.history = smooth.history;
  state.algorithm = smooth.algorithm;
  state.initial = smooth.initial;
  return state;
}

/// Raises the amaxes of channels to at least 2^-8 of the largest one. The
/// factors move range from the product to the weight, and the 14 octaves of
/// E4M3 have to hold both the range of the weight's rows and that within a row.
static Value limitRange(OpBuilder &builder, Location loc, Value amax) {
  auto type = cast<RankedTensorType>(amax.getType());
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value largest = AmaxOp::create(builder, loc, scalar, amax,
                                 /*tile=*/DenseI64ArrayAttr());
  Value part = makeSplat(builder, loc, scalar, 0x1p-8);
  Value least = stablehlo::MulOp::create(builder, loc, largest, part);
  least = stablehlo::BroadcastInDimOp::create(builder, loc, type, least,
                                              builder.getDenseI64ArrayAttr({}));
  return stablehlo::MaxOp::create(builder, loc, amax, least);
}

/// Whether all ranks that reach `sum` also reach `block`, equally often: no
/// branch is around the block but not around `sum`.
static bool isWhereRanksMeet(Block *block, ExchangeOp sum) {
  for (Operation *op = block->getParentOp(); op; op = op->getParentOp())
    if (stablehlo::isBranch(op) && !op->isProperAncestor(sum))
      return false;
  return true;
}

/// Combines the amaxes of ranks that have parts of the same rows or tokens.
/// (Histories are reduced over all ranks anyway.)
Value Factors::completeOverRanks(const Unit &unit, Value amax,
                                 OperandRows rows) {
  if (smooth.scaling != Scaling::Current)
    return amax;
  if (perChannel())
    return rows == OperandRows::None
               ? amax
               : reduceAmaxOverRanks(builder, amax, "of channels");
  ExchangeOp sum = unit.sum;
  if (!sum || !isWhereRanksMeet(builder.getBlock(), sum))
    return amax;
  return reduceMaxOverGroups(builder, amax, sum.getRanks(),
                             builder.getStringAttr("amax of tokens"),
                             "ranks have some channels of each token");
}

/// Computes the factor of a product itself: from its channels, or from the
/// tokens of its linear branch.
ComputeScaleOp Factors::measure(const Unit &unit, const View &product,
                                Value linear, OperandRows rows) {
  Value measured = perChannel() ? product.root : linear;
  Location loc = measured.getLoc();
  builder.setInsertionPointAfterValue(measured);
  SmallVector<int64_t> tile(shapeOf(measured).size(), ScaledType::kWhole);
  SmallVector<int64_t> shape;
  for (int64_t dim : product.dims) {
    tile[dim] = 1;
    shape.push_back(shapeOf(measured)[dim]);
  }
  OperandRecipe state = getStateRecipe();
  FloatType format = getFormatType(state.format, builder.getContext());
  Value amax = AmaxOp::create(
      builder, loc, measured,
      ScaledType::get(RankedTensorType::get(shapeOf(measured), format), tile,
                      builder.getF32Type()));
  amax = completeOverRanks(unit, amax, rows);
  if (shapeOf(amax) != ArrayRef(shape))
    amax = stablehlo::ReshapeOp::create(
        builder, loc, RankedTensorType::get(shape, builder.getF32Type()), amax);
  if (perChannel())
    amax = limitRange(builder, loc, amax);
  return ComputeScaleOp::create(builder, loc, amax, state.scale, format,
                                state.margin);
}

std::optional<Factor> Factors::readState(const Unit &unit, Block *block,
                                         ArrayRef<LayerSlot> slots,
                                         ArrayRef<int64_t> shape) {
  if (smooth.scaling != Scaling::Delayed)
    return std::nullopt;
  auto known = llvm::find_if(reads, [&](const StateRead &read) {
    return read.state == unit.state && read.block == block &&
           ArrayRef(read.slots) == slots && shapeOf(read.factor.scale) == shape;
  });
  if (known != reads.end())
    return known->factor;
  builder.setInsertionPointToStart(block);
  std::optional<Factor> factor =
      delayed.read(builder, unit.down->dot->getLoc(), unit.state, slots, shape);
  if (factor)
    reads.push_back({unit.state, block, llvm::to_vector(slots), *factor});
  return factor;
}

/// Returns the linear branch in the layout of the product; null if no layout
/// ops lead there.
Value Factors::arrangeAs(Value product, Value linear) {
  std::optional<SmallVector<Operation *>> layouts =
      getLayoutsFrom(shapeOf(linear), product);
  if (!layouts)
    return nullptr;
  builder.setInsertionPointAfterValue(linear);
  for (Operation *layout : llvm::reverse(*layouts)) {
    IRMapping mapping;
    mapping.map(layout->getOperand(0), linear);
    Operation *copy = builder.clone(*layout, mapping);
    copy->getResult(0).setType(
        cast<RankedTensorType>(copy->getResult(0).getType())
            .clone(getElementTypeOrSelf(linear.getType())));
    linear = copy->getResult(0);
  }
  return linear;
}

std::optional<Factor> Factors::find(Unit &unit, Operation *dot,
                                    ArrayRef<LayerSlot> slots,
                                    ArrayRef<int64_t> shape) {
  if (std::optional<Factor> factor =
          readState(unit, dot->getBlock(), slots, shape))
    return factor;
  for (const Factor &factor : llvm::reverse(unit.factors))
    if (shapeOf(factor.scale) == shape &&
        positions.dominates(factor.scale, dot) &&
        positions.dominates(factor.quantizer, dot))
      return factor;
  // The factors of a product that the backward pass recomputes may come after
  // the dot.
  for (Factor &factor : unit.factors)
    if (shapeOf(factor.scale) == shape &&
        factor.scale.getParentBlock() == dot->getBlock() &&
        succeeded(positions.moveBefore(builder,
                                       {factor.scale, factor.quantizer}, dot)))
      return factor;
  return std::nullopt;
}

std::optional<Factor> Factors::get(Unit &unit, stablehlo::DotGeneralOp dot,
                                   const View &product, Value linear,
                                   ArrayRef<LayerSlot> slots, bool original) {
  Dims shape = sizesOf(product.root, product.dims);
  if (!original)
    if (std::optional<Factor> factor = find(unit, dot, slots, shape))
      return factor;
  if (!perChannel()) {
    linear = linear ? arrangeAs(product.root, linear) : Value();
    if (!linear)
      return std::nullopt;
  }
  OperandRows rows = std::max(getOperandRows(dot, 0), getOperandRows(dot, 1));
  ComputeScaleOp scale = measure(unit, product, linear, rows);
  Factor factor{scale.getScale(), scale.getQuantizer()};
  if (original && smooth.scaling == Scaling::Delayed) {
    OperandRecipe state = getStateRecipe();
    if (state.initial == InitialScale::One) {
      delayed.record(unit.state, slots, state, scale);
      factor = *readState(unit, dot->getBlock(), slots, shape);
    } else {
      factor = delayed.get(builder, unit.state, slots, state, scale);
    }
  }
  unit.factors.push_back(factor);
  return factor;
}

} // namespace mlir::fp8::smooth
