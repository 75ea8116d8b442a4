//===- ScalarOps.cpp - Elementwise StableHLO ops --------------------------===//
//
// One table from op names to emitters serves both elementwise ops on tensors
// and the bodies of reductions and scatters.
//
// Floats narrower than f32 are computed in f32 and rounded after each op. F32
// has more than twice their precision, so the result is correctly rounded, and
// no later stage needs arithmetic on narrow floats.
//
//===----------------------------------------------------------------------===//

#include "ScalarOps.h"

#include "fp8/Conversion/ExpandMath/ExpandMath.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::fp8;

Type fp8::signlessElement(Type element) {
  auto integer = dyn_cast<IntegerType>(element);
  if (!integer || integer.isSignless())
    return element;
  return IntegerType::get(element.getContext(), integer.getWidth());
}

Type fp8::signlessType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.clone(signlessElement(tensor.getElementType())) : type;
}

TypedAttr fp8::signlessAttr(ElementsAttr attr) {
  Type element = attr.getElementType();
  Type converted = signlessElement(element);
  if (converted == element)
    return attr;
  if (auto dense = dyn_cast<DenseElementsAttr>(attr))
    return dense.bitcast(converted);
  if (auto resource = dyn_cast<DenseResourceElementsAttr>(attr))
    return DenseResourceElementsAttr::get(
        cast<ShapedType>(signlessType(attr.getType())),
        resource.getRawHandle());
  return {};
}

bool fp8::isNarrowFloat(Type element) {
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
}

namespace {

bool isUnsigned(Type type) {
  // Booleans are ordered false < true.
  return type.isUnsignedInteger() || type.isInteger(1);
}

/// The operands of an op for one element, and shorthands for building.
struct Scalar {
  ImplicitLocOpBuilder &b;
  Operation *op;
  /// The operands; narrow floats are already widened.
  SmallVector<Value> x;
  /// The operands' original element types.
  SmallVector<Type> types;
  /// The result's original element type.
  Type result;

  bool isFloat() const { return isa<FloatType>(types[0]); }
  bool isUnsigned() const { return ::isUnsigned(types[0]); }
  bool isBool() const { return types[0].isInteger(1); }
  unsigned width() const { return x[0].getType().getIntOrFloatBitWidth(); }

  Value f(Type type, double value) const {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, value));
  }
  Value f(double value) const { return f(x[0].getType(), value); }
  Value i(Type type, int64_t value) const {
    APInt bits(type.getIntOrFloatBitWidth(), static_cast<uint64_t>(value),
               /*isSigned=*/true, /*implicitTrunc=*/true);
    return arith::ConstantOp::create(b, b.getIntegerAttr(type, bits));
  }
  Value i(int64_t value) const { return i(x[0].getType(), value); }
  Value i(const APInt &value) const {
    return arith::ConstantOp::create(b,
                                     b.getIntegerAttr(x[0].getType(), value));
  }
  Value cmp(arith::CmpIPredicate p, Value l, Value r) const {
    return arith::CmpIOp::create(b, p, l, r);
  }
  Value cmp(arith::CmpFPredicate p, Value l, Value r) const {
    return arith::CmpFOp::create(b, p, l, r);
  }
  Value select(Value c, Value yes, Value no) const {
    return arith::SelectOp::create(b, c, yes, no);
  }
  template <typename Op> Value make(ValueRange operands) const {
    return Op::create(b, x[0].getType(), operands, ArrayRef<NamedAttribute>());
  }
};

using Emitter = Value (*)(Scalar &);

/// Emits an op that only exists for floats, under another name.
template <typename Op> Value floatOp(Scalar &s) {
  return s.isFloat() ? s.make<Op>(s.x) : Value();
}

