//===- SeparateHeads.cpp - Dots of heads that share a key -----------------===//

#include "SeparateHeads.h"

#include "DotSides.h"

#include "../SmallTensors.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"
#include "fp8/Dialect/StableHLO/IR/Reductions.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

/// Returns, for each dimension of a dot's result, where it comes from: the
/// number of a dimension of the scores, which are operand `side` and have
/// `ownRank` dimensions, or `ownRank` plus that of a dimension of the other
/// one.
static SmallVector<int64_t> resultDims(const SideDims &own, int64_t ownRank,
                                       const SideDims &other, int64_t otherRank,
                                       unsigned side) {
  SmallVector<int64_t> dims = own.batch, free = own.getFree(ownRank), rest;
  for (int64_t dim : other.getFree(otherRank))
    rest.push_back(ownRank + dim);
  llvm::append_range(dims, side == 0 ? free : rest);
  llvm::append_range(dims, side == 0 ? rest : free);
  return dims;
}

/// Makes contracted heads batches. Returns their places among these.
static SmallVector<int64_t>
moveContractedHeads(SideDims &own, SideDims &other,
                    function_ref<bool(int64_t)> isHead) {
  SmallVector<int64_t> places;
  for (unsigned i = own.contract.size(); i-- > 0;) {
    if (!isHead(own.contract[i]))
      continue;
    places.push_back(own.batch.size());
    for (SideDims *each : {&own, &other}) {
      each->batch.push_back(each->contract[i]);
      each->contract.erase(each->contract.begin() + i);
    }
  }
  return places;
}

/// Makes heads batches that only the scores have. Returns the other operand,
/// broadcast to them.
static Value moveFreeHeads(OpBuilder &builder, Value scores, SideDims &own,
                           Value otherValue, SideDims &other,
                           function_ref<bool(int64_t)> isHead) {
  SmallVector<int64_t> shape(shapeOf(otherValue));
  auto places = llvm::to_vector(llvm::seq<int64_t>(0, shape.size()));
  for (int64_t place : own.getFree(shapeOf(scores).size()))
    if (isHead(place)) {
      own.batch.push_back(place);
      other.batch.push_back(shape.size());
      shape.push_back(shapeOf(scores)[place]);
    }
  if (shape.size() == places.size())
    return otherValue;
  return stablehlo::BroadcastInDimOp::create(
      builder, otherValue.getLoc(), tensorOf(otherValue).clone(shape),
      otherValue, builder.getDenseI64ArrayAttr(places));
}

bool fp8::separateHeads(const Scores &scores) {
  auto dot = dyn_cast_or_null<Dot>(scores.obstacle);
  if (!dot || !isAttentionDot(dot) ||
      scores.isScore(dot.getLhs()) == scores.isScore(dot.getRhs()))
    return false;
  unsigned side = scores.scoreOperand(dot);
  Value values[2] = {dot.getLhs(), dot.getRhs()};
  SideDims sides[2] = {sideDims(dot, 0), sideDims(dot, 1)};
  SideDims &own = sides[side], &other = sides[1 - side];
  int64_t ownRank = tensorOf(values[side]).getRank(),
          otherRank = tensorOf(values[1 - side]).getRank();
  size_t numBatch = own.batch.size();
  SmallVector<int64_t> before =
      resultDims(own, ownRank, other, otherRank, side);
  auto isHead = [&](int64_t place) {
    int dim = scores.readDims(dot)[place];
    return dim >= 0 && dim < static_cast<int>(scores.numBatch);
  };
  OpBuilder builder(dot);
  SmallVector<int64_t> places = moveContractedHeads(own, other, isHead);
  values[1 - side] = moveFreeHeads(builder, values[side], own, values[1 - side],
                                   other, isHead);
  if (own.batch.size() == numBatch)
    return false;
  SmallVector<int64_t> after = resultDims(
      own, ownRank, other, tensorOf(values[1 - side]).getRank(), side);
  for (int64_t place : places)
    after.erase(llvm::find(after, own.batch[place]));

  Location loc = dot.getLoc();
  auto parts =
      cast<Dot>(makeDot(builder, dot, values[0], values[1], sides[0], sides[1])
                    .getDefiningOp());
  parts->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
  // Sums over heads are as exact as those of the dot.
  Type element = tensorOf(dot).getElementType(),
       wide = element.getIntOrFloatBitWidth() < 32 && !places.empty()
                  ? builder.getF32Type()
                  : element;
  parts.getResult().setType(tensorOf(parts).clone(wide));
  Value result = parts;
  if (!places.empty())
    result = fp8::makeReduction<stablehlo::AddOp>(
        builder, loc, result,
        makeZeros(builder, loc, RankedTensorType::get({}, wide)), places);
  if (wide != element)
    result = stablehlo::ConvertOp::create(
        builder, loc, tensorOf(result).clone(element), result);
  auto order = llvm::map_to_vector(before, [&](int64_t dim) -> int64_t {
    return llvm::find(after, dim) - after.begin();
  });
  if (!llvm::is_sorted(order))
    result =
        stablehlo::TransposeOp::create(builder, loc, dot.getType(), result,
                                       builder.getDenseI64ArrayAttr(order));
  dot.replaceAllUsesWith(result);
  dot.erase();
  return true;
}
