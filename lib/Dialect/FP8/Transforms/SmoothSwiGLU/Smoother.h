//===- Smoother.h - Smoothing the gated units of a function -----*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_SMOOTHER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_SMOOTHER_H

#include "../LayerSlots.h"
#include "../Verdicts/Decider.h"
#include "Factors.h"
#include "Rescaler.h"

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"

#include "llvm/ADT/BitVector.h"

namespace mlir::fp8::smooth {

/// Smooths the gated units of a function, dot by dot.
class Smoother {
public:
  Smoother(func::FuncOp function, const Recipe &recipe, bool allDots)
      : function(function), smooth(recipe.smooth), allDots(allDots),
        decider(recipe, function), builder(function.getContext()),
        positions(function), rescaler(builder, positions),
        factors(function, recipe, builder, positions) {}

  /// Smooths the units that it can. Calls `report` once for each gated unit.
  LogicalResult
  run(function_ref<void(const DotInfo &, const GatedUnitVerdict &)> report);

private:
  bool perChannel() const { return smooth.granularity == Granularity::Channel; }
  const DotInfo &getDot(unsigned index) const {
    return decider.getLayers().getDots()[index];
  }
  SmallVector<LayerSlot> getSlots(const DotInfo &info) const;

  // Smoother.cpp
  LogicalResult decide();
  std::string getObstacle(const GatedUnit &unit);
  GatedUnitVerdict describe(const GatedUnit &unit, StringRef why);
  void smoothUnit(Unit &unit);

  // SmoothDots.cpp
  void smoothForward(Unit &unit, const DotInfo &info, Value linear);
  void smoothWgrad(Unit &unit, const DotInfo &info, Value linear);
  bool smoothDgrad(Unit &unit, const DotInfo &info);
  Value rescaleWeight(Unit &unit, const DotOperand &side, const Factor &factor,
                      ArrayRef<LayerSlot> slots, ArrayRef<int64_t> dims);

  // StoredProducts.cpp
  std::optional<Factor> storeSmoothed(Unit &unit, const View &product,
                                      ArrayRef<LayerSlot> slots);

  func::FuncOp function;
  const SmoothRecipe &smooth;
  bool allDots;
  Decider decider;
  IRRewriter builder;
  OpPositions positions;
  Rescaler rescaler;
  Factors factors;
  LayerLoops layerLoops;
  /// The dots, by index, that the recipe wants to be smoothed, and those that
  /// have been smoothed.
  llvm::BitVector wanted, done;
};

} // namespace mlir::fp8::smooth

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_SMOOTHER_H