template <typename FloatOp, typename IntOp, typename BoolOp>
Value arithmetic(Scalar &s) {
  if (s.isFloat())
    return s.make<FloatOp>(s.x);
  return s.isBool() ? s.make<BoolOp>(s.x) : s.make<IntOp>(s.x);
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
Value ordered(Scalar &s) {
  if (s.isFloat())
    return s.make<FloatOp>(s.x);
  return s.isUnsigned() ? s.make<UnsignedOp>(s.x) : s.make<SignedOp>(s.x);
}

Value absolute(Scalar &s) {
  if (s.isFloat())
    return s.make<math::AbsFOp>(s.x);
  return s.isUnsigned() ? s.x[0] : s.make<math::AbsIOp>(s.x);
}

Value negate(Scalar &s) {
  if (s.isFloat())
    return s.make<arith::NegFOp>(s.x);
  return arith::SubIOp::create(s.b, s.i(0), s.x[0]);
}

Value bitNot(Scalar &s) { return arith::XOrIOp::create(s.b, s.x[0], s.i(-1)); }

/// Returns a divisor for which the division is defined, and whether the
/// original one was 0. The smallest integer divided by -1 is itself, so the
/// divisor becomes 1.
std::pair<Value, Value> safeDivisor(Scalar &s) {
  Value zero = s.cmp(arith::CmpIPredicate::eq, s.x[1], s.i(0));
  Value replace = zero;
  if (!s.isUnsigned()) {
    Value smallest = s.cmp(arith::CmpIPredicate::eq, s.x[0],
                           s.i(APInt::getSignedMinValue(s.width())));
    Value minusOne = s.cmp(arith::CmpIPredicate::eq, s.x[1], s.i(-1));
    replace = arith::OrIOp::create(
        s.b, zero, arith::AndIOp::create(s.b, smallest, minusOne));
  }
  return {s.select(replace, s.i(1), s.x[1]), zero};
}

Value divide(Scalar &s) {
  if (s.isFloat())
    return s.make<arith::DivFOp>(s.x);
  auto [divisor, zero] = safeDivisor(s);
  Value q = s.isUnsigned()
                ? arith::DivUIOp::create(s.b, s.x[0], divisor).getResult()
                : arith::DivSIOp::create(s.b, s.x[0], divisor).getResult();
  return s.select(zero, s.i(-1), q);
}

Value remainder(Scalar &s) {
  if (s.isFloat())
    return s.make<arith::RemFOp>(s.x);
  auto [divisor, zero] = safeDivisor(s);
  Value r = s.isUnsigned()
                ? arith::RemUIOp::create(s.b, s.x[0], divisor).getResult()
                : arith::RemSIOp::create(s.b, s.x[0], divisor).getResult();
  return s.select(zero, s.x[0], r);
}

Value power(Scalar &s) {
  if (s.isFloat())
    return s.make<math::PowFOp>(s.x);
  if (s.isBool())
    return {};
  // Square and multiply over all bits of the exponent.
  Value result = s.i(1), square = s.x[0];
  for (unsigned bit = 0, width = s.width(); bit < width; ++bit) {
    Value isSet = s.cmp(arith::CmpIPredicate::ne,
                        arith::AndIOp::create(
                            s.b, s.x[1], s.i(APInt::getOneBitSet(width, bit))),
                        s.i(0));
    Value product = arith::MulIOp::create(s.b, result, square);
    result = s.select(isSet, product, result);
    if (bit + 1 < width)
      square = arith::MulIOp::create(s.b, square, square);
  }
  if (s.isUnsigned())
    return result;
  // A negative exponent gives 0 for all bases but 1 and -1. Their powers by the
  // two's complement of the exponent are right, because its parity is the same.
  Value negative = s.cmp(arith::CmpIPredicate::slt, s.x[1], s.i(0));
  Value unit =
      arith::OrIOp::create(s.b, s.cmp(arith::CmpIPredicate::eq, s.x[0], s.i(1)),
                           s.cmp(arith::CmpIPredicate::eq, s.x[0], s.i(-1)));
  Value vanishes = arith::AndIOp::create(
      s.b, negative, arith::XOrIOp::create(s.b, unit, s.i(unit.getType(), 1)));
  return s.select(vanishes, s.i(0), result);
}

Value sign(Scalar &s) {
  if (s.isFloat()) {
    Value one = math::CopySignOp::create(s.b, s.f(1.0), s.x[0]);
    // Both zeros and NaN are returned unchanged.
    Value itself = s.cmp(arith::CmpFPredicate::UEQ, s.x[0], s.f(0.0));
    return s.select(itself, s.x[0], one);
  }
  Value positive = arith::ExtUIOp::create(
      s.b, s.x[0].getType(), s.cmp(arith::CmpIPredicate::ne, s.x[0], s.i(0)));
  if (s.isUnsigned())
    return positive;
  return arith::OrIOp::create(
      s.b, arith::ShRSIOp::create(s.b, s.x[0], s.i(s.width() - 1)), positive);
}

Value logistic(Scalar &s) {
  // e^-|x| never overflows, so the left tail keeps its small values.
  Value x = s.x[0];
  Value e = math::ExpOp::create(
      s.b, arith::NegFOp::create(s.b, math::AbsFOp::create(s.b, x)));
  Value positive = s.cmp(arith::CmpFPredicate::OGE, x, s.f(0.0));
  Value sum = arith::AddFOp::create(s.b, s.f(1.0), e);
  return arith::DivFOp::create(s.b, s.select(positive, s.f(1.0), e), sum);
}

template <typename Op, bool isArithmetic> Value shift(Scalar &s) {
  Value inRange =
      s.cmp(arith::CmpIPredicate::ult, s.x[1], s.i(int64_t(s.width())));
  if (s.width() == 1)
    inRange = s.cmp(arith::CmpIPredicate::eq, s.x[1], s.i(0));
  Value most = s.i(int64_t(s.width()) - 1);
  Value amount = s.select(inRange, s.x[1], most);
  Value shifted = Op::create(s.b, s.x[0], amount);
  return isArithmetic ? shifted : s.select(inRange, shifted, s.i(0));
}

Value isFinite(Scalar &s) {
  Value a = math::AbsFOp::create(s.b, s.x[0]);
  return s.cmp(arith::CmpFPredicate::OLT, a,
               s.f(std::numeric_limits<double>::infinity()));
}
Value isInf(Scalar &s) {
  Value a = math::AbsFOp::create(s.b, s.x[0]);
  return s.cmp(arith::CmpFPredicate::OEQ, a,
               s.f(std::numeric_limits<double>::infinity()));
}
template <bool negative> Value isSignedInf(Scalar &s) {
  double inf = std::numeric_limits<double>::infinity();
  return s.cmp(arith::CmpFPredicate::OEQ, s.x[0], s.f(negative ? -inf : inf));
}

Value square(Scalar &s) {
  SmallVector<Value> twice = {s.x[0], s.x[0]};
  return s.isFloat() ? s.make<arith::MulFOp>(twice)
                     : s.make<arith::MulIOp>(twice);
}

Value clamp(Scalar &s) {
  // Operands are min, x, max; the bounds apply in this order.
  Value low = s.x[0], x = s.x[1], high = s.x[2];
  if (s.isFloat())
    return arith::MinimumFOp::create(
        s.b, arith::MaximumFOp::create(s.b, low, x), high);
  if (s.isUnsigned())
    return arith::MinUIOp::create(s.b, arith::MaxUIOp::create(s.b, low, x),
                                  high);
  return arith::MinSIOp::create(s.b, arith::MaxSIOp::create(s.b, low, x), high);
}

Value selectOp(Scalar &s) { return s.select(s.x[0], s.x[1], s.x[2]); }

/// Maps the bits of floats to integers whose order is the total order: -NaN <
/// -inf < ... < -0 < +0 < ... < inf < NaN.
Value totalOrderBits(Scalar &s, Value x) {
  Type type = s.b.getIntegerType(x.getType().getIntOrFloatBitWidth());
  Value bits = arith::BitcastOp::create(s.b, type, x);
  Value sign = arith::ShRSIOp::create(
      s.b, bits, s.i(type, int64_t(type.getIntOrFloatBitWidth()) - 1));
  Value magnitude = arith::ShRUIOp::create(s.b, sign, s.i(type, 1));
  return arith::XOrIOp::create(s.b, bits, magnitude);
}

Value compare(Scalar &s) {
  auto op = cast<stablehlo::CompareOp>(s.op);
  using Direction = stablehlo::ComparisonDirection;
  Direction direction = op.getComparisonDirection();
  Value l = s.x[0], r = s.x[1];
  bool isFloat = s.isFloat();
  if (isFloat && op.getCompareType() &&
      *op.getCompareType() == stablehlo::ComparisonType::TOTALORDER) {
    l = totalOrderBits(s, l);
    r = totalOrderBits(s, r);
    isFloat = false;
  }
  if (isFloat) {
    auto predicate = [&] {
      switch (direction) {
      case Direction::EQ:
        return arith::CmpFPredicate::OEQ;
      case Direction::NE:
        return arith::CmpFPredicate::UNE;
      case Direction::GE:
        return arith::CmpFPredicate::OGE;
      case Direction::GT:
        return arith::CmpFPredicate::OGT;
      case Direction::LE:
        return arith::CmpFPredicate::OLE;
      case Direction::LT:
        return arith::CmpFPredicate::OLT;
      }
      llvm_unreachable("all directions handled");
    };
    return s.cmp(predicate(), l, r);
  }
  bool isUnsigned = !s.isFloat() && s.isUnsigned();
  auto predicate = [&] {
    switch (direction) {
    case Direction::EQ:
      return arith::CmpIPredicate::eq;
    case Direction::NE:
      return arith::CmpIPredicate::ne;
    case Direction::GE:
      return isUnsigned ? arith::CmpIPredicate::uge : arith::CmpIPredicate::sge;
    case Direction::GT:
      return isUnsigned ? arith::CmpIPredicate::ugt : arith::CmpIPredicate::sgt;
    case Direction::LE:
      return isUnsigned ? arith::CmpIPredicate::ule : arith::CmpIPredicate::sle;
    case Direction::LT:
      return isUnsigned ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
    }
    llvm_unreachable("all directions handled");
  };
  return s.cmp(predicate(), l, r);
}

/// Rounds to fewer exponent and mantissa bits, keeping the type.
Value reducePrecision(Scalar &s) {
  auto op = cast<stablehlo::ReducePrecisionOp>(s.op);
  auto type = cast<FloatType>(s.x[0].getType());
  unsigned width = type.getWidth();
  unsigned mantissa = type.getFPMantissaWidth() - 1;
  unsigned exponent = width - 1 - mantissa;
  unsigned toMantissa = op.getMantissaBits(), toExponent = op.getExponentBits();
  Type bitsType = s.b.getIntegerType(width);
  auto constant = [&](const APInt &value) -> Value {
    return arith::ConstantOp::create(s.b, s.b.getIntegerAttr(bitsType, value));
  };
  Value bits = arith::BitcastOp::create(s.b, bitsType, s.x[0]);
  APInt signMask = APInt::getSignMask(width);
  Value sign = arith::AndIOp::create(s.b, bits, constant(signMask));
  Value magnitude = arith::AndIOp::create(s.b, bits, constant(~signMask));
  if (toMantissa < mantissa) {
    // Add just under half of the last place kept, plus the last bit kept, so
    // that ties go to even; then drop the rest.
    unsigned drop = mantissa - toMantissa;
    Value last = arith::AndIOp::create(
        s.b,
        arith::ShRUIOp::create(s.b, magnitude, constant(APInt(width, drop))),
        constant(APInt(width, 1)));
    Value half = constant(APInt::getLowBitsSet(width, drop - 1));
    magnitude = arith::AddIOp::create(s.b, magnitude,
                                      arith::AddIOp::create(s.b, last, half));
    magnitude = arith::AndIOp::create(
        s.b, magnitude, constant(~APInt::getLowBitsSet(width, drop)));
  }
  APInt infinity = APInt::getBitsSet(width, mantissa, width - 1);
  if (toExponent < exponent) {
    // Outside of the exponent's range, the result is infinity or zero.
    uint64_t bias = (uint64_t(1) << (exponent - 1)) - 1;
    uint64_t toBias = (uint64_t(1) << (toExponent - 1)) - 1;
    APInt overflow = APInt(width, bias + toBias + 1).shl(mantissa);
    APInt smallest = APInt(width, bias - toBias + 1).shl(mantissa);
    Value over =
        s.cmp(arith::CmpIPredicate::uge, magnitude, constant(overflow));
    Value under =
        s.cmp(arith::CmpIPredicate::ult, magnitude, constant(smallest));
    magnitude = s.select(over, constant(infinity), magnitude);
    magnitude = s.select(under, constant(APInt::getZero(width)), magnitude);
  }
  Value rounded = arith::BitcastOp::create(
      s.b, type, arith::OrIOp::create(s.b, sign, magnitude));
  Value isNaN = s.cmp(arith::CmpFPredicate::UNO, s.x[0], s.x[0]);
  return s.select(isNaN, s.x[0], rounded);
}

/// Expands a function of f32 or f64 that the math dialect does not have.
template <Value (*expand)(OpBuilder &, Location, Value)>
Value expanded(Scalar &s) {
  return s.isFloat() ? expand(s.b, s.b.getLoc(), s.x[0]) : Value();
}

/// Returns the type in which arithmetic on a float is done.
Type widened(Type type) {
  return isNarrowFloat(type) ? Float32Type::get(type.getContext()) : type;
}

/// Converts a float to another float type: exactly, or rounding once.
Value castFloat(OpBuilder &b, Location loc, Value value, Type to) {
  Type from = value.getType();
  if (from == to)
    return value;
  if (isNarrowFloat(from)) {
    value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
    return castFloat(b, loc, value, to);
  }
  if (to.isF64())
    return arith::ExtFOp::create(b, loc, to, value);
  return arith::TruncFOp::create(b, loc, to, value);
}

/// Returns the next float after x in the direction of y, by its bits. (Selects
/// work on bits and comparisons on f32, because LLVM has neither for bf16.)
Value nextAfter(Scalar &s) {
  if (s.width() < 16)
    return {};
  Type type = s.b.getIntegerType(s.width());
  Value bits = arith::BitcastOp::create(s.b, type, s.x[0]);
  Value yBits = arith::BitcastOp::create(s.b, type, s.x[1]);
  Type wide = widened(s.x[0].getType());
  Value x = castFloat(s.b, s.b.getLoc(), s.x[0], wide);
  Value y = castFloat(s.b, s.b.getLoc(), s.x[1], wide);
  Value one = s.i(type, 1);
  Value signMask = arith::ConstantOp::create(
      s.b, s.b.getIntegerAttr(type, APInt::getSignMask(s.width())));
  // Move away from zero if y lies beyond x on the same side.
  Value negative = s.cmp(arith::CmpIPredicate::slt, bits, s.i(type, 0));
  Value greater = s.cmp(arith::CmpFPredicate::OGT, y, x);
  Value grows = s.cmp(arith::CmpIPredicate::ne, negative, greater);
  Value next =
      arith::AddIOp::create(s.b, bits, s.select(grows, one, s.i(type, -1)));
  Value fromZero = arith::OrIOp::create(
      s.b, arith::AndIOp::create(s.b, yBits, signMask), one);
  Value isZero = s.cmp(arith::CmpFPredicate::OEQ, x, s.f(wide, 0.0));
  next = s.select(isZero, fromZero, next);
  Value takesY =
      arith::OrIOp::create(s.b, s.cmp(arith::CmpFPredicate::OEQ, x, y),
                           s.cmp(arith::CmpFPredicate::UNO, y, y));
  next = s.select(takesY, yBits, next);
  next = s.select(s.cmp(arith::CmpFPredicate::UNO, x, x), bits, next);
  return arith::BitcastOp::create(s.b, s.x[0].getType(), next);
}

const llvm::StringMap<Emitter> &emitters() {
  static const llvm::StringMap<Emitter> table = {
      {"stablehlo.abs", absolute},
      {"stablehlo.add", arithmetic<arith::AddFOp, arith::AddIOp, arith::OrIOp>},
      {"stablehlo.and", [](Scalar &s) { return s.make<arith::AndIOp>(s.x); }},
      {"stablehlo.atan2", floatOp<math::Atan2Op>},
      {"stablehlo.cbrt", floatOp<math::CbrtOp>},
      {"stablehlo.ceil", floatOp<math::CeilOp>},
      {"stablehlo.clamp", clamp},
      {"stablehlo.compare", compare},
      {"stablehlo.cosine", floatOp<math::CosOp>},
      {"stablehlo.count_leading_zeros",
       [](Scalar &s) { return s.make<math::CountLeadingZerosOp>(s.x); }},
      {"stablehlo.divide", divide},
      {"stablehlo.exponential", floatOp<math::ExpOp>},
      {"stablehlo.exponential_minus_one", floatOp<math::ExpM1Op>},
      {"stablehlo.floor", floatOp<math::FloorOp>},
      {"stablehlo.is_finite", isFinite},
      {"stablehlo.log", floatOp<math::LogOp>},
      {"stablehlo.log_plus_one", floatOp<math::Log1pOp>},
      {"stablehlo.logistic", logistic},
      {"stablehlo.maximum",
       ordered<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>},
      {"stablehlo.minimum",
       ordered<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>},
      {"stablehlo.multiply",
       arithmetic<arith::MulFOp, arith::MulIOp, arith::AndIOp>},
      {"stablehlo.negate", negate},
      {"stablehlo.not", bitNot},
      {"stablehlo.or", [](Scalar &s) { return s.make<arith::OrIOp>(s.x); }},
      {"stablehlo.popcnt",
       [](Scalar &s) { return s.make<math::CtPopOp>(s.x); }},
      {"stablehlo.power", power},
      {"stablehlo.reduce_precision", reducePrecision},
      {"stablehlo.remainder", remainder},
      {"stablehlo.round_nearest_afz", floatOp<math::RoundOp>},
      {"stablehlo.round_nearest_even", floatOp<math::RoundEvenOp>},
      {"stablehlo.rsqrt", floatOp<math::RsqrtOp>},
      {"stablehlo.select", selectOp},
      {"stablehlo.shift_left", shift<arith::ShLIOp, false>},
      {"stablehlo.shift_right_arithmetic", shift<arith::ShRSIOp, true>},
      {"stablehlo.shift_right_logical", shift<arith::ShRUIOp, false>},
      {"stablehlo.sign", sign},
      {"stablehlo.sine", floatOp<math::SinOp>},
      {"stablehlo.sqrt", floatOp<math::SqrtOp>},
      {"stablehlo.subtract",
       arithmetic<arith::SubFOp, arith::SubIOp, arith::XOrIOp>},
      {"stablehlo.tan", floatOp<math::TanOp>},
      {"stablehlo.tanh", floatOp<math::TanhOp>},
      {"stablehlo.xor", [](Scalar &s) { return s.make<arith::XOrIOp>(s.x); }},
      {"chlo.acos", floatOp<math::AcosOp>},
      {"chlo.acosh", floatOp<math::AcoshOp>},
      {"chlo.asin", floatOp<math::AsinOp>},
      {"chlo.asinh", floatOp<math::AsinhOp>},
      {"chlo.atan", floatOp<math::AtanOp>},
      {"chlo.atanh", floatOp<math::AtanhOp>},
      {"chlo.cosh", floatOp<math::CoshOp>},
      {"chlo.erf", floatOp<math::ErfOp>},
      {"chlo.digamma", expanded<fp8::expandDigamma>},
      {"chlo.erf_inv", expanded<fp8::expandErfInv>},
      {"chlo.lgamma", expanded<fp8::expandLgamma>},
      {"chlo.erfc", floatOp<math::ErfcOp>},
      {"chlo.is_inf", isInf},
      {"chlo.is_neg_inf", isSignedInf<true>},
      {"chlo.is_pos_inf", isSignedInf<false>},
      {"chlo.next_after", nextAfter},
      {"chlo.sinh", floatOp<math::SinhOp>},
      {"chlo.square", square},
      {"chlo.tan", floatOp<math::TanOp>},
  };
  return table;
}

Type elementOf(Value value) { return getElementTypeOrSelf(value.getType()); }

/// Rounds a 64-bit integer to one that an f64 can hold. For large integers, the
/// bits that do not fit are ORed into the last bit that does ("rounding to
/// odd"), so that a later rounding to fewer bits gives the same as rounding the
/// integer itself.
Value roundToOdd53(ImplicitLocOpBuilder &b, Value value, bool isUnsigned) {
  auto constant = [&](uint64_t bits) -> Value {
    return arith::ConstantOp::create(
        b, b.getIntegerAttr(value.getType(), APInt(64, bits)));
  };
  uint64_t lost = (uint64_t(1) << 11) - 1, limit = uint64_t(1) << 53;
  // Adding the lost bits to all ones carries into the last kept bit unless they
  // are all 0.
  Value sticky = arith::AndIOp::create(
      b,
      arith::AddIOp::create(b, arith::AndIOp::create(b, value, constant(lost)),
                            constant(lost)),
      constant(lost + 1));
  Value odd = arith::OrIOp::create(
      b, arith::AndIOp::create(b, value, constant(~lost)), sticky);
  Value shifted =
      isUnsigned ? value
                 : arith::AddIOp::create(b, value, constant(limit)).getResult();
  Value fits = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, shifted,
                                     constant(isUnsigned ? limit : 2 * limit));
  return arith::SelectOp::create(b, fits, value, odd);
}

