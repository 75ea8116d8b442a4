//===- StableHLOFolders.cpp - Folding of the StableHLO subset -------------===//
//
// Folders of cheap cases: identities, splats, scalars and small constants.
// Large constants are left to the compiled program.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/CommonFolders.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/APSInt.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;

/// Constants with more elements are not folded at compile time.
static constexpr int64_t kMaxFoldedElements = 256;

static DenseElementsAttr asDense(Attribute attr) {
  return dyn_cast_if_present<DenseElementsAttr>(attr);
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

template <typename FloatFn, typename IntFn>
static Attribute foldBinary(ArrayRef<Attribute> operands, FloatFn &&floatFn,
                            IntFn &&intFn) {
  DenseElementsAttr lhs = asDense(operands[0]), rhs = asDense(operands[1]);
  if (!lhs || !rhs || lhs.getType() != rhs.getType() || lhs.empty())
    return {};
  bool isSplat = lhs.isSplat() && rhs.isSplat();
  if (!isSplat && lhs.getNumElements() > kMaxFoldedElements)
    return {};
  Type element = lhs.getElementType();
  // Small formats may lack zero or infinity; they are not worth special rules.
  if (isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 16)
    return {};
  if (isa<FloatType>(element))
    return constFoldBinaryOp<FloatAttr>(operands, lhs.getType(), floatFn);
  if (isa<IntegerType>(element)) {
    bool isUnsigned =
        element.isUnsignedInteger() || element.isSignlessInteger(1);
    return constFoldBinaryOp<IntegerAttr>(operands, lhs.getType(),
                                          [&](const APInt &a, const APInt &b) {
                                            return intFn(a, b, isUnsigned);
                                          });
  }
  return {};
}

static bool isSplatOf(Attribute attr, double floatValue, int64_t intValue) {
  DenseElementsAttr dense = asDense(attr);
  if (!dense || !dense.isSplat())
    return false;
  if (auto type = dyn_cast<FloatType>(dense.getElementType()))
    return type.getWidth() >= 16 &&
           dense.getSplatValue<APFloat>().isExactlyValue(floatValue);
  return isa<IntegerType>(dense.getElementType()) &&
         dense.getSplatValue<APInt>().sextOrTrunc(64).getSExtValue() ==
             intValue;
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  // x + -0 is x for every x, x + 0 is not for -0.
  if (isSplatOf(adaptor.getRhs(), -0.0, 0))
    return getLhs();
  bool isPred = getType().getElementType().isInteger(1);
  return foldBinary(
      adaptor.getOperands(),
      [](const APFloat &a, const APFloat &b) { return a + b; },
      [&](const APInt &a, const APInt &b, bool) {
        return isPred ? a | b : a + b;
      });
}

OpFoldResult SubtractOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 0.0, 0))
    return getLhs();
  return foldBinary(
      adaptor.getOperands(),
      [](const APFloat &a, const APFloat &b) { return a - b; },
      [](const APInt &a, const APInt &b, bool) { return a - b; });
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  bool isPred = getType().getElementType().isInteger(1);
  if (!isPred && isSplatOf(adaptor.getRhs(), 1.0, 1))
    return getLhs();
  if (!isPred && isSplatOf(adaptor.getLhs(), 1.0, 1))
    return getRhs();
  return foldBinary(
      adaptor.getOperands(),
      [](const APFloat &a, const APFloat &b) { return a * b; },
      [&](const APInt &a, const APInt &b, bool) {
        return isPred ? a & b : a * b;
      });
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1.0, 1))
    return getLhs();
  if (!isa<FloatType>(getType().getElementType())) {
    DenseElementsAttr rhs = asDense(adaptor.getRhs());
    if (!rhs || llvm::any_of(rhs.getValues<APInt>(), [](const APInt &value) {
          return value.isZero() || value.isAllOnes();
        }))
      return {};
  }
  return foldBinary(
      adaptor.getOperands(),
      [](const APFloat &a, const APFloat &b) { return a / b; },
      [](const APInt &a, const APInt &b, bool isUnsigned) {
        return isUnsigned ? a.udiv(b) : a.sdiv(b);
      });
}

OpFoldResult RemOp::fold(FoldAdaptor adaptor) {
  if (!isa<FloatType>(getType().getElementType())) {
    DenseElementsAttr rhs = asDense(adaptor.getRhs());
    if (!rhs || llvm::any_of(rhs.getValues<APInt>(), [](const APInt &value) {
          return value.isZero() || value.isAllOnes();
        }))
      return {};
  }
  return foldBinary(
      adaptor.getOperands(),
      [](APFloat a, const APFloat &b) {
        a.mod(b);
        return a;
      },
      [](const APInt &a, const APInt &b, bool isUnsigned) {
        return isUnsigned ? a.urem(b) : a.srem(b);
      });
}

