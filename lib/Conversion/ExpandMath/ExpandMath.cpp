//===- ExpandMath.cpp - Expansion of math functions -----------------------===//
//
// Functions are written once, over a small value wrapper, and work for scalars
// and vectors alike. They compute in f32 where a training step spends its time,
// and elsewhere in f64 (rounded once at the end), where rounding errors of
// intermediate results are far below the last bit of an f32.
//
// No operation here may be poison for any input. Float-to-int conversions are
// therefore replaced by additions of a large constant whose low mantissa bits
// then hold the integer: `fptosi` of NaN is poison, which a later select would
// not stop.
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/ExpandMath/ExpandMath.h"

#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

#include "llvm/ADT/TypeSwitch.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace mlir::fp8 {
#define GEN_PASS_DEF_EXPANDMATH
#include "fp8/Conversion/ExpandMath/Passes.h.inc"
} // namespace mlir::fp8

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;
constexpr double kPi = 3.14159265358979323846;
constexpr double kPiOver2 = 1.57079632679489661923;
constexpr double kPiOver4 = 0.78539816339744830962;

//===----------------------------------------------------------------------===//
// Values with operators
//===----------------------------------------------------------------------===//

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

V operator+(V a, V c) {
  return a.wrap(a.isFloat() ? arith::AddFOp::create(*a.b, a.v, c.v).getResult()
                            : arith::AddIOp::create(*a.b, a.v, c.v));
}
V operator-(V a, V c) {
  return a.wrap(a.isFloat() ? arith::SubFOp::create(*a.b, a.v, c.v).getResult()
                            : arith::SubIOp::create(*a.b, a.v, c.v));
}
V operator*(V a, V c) {
  return a.wrap(a.isFloat() ? arith::MulFOp::create(*a.b, a.v, c.v).getResult()
                            : arith::MulIOp::create(*a.b, a.v, c.v));
}
V operator/(V a, V c) { return a.wrap(arith::DivFOp::create(*a.b, a.v, c.v)); }
V operator-(V a) { return a.wrap(arith::NegFOp::create(*a.b, a.v)); }
V operator+(V a, double c) { return a + a.f(c); }
V operator-(V a, double c) { return a - a.f(c); }
V operator*(V a, double c) { return a * a.f(c); }
V operator-(double c, V a) { return a.f(c) - a; }
V operator/(double c, V a) { return a.f(c) / a; }

V shl(V a, int64_t n) {
  return a.wrap(arith::ShLIOp::create(*a.b, a.v, a.i(n).v));
}
V shl(V a, V n) { return a.wrap(arith::ShLIOp::create(*a.b, a.v, n.v)); }
V shrS(V a, int64_t n) {
  return a.wrap(arith::ShRSIOp::create(*a.b, a.v, a.i(n).v));
}
V shrU(V a, int64_t n) {
  return a.wrap(arith::ShRUIOp::create(*a.b, a.v, a.i(n).v));
}
V andI(V a, V c) { return a.wrap(arith::AndIOp::create(*a.b, a.v, c.v)); }
V andI(V a, int64_t c) { return andI(a, a.i(c)); }
V orI(V a, V c) { return a.wrap(arith::OrIOp::create(*a.b, a.v, c.v)); }
V xorI(V a, V c) { return a.wrap(arith::XOrIOp::create(*a.b, a.v, c.v)); }

V cmp(arith::CmpFPredicate predicate, V a, V c) {
  return a.wrap(arith::CmpFOp::create(*a.b, predicate, a.v, c.v));
}
V cmp(arith::CmpIPredicate predicate, V a, V c) {
  return a.wrap(arith::CmpIOp::create(*a.b, predicate, a.v, c.v));
}
V lt(V a, double c) { return cmp(arith::CmpFPredicate::OLT, a, a.f(c)); }
V gt(V a, double c) { return cmp(arith::CmpFPredicate::OGT, a, a.f(c)); }
V eq(V a, double c) { return cmp(arith::CmpFPredicate::OEQ, a, a.f(c)); }
V isNaN(V a) { return cmp(arith::CmpFPredicate::UNO, a, a); }
V eqI(V a, int64_t c) { return cmp(arith::CmpIPredicate::eq, a, a.i(c)); }

V select(V condition, V yes, V no) {
  return yes.wrap(arith::SelectOp::create(*yes.b, condition.v, yes.v, no.v));
}
/// Limits `x` to at most `hi`; NaN stays NaN.
V atMost(V x, double hi) { return select(gt(x, hi), x.f(hi), x); }
/// Limits `x` to [lo, hi]; NaN stays NaN.
V clamp(V x, double lo, double hi) {
  return atMost(select(lt(x, lo), x.f(lo), x), hi);
}
V fma(V a, V c, V d) {
  return a.wrap(math::FmaOp::create(*a.b, a.v, c.v, d.v));
}
V fma(V a, double c, V d) { return fma(a, a.f(c), d); }

/// Evaluates c[0] + c[1] x + c[2] x^2 + ... by Horner's scheme.
V horner(V x, ArrayRef<double> c) {
  V sum = x.f(c.back());
  for (double coefficient : llvm::reverse(c.drop_back()))
    sum = fma(sum, x, x.f(coefficient));
  return sum;
}

//===----------------------------------------------------------------------===//
// Functions in f32
//===----------------------------------------------------------------------===//