Value convertIntegerToFloat(ImplicitLocOpBuilder &b, Value value,
                            IntegerType from, Type to) {
  // Narrow floats are converted from a float that holds the integer exactly.
  bool isDirect = to.getIntOrFloatBitWidth() >= 32;
  Type type = isDirect ? to : b.getF32Type();
  if (!isDirect && from.getWidth() > 24)
    type = b.getF64Type();
  if (!isDirect && from.getWidth() > 53)
    value = roundToOdd53(b, value, isUnsigned(from));
  value = isUnsigned(from)
              ? arith::UIToFPOp::create(b, type, value).getResult()
              : arith::SIToFPOp::create(b, type, value).getResult();
  return castFloat(b, b.getLoc(), value, to);
}

Value convertInteger(ImplicitLocOpBuilder &b, Value value, IntegerType from,
                     IntegerType to) {
  Type target = signlessElement(to);
  if (to.getWidth() == 1)
    return arith::CmpIOp::create(
        b, arith::CmpIPredicate::ne, value,
        arith::ConstantOp::create(b, b.getIntegerAttr(value.getType(), 0)));
  if (to.getWidth() < from.getWidth())
    return arith::TruncIOp::create(b, target, value);
  if (to.getWidth() == from.getWidth())
    return value;
  if (isUnsigned(from))
    return arith::ExtUIOp::create(b, target, value);
  return arith::ExtSIOp::create(b, target, value);
}

