//===- SmallTensors.cpp - Constants and reshapes --------------------------===//

#include "SmallTensors.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::makeSplat(OpBuilder &b, Location loc, RankedTensorType type,
                     double value) {
  return stablehlo::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(type,
                             b.getFloatAttr(type.getElementType(), value)));
}

Value fp8::makeZeros(OpBuilder &b, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return stablehlo::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(tensor, b.getZeroAttr(tensor.getElementType())));
}

Value fp8::makeReshape(OpBuilder &b, Location loc, Value value,
                       ArrayRef<int64_t> shape) {
  if (tensorOf(value).getShape() == shape)
    return value;
  return stablehlo::ReshapeOp::create(b, loc, tensorOf(value).clone(shape),
                                      value);
}
