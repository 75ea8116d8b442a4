//===- Decide.cpp - Decide which dots become FP8 --------------------------===//

#include "../EffectiveRecipe.h"
#include "Decider.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8DECIDE
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

static void emitVerdictRemark(Operation *dot, VerdictAttr verdict) {
  InFlightDiagnostic diag = dot->emitRemark();
  diag << stringifyVerdict(verdict.getKind()) << ": "
       << stringifyDotRole(verdict.getRole());
  if (verdict.getLayer())
    diag << " of " << verdict.getLayer().getValue();
  diag << " (batch " << verdict.getBatch() << ", M " << verdict.getM() << ", N "
       << verdict.getN() << ", K " << verdict.getK() << "; "
       << printType(verdict.getLhsFormat()) << " x "
       << printType(verdict.getRhsFormat())
       << "): " << verdict.getReason().getValue();
  if (verdict.getNotes())
    for (auto note : verdict.getNotes().getAsRange<StringAttr>())
      diag << "; " << note.getValue();
}

/// Rejects a step that was not imported: without a signature no dot is a linear
/// layer, and nothing would be quantized.
static LogicalResult verifyIsImported(func::FuncOp function) {
  auto hasRole = [&](BlockArgument argument) {
    return function.getArgAttr(argument.getArgNumber(),
                               FP8Dialect::kRoleAttrName) != nullptr;
  };
  if (!function.isPublic() || function.getArguments().empty() ||
      llvm::any_of(function.getArguments(), hasRole))
    return success();
  return emitError(function.getLoc())
         << "expected arguments of '" << function.getName()
         << "' with the attribute '" << FP8Dialect::kRoleAttrName
         << "' but got none; run fp8-import first";
}

namespace {
struct Decide : fp8::impl::FP8DecideBase<Decide> {
  using FP8DecideBase::FP8DecideBase;

  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe))
      return signalPassFailure();
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (failed(decide(function, *recipe)))
        signalPassFailure();
  }

  LogicalResult decide(func::FuncOp function, const Recipe &recipe) {
    if (failed(verifyIsImported(function)))
      return failure();
    Decider decider(recipe, function);
    int64_t number = 0;
    for (const DotInfo &info : decider.getLayers().getDots()) {
      FailureOr<DotDecision> decision = decider.decide(info);
      if (failed(decision))
        return failure();
      decision->number = number++;
      VerdictAttr verdict = decision->getAttribute(&getContext());
      // Emit the remark before the dot has the verdict, because it prints the
      // dot.
      if (emitRemarks)
        emitVerdictRemark(info.dot, verdict);
      info.dot->setAttr(FP8Dialect::kVerdictAttrName, verdict);
      ++numDots;
      numFP8Dots += verdict.isFP8();
    }
    return success();
  }
};
} // namespace
