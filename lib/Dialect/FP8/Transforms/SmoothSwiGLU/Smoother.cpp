//===- Smoother.cpp - Smoothing the gated units of a function -------------===//

#include "Smoother.h"

#include "../Quantize/RankGroups.h"

#include "fp8/Support/Locations.h"
#include "fp8/Support/Shapes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::fp8::smooth {

/// Returns what a dot shows about the layer it belongs to.
static LayerLoops::Evidence getEvidence(const DotInfo &info) {
  Value weight = info.lhs == OperandKind::Weight   ? info.dot->getOperand(0)
                 : info.rhs == OperandKind::Weight ? info.dot->getOperand(1)
                                                   : Value();
  return LayerLoops::getEvidence(weight, info.dot->getResult(0));
}

/// Returns the layers of the factor that a dot needs.
SmallVector<LayerSlot> Smoother::getSlots(const DotInfo &info) const {
  return layerLoops.getSlots(info.dot->getBlock(), getEvidence(info));
}

/// Finds out which dots the recipe wants in FP8.
LogicalResult Smoother::decide() {
  ArrayRef<DotInfo> dots = decider.getLayers().getDots();
  wanted.resize(dots.size(), allDots);
  done.resize(dots.size());
  for (auto [i, info] : llvm::enumerate(dots)) {
    if (info.isLinearLayer())
      layerLoops.add(getEvidence(info));
    if (!info.isLinearLayer() || allDots)
      continue;
    FailureOr<DotDecision> decision = decider.decide(info);
    if (failed(decision))
      return failure();
    wanted[i] = decision->kind == Verdict::FP8;
  }
  return success();
}

/// Returns why a unit is not smoothed; empty if it can be.
std::string Smoother::getObstacle(const GatedUnit &unit) {
  if (!unit.isProven())
    return unit.why;
  if (!wanted.test(unit.down))
    return "its product is not quantized: the dot stays in high precision";
  const DotInfo &down = getDot(unit.down);
  auto isF16 = [](Type type) { return getElementTypeOrSelf(type).isF16(); };
  if (llvm::any_of(down.dot->getOperandTypes(), isF16) ||
      llvm::any_of(down.dot->getResultTypes(), isF16))
    return "it computes in f16, where smoothed weights may underflow";
  if (perChannel())
    return "";
  DotOperand product = getDotOperand(cast<stablehlo::DotGeneralOp>(down.dot),
                                     down.lhs == OperandKind::Activation);
  View view = getView(product.value, unite(product.batching, product.free),
                      Through::Layouts);
  for (auto [reader, linear] : unit.readers)
    if (reader == unit.down && linear &&
        getLayoutsFrom(shapeOf(linear), view.root))
      return "";
  return "the linear branch has another shape than the product";
}

void Smoother::smoothUnit(Unit &unit) {
  auto visit = [&](unsigned index, DotRole role, bool recomputed,
                   Value linear) {
    const DotInfo &info = getDot(index);
    if (info.role != role || info.recomputed != recomputed ||
        !wanted.test(index) || done.test(index))
      return;
    if (role == DotRole::Dgrad && !smoothDgrad(unit, info))
      return;
    done.set(index);
    if (role == DotRole::Forward)
      smoothForward(unit, info, linear);
    else if (role == DotRole::Wgrad)
      smoothWgrad(unit, info, linear);
  };
  // The order matters: a dot reads factors that were made for dots before it. A
  // dgrad takes those of the product that the wgrad reads.
  for (auto [index, linear] : unit.unit->readers)
    visit(index, DotRole::Forward, /*recomputed=*/false, linear);
  for (auto [index, linear] : unit.unit->readers)
    visit(index, DotRole::Forward, /*recomputed=*/true, linear);
  for (auto [index, linear] : unit.unit->readers)
    visit(index, DotRole::Wgrad, /*recomputed=*/false, linear);
  unsigned layer = unit.down->layers.front();
  for (auto [index, info] : llvm::enumerate(decider.getLayers().getDots()))
    if (llvm::is_contained(info.layers, layer))
      visit(index, DotRole::Dgrad, /*recomputed=*/false, {});
}

GatedUnitVerdict Smoother::describe(const GatedUnit &unit, StringRef why) {
  const DotInfo &down = getDot(unit.down);
  GatedUnitVerdict verdict;
  verdict.function = function.getName().str();
  verdict.layer = down.layer;
  verdict.location = describeLocation(down.dot->getLoc());
  verdict.reason = why.str();
  if (unit.isProven()) {
    verdict.activation = unit.activation;
    verdict.channels = unit.channels;
    verdict.gate = unit.gateWeight;
    verdict.linear = unit.linearWeight;
    verdict.linearBias = unit.linearBias;
    verdict.down = unit.downWeight;
  }
  if (!why.empty())
    return verdict;
  bool isDelayed = smooth.scaling == Scaling::Delayed;
  verdict.granularity = perChannel() ? "channel" : "token";
  verdict.scale = smooth.scale == ScaleRule::Pow2 ? "pow2" : "exact";
  verdict.scaling = isDelayed ? "delayed" : "current";
  if (isDelayed)
    verdict.state = getStateName(down) + ".quantizer";
  return verdict;
}

LogicalResult Smoother::run(
    function_ref<void(const DotInfo &, const GatedUnitVerdict &)> report) {
  if (failed(decide()))
    return failure();
  std::vector<GatedUnit> found = findGatedUnits(function, decider.getLayers());
  std::vector<Unit> units;
  for (const GatedUnit &unit : found) {
    std::string obstacle = getObstacle(unit);
    const DotInfo &down = getDot(unit.down);
    report(down, describe(unit, obstacle));
    if (obstacle.empty())
      units.push_back({&unit,
                       &down,
                       getStateName(down),
                       findSumOverRanks(down.dot->getResult(0)),
                       {},
                       {},
                       {}});
  }
  for (Unit &unit : units)
    smoothUnit(unit);
  factors.addResults();
  return success();
}

} // namespace mlir::fp8::smooth