/// 1.5 * 2^23: its sum with a small float holds the float's nearest integer in
/// the low mantissa bits.
constexpr double kMagic32 = 12582912.0;
/// 1.5 * 2^52 does the same for f64.
constexpr double kMagic64 = 6755399441055744.0;

/// Returns true if one instruction multiplies `x` by a power of two.
bool hasLdexp(V x) {
  auto vector = dyn_cast<VectorType>(x.v.getType());
  return x.b->hasLdexp && (!vector || vector.getRank() == 1);
}

/// Returns y * 2^n for |n| <= 252 and a y near 1, rounded once (results may be
/// subnormal).
V scale32(V y, V n) {
  if (hasLdexp(y))
    return y.wrap(LLVM::CallIntrinsicOp::create(
                      *y.b, y.v.getType(), y.b->getStringAttr("llvm.ldexp"),
                      ValueRange{y.v, n.v})
                      .getResult(0));
  // Two factors, for one may overflow. Only the last product rounds.
  V half = shrS(n, 1);
  V rest = n - half;
  V first = shl(half + half.i(127), 23).asF32();
  V second = shl(rest + rest.i(127), 23).asF32();
  return y * first * second;
}

/// Returns exp(x) for -104 <= x <= 89.
V expBounded32(V x) {
  V t = fma(x, kLog2E, x.f(kMagic32));
  V n = t.bits() - x.f(kMagic32).bits();
  V nf = t - kMagic32;
  // The high part of ln 2 has so few bits that this product is exact.
  V r = fma(nf, -0.693359375, x);
  r = fma(nf, 2.12194440e-4, r);
  V p = horner(r, {0.4999999403953552, 0.1666651964187622, 0.04166840761899948,
                   0.00836889911442995, 0.0013814219273626804});
  return scale32(fma(r * r, p, r) + 1.0, n);
}

/// Outside of [-104, 89] the result is 0 or infinity.
V exp32(V x) {
  if (!hasLdexp(x))
    return expBounded32(clamp(x, -104.0, 89.0));
  // A power of two that makes a result smaller than 2^-126 takes Intel's CPUs
  // 240 cycles, and most arguments that are so small are hidden scores.
  V isZero = cmp(arith::CmpFPredicate::OLE, x, x.f(-104.0));
  V y = expBounded32(atMost(select(isZero, x.f(0.0), x), 89.0));
  return select(isZero, y.f(0.0), y);
}

V exp2_32(V x) {
  x = clamp(x, -151.0, 129.0);
  V t = x + kMagic32;
  V n = t.bits() - x.f(kMagic32).bits();
  V r = x - (t - kMagic32);
  V p =
      horner(r, {0.6931471824645996, 0.24022650718688965, 0.055504102259874344,
                 0.009618038311600685, 0.0013333935057744384,
                 0.00015466756303794682, 1.5196153981378302e-05});
  return scale32(fma(r, p, r.f(1.0)), n);
}

/// Returns log2(x) of a float that is not negative, within half an ulp of the
/// result plus 2^-24.
V log2_32(V x) {
  V tiny = lt(x, 0x1p-126);
  V normal = select(tiny, x * 0x1p23, x);
  V bits = normal.bits();
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  V e = shrS(bits - x.f(0.70710678118654752440).bits(), 23);
  V m = (bits - shl(e, 23)).asF32();
  V ef = (e + x.f(kMagic32).bits()).asF32() - kMagic32;
  ef = ef - select(tiny, x.f(23.0), x.f(0.0));
  V f = m - 1.0;
  V p =
      horner(f, {1.442694902420044, -0.7213471531867981, 0.48092252016067505,
                 -0.3607212007045746, 0.28765666484832764, -0.23851943016052246,
                 0.2173794060945511, -0.2103034108877182, 0.1254124790430069});
  V r = select(eq(x, 0.0), x.f(-kInf), fma(f, p, ef));
  return select(lt(x, kInf), r, x);
}

/// Returns x^y for x >= 0 and a finite y > 0, with a relative error of up to
/// 2^-23 for each octave of the result, and two ulps.
V approximatePow32(V x, V y) { return exp2_32(log2_32(x) * y); }

V tanh32(V x) {
  V a = x.abs();
  V z = x * x;
  V p = horner(z, {-0.3333333134651184, 0.13333210349082947,
                   -0.05394720286130905, 0.021702967584133148,
                   -0.008182673715054989, 0.0021475369576364756});
  V small = fma(x * z, p, x);
  V large = 1.0 - 2.0 / (exp32(a + a) + 1.0);
  // The sum above would turn -0 into +0.
  V r = select(lt(a, 0.625), select(eq(x, 0.0), x, small), large.copysign(x));
  return select(isNaN(x), x, r);
}

V erf32(V x) {
  V a = x.abs();
  V z = x * x;
  V p = horner(z, {0.12837916612625122, -0.37612637877464294,
                   0.11283782124519348, -0.0268654003739357,
                   0.005220945458859205, -0.0008482828852720559,
                   0.0001125694761867635, -9.64151604421204e-06});
  V small = fma(p, x, x);
  // 1 - exp(polynomial), which is 1 above 4.
  a = clamp(a, 0.0, 4.0);
  V q = horner(a,
               {-0.12869715690612793, -0.6349583268165588, -0.10654910653829575,
                0.024025509133934975, -0.003764660330489278,
                0.00035233216476626694, -1.4133838703855872e-05});
  V large = 1.0 - exp32(fma(a, q, -a));
  return select(gt(a, 1.0), large.copysign(x), small);
}

