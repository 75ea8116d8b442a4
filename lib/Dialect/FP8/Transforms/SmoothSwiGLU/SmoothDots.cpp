//===- SmoothDots.cpp - The three kinds of dots of a gated unit -----------===//

#include "Smoother.h"

#include "fp8/Support/Shapes.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir::fp8::smooth {

/// Whether the layers that a view cuts off its root are `slots`, in order.
static bool cutsSlots(const View &view, ArrayRef<LayerSlot> slots) {
  for (OpResult step : llvm::reverse(view.steps)) {
    auto slice = dyn_cast<stablehlo::DynamicSliceOp>(step.getOwner());
    if (!slice)
      continue;
    std::optional<LayerSlot> slot = matchSlot(slice.getStartIndices().front(),
                                              slice.getOperand().getType());
    if (slots.empty() || !slot || !(*slot == slots.front()))
      return false;
    slots = slots.drop_front();
  }
  return slots.empty();
}

/// Returns the rescaled weights. All layers are rescaled outside of all loops
/// if the factors come from the state; otherwise weights are rescaled where
/// they are read.
Value Smoother::rescaleWeight(Unit &unit, const DotOperand &side,
                              const Factor &factor, ArrayRef<LayerSlot> slots,
                              ArrayRef<int64_t> dims) {
  View view = getView(side.value, dims, Through::Layers);
  Block *entry = &function.getBody().front();
  auto parameter = dyn_cast<BlockArgument>(view.root);
  if (parameter && parameter.getOwner() == entry && cutsSlots(view, slots))
    if (Dims dimsOfAll = unite(view.layers, view.dims);
        std::optional<Factor> ofAll =
            factors.readState(unit, entry, {}, sizesOf(parameter, dimsOfAll)))
      return rescaler.rescaleView(view, ofAll->scale, dimsOfAll);
  return rescaler.rescaleOperand(side, factor.scale, dims);
}

void Smoother::smoothForward(Unit &unit, const DotInfo &info, Value linear) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool lhs = info.lhs == OperandKind::Activation;
  DotOperand product = getDotOperand(dot, lhs),
             weight = getDotOperand(dot, !lhs);
  Dims dims = perChannel() ? unite(product.batching, product.contracting)
                           : unite(product.batching, product.free);
  dims = sortBy(dims, getView(product.value, dims, Through::Layouts).dims);
  View view = getView(product.value, dims, Through::Layouts);
  SmallVector<LayerSlot> slots = getSlots(info);
  std::optional<Factor> factor =
      factors.get(unit, dot, view, linear, slots, !info.recomputed);
  if (!factor)
    return;
  Value smoothed = rescaler.rescaleView(view, factor->quantizer, view.dims);
  unit.products.push_back({view.root, *factor});
  if (perChannel()) {
    Dims weightDims = llvm::map_to_vector(
        dims, [&](int64_t dim) { return getPartner(product, weight, dim); });
    if (unit.weightDims.empty())
      unit.weightDims = getView(weight.value, weightDims, Through::Layers).dims;
    dot->setOperand(lhs ? 1 : 0,
                    rescaleWeight(unit, weight, *factor, slots, weightDims));
  } else {
    rescaler.rescaleResult(dot, factor->scale, getResultDims(product, dims));
  }
  dot->setOperand(lhs ? 0 : 1, smoothed);
}

void Smoother::smoothWgrad(Unit &unit, const DotInfo &info, Value linear) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool lhs = info.lhs == OperandKind::Activation;
  DotOperand product = getDotOperand(dot, lhs),
             gradient = getDotOperand(dot, !lhs);
  Dims dims = perChannel() ? unite(product.batching, product.free)
                           : unite(product.batching, product.contracting);
  dims = sortBy(dims, getView(product.value, dims, Through::Layouts).dims);
  View view = getView(product.value, dims, Through::Layouts);
  SmallVector<LayerSlot> slots = getSlots(info);
  std::optional<Factor> factor = storeSmoothed(unit, view, slots);
  Value smoothed = product.value;
  if (!factor) {
    factor = factors.get(unit, dot, view, linear, slots, /*original=*/false);
    if (!factor)
      return;
    smoothed = rescaler.rescaleView(view, factor->quantizer, view.dims);
  }
  if (perChannel()) {
    rescaler.rescaleResult(dot, factor->scale, getResultDims(product, dims));
  } else {
    Dims gradientDims = llvm::map_to_vector(
        dims, [&](int64_t dim) { return getPartner(product, gradient, dim); });
    dot->setOperand(lhs ? 1 : 0, rescaler.rescaleOperand(
                                     gradient, factor->scale, gradientDims));
  }
  dot->setOperand(lhs ? 0 : 1, smoothed);
}

/// Returns the dimensions of a weight that are the channels, in the order of
/// the factor's dimensions; none if these are others.
static std::optional<Dims> orderChannels(const Unit &unit,
                                         const DotOperand &weight) {
  Dims dims = unite(weight.batching, weight.free);
  Dims places = getView(weight.value, dims, Through::Layers).dims;
  if (!std::is_permutation(places.begin(), places.end(),
                           unit.weightDims.begin(), unit.weightDims.end()))
    return std::nullopt;
  Dims order = llvm::map_to_vector(places, [&](int64_t place) -> int64_t {
    return llvm::find(unit.weightDims, place) - unit.weightDims.begin();
  });
  return sortBy(dims, order);
}

/// Returns the dimensions of a gradient that are the tokens, in the order of
/// the factor's dimensions.
static Dims orderTokens(const DotOperand &gradient) {
  Dims dims = unite(gradient.batching, gradient.free);
  return sortBy(dims, getView(gradient.value, dims, Through::Layouts).dims);
}

/// Returns false if the unit has no factors for this dot. (Another application
/// of the layer may have them.)
bool Smoother::smoothDgrad(Unit &unit, const DotInfo &info) {
  auto dot = cast<stablehlo::DotGeneralOp>(info.dot);
  bool lhs = info.lhs == OperandKind::Weight;
  DotOperand weight = getDotOperand(dot, lhs),
             gradient = getDotOperand(dot, !lhs);
  const DotOperand &side = perChannel() ? weight : gradient;
  std::optional<Dims> dims =
      perChannel() ? orderChannels(unit, weight) : orderTokens(gradient);
  if (!dims)
    return false;
  SmallVector<LayerSlot> slots = getSlots(info);
  std::optional<Factor> factor =
      factors.find(unit, dot, slots, sizesOf(side.value, *dims));
  if (!factor)
    return false;
  if (perChannel())
    dot->setOperand(lhs ? 0 : 1,
                    rescaleWeight(unit, weight, *factor, slots, *dims));
  else
    dot->setOperand(lhs ? 1 : 0,
                    rescaler.rescaleOperand(gradient, factor->scale, *dims));
  rescaler.rescaleResult(dot, factor->quantizer, getResultDims(side, *dims));
  return true;
}

} // namespace mlir::fp8::smooth
