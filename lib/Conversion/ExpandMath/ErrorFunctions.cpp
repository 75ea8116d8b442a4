//===- ErrorFunctions.cpp - erf, erfc and the inverse of erf --------------===//

#include "MathFunctions.h"

namespace mlir::fp8::expandmath {

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

/// Returns e^(-a^2) erfcx(a) for a >= 0.
static V erfcPositiveF64(V a) {
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
static V erfSmallF64(V x) {
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

} // namespace mlir::fp8::expandmath
