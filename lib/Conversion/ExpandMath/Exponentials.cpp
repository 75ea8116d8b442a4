//===- Exponentials.cpp - e^x, e^x - 1 and 2^x ----------------------------===//

#include "MathFunctions.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::fp8::expandmath {

/// Returns true if one instruction multiplies `x` by a power of two.
static bool hasLdexp(V x) {
  auto vector = dyn_cast<VectorType>(x.v.getType());
  return x.b->hasLdexp && (!vector || vector.getRank() == 1);
}

/// Returns y * 2^n for |n| <= 252 and a y near 1, rounded once (results may be
/// subnormal).
static V scale32(V y, V n) {
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
static V expBounded32(V x) {
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

namespace {
/// e^x = (1 + q) * 2^n with |q| < 0.42; a series up to r^terms computes q.
struct ExpReduced {
  V q, n;
};
} // namespace

static ExpReduced reduceExpF64(V x, double terms = 14) {
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

static V powerOfTwo(V n) { return shl(n + n.i(1023), 52).asF64(); }

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

} // namespace mlir::fp8::expandmath
