//===- Factors.h - The factors of gated units -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_FACTORS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_FACTORS_H

#include "../OperandRows.h"
#include "../Quantize/DelayedScaling.h"
#include "OpPositions.h"
#include "Views.h"

#include "fp8/Analysis/LinearLayers/GatedUnits.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Recipe.h"

namespace mlir::fp8::smooth {

/// s and 1/s.
using Factor = DelayedScaling::Scale;

/// Returns the name of the state of a unit's factors.
std::string getStateName(const DotInfo &down);

/// A smoothed gated unit.
struct Unit {
  const GatedUnit *unit;
  const DotInfo *down;
  std::string state;
  /// The exchange that sums the results of ranks that have some of the channels
  /// each, or null.
  ExchangeOp sum;
  /// The dimensions of the weight's parameter that the factor has, too.
  Dims weightDims;
  /// The factors made so far, in order.
  SmallVector<Factor> factors;
  /// The products that forward dots read, with the factors they were rescaled
  /// by.
  SmallVector<std::pair<Value, Factor>> products;
};

/// Makes and finds the factors of units.
class Factors {
public:
  Factors(func::FuncOp function, const Recipe &recipe, RewriterBase &builder,
          OpPositions &positions)
      : recipe(recipe), smooth(recipe.smooth), builder(builder),
        positions(positions), delayed(function) {}

  /// Returns the factor that `dot` uses for the product it reads. Any factor of
  /// the unit is correct; the forward pass's, if it is visible, saves measuring
  /// the product again.
  std::optional<Factor> get(Unit &unit, stablehlo::DotGeneralOp dot,
                            const View &product, Value linear,
                            ArrayRef<LayerSlot> slots, bool original);
  /// Returns a factor of the unit that is available at the dot: from the state,
  /// or one made so far. (A unit that is applied to two lengths has factors of
  /// two shapes for its tokens.)
  std::optional<Factor> find(Unit &unit, Operation *dot,
                             ArrayRef<LayerSlot> slots,
                             ArrayRef<int64_t> shape);
  /// Reads the factor of some layers from the state, at the start of a block.
  std::optional<Factor> readState(const Unit &unit, Block *block,
                                  ArrayRef<LayerSlot> slots,
                                  ArrayRef<int64_t> shape);
  /// Adds the new states to the results of the function.
  void addResults() { delayed.addResults(); }

private:
  bool perChannel() const { return smooth.granularity == Granularity::Channel; }
  OperandRecipe getStateRecipe() const;
  Value completeOverRanks(const Unit &unit, Value amax, OperandRows rows);
  ComputeScaleOp measure(const Unit &unit, const View &product, Value linear,
                         OperandRows rows);
  Value arrangeAs(Value product, Value linear);

  const Recipe &recipe;
  const SmoothRecipe &smooth;
  RewriterBase &builder;
  OpPositions &positions;
  DelayedScaling delayed;
  /// The factors read from states.
  struct StateRead {
    std::string state;
    Block *block;
    SmallVector<LayerSlot> slots;
    Factor factor;
  };
  std::vector<StateRead> reads;
};

} // namespace mlir::fp8::smooth

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_FACTORS_H
