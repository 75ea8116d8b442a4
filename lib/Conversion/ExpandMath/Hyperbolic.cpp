//===- Hyperbolic.cpp - Hyperbolic functions and their inverses -----------===//

#include "MathFunctions.h"

namespace mlir::fp8::expandmath {

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

} // namespace mlir::fp8::expandmath
