//===- ComputeType.cpp - What unquantized dots compute in -----------------===//

#include "ComputeType.h"
#include "Quantizer.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::canReadBF16(stablehlo::DotGeneralOp dot) {
  return getElementTypeOrSelf(dot.getLhs().getType()).isF32() &&
         getElementTypeOrSelf(dot.getRhs().getType()).isF32() &&
         getElementTypeOrSelf(dot.getType()).isF32() &&
         !dot.getDotDimensionNumbers().getLhsContractingDimensions().empty();
}

namespace {
/// Rounds values to bf16, each once.
class Rounder {
public:
  explicit Rounder(MLIRContext *context) : builder(context) {}

  Value get(Value value) {
    Value &result = rounded[value];
    if (result)
      return result;
    // What comes from bf16 is not rounded again.
    auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
    if (convert &&
        getElementTypeOrSelf(convert->getOperand(0).getType()).isBF16())
      return result = convert->getOperand(0);
    setInsertionPointToQuantize(builder, value);
    auto type = cast<RankedTensorType>(value.getType());
    return result = stablehlo::ConvertOp::create(
               builder, value.getLoc(), type.clone(builder.getBF16Type()),
               value);
  }

private:
  OpBuilder builder;
  DenseMap<Value, Value> rounded;
};
} // namespace

void fp8::readBF16InDots(func::FuncOp function) {
  Rounder rounder(function.getContext());
  function.walk([&](stablehlo::DotGeneralOp dot) {
    if (!canReadBF16(dot))
      return;
    Value lhs = rounder.get(dot.getLhs()), rhs = rounder.get(dot.getRhs());
    dot->setOperands({lhs, rhs});
  });
}

/// Whether only quantized dots read the operand, perhaps arranged otherwise.
static bool
feedsQuantizedDots(OpOperand &use,
                   llvm::function_ref<bool(Operation *)> isQuantized) {
  Operation *user = use.getOwner();
  if (isQuantized(user))
    return true;
  if (!isa<stablehlo::ReshapeOp, stablehlo::TransposeOp,
           stablehlo::OptimizationBarrierOp>(user))
    return false;
  // Each result of a barrier is its own operand.
  Value result =
      user->getResult(user->getNumResults() == 1 ? 0 : use.getOperandNumber());
  return !result.use_empty() &&
         llvm::all_of(result.getUses(), [&](OpOperand &next) {
           return feedsQuantizedDots(next, isQuantized);
         });
}

void fp8::saveInBF16(ArrayRef<OpOperand *> uses,
                     llvm::function_ref<bool(Operation *)> isQuantized) {
  if (uses.empty())
    return;
  Rounder rounder(uses.front()->getOwner()->getContext());
  OpBuilder builder(uses.front()->getOwner());
  for (OpOperand *use : uses) {
    if (feedsQuantizedDots(*use, isQuantized))
      continue;
    Value value = use->get();
    Value narrow = rounder.get(value);
    builder.setInsertionPoint(use->getOwner());
    use->set(stablehlo::ConvertOp::create(builder, value.getLoc(),
                                          value.getType(), narrow));
  }
}
