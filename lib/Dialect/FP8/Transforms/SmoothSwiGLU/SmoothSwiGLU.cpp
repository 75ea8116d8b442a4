//===- SmoothSwiGLU.cpp - Scaling the product of a gated unit -------------===//
//
// The product h of a gated unit has outliers that one scale for the whole
// tensor cannot represent. h is divided by a factor s for each channel or each
// token before it is quantized, and s is multiplied in again where that costs
// nothing:
//
//            channel                     token
//   forward  y  = (h/s) · (s w)          y  = s ((h/s) · w)
//   dgrad    dh = (dy · (s w)^T) / s     dh = ((s dy) · w^T) / s
//   wgrad    dw = s ((h/s)^T · dy)       dw = (h/s)^T · (s dy)
//
// If each rank has some of the channels (shard_map), a channel's factor is
// local to its rank. A token has one factor on all ranks that share it: those
// over which the results y are summed.
//
// Each line is an identity for every s, whatever the other dots do; equal
// factors only let the dots share quantized operands. With powers of two all of
// it is exact in f32 and bf16. Units of f16, where s w may be subnormal, are
// not smoothed.
//
//===----------------------------------------------------------------------===//

#include "../EffectiveRecipe.h"
#include "Smoother.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8SMOOTHSWIGLU
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct SmoothSwiGLU : public fp8::impl::FP8SmoothSwiGLUBase<SmoothSwiGLU> {
  using FP8SmoothSwiGLUBase::FP8SmoothSwiGLUBase;

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    if (recipe->smooth.granularity == Granularity::None)
      return markAllAnalysesPreserved();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal() && failed(apply(function, *recipe)))
        return signalPassFailure();
  }

  LogicalResult apply(func::FuncOp function, const Recipe &recipe) {
    SmallVector<Attribute> units;
    auto report = [&](const DotInfo &down, const GatedUnitVerdict &unit) {
      units.push_back(unit.getAttribute(&getContext()));
      bool smoothed = unit.reason.empty();
      smoothed ? ++numSmoothed : ++numLeft;
      if (!emitRemarks)
        return;
      InFlightDiagnostic diag = down.dot->emitRemark();
      if (smoothed)
        diag << "gated unit of " << unit.activation << ": smoothed per "
             << unit.granularity << ", " << unit.scale << ", " << unit.scaling;
      else
        diag << "gated unit left alone: " << unit.reason;
    };
    if (failed(smooth::Smoother(function, recipe, allDots).run(report)))
      return failure();
    if (units.empty() && emitRemarks)
      function.emitRemark()
          << "no gated unit: no linear layer reads the product "
             "of two others' results";
    function->setAttr(FP8Dialect::kGatedUnitsAttrName,
                      ArrayAttr::get(&getContext(), units));
    return success();
  }
};
} // namespace
