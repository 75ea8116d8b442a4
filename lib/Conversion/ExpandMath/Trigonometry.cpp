//===- Trigonometry.cpp - Sines, tangents and their inverses --------------===//

#include "MathFunctions.h"

namespace mlir::fp8::expandmath {

namespace {
/// x - n * pi/2 in [-pi/4, pi/4], and n modulo 4 (in the low bits of an i64).
struct Quadrant {
  V r, n;
};
} // namespace

static Quadrant reduceByPiOver2(V x32) {
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

static SinCos sinCosOfReduced(Quadrant q) {
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
static V atanOfRatio(V num, V den) {
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

SinCos sinCosPi(V x) {
  V r = x - x.roundEven();
  V half = gt(r.abs(), 0.25);
  // Around a quarter turn, exchange sine and cosine.
  V rest = select(half, 0.5 - r.abs(), r);
  SinCos sc = sinCosOfReduced({rest * kPi, r.bits()});
  return {select(half, sc.cos.copysign(r), sc.sin),
          select(half, sc.sin, sc.cos), sc.n};
}

} // namespace mlir::fp8::expandmath
