//===- ComputeType.cpp - What unquantized dots compute in -----------------===//

#include "ComputeType.h"
#include "Quantizer.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::canReadBF16(stablehlo::DotGeneralOp dot) {
  return getElementTypeOrSelf(dot.getLhs().getType()).isF32() &&
         getElementTypeOrSelf(dot.getRhs().getType()).isF32() &&
         getElementTypeOrSelf(dot.getType()).isF32() &&
         !dot.getDotDimensionNumbers().getLhsContractingDimensions().empty();
}

Value Rounder::get(Value value) {
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
             builder, value.getLoc(), type.clone(builder.getBF16Type()), value);
}

void fp8::readBF16InDots(func::FuncOp function) {
  Rounder rounder(function.getContext());
  function.walk([&](stablehlo::DotGeneralOp dot) {
    if (!canReadBF16(dot))
      return;
    Value lhs = rounder.get(dot.getLhs()), rhs = rounder.get(dot.getRhs());
    dot->setOperands({lhs, rhs});
  });
}
