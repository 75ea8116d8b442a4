//===- MathValue.h - Values with operators ----------------------*- C++ -*-===//
//
// Functions are written once, over a small value wrapper, and work for scalars
// and vectors alike.
//
// No operation here may be poison for any input. Float-to-int conversions are
// therefore replaced by additions of a large constant whose low mantissa bits
// then hold the integer: `fptosi` of NaN is poison, which a later select would
// not stop.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_EXPANDMATH_MATHVALUE_H
#define FP8_LIB_CONVERSION_EXPANDMATH_MATHVALUE_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

#include <limits>

namespace mlir::fp8::expandmath {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLog2E = 1.4426950408889634074;
inline constexpr double kLn2 = 0.69314718055994530942;
inline constexpr double kPi = 3.14159265358979323846;
inline constexpr double kPiOver2 = 1.57079632679489661923;
inline constexpr double kPiOver4 = 0.78539816339744830962;

/// 1.5 * 2^23: its sum with a small float holds the float's nearest integer in
/// the low mantissa bits.
inline constexpr double kMagic32 = 12582912.0;
/// 1.5 * 2^52 does the same for f64.
inline constexpr double kMagic64 = 6755399441055744.0;

/// Builds ops for a target.
struct MathBuilder : ImplicitLocOpBuilder {
  template <typename BuilderTy>
  MathBuilder(Location loc, BuilderTy &builder, bool hasLdexp)
      : ImplicitLocOpBuilder(loc, builder), hasLdexp(hasLdexp) {}
  /// Whether the target has an instruction for y * 2^n.
  bool hasLdexp;
};

/// A value of a float or integer type (or a vector of them) with C++ operators.
struct V {
  MathBuilder *b = nullptr;
  Value v;

  Type elementType() const { return getElementTypeOrSelf(v.getType()); }
  bool isFloat() const { return isa<FloatType>(elementType()); }

  /// Returns the type of this value with another element type.
  Type withElement(Type element) const {
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      return vector.clone(element);
    return element;
  }
  V wrap(Value other) const { return V{b, other}; }

  V constant(TypedAttr element) const {
    TypedAttr attr = element;
    if (auto vector = dyn_cast<VectorType>(withElement(element.getType())))
      attr = DenseElementsAttr::get(vector, Attribute(element));
    return wrap(arith::ConstantOp::create(*b, attr));
  }
  /// Returns a float constant of this value's type.
  V f(double value) const {
    auto type = cast<FloatType>(elementType());
    APFloat number(value);
    bool loses;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &loses);
    return constant(b->getFloatAttr(type, number));
  }
  /// Returns an integer constant of this value's type.
  V i(int64_t value) const {
    auto type = cast<IntegerType>(elementType());
    return constant(b->getIntegerAttr(
        type, APInt(type.getWidth(), static_cast<uint64_t>(value),
                    /*isSigned=*/true, /*implicitTrunc=*/true)));
  }

  V bits() const {
    Type type = b->getIntegerType(elementType().getIntOrFloatBitWidth());
    return wrap(arith::BitcastOp::create(*b, withElement(type), v));
  }
  V asF32() const {
    return wrap(arith::BitcastOp::create(*b, withElement(b->getF32Type()), v));
  }
  V asF64() const {
    return wrap(arith::BitcastOp::create(*b, withElement(b->getF64Type()), v));
  }
  V toF64() const {
    return wrap(arith::ExtFOp::create(*b, withElement(b->getF64Type()), v));
  }
  V toF32() const {
    return wrap(arith::TruncFOp::create(*b, withElement(b->getF32Type()), v));
  }
  V zextToI64() const {
    return wrap(arith::ExtUIOp::create(*b, withElement(b->getI64Type()), v));
  }
  V abs() const { return wrap(math::AbsFOp::create(*b, v)); }
  V roundEven() const { return wrap(math::RoundEvenOp::create(*b, v)); }
  V floor() const { return wrap(math::FloorOp::create(*b, v)); }
  V sqrt() const { return wrap(math::SqrtOp::create(*b, v)); }
  V copysign(V sign) const {
    return wrap(math::CopySignOp::create(*b, v, sign.v));
  }
};

