//===- ComputeType.cpp - The compute type of unquantized dots -------------===//

#include "ComputeType.h"
#include "../Attention/AttentionBlocks.h"
#include "../EffectiveRecipe.h"
#include "Quantizer.h"

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/IR/IRMapping.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8COMPUTETYPES
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

/// Whether a dot sums several products. One that does not is elementwise, like
/// the product of positions and frequencies.
static bool sumsProducts(stablehlo::DotGeneralOp dot) {
  return llvm::any_of(
      dot.getDotDimensionNumbers().getLhsContractingDimensions(),
      [&](int64_t dim) { return dot.getLhs().getType().getDimSize(dim) > 1; });
}

bool fp8::canReadBF16(stablehlo::DotGeneralOp dot) {
  return getElementTypeOrSelf(dot.getLhs().getType()).isF32() &&
         getElementTypeOrSelf(dot.getRhs().getType()).isF32() &&
         getElementTypeOrSelf(dot.getType()).isF32() && sumsProducts(dot);
}

Value Rounder::get(Value value) {
  Value &result = rounded[value];
  if (result)
    return result;
  // A value that comes from bf16 is not rounded again.
  auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
  if (convert &&
      getElementTypeOrSelf(convert->getOperand(0).getType()).isBF16())
    return result = convert->getOperand(0);
  // Windows have each element several times.
  if (auto windows = value.getDefiningOp<WindowsOp>()) {
    Value input = get(windows.getInput());
    builder.setInsertionPoint(windows);
    IRMapping mapping;
    mapping.map(windows.getInput(), input);
    Operation *copy = builder.clone(*windows, mapping);
    copy->getResult(0).setType(windows.getType().clone(builder.getBF16Type()));
    return rounded[value] = copy->getResult(0);
  }
  setInsertionPointToQuantize(builder, value);
  auto type = cast<RankedTensorType>(value.getType());
  return result = stablehlo::ConvertOp::create(
             builder, value.getLoc(), type.clone(builder.getBF16Type()), value);
}

/// Makes the dots of a function read operands rounded to bf16; sums and results
/// stay f32. A value that several dots read is rounded once.
static void readBF16InDots(func::FuncOp function,
                           const ComputeRecipe &compute) {
  Rounder rounder(function.getContext());
  function.walk([&](stablehlo::DotGeneralOp dot) {
    VerdictAttr verdict = getVerdict(dot);
    bool wantsBF16 = verdict ? verdict.getLhsFormat().isBF16()
                             : compute.unquantizedDots == ComputeFormat::BF16;
    if (!canReadBF16(dot) || !wantsBF16)
      return;
    Value lhs = rounder.get(dot.getLhs()), rhs = rounder.get(dot.getRhs());
    dot->setOperands({lhs, rhs});
  });
}

namespace {
struct ComputeTypes : fp8::impl::FP8ComputeTypesBase<ComputeTypes> {
  void runOnOperation() override {
    FailureOr<Recipe> recipe = getEffectiveRecipe(getOperation());
    if (failed(recipe) || failed(verifyDotsQuantized(getOperation())))
      return signalPassFailure();
    // All functions change alike, so that the first copy of a weight is
    // computed as in the step.
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (recipe->compute.attention == AttentionFormat::F8)
        quantizeAttention(function);
      readBF16InDots(function, recipe->compute);
    }
  }
};
} // namespace
