//===- Powers.cpp - Powers and cube roots ---------------------------------===//

#include "MathFunctions.h"

namespace mlir::fp8::expandmath {

V approximatePow32(V x, V y) { return exp2_32(log2_32(x) * y); }

/// Returns log2 of the magnitude of an f32; its truncation error is below
/// 2^-43.
static V log2OfF32(V a) {
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
static V exp2ForF32(V x) {
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
static V powOfNegative(V power, V x, V y) {
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

} // namespace mlir::fp8::expandmath