/// Out-of-range numbers saturate and NaN becomes 0, as everywhere in XLA; the
/// plain conversion is poison for them.
Value convertFloatToInteger(ImplicitLocOpBuilder &b, Value value, Type to) {
  if (isNarrowFloat(value.getType()))
    value = arith::ExtFOp::create(b, b.getF32Type(), value);
  auto type = cast<FloatType>(value.getType());
  Type target = signlessElement(to);
  auto constantI = [&](const APInt &bits) -> Value {
    return arith::ConstantOp::create(b, b.getIntegerAttr(target, bits));
  };
  auto constantF = [&](double number) -> Value {
    return arith::ConstantOp::create(b, b.getFloatAttr(type, number));
  };
  auto compare = [&](arith::CmpFPredicate predicate, Value other) -> Value {
    return arith::CmpFOp::create(b, predicate, value, other);
  };
  if (to.isInteger(1))
    return compare(arith::CmpFPredicate::UNE, constantF(0.0));
  unsigned width = target.getIntOrFloatBitWidth();
  bool hasNoSign = isUnsigned(to);
  double high = std::ldexp(1.0, hasNoSign ? width : width - 1);
  double low = hasNoSign ? -1.0 : -high;
  Value tooHigh = compare(arith::CmpFPredicate::OGE, constantF(high));
  Value tooLow =
      compare(hasNoSign ? arith::CmpFPredicate::OLE : arith::CmpFPredicate::OLT,
              constantF(low));
  Value isNaN = compare(arith::CmpFPredicate::UNO, value);
  Value isOutside =
      arith::OrIOp::create(b, arith::OrIOp::create(b, tooHigh, tooLow), isNaN);
  Value safe = arith::SelectOp::create(b, isOutside, constantF(0.0), value);
  Value result = hasNoSign
                     ? arith::FPToUIOp::create(b, target, safe).getResult()
                     : arith::FPToSIOp::create(b, target, safe).getResult();
  result = arith::SelectOp::create(
      b, tooHigh,
      constantI(hasNoSign ? APInt::getMaxValue(width)
                          : APInt::getSignedMaxValue(width)),
      result);
  if (hasNoSign)
    return result;
  return arith::SelectOp::create(
      b, tooLow, constantI(APInt::getSignedMinValue(width)), result);
}

} // namespace