//===----------------------------------------------------------------------===//
// Functions in f64, of f32 values or small combinations of them
//===----------------------------------------------------------------------===//

/// e^x = (1 + q) * 2^n with |q| < 0.42; a series up to r^terms computes q.
struct ExpReduced {
  V q, n;
};
ExpReduced reduceExpF64(V x, double terms = 14) {
  V t = fma(x, kLog2E, x.f(kMagic64));
  V n = t.bits() - x.f(kMagic64).bits();
  V nf = t - kMagic64;
  V r = fma(nf, -0.69314718055994528623, x);
  r = fma(nf, -2.3190468138462995584e-17, r);
  SmallVector<double> taylor;
  for (double k = 2, factorial = 2; k <= terms; ++k, factorial *= k)
    taylor.push_back(1 / factorial);
  return {fma(r * r, horner(r, taylor), r), n};
}

struct ExpParts {
  V exp, expm1;
};

/// Returns e^x and e^x - 1; saturates far outside of the range of f32.
ExpParts exp64(V x) {
  x = clamp(x, -300.0, 300.0);
  auto [q, n] = reduceExpF64(x, 13);
  V scale = shl(n + n.i(1023), 52).asF64();
  return {fma(scale, q, scale), fma(scale, q, scale - 1.0)};
}

V expm1_64(V x) {
  V r = exp64(x).expm1;
  return select(eq(x, 0.0), x, r); // keeps -0
}

/// x = m * 2^e for a normal x, with m in [sqrt(1/2), sqrt(2)) and e as a float.
struct Split {
  V m, e;
};
Split split64(V x) {
  V bits = x.bits();
  V e = shrS(bits - x.f(0.70710678118654752440).bits(), 52);
  V m = (bits - shl(e, 52)).asF64();
  V ef = (e + x.f(kMagic64).bits()).asF64() - kMagic64;
  return {m, ef};
}

/// Returns 2 * artanh(num / den), the logarithm of (den + num) / (den - num).
V logOfRatio(V num, V den) {
  V s = num / den;
  V z = s * s;
  SmallVector<double> series;
  for (int k = 0; k <= 10; ++k)
    series.push_back(2.0 / (2 * k + 1));
  return s * horner(z, series);
}

/// Sets the results of a logarithm for arguments that are not positive and
/// finite.
V fixLog(V x, V r) {
  r = select(eq(x, 0.0), x.f(-kInf), r);
  r = select(lt(x, 0.0), x.f(kNaN), r);
  r = select(eq(x, kInf), x, r);
  return select(isNaN(x), x, r);
}

/// Returns log(x) * factor + exponent * step.
V logBase64(V x, double factor, double step) {
  Split s = split64(x);
  V lm = logOfRatio(s.m - 1.0, s.m + 1.0);
  return fixLog(x, fma(s.e, step, lm * factor));
}
V log64(V x) { return logBase64(x, 1.0, 0.69314718055994530942); }
V log2_64(V x) { return logBase64(x, kLog2E, 1.0); }
V log10_64(V x) {
  return logBase64(x, 0.43429448190325182765, 0.30102999566398119521);
}

V log1p64(V x) {
  // Near 0 the ratio is computed from x itself, because 1 + x has lost low
  // bits.
  V u = x + 1.0;
  Split s = split64(u);
  V small = andI(cmp(arith::CmpFPredicate::OGT, x, x.f(-0.29)), lt(x, 0.41));
  V num = select(small, x, s.m - 1.0);
  V den = select(small, x + 2.0, s.m + 1.0);
  V e = select(small, x.f(0.0), s.e);
  V r = fixLog(u, fma(e, 0.69314718055994530942, logOfRatio(num, den)));
  return select(eq(x, 0.0), x, r);
}

/// x - n * pi/2 in [-pi/4, pi/4], and n modulo 4 (in the low bits of an i64).
struct Quadrant {
  V r, n;
};
Quadrant reduceByPiOver2(V x32) {
  V x = x32.toF64();
  // Cody and Waite in two steps: exact enough while n has less than 50 bits.
  V t = fma(x, 2 / kPi, x.f(kMagic64));
  V n = t.bits() - x.f(kMagic64).bits();
  V nf = t - kMagic64;
  V r = fma(nf, -kPiOver2, x);
  r = fma(nf, -6.123233995736766036e-17, r);

  // Payne and Hanek's reduction for large arguments: mantissa times 96 bits of
  // 2/pi, chosen such that multiples of 4 are left out. `phase` is x * 2/pi
  // modulo 4 with 62 bits after the binary point.
  V bits = x32.bits().zextToI64();
  V exponent = andI(shrU(bits, 23), 0xff);
  V mantissa = orI(andI(bits, 0x7fffff), bits.i(0x800000));
  V k = exponent - exponent.i(152);
  k = select(cmp(arith::CmpIPredicate::slt, k, k.i(0)), k.i(0), k);
  V word = shrU(k, 5), shift = andI(k, 31);
  const uint32_t twoOverPi[] = {0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0,
                                0xDB629599, 0x3C439041, 0xFE5163AB};
  V is0 = eqI(word, 0), is1 = eqI(word, 1), is2 = eqI(word, 2);
  V part[4];
  for (int j = 0; j < 4; ++j)
    part[j] = select(
        is0, k.i(twoOverPi[j]),
        select(is1, k.i(twoOverPi[j + 1]),
               select(is2, k.i(twoOverPi[j + 2]), k.i(twoOverPi[j + 3]))));
  V window[3];
  for (int j = 0; j < 3; ++j)
    window[j] = shrU(shl(orI(shl(part[j], 32), part[j + 1]), shift), 32);
  V phase = shl(window[0] * mantissa, 32) + window[1] * mantissa +
            shrU(window[2] * mantissa, 32);
  V bigN = shrU(phase + phase.i(int64_t(1) << 61), 62);
  V rest = phase - shl(bigN, 62);
  V bigR = x.wrap(arith::SIToFPOp::create(*x.b, x.v.getType(), rest.v)) *
           (kPiOver2 / 4611686018427387904.0);
  V negative = lt(x, 0.0);
  bigN = select(negative, bigN.i(0) - bigN, bigN);
  bigR = select(negative, -bigR, bigR);

  V big = gt(x.abs(), 281474976710656.0); // 2^48
  return {select(big, bigR, r), select(big, bigN, n)};
}