OpFoldResult MaxOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return getLhs();
  return foldBinary(
      adaptor.getOperands(),
      [](const APFloat &a, const APFloat &b) { return llvm::maximum(a, b); },
      [](const APInt &a, const APInt &b, bool isUnsigned) {
        return isUnsigned ? llvm::APIntOps::umax(a, b)
                          : llvm::APIntOps::smax(a, b);
      });
}

OpFoldResult MinOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs())
    return getLhs();
  return foldBinary(
      adaptor.getOperands(),
      [](const APFloat &a, const APFloat &b) { return llvm::minimum(a, b); },
      [](const APInt &a, const APInt &b, bool isUnsigned) {
        return isUnsigned ? llvm::APIntOps::umin(a, b)
                          : llvm::APIntOps::smin(a, b);
      });
}

/// Never called, because bitwise ops have no floating-point form.
static APFloat noFloat(const APFloat &a, const APFloat &) { return a; }

OpFoldResult AndOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs() || isSplatOf(adaptor.getRhs(), 0, -1))
    return getLhs();
  if (isSplatOf(adaptor.getRhs(), 0, 0))
    return getRhs();
  if (isSplatOf(adaptor.getLhs(), 0, -1))
    return getRhs();
  return foldBinary(adaptor.getOperands(), noFloat,
                    [](const APInt &a, const APInt &b, bool) { return a & b; });
}

OpFoldResult OrOp::fold(FoldAdaptor adaptor) {
  if (getLhs() == getRhs() || isSplatOf(adaptor.getRhs(), 0, 0))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 0, 0))
    return getRhs();
  return foldBinary(adaptor.getOperands(), noFloat,
                    [](const APInt &a, const APInt &b, bool) { return a | b; });
}

OpFoldResult XorOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 0, 0))
    return getLhs();
  if (isSplatOf(adaptor.getLhs(), 0, 0))
    return getRhs();
  return foldBinary(adaptor.getOperands(), noFloat,
                    [](const APInt &a, const APInt &b, bool) { return a ^ b; });
}

OpFoldResult NegOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NegOp>())
    return inner.getOperand();
  return foldBinary(
      {adaptor.getOperand(), adaptor.getOperand()},
      [](const APFloat &a, const APFloat &) { return neg(a); },
      [](const APInt &a, const APInt &, bool) { return -a; });
}

OpFoldResult NotOp::fold(FoldAdaptor adaptor) {
  if (auto inner = getOperand().getDefiningOp<NotOp>())
    return inner.getOperand();
  return foldBinary({adaptor.getOperand(), adaptor.getOperand()}, noFloat,
                    [](const APInt &a, const APInt &, bool) { return ~a; });
}

OpFoldResult CompareOp::fold(FoldAdaptor adaptor) {
  DenseElementsAttr lhs = asDense(adaptor.getLhs()),
                    rhs = asDense(adaptor.getRhs());
  Type element = getLhs().getType().getElementType();
  // A total order distinguishes zeros and NaNs, so fold only integers.
  if (!lhs || !rhs || lhs.empty() || !isa<IntegerType>(element))
    return {};
  bool isUnsigned = element.isUnsignedInteger() || element.isInteger(1);
  auto compare = [&](const APInt &a, const APInt &b) {
    switch (getComparisonDirection()) {
    case ComparisonDirection::EQ:
      return a == b;
    case ComparisonDirection::NE:
      return a != b;
    case ComparisonDirection::GE:
      return isUnsigned ? a.uge(b) : a.sge(b);
    case ComparisonDirection::GT:
      return isUnsigned ? a.ugt(b) : a.sgt(b);
    case ComparisonDirection::LE:
      return isUnsigned ? a.ule(b) : a.sle(b);
    case ComparisonDirection::LT:
      return isUnsigned ? a.ult(b) : a.slt(b);
    }
    return false;
  };
  auto type = cast<ShapedType>(getType());
  if (lhs.isSplat() && rhs.isSplat())
    return DenseElementsAttr::get(
        type, compare(lhs.getSplatValue<APInt>(), rhs.getSplatValue<APInt>()));
  if (lhs.getNumElements() > kMaxFoldedElements)
    return {};
  SmallVector<bool> values;
  for (auto [a, b] : llvm::zip(lhs.getValues<APInt>(), rhs.getValues<APInt>()))
    values.push_back(compare(a, b));
  return DenseElementsAttr::get(type, values);
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return getOnTrue();
  DenseElementsAttr pred = asDense(adaptor.getPred());
  if (!pred || !pred.isSplat())
    return {};
  return pred.getSplatValue<bool>() ? getOnTrue() : getOnFalse();
}

OpFoldResult BitcastConvertOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() ? OpFoldResult(getOperand())
                                             : OpFoldResult();
}

/// Converts a number to another element type by the rules of `convert`; none if
/// the rule is not implemented here.
static std::optional<APInt> convertToInt(const APFloat &value,
                                         IntegerType type) {
  if (type.getWidth() == 1)
    return APInt(1, !value.isZero());
  llvm::APSInt result(type.getWidth(), type.isUnsigned());
  bool isExact;
  // Saturates, and gives 0 for NaN, as the op does.
  value.convertToInteger(result, APFloat::rmTowardZero, &isExact);
  return APInt(result);
}