Value fp8::emitConvert(OpBuilder &builder, Location loc, Value value, Type from,
                       Type to) {
  ImplicitLocOpBuilder b(loc, builder);
  if (from == to)
    return value;
  auto fromInteger = dyn_cast<IntegerType>(from);
  if (isa<FloatType>(to))
    return fromInteger ? convertIntegerToFloat(b, value, fromInteger, to)
                       : castFloat(b, loc, value, to);
  return fromInteger
             ? convertInteger(b, value, fromInteger, cast<IntegerType>(to))
             : convertFloatToInteger(b, value, to);
}

bool fp8::isElementwise(Operation *op) {
  if (op->getNumResults() != 1)
    return false;
  if (isa<stablehlo::ConvertOp>(op))
    return true;
  if (auto bitcast = dyn_cast<stablehlo::BitcastConvertOp>(op))
    return cast<RankedTensorType>(bitcast.getType()).getRank() ==
           cast<RankedTensorType>(bitcast.getOperand().getType()).getRank();
  return emitters().contains(op->getName().getStringRef());
}

Value fp8::emitScalar(OpBuilder &builder, Location loc, Operation *op,
                      ValueRange scalars) {
  ImplicitLocOpBuilder b(loc, builder);
  Type result = elementOf(op->getResult(0));
  if (isa<stablehlo::ConvertOp>(op))
    return emitConvert(b, loc, scalars[0], elementOf(op->getOperand(0)),
                       result);
  Type target = signlessElement(result);
  if (isa<stablehlo::BitcastConvertOp>(op)) {
    if (scalars[0].getType() == target)
      return scalars[0];
    return arith::BitcastOp::create(b, target, scalars[0]);
  }
  auto it = emitters().find(op->getName().getStringRef());
  if (it == emitters().end())
    return {};
  Scalar s{b, op, {}, {}, result};
  // next_after depends on the bits of the original type, and select only moves
  // bits.
  bool keepsNarrow = isa<stablehlo::SelectOp, chlo::NextAfterOp>(op);
  for (auto [operand, scalar] : llvm::zip(op->getOperands(), scalars)) {
    Type type = elementOf(operand);
    s.types.push_back(type);
    if (isNarrowFloat(type) && !keepsNarrow)
      scalar = castFloat(b, loc, scalar, b.getF32Type());
    s.x.push_back(scalar);
  }
  Value value = it->second(s);
  if (value && isa<FloatType>(target))
    value = castFloat(b, loc, value, target);
  return value;
}