struct SinCos {
  V sin, cos, n;
};
SinCos sinCosOfReduced(Quadrant q) {
  V z = q.r * q.r;
  SmallVector<double> s, c;
  double factorial = 1;
  for (int k = 0; k <= 8; ++k) {
    double sign = k % 2 ? -1 : 1;
    c.push_back(sign / factorial);
    factorial *= 2 * k + 1;
    s.push_back(sign / factorial);
    factorial *= 2 * k + 2;
  }
  return {q.r * horner(z, s), horner(z, c), q.n};
}

/// Returns sin(x) for quarter = 0, cos(x) for quarter = 1.
V sine(V x, int64_t quarter) {
  SinCos sc = sinCosOfReduced(reduceByPiOver2(x));
  V n = sc.n + sc.n.i(quarter);
  V r = select(eqI(andI(n, 1), 1), sc.cos, sc.sin);
  r = xorI(r.bits(), shl(andI(n, 2), 62)).asF64().toF32();
  // Infinity minus itself is NaN; NaN stays NaN.
  return select(lt(x.abs(), kInf), r, x - x);
}

V tan(V x) {
  SinCos sc = sinCosOfReduced(reduceByPiOver2(x));
  V odd = eqI(andI(sc.n, 1), 1);
  V r = select(odd, -sc.cos, sc.sin) / select(odd, sc.sin, sc.cos);
  return select(lt(x.abs(), kInf), r.toF32(), x - x);
}

/// Returns atan of a value in [0, 1] that is given as a ratio.
V atanOfRatio(V num, V den) {
  // Above tan(pi/8): pi/4 + atan((t - 1) / (t + 1)).
  V fold = cmp(arith::CmpFPredicate::OGT, num, den * 0.41421356237309504880);
  V t = select(fold, num - den, num) / select(fold, num + den, den);
  V p = horner(t * t,
               {0.9999999999999993, -0.33333333333207876, 0.19999999976045202,
                -0.1428571250884211, 0.1111104389300926, -0.09089439997310926,
                0.07672582747221664, -0.06500137261126718, 0.050055267109758786,
                -0.025054128710212967});
  return fma(t, p, select(fold, t.f(kPiOver4), t.f(0.0)));
}

V atan64(V x) {
  V a = x.abs();
  V over = gt(a, 1.0);
  // 1 / a instead of a / 1; for infinity, fixed below.
  V r = atanOfRatio(select(over, a.f(1.0), a), select(over, a, a.f(1.0)));
  r = select(over, kPiOver2 - r, r);
  r = select(eq(a, kInf), a.f(kPiOver2), r);
  return select(isNaN(x), x, r.copysign(x));
}

V atan2_64(V y, V x) {
  V ay = y.abs(), ax = x.abs();
  V steep = cmp(arith::CmpFPredicate::OGT, ay, ax);
  V num = select(steep, ax, ay), den = select(steep, ay, ax);
  V r = atanOfRatio(num, den);
  // 0/0 and inf/inf have defined results.
  r = select(eq(den, 0.0), den.f(0.0), r);
  r = select(eq(den, kInf), den.f(0.0), r);
  r = select(eq(num, kInf), den.f(kPiOver4), r);
  r = select(steep, kPiOver2 - r, r);
  V negative = cmp(arith::CmpIPredicate::slt, x.bits(), x.bits().i(0));
  r = select(negative, kPi - r, r).copysign(y);
  V nan = orI(isNaN(x), isNaN(y));
  return select(nan, x + y, r);
}

V asin64(V x) { return atan2_64(x, ((1.0 - x) * (x + 1.0)).sqrt()); }
V acos64(V x) { return atan2_64(((1.0 - x) * (x + 1.0)).sqrt(), x); }

V sinh64(V x) {
  V e = exp64(x.abs()).expm1;
  V r = ((e + e / (e + 1.0)) * 0.5).copysign(x);
  return select(isNaN(x), x, r);
}
V cosh64(V x) {
  V e = exp64(x.abs()).exp;
  return (e + 1.0 / e) * 0.5;
}
V asinh64(V x) {
  V a = x.abs();
  V square = a * a;
  V r = log1p64(a + square / ((square + 1.0).sqrt() + 1.0)).copysign(x);
  return select(orI(isNaN(x), eq(a, kInf)), x, r);
}
V acosh64(V x) {
  V t = x - 1.0;
  V r = log1p64(t + (t * (t + 2.0)).sqrt());
  return select(lt(x, 1.0), x.f(kNaN), r);
}
V atanh64(V x) { return log1p64((x + x) / (1.0 - x)) * 0.5; }