OpFoldResult ConvertOp::fold(FoldAdaptor adaptor) {
  auto from = getOperand().getType(), to = getType();
  if (from == to)
    return getOperand();
  DenseElementsAttr operand = asDense(adaptor.getOperand());
  if (!operand || operand.empty() ||
      (!operand.isSplat() && operand.getNumElements() > kMaxFoldedElements))
    return {};
  Type source = from.getElementType(), target = to.getElementType();
  Builder builder(getContext());
  auto convert = [&](Attribute element) -> Attribute {
    if (auto number = dyn_cast<FloatAttr>(element)) {
      if (auto floatType = dyn_cast<FloatType>(target)) {
        APFloat value = number.getValue();
        bool losesInfo;
        value.convert(floatType.getFloatSemantics(),
                      APFloat::rmNearestTiesToEven, &losesInfo);
        return FloatAttr::get(target, value);
      }
      std::optional<APInt> value =
          convertToInt(number.getValue(), cast<IntegerType>(target));
      return value ? IntegerAttr::get(target, *value) : Attribute();
    }
    APInt value = cast<IntegerAttr>(element).getValue();
    bool isSigned = !source.isUnsignedInteger() && !source.isSignlessInteger(1);
    if (auto floatType = dyn_cast<FloatType>(target)) {
      APFloat result(floatType.getFloatSemantics());
      result.convertFromAPInt(value, isSigned, APFloat::rmNearestTiesToEven);
      return FloatAttr::get(target, result);
    }
    unsigned width = cast<IntegerType>(target).getWidth();
    if (width == 1)
      return IntegerAttr::get(target, APInt(1, !value.isZero()));
    return IntegerAttr::get(target, isSigned ? value.sextOrTrunc(width)
                                             : value.zextOrTrunc(width));
  };
  // f8 and smaller formats may lack infinity or zero: their overflow is left to
  // the compiled program.
  for (Type type : {source, target})
    if (auto floatType = dyn_cast<FloatType>(type))
      if (floatType.getWidth() < 16)
        return {};
  SmallVector<Attribute> values;
  if (operand.isSplat())
    values.push_back(convert(operand.getSplatValue<Attribute>()));
  else
    for (Attribute element : operand.getValues<Attribute>())
      values.push_back(convert(element));
  if (llvm::is_contained(values, Attribute()))
    return {};
  return DenseElementsAttr::get(to, values);
}

//===----------------------------------------------------------------------===//
// Shape and data movement
//===----------------------------------------------------------------------===//

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor adaptor) {
  auto dims = getBroadcastDimensions();
  // With equal shapes, dimensions in order are the identity.
  if (getOperand().getType() == getType() && llvm::is_sorted(dims))
    return getOperand();
  DenseElementsAttr operand = asDense(adaptor.getOperand());
  if (operand && operand.isSplat())
    return operand.resizeSplat(getType());
  return {};
}

OpFoldResult ReshapeOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  if (DenseElementsAttr operand = asDense(adaptor.getOperand()))
    return operand.reshape(getType());
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>()) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor adaptor) {
  if (isIdentityPermutation(getPermutation()))
    return getOperand();
  DenseElementsAttr operand = asDense(adaptor.getOperand());
  if (operand && operand.isSplat())
    return operand.resizeSplat(getType());
  return {};
}

OpFoldResult SliceOp::fold(FoldAdaptor adaptor) {
  if (getOperand().getType() == getType())
    return getOperand();
  DenseElementsAttr operand = asDense(adaptor.getOperand());
  if (operand && operand.isSplat())
    return operand.resizeSplat(getType());
  return {};
}

OpFoldResult ReverseOp::fold(FoldAdaptor adaptor) {
  if (getDimensions().empty())
    return getOperand();
  DenseElementsAttr operand = asDense(adaptor.getOperand());
  return operand && operand.isSplat() ? operand : OpFoldResult();
}

OpFoldResult ConcatenateOp::fold(FoldAdaptor) {
  if (getInputs().size() == 1)
    return getInputs()[0];
  return {};
}

OpFoldResult PadOp::fold(FoldAdaptor) {
  auto isZero = [](int64_t value) { return value == 0; };
  if (llvm::all_of(getEdgePaddingLow(), isZero) &&
      llvm::all_of(getEdgePaddingHigh(), isZero) &&
      llvm::all_of(getInteriorPadding(), isZero))
    return getOperand();
  return {};
}

OpFoldResult DynamicSliceOp::fold(FoldAdaptor) {
  // Start indices are clamped: a slice of everything starts at zero.
  return getOperand().getType() == getType() ? OpFoldResult(getOperand())
                                             : OpFoldResult();
}

OpFoldResult DynamicUpdateSliceOp::fold(FoldAdaptor) {
  return getUpdate().getType() == getType() ? OpFoldResult(getUpdate())
                                            : OpFoldResult();
}