bool fp8::isPlainReduction(Block &body) {
  if (body.getOperations().size() != 2 || body.getNumArguments() != 2)
    return false;
  Operation &op = body.front();
  if (!isa<stablehlo::AddOp, stablehlo::MulOp, stablehlo::MaxOp,
           stablehlo::MinOp>(op))
    return false;
  return body.getTerminator()->getOperand(0) == op.getResult(0) &&
         ((op.getOperand(0) == body.getArgument(0) &&
           op.getOperand(1) == body.getArgument(1)) ||
          (op.getOperand(1) == body.getArgument(0) &&
           op.getOperand(0) == body.getArgument(1)));
}

Value fp8::emitWideReduction(OpBuilder &b, Location loc, Block &body,
                             ValueRange arguments) {
  Operation &op = body.front();
  Value l = arguments[0], r = arguments[1];
  if (isa<stablehlo::AddOp>(op))
    return arith::AddFOp::create(b, loc, l, r);
  if (isa<stablehlo::MulOp>(op))
    return arith::MulFOp::create(b, loc, l, r);
  if (isa<stablehlo::MaxOp>(op))
    return arith::MaximumFOp::create(b, loc, l, r);
  return arith::MinimumFOp::create(b, loc, l, r);
}

namespace {
/// Emits the ops of a computation on rank-0 tensors for scalars.
class BodyEmitter {
public:
  BodyEmitter(OpBuilder &b, Location loc) : b(b), loc(loc) {}