V erfc64(V x) {
  V a = clamp(x.abs(), 0.0, 10.2);
  V t = (a - 2.0) / (a + 2.0);
  V p = horner(t, {1.276978381552647, -0.09276382657315828, -0.1660303976401462,
                   0.16405127912147133, -0.05422000037027645,
                   -0.008033995646260617, 0.008722652450279762,
                   0.001271153384691744, -0.0014568790055803026,
                   -0.000453422391976258, 0.00020700915535468552,
                   0.0001486215532239834, -4.029222395617162e-06,
                   -3.338819094081622e-05, -8.780221007924617e-06,
                   2.9259687978340143e-06, 1.390527457296458e-06});
  V r = exp64(-(a * a)).exp * p / fma(a, 2.0, a.f(1.0));
  return select(lt(x, 0.0), 2.0 - r, r);
}

/// Returns log2 of the magnitude of an f32; its truncation error is below
/// 2^-43.
V log2OfF32(V a) {
  Split s = split64(a);
  V ratio = (s.m - 1.0) / (s.m + 1.0);
  SmallVector<double> series;
  for (int k = 0; k <= 7; ++k)
    series.push_back(2.0 * kLog2E / (2 * k + 1));
  V r = fma(ratio, horner(ratio * ratio, series), s.e);
  // No finite f32 has such an exponent: the argument is infinite or NaN.
  r = select(gt(s.e, 200.0), a, r);
  return select(eq(a, 0.0), a.f(-kInf), r);
}

/// Returns 2^x of a finite x; saturates far outside of the range of f32. Its
/// relative truncation error is 2^-41.
V exp2ForF32(V x) {
  x = clamp(x, -400.0, 400.0);
  V t = x + kMagic64;
  V n = t.bits() - x.f(kMagic64).bits();
  V r = x - (t - kMagic64);
  SmallVector<double> series = {1.0};
  for (double k = 1, term = kLn2; k <= 10; ++k, term *= kLn2 / k)
    series.push_back(term);
  return horner(r, series) * shl(n + n.i(1023), 52).asF64();
}

/// Turns the power of a base's magnitude into that of the base, which may be
/// negative.
V powOfNegative(V power, V x, V y) {
  // Is y an integer, and is it odd? (Every f64 that was converted from an f32
  // above 2^24 is an even integer.)
  V ay = y.abs();
  V integer = cmp(arith::CmpFPredicate::OEQ, ay.floor(), ay);
  V halfY = ay * 0.5;
  V odd = andI(integer, cmp(arith::CmpFPredicate::ONE, halfY.floor(), halfY));
  V negative = cmp(arith::CmpIPredicate::slt, x.bits(), x.bits().i(0));
  power = select(andI(negative, odd), -power, power);
  // A negative number to a fractional power is undefined, except for -0 and
  // -infinity.
  V undefined =
      andI(andI(lt(x, 0.0), cmp(arith::CmpFPredicate::OGT, x, x.f(-kInf))),
           cmp(arith::CmpFPredicate::ONE, ay.floor(), ay));
  power = select(undefined, x.f(kNaN), power);
  return select(andI(eq(x, -1.0), eq(ay, kInf)), x.f(1.0), power);
}

/// Returns whether a power may be approximated: it says so, and its base is not
/// negative.
bool isApproximate(math::PowFOp op) {
  return bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn) &&
         op.getLhs().getDefiningOp<math::AbsFOp>();
}

V pow32(V x32, V y32) {
  V x = x32.toF64(), y = y32.toF64();
  // The exponential handles 0 and infinity, because their logarithm is
  // infinite.
  V power = exp2ForF32(log2OfF32(x.abs()) * y);
  if (!x32.v.getDefiningOp<math::AbsFOp>())
    power = powOfNegative(power, x, y);
  V isOne = orI(eq(x, 1.0), eq(y, 0.0));
  return select(isOne, x.f(1.0), power).toF32();
}

V cbrt64(V x) {
  // The exponential of a third of the logarithm loses a few bits of 53.
  V a = x.abs();
  V product = clamp(log2_64(a) * (1.0 / 3.0), -400.0, 400.0);
  V r = exp64(product * 0.69314718055994530942).exp;
  r = select(eq(a, 0.0), a, r);
  r = select(eq(a, kInf), a, r);
  return select(isNaN(x), x, r.copysign(x));
}

V erfInv64(V x) {
  V z = -(x * x);
  V w = -log1p64(z);
  V central = horner(w - 3.0, {1.623542006446227, 0.24163040401606325,
                               -0.0057381350091354625, -0.0008361811330762184,
                               0.0001950609251842247, -1.2717219333096878e-05,
                               -1.747713715895387e-06, 4.504203961806688e-07,
                               -2.3791774381900395e-08, -5.589683510106098e-09,
                               1.1311036356385918e-09, -1.2720692171151068e-11,
                               -1.9640511655316464e-11, 1.2001141081971866e-12,
                               1.6145937157919172e-13});
  V s = w.sqrt() - 3.25;
  V tail = horner(
      s, {3.0838856101189207, 1.0052589757993515, 0.005370952506564723,
          -0.003751457565105589, 0.0024908305035370695, -0.0016860870667553954,
          0.0009568286186240133, -0.00036323047181583426, 1.500036244911888e-05,
          8.300944265494666e-05, -3.7322298146665525e-05});
  V r = x * select(lt(w, 5.9), central, tail);
  r = select(eq(x.abs(), 1.0), x * kInf, r);
  return select(gt(x.abs(), 1.0), x.f(kNaN), r);
}

