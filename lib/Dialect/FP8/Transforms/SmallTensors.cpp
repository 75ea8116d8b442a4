//===- SmallTensors.cpp - Constants and reshapes --------------------------===//

#include "SmallTensors.h"

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::makeSplat(OpBuilder &b, Location loc, RankedTensorType type,
                     double value) {
  return stablehlo::makeSplat(b, loc, type,
                              b.getFloatAttr(type.getElementType(), value));
}

Value fp8::makeZeros(OpBuilder &b, Location loc, Type type) {
  Type element = cast<RankedTensorType>(type).getElementType();
  return stablehlo::makeSplat(b, loc, type, b.getZeroAttr(element));
}

Value fp8::resizeSplat(OpBuilder &b, Location loc, Value value,
                       RankedTensorType type) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return nullptr;
  return stablehlo::ConstantOp::create(b, loc, elements.resizeSplat(type));
}

Value fp8::makeReshape(OpBuilder &b, Location loc, Value value,
                       ArrayRef<int64_t> shape) {
  if (tensorOf(value).getShape() == shape)
    return value;
  return stablehlo::ReshapeOp::create(b, loc, tensorOf(value).clone(shape),
                                      value);
}
