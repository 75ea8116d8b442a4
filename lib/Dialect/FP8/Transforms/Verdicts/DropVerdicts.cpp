//===- DropVerdicts.cpp - Remove the verdicts -----------------------------===//

#include "../EffectiveRecipe.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/Transforms/Passes.h"
#include "fp8/Support/FunctionAttributes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8DROPVERDICTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Adds the role of the dot and the parameter of its layer as the outermost
/// name of its location, which names the launches of its kernel.
void nameLocation(Operation *dot, VerdictAttr verdict) {
  if (!verdict.getLayer())
    return;
  std::string name = (stringifyDotRole(verdict.getRole()) + " " +
                      verdict.getLayer().getValue())
                         .str();
  dot->setLoc(
      NameLoc::get(StringAttr::get(dot->getContext(), name), dot->getLoc()));
}

struct DropVerdicts : fp8::impl::FP8DropVerdictsBase<DropVerdicts> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (VerdictAttr verdict = getVerdict(op))
        nameLocation(op, verdict);
      op->removeAttr(FP8Dialect::kVerdictAttrName);
      op->removeAttr(FP8Dialect::kSoftmaxVerdictAttrName);
      op->removeAttr(FP8Dialect::kGatedUnitsAttrName);
      op->removeAttr(FP8Dialect::kRowsAttrName);
      op->removeAttr(FP8Dialect::kWireReasonAttrName);
      if (auto function = dyn_cast<func::FuncOp>(op))
        updateArgAttrs(function, [](unsigned, NamedAttrList &attributes) {
          attributes.erase(FP8Dialect::kStateVerdictAttrName);
        });
    });
  }
};
} // namespace