/// Lanczos' approximation of gamma(z + 1) with g = 7: the sum and its
/// derivative.
struct Lanczos {
  V sum, slope, t;
};
Lanczos lanczos(V z) {
  const double c[] = {
      676.520368121885098567009190444019, -1259.13921672240287047156078755283,
      771.3234287776530788486528258894,   -176.61502916214059906584551354,
      12.507343278686904814458936853,     -0.13857109526572011689554707,
      9.984369578019570859563e-6,         1.50563273514931155834e-7};
  V sum = z.f(0.99999999999980993227684700473478), slope = z.f(0.0);
  for (int i = 0; i < 8; ++i) {
    V inverse = 1.0 / (z + double(i + 1));
    V term = inverse * c[i];
    sum = sum + term;
    slope = slope - term * inverse;
  }
  return {sum, slope, z + 7.5};
}

/// Returns sin(pi x) and cos(pi x) up to a common sign.
SinCos sinCosPi(V x) {
  V r = x - x.roundEven();
  V half = gt(r.abs(), 0.25);
  // Around a quarter turn, exchange sine and cosine.
  V rest = select(half, 0.5 - r.abs(), r);
  SinCos sc = sinCosOfReduced({rest * kPi, r.bits()});
  return {select(half, sc.cos.copysign(r), sc.sin),
          select(half, sc.sin, sc.cos), sc.n};
}

V lgamma64(V x) {
  V reflect = lt(x, 0.5);
  V y = select(reflect, 1.0 - x, x);
  V z = y - 1.0;
  Lanczos l = lanczos(z);
  V r = fma(z + 0.5, log64(l.t), 0.91893853320467274178 - l.t) + log64(l.sum);
  V mirrored = log64(kPi / sinCosPi(x).sin.abs()) - r;
  r = select(reflect, mirrored, r);
  // Close to 0, it is -log|x|, where x may be subnormal.
  V a = x.abs();
  V tiny = 60 * 0.69314718055994530942 - log64(a * 1152921504606846976.0);
  r = select(lt(a, 1e-20), tiny, r);
  // The value at negative integers; all numbers below -2^52 are integers.
  return select(orI(eq(a, kInf), lt(x, -4503599627370496.0)), x.f(kInf), r);
}

V digamma64(V x) {
  V reflect = lt(x, 0.5);
  V y = select(reflect, 1.0 - x, x);
  Lanczos l = lanczos(y - 1.0);
  V r = log64(l.t) + l.slope / l.sum - 7.0 / l.t;
  SinCos sc = sinCosPi(x);
  V mirrored = r - sc.cos * kPi / sc.sin;
  r = select(reflect, mirrored, r);
  // The sign at a pole is undefined.
  V pole = andI(eq(sc.sin, 0.0), lt(x, 0.5));
  r = select(pole, x.f(kNaN), r);
  r = select(eq(x, -kInf), x.f(kNaN), r);
  r = select(eq(x, 0.0), x.f(-kInf).copysign(-x), r);
  return select(eq(x, kInf), x, r);
}

//===----------------------------------------------------------------------===//
// f64 arguments and results: functions for which LLVM has no intrinsic
//===----------------------------------------------------------------------===//

V powerOfTwo(V n) { return shl(n + n.i(1023), 52).asF64(); }

V expF64(V x) {
  ExpReduced e = reduceExpF64(clamp(x, -746.0, 710.0));
  V half = shrS(e.n, 1);
  V scale = powerOfTwo(half);
  return fma(scale, e.q, scale) * powerOfTwo(e.n - half);
}

V expm1F64(V x) {
  // 2^(n-1), because 2^n may be infinite where the result is not.
  ExpReduced e = reduceExpF64(clamp(x, -60.0, 710.0));
  V scale = powerOfTwo(e.n - e.n.i(1));
  V r = fma(scale, e.q, scale - 0.5);
  return select(eq(x, 0.0), x, r + r);
}

V cbrtF64(V x) {
  // Scale subnormal numbers to normal ones by a factor with an exact root.
  V a = x.abs();
  V tiny = lt(a, 2.2250738585072014e-308);
  a = select(tiny, a * 18014398509481984.0, a); // 2^54
  V y = exp64(log2_64(a) * (0.69314718055994530942 / 3.0)).exp;
  // One Newton step restores the bits that the exponential lost.
  y = y - fma(y * y, y, -a) / (y * y * 3.0);
  y = select(tiny, y * 3.814697265625e-06, y); // 2^-18
  V itself = orI(orI(eq(x, 0.0), eq(a, kInf)), isNaN(x));
  return select(itself, x, y.copysign(x));
}

