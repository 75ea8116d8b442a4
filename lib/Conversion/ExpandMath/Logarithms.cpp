//===- Logarithms.cpp - Logarithms ----------------------------------------===//

#include "MathFunctions.h"

namespace mlir::fp8::expandmath {

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

Split split64(V x) {
  V bits = x.bits();
  V e = shrS(bits - x.f(0.70710678118654752440).bits(), 52);
  V m = (bits - shl(e, 52)).asF64();
  V ef = (e + x.f(kMagic64).bits()).asF64() - kMagic64;
  return {m, ef};
}

/// Returns 2 * artanh(num / den), the logarithm of (den + num) / (den - num).
static V logOfRatio(V num, V den) {
  V s = num / den;
  V z = s * s;
  SmallVector<double> series;
  for (int k = 0; k <= 10; ++k)
    series.push_back(2.0 / (2 * k + 1));
  return s * horner(z, series);
}

/// Sets the results of a logarithm for arguments that are not positive and
/// finite.
static V fixLog(V x, V r) {
  r = select(eq(x, 0.0), x.f(-kInf), r);
  r = select(lt(x, 0.0), x.f(kNaN), r);
  r = select(eq(x, kInf), x, r);
  return select(isNaN(x), x, r);
}

/// Returns log(x) * factor + exponent * step.
static V logBase64(V x, double factor, double step) {
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

} // namespace mlir::fp8::expandmath
