//===- Elementwise.cpp - Elementwise ops ----------------------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

static Type withElementType(RankedTensorType type, Type element) {
  return RankedTensorType::get(type.getShape(), element);
}

LogicalResult stablehlo::OpTrait::verifySameTypes(Operation *op) {
  if (op->getNumResults() != 1)
    return success();
  Type result = op->getResult(0).getType();
  for (Value operand : op->getOperands())
    if (operand.getType() != result)
      return op->emitOpError("expected operands and result of one type but "
                             "got ")
             << operand.getType() << " and " << result;
  return success();
}

LogicalResult stablehlo::OpTrait::verifySameShape(Operation *op) {
  auto getShape = [](Type type) -> ArrayRef<int64_t> {
    auto shaped = dyn_cast<RankedTensorType>(type);
    return shaped ? shaped.getShape() : ArrayRef<int64_t>();
  };
  Type result = op->getResult(0).getType();
  for (Value operand : op->getOperands())
    if (getShape(operand.getType()) != getShape(result))
      return op->emitOpError("expected operands and result of one shape but "
                             "got ")
             << operand.getType() << " and " << result;
  return success();
}

LogicalResult BitcastConvertOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  int64_t fromBits = from.getElementTypeBitWidth(),
          toBits = to.getElementTypeBitWidth();
  // bitcast_convert_c1: equal widths keep the shape, others add or remove a
  // minor dimension of the ratio.
  if (std::max(fromBits, toBits) % std::min(fromBits, toBits) != 0)
    return emitOpError("expected element widths of which one divides the other "
                       "but got ")
           << fromBits << " and " << toBits;
  SmallVector<int64_t> narrow(fromBits >= toBits ? from.getShape()
                                                 : to.getShape());
  if (fromBits != toBits)
    narrow.push_back(std::max(fromBits, toBits) / std::min(fromBits, toBits));
  if (fromBits >= toBits)
    return expectType(*this, RankedTensorType::get(narrow, to.getElementType()),
                      to, "a result");
  return expectType(*this, RankedTensorType::get(narrow, from.getElementType()),
                    from, "an operand");
}

LogicalResult ClampOp::verify() {
  RankedTensorType type = getOperand().getType();
  Type scalar = getScalarType(type.getElementType());
  // clamp_c1, clamp_c2, clamp_c3
  for (Value bound : {getMin(), getMax()})
    if (bound.getType() != type && bound.getType() != scalar)
      return emitOpError("expected bounds of type ")
             << type << " or " << scalar << " but got " << bound.getType();
  // clamp_c4
  return expectType(*this, type, getType(), "a result");
}

void CompareOp::build(OpBuilder &builder, OperationState &state, Value lhs,
                      Value rhs, ComparisonDirection direction,
                      ComparisonType type) {
  build(builder, state, withElementType(tensorOf(lhs), builder.getI1Type()),
        lhs, rhs, ComparisonDirectionAttr::get(builder.getContext(), direction),
        type == ComparisonType::NOTYPE
            ? ComparisonTypeAttr()
            : ComparisonTypeAttr::get(builder.getContext(), type));
}

LogicalResult CompareOp::verify() {
  // compare_c1, compare_c2
  if (failed(expectType(*this, getLhs().getType(), getRhs().getType(), "rhs")))
    return failure();
  std::optional<ComparisonType> type = getCompareType();
  if (!type || *type == ComparisonType::NOTYPE)
    return success();
  // compare_c3: the kind of comparison follows from the element type.
  Type element = getLhs().getType().getElementType();
  bool matches = false;
  StringRef expected;
  if (isa<FloatType>(element)) {
    expected = "FLOAT or TOTALORDER";
    matches =
        *type == ComparisonType::FLOAT || *type == ComparisonType::TOTALORDER;
  } else if (element.isUnsignedInteger() || element.isInteger(1)) {
    expected = "UNSIGNED";
    matches = *type == ComparisonType::UNSIGNED;
  } else {
    expected = "SIGNED";
    matches = *type == ComparisonType::SIGNED;
  }
  if (!matches)
    return emitOpError("expected compare_type ")
           << expected << " for " << element << " but got "
           << stringifyComparisonType(*type);
  return success();
}

void ConvertOp::build(OpBuilder &builder, OperationState &state, Value operand,
                      Type elementType) {
  build(builder, state,
        TypeRange(withElementType(tensorOf(operand), elementType)),
        ValueRange(operand));
}

void IsFiniteOp::build(OpBuilder &builder, OperationState &state, Value x) {
  build(builder, state,
        TypeRange(withElementType(tensorOf(x), builder.getI1Type())),
        ValueRange(x));
}

LogicalResult ReducePrecisionOp::verify() {
  // reduce_precision_c2
  if (getExponentBits() < 1)
    return emitOpError("expected exponent_bits of 1 or more but got ")
           << getExponentBits();
  // reduce_precision_c3
  if (static_cast<int32_t>(getMantissaBits()) < 0)
    return emitOpError("expected mantissa_bits of 0 or more but got ")
           << static_cast<int32_t>(getMantissaBits());
  return success();
}

LogicalResult SelectOp::verify() {
  // select_c1
  RankedTensorType pred = getPred().getType(), type = getType();
  if (pred.getRank() != 0 && pred.getShape() != type.getShape())
    return emitOpError("expected a predicate of type ")
           << withElementType(type, pred.getElementType()) << " or "
           << getScalarType(pred.getElementType()) << " but got " << pred;
  // select_c2
  if (failed(expectType(*this, type, getOnTrue().getType(), "on_true")))
    return failure();
  return expectType(*this, type, getOnFalse().getType(), "on_false");
}