V asinhF64(V x) {
  V a = x.abs();
  V square = a * a;
  V r = log1p64(a + square / ((square + 1.0).sqrt() + 1.0));
  V large = log64(a) + 0.69314718055994530942;
  return select(isNaN(x), x, select(gt(a, 1e8), large, r).copysign(x));
}
V acoshF64(V x) {
  V large = log64(x) + 0.69314718055994530942;
  return select(gt(x, 1e8), large, acosh64(x));
}
V atanhF64(V x) {
  // Compute on the positive side, where the logarithm's argument is above 1.
  V r = atanh64(x.abs()).copysign(x);
  return select(orI(eq(x, 0.0), isNaN(x)), x, r);
}

/// Returns e^(-a^2) erfcx(a) for a >= 0.
V erfcPositiveF64(V a) {
  a = clamp(a, 0.0, 28.0);
  V t = (a - 4.0) / (a + 4.0);
  const double chebyshev[] = {
      1.177483200537449,      -0.007260796620301865,   -0.08126512323618494,
      0.06009212804122226,    -0.02875393558027664,    0.010595663363472901,
      -0.003136927294554237,  0.0007456494372536791,   -0.00013696965030095517,
      1.7183861600326602e-05, -7.158364623031633e-07,  -2.426139943975465e-07,
      5.576570943837445e-08,  -2.1057869272201146e-09, -1.1717889209609062e-09,
      1.9098358694168152e-10, 1.4088790961543294e-11,  -6.901065612843343e-12,
      9.173749571782662e-14,  2.1458317109533786e-13,  -1.466792885008543e-14,
      -6.644477516304682e-15, 8.110303189073986e-16,   2.5649197853731234e-16};
  V b1 = t.f(0.0), b2 = t.f(0.0);
  for (double c : llvm::reverse(llvm::drop_begin(chebyshev))) {
    V next = fma(t + t, b1, t.f(c) - b2);
    b2 = b1;
    b1 = next;
  }
  V p = fma(t, b1, t.f(chebyshev[0]) - b2);
  // The square of the upper half of the bits is exact.
  V upper = andI(a.bits(), ~int64_t(0x7ffffff)).asF64();
  V e = expF64(-(upper * upper)) * expF64(-((a - upper) * (a + upper)));
  return e * p / fma(a, 2.0, a.f(1.0));
}

/// Returns erf on [-1, 1] by its series.
V erfSmallF64(V x) {
  SmallVector<double> series;
  double factorial = 1;
  for (int k = 0; k <= 20; ++k) {
    series.push_back((k % 2 ? -1 : 1) * 1.12837916709551257390 /
                     (factorial * (2 * k + 1)));
    factorial *= k + 1;
  }
  return x * horner(x * x, series);
}

V erfcF64(V x) {
  V large = erfcPositiveF64(x.abs());
  large = select(lt(x, 0.0), 2.0 - large, large);
  V r = select(lt(x.abs(), 0.5), 1.0 - erfSmallF64(x), large);
  return select(isNaN(x), x, r);
}

V erfF64(V x) {
  V large = (1.0 - erfcPositiveF64(x.abs())).copysign(x);
  V r = select(lt(x.abs(), 1.0), erfSmallF64(x), large);
  return select(isNaN(x), x, r);
}

/// Returns the inverse of erf: a first approximation, then Halley's iteration
/// with erf or erfc, whichever does not cancel.
V erfInvF64(V x) {
  V a = x.abs();
  V q = 1.0 - a;
  V w = -log64(clamp((a + 1.0) * q, 1e-20, 1.0));
  V y = erfInv64(a);
  // Outside of the range of the polynomials, use erfc's asymptotic form.
  V far = (w - log64(clamp(w, 1.0, 100.0) * kPi) * 0.5).sqrt();
  y = select(gt(w, 15.0), far, y);
  for (int step = 0; step < 3; ++step) {
    V error = select(lt(a, 0.5), erfSmallF64(y) - a, q - erfcF64(y));
    V newton = error * 0.88622692545275801365 / expF64(-(y * y));
    y = y - newton / fma(newton, y, y.f(1.0));
  }
  // Near 0, the linear term of the series is exact.
  y = select(lt(a, 1e-10), a * 0.88622692545275801365, y);
  y = select(eq(a, 1.0), a * kInf, y).copysign(x);
  y = select(gt(a, 1.0), x.f(kNaN), y);
  return select(isNaN(x), x, y);
}

V trunc(V x) { return x.abs().floor().copysign(x); }