inline V operator+(V a, V c) {
  return a.wrap(a.isFloat() ? arith::AddFOp::create(*a.b, a.v, c.v).getResult()
                            : arith::AddIOp::create(*a.b, a.v, c.v));
}
inline V operator-(V a, V c) {
  return a.wrap(a.isFloat() ? arith::SubFOp::create(*a.b, a.v, c.v).getResult()
                            : arith::SubIOp::create(*a.b, a.v, c.v));
}
inline V operator*(V a, V c) {
  return a.wrap(a.isFloat() ? arith::MulFOp::create(*a.b, a.v, c.v).getResult()
                            : arith::MulIOp::create(*a.b, a.v, c.v));
}
inline V operator/(V a, V c) {
  return a.wrap(arith::DivFOp::create(*a.b, a.v, c.v));
}
inline V operator-(V a) { return a.wrap(arith::NegFOp::create(*a.b, a.v)); }
inline V operator+(V a, double c) { return a + a.f(c); }
inline V operator-(V a, double c) { return a - a.f(c); }
inline V operator*(V a, double c) { return a * a.f(c); }
inline V operator-(double c, V a) { return a.f(c) - a; }
inline V operator/(double c, V a) { return a.f(c) / a; }

inline V shl(V a, int64_t n) {
  return a.wrap(arith::ShLIOp::create(*a.b, a.v, a.i(n).v));
}
inline V shl(V a, V n) { return a.wrap(arith::ShLIOp::create(*a.b, a.v, n.v)); }
inline V shrS(V a, int64_t n) {
  return a.wrap(arith::ShRSIOp::create(*a.b, a.v, a.i(n).v));
}
inline V shrU(V a, int64_t n) {
  return a.wrap(arith::ShRUIOp::create(*a.b, a.v, a.i(n).v));
}
inline V andI(V a, V c) {
  return a.wrap(arith::AndIOp::create(*a.b, a.v, c.v));
}
inline V andI(V a, int64_t c) { return andI(a, a.i(c)); }
inline V orI(V a, V c) { return a.wrap(arith::OrIOp::create(*a.b, a.v, c.v)); }
inline V xorI(V a, V c) {
  return a.wrap(arith::XOrIOp::create(*a.b, a.v, c.v));
}

inline V cmp(arith::CmpFPredicate predicate, V a, V c) {
  return a.wrap(arith::CmpFOp::create(*a.b, predicate, a.v, c.v));
}
inline V cmp(arith::CmpIPredicate predicate, V a, V c) {
  return a.wrap(arith::CmpIOp::create(*a.b, predicate, a.v, c.v));
}
inline V lt(V a, double c) { return cmp(arith::CmpFPredicate::OLT, a, a.f(c)); }
inline V gt(V a, double c) { return cmp(arith::CmpFPredicate::OGT, a, a.f(c)); }
inline V eq(V a, double c) { return cmp(arith::CmpFPredicate::OEQ, a, a.f(c)); }
inline V isNaN(V a) { return cmp(arith::CmpFPredicate::UNO, a, a); }
inline V eqI(V a, int64_t c) {
  return cmp(arith::CmpIPredicate::eq, a, a.i(c));
}

inline V select(V condition, V yes, V no) {
  return yes.wrap(arith::SelectOp::create(*yes.b, condition.v, yes.v, no.v));
}
/// Limits `x` to at most `hi`; NaN stays NaN.
inline V atMost(V x, double hi) { return select(gt(x, hi), x.f(hi), x); }
/// Limits `x` to [lo, hi]; NaN stays NaN.
inline V clamp(V x, double lo, double hi) {
  return atMost(select(lt(x, lo), x.f(lo), x), hi);
}
inline V fma(V a, V c, V d) {
  return a.wrap(math::FmaOp::create(*a.b, a.v, c.v, d.v));
}
inline V fma(V a, double c, V d) { return fma(a, a.f(c), d); }

/// Evaluates c[0] + c[1] x + c[2] x^2 + ... by Horner's scheme.
inline V horner(V x, ArrayRef<double> c) {
  V sum = x.f(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    sum = fma(sum, x, x.f(coefficient));
  return sum;
}

} // namespace mlir::fp8::expandmath

#endif // FP8_LIB_CONVERSION_EXPANDMATH_MATHVALUE_H