  FailureOr<SmallVector<Value>> emit(Block &body, ValueRange arguments);

private:
  Value scalarOf(stablehlo::ConstantOp constant);
  Value lookup(Value value);
  LogicalResult emit(Operation &op);

  OpBuilder &b;
  Location loc;
  DenseMap<Value, Value> values;
};
} // namespace

Value BodyEmitter::scalarOf(stablehlo::ConstantOp constant) {
  auto attr = cast<DenseElementsAttr>(
      signlessAttr(cast<ElementsAttr>(constant.getValue())));
  return arith::ConstantOp::create(
      b, loc, attr.getElementType(),
      cast<TypedAttr>(*attr.value_begin<Attribute>()));
}

/// Returns the scalar for a value; null if its rank is not 0.
Value BodyEmitter::lookup(Value value) {
  if (Value known = values.lookup(value))
    return known;
  // A rank-0 tensor from outside of the body, where simplifications put
  // constants.
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() != 0)
    return {};
  if (auto constant = value.getDefiningOp<stablehlo::ConstantOp>())
    return scalarOf(constant);
  if (type != signlessType(type))
    return {};
  return tensor::ExtractOp::create(b, loc, value, ValueRange());
}

LogicalResult BodyEmitter::emit(Operation &op) {
  if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
    values[constant.getResult()] = scalarOf(constant);
    return success();
  }
  SmallVector<Value> scalars;
  for (Value operand : op.getOperands()) {
    Value scalar = lookup(operand);
    if (!scalar)
      return emitRefusal(&op, "expected operands of rank 0 in a computation "
                              "on elements but got ")
             << operand.getType();
    scalars.push_back(scalar);
  }
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
          stablehlo::TransposeOp>(op)) {
    values[op.getResult(0)] = scalars[0];
    return success();
  }
  Value result;
  if (isElementwise(&op))
    result = emitScalar(b, loc, &op, scalars);
  if (!result)
    return emitRefusal(&op, "is not supported in a computation on elements; "
                            "expected an elementwise op");
  values[op.getResult(0)] = result;
  return success();
}

FailureOr<SmallVector<Value>> BodyEmitter::emit(Block &body,
                                                ValueRange arguments) {
  for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
    values[argument] = value;
  for (Operation &op : body.without_terminator())
    if (failed(emit(op)))
      return failure();
  SmallVector<Value> results;
  for (Value operand : body.getTerminator()->getOperands()) {
    Value result = lookup(operand);
    if (!result)
      return emitRefusal(body.getTerminator(),
                         "expected results of rank 0 but got ")
             << operand.getType();
    results.push_back(result);
  }
  return results;
}

FailureOr<SmallVector<Value>> fp8::emitBody(OpBuilder &b, Location loc,
                                            Block &body, ValueRange arguments) {
  return BodyEmitter(b, loc).emit(body, arguments);
}
