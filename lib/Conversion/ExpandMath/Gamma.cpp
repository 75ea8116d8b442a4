//===- Gamma.cpp - The logarithm of gamma, and its derivative -------------===//

#include "MathFunctions.h"

namespace mlir::fp8::expandmath {

namespace {
/// Lanczos' approximation of gamma(z + 1) with g = 7: the sum and its
/// derivative.
struct Lanczos {
  V sum, slope, t;
};
} // namespace

static Lanczos lanczos(V z) {
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

} // namespace mlir::fp8::expandmath
