//===- Constants.cpp - Constants that repeat one element ------------------===//

#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

Value stablehlo::skipBroadcasts(Value value) {
  while (auto broadcast = value.getDefiningOp<BroadcastInDimOp>())
    value = broadcast.getOperand();
  return value;
}

Value stablehlo::skipSpread(Value value) {
  while (isa_and_nonnull<BroadcastInDimOp, ConvertOp, ReshapeOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

Attribute stablehlo::getSplat(Value value) {
  DenseElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || !elements.isSplat())
    return {};
  return elements.getSplatValue<Attribute>();
}

std::optional<double> stablehlo::getSplatNumber(Value value) {
  Attribute splat = getSplat(value);
  if (auto number = dyn_cast_or_null<FloatAttr>(splat))
    return number.getValueAsDouble();
  auto number = dyn_cast_or_null<IntegerAttr>(splat);
  if (!number)
    return std::nullopt;
  Type type = number.getType();
  return number.getValue().roundToDouble(
      /*isSigned=*/!type.isInteger(1) && !type.isUnsignedInteger());
}

bool stablehlo::isZeros(Value value) {
  return matchPattern(value, m_AnyZeroFloat()) || matchPattern(value, m_Zero());
}

Value stablehlo::makeSplat(OpBuilder &builder, Location loc, Type type,
                           Attribute element) {
  return ConstantOp::create(
      builder, loc, DenseElementsAttr::get(cast<ShapedType>(type), element));
}

Value stablehlo::integerConstant(OpBuilder &builder, Location loc, Type type,
                                 int64_t value) {
  Type element = getElementTypeOrSelf(type);
  APInt number(element.getIntOrFloatBitWidth(), value, /*isSigned=*/true,
               /*implicitTrunc=*/true);
  return makeSplat(builder, loc, type, IntegerAttr::get(element, number));
}