/// Rounds half away from zero.
V round(V x) {
  V a = x.abs();
  V down = a.floor();
  V up = cmp(arith::CmpFPredicate::OGE, a - down, a.f(0.5));
  return select(up, down + 1.0, down).copysign(x);
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// Returns the expansion of an op with f32 operands, or null for ops that stay.
Value expand(Operation *op, ArrayRef<V> x) {
  auto in64 = [&](V (*function)(V)) {
    return function(x[0].toF64()).toF32().v;
  };
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::ExpOp) { return exp32(x[0]).v; })
      .Case([&](math::Exp2Op) { return exp2_32(x[0]).v; })
      .Case([&](math::TanhOp) { return tanh32(x[0]).v; })
      .Case([&](math::ErfOp) { return erf32(x[0]).v; })
      .Case([&](math::RsqrtOp) { return (1.0 / x[0].sqrt()).v; })
      .Case([&](math::SinOp) { return sine(x[0], 0).v; })
      .Case([&](math::CosOp) { return sine(x[0], 1).v; })
      .Case([&](math::TanOp) { return tan(x[0]).v; })
      .Case([&](math::PowFOp pow) {
        return (isApproximate(pow) ? approximatePow32 : pow32)(x[0], x[1]).v;
      })
      .Case([&](math::Atan2Op) {
        return atan2_64(x[0].toF64(), x[1].toF64()).toF32().v;
      })
      .Case([&](math::ExpM1Op) { return in64(expm1_64); })
      .Case([&](math::LogOp) { return in64(log64); })
      .Case([&](math::Log2Op) { return in64(log2_64); })
      .Case([&](math::Log10Op) { return in64(log10_64); })
      .Case([&](math::Log1pOp) { return in64(log1p64); })
      .Case([&](math::AtanOp) { return in64(atan64); })
      .Case([&](math::AsinOp) { return in64(asin64); })
      .Case([&](math::AcosOp) { return in64(acos64); })
      .Case([&](math::SinhOp) { return in64(sinh64); })
      .Case([&](math::CoshOp) { return in64(cosh64); })
      .Case([&](math::AsinhOp) { return in64(asinh64); })
      .Case([&](math::AcoshOp) { return in64(acosh64); })
      .Case([&](math::AtanhOp) { return in64(atanh64); })
      .Case([&](math::ErfcOp) { return in64(erfc64); })
      .Case([&](math::CbrtOp) { return in64(cbrt64); })
      .Default([](Operation *) { return Value(); });
}

/// Returns the expansion of an op on f64, or null for ops that stay.
Value expandF64(Operation *op, V x) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](math::RsqrtOp) { return (1.0 / x.sqrt()).v; })
      .Case([&](math::ExpM1Op) { return expm1F64(x).v; })
      .Case([&](math::Log1pOp) { return log1p64(x).v; })
      .Case([&](math::CbrtOp) { return cbrtF64(x).v; })
      .Case([&](math::AsinhOp) { return asinhF64(x).v; })
      .Case([&](math::AcoshOp) { return acoshF64(x).v; })
      .Case([&](math::AtanhOp) { return atanhF64(x).v; })
      .Case([&](math::ErfOp) { return erfF64(x).v; })
      .Case([&](math::ErfcOp) { return erfcF64(x).v; })
      .Default([](Operation *) { return Value(); });
}

struct ExpandFunction : RewritePattern {
  ExpandFunction(MLIRContext *context, bool hasLdexp)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context), hasLdexp(hasLdexp) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa_and_present<math::MathDialect>(op->getDialect()) ||
        op->getNumResults() != 1)
      return failure();
    MathBuilder b(op->getLoc(), rewriter, hasLdexp);
    auto wrap = [&](Value value) { return V{&b, value}; };
    Value first = op->getOperand(0);
    Type element = getElementTypeOrSelf(first.getType());
    if (!isa<FloatType>(element))
      return failure();

    // These work for every float type.
    Value simple =
        TypeSwitch<Operation *, Value>(op)
            .Case([&](math::TruncOp) { return trunc(wrap(first)).v; })
            .Case([&](math::RoundOp) { return round(wrap(first)).v; })
            .Case([&](math::IsNaNOp) { return isNaN(wrap(first)).v; })
            .Case([&](math::IsInfOp) { return eq(wrap(first).abs(), kInf).v; })
            .Case(
                [&](math::IsFiniteOp) { return lt(wrap(first).abs(), kInf).v; })
            .Default([](Operation *) { return Value(); });
    if (simple) {
      rewriter.replaceOp(op, simple);
      return success();
    }

    if (element.isF64()) {
      Value result = expandF64(op, wrap(first));
      if (!result)
        return failure();
      rewriter.replaceOp(op, result);
      return success();
    }

    bool narrow = element.isF16() || element.isBF16();
    if (!element.isF32() && !narrow)
      return failure();
    SmallVector<V> operands;
    for (Value operand : op->getOperands()) {
      if (operand.getType() != first.getType())
        return failure();
      V x = wrap(operand);
      if (narrow)
        x = wrap(arith::ExtFOp::create(b, x.withElement(b.getF32Type()), x.v));
      operands.push_back(x);
    }
    Value result = expand(op, operands);
    if (!result) {
      for (V x : operands)
        if (narrow)
          rewriter.eraseOp(x.v.getDefiningOp());
      return failure();
    }
    if (narrow)
      result = arith::TruncFOp::create(b, first.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  bool hasLdexp;
};

struct ExpandMathPass : fp8::impl::ExpandMathBase<ExpandMathPass> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandFunction>(
        &getContext(), fp8::TargetInfo::around(getOperation()).hasAVX512);
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};

} // namespace

/// Calls `function` in f64 for an f32 or f64 value.
template <V (*function)(V)>
static Value expandIn64(OpBuilder &builder, Location loc, Value value) {
  MathBuilder b(loc, builder, /*hasLdexp=*/false);
  V x{&b, value};
  return x.elementType().isF64() ? function(x).v
                                 : function(x.toF64()).toF32().v;
}

Value fp8::expandLgamma(OpBuilder &builder, Location loc, Value x) {
  return expandIn64<lgamma64>(builder, loc, x);
}

Value fp8::expandDigamma(OpBuilder &builder, Location loc, Value x) {
  return expandIn64<digamma64>(builder, loc, x);
}

Value fp8::expandErfInv(OpBuilder &builder, Location loc, Value x) {
  if (getElementTypeOrSelf(x).isF64())
    return expandIn64<erfInvF64>(builder, loc, x);
  return expandIn64<erfInv64>(builder, loc, x);
}
