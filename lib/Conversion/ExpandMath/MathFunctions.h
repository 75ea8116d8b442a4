//===- MathFunctions.h - Expansions of functions ----------------*- C++ -*-===//
//
// They compute in f32 where a training step spends its time (exp32), and
// elsewhere in f64 (exp64), where rounding errors of intermediate results are
// far below the last bit of the f32 that the result is rounded to. Those for
// arguments and results in f64 (expF64) are for the functions for which LLVM
// has no intrinsic.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_EXPANDMATH_MATHFUNCTIONS_H
#define FP8_LIB_CONVERSION_EXPANDMATH_MATHFUNCTIONS_H

#include "MathValue.h"

namespace mlir::fp8::expandmath {

//===----------------------------------------------------------------------===//
// Exponentials.cpp
//===----------------------------------------------------------------------===//

V exp32(V x);
V exp2_32(V x);

struct ExpParts {
  V exp, expm1;
};
/// Returns e^x and e^x - 1; saturates far outside of the range of f32.
ExpParts exp64(V x);
V expm1_64(V x);

V expF64(V x);
V expm1F64(V x);

//===----------------------------------------------------------------------===//
// Logarithms.cpp
//===----------------------------------------------------------------------===//

/// Returns log2(x) of a float that is not negative, within half an ulp of the
/// result plus 2^-24.
V log2_32(V x);

/// x = m * 2^e for a normal x, with m in [sqrt(1/2), sqrt(2)) and e as a float.
struct Split {
  V m, e;
};
Split split64(V x);

V log64(V x);
V log2_64(V x);
V log10_64(V x);
V log1p64(V x);

//===----------------------------------------------------------------------===//
// Powers.cpp
//===----------------------------------------------------------------------===//

/// Returns x^y for x >= 0 and a finite y > 0, with a relative error of up to
/// 2^-23 for each octave of the result, and two ulps.
V approximatePow32(V x, V y);
V pow32(V x, V y);
V cbrt64(V x);
V cbrtF64(V x);

//===----------------------------------------------------------------------===//
// Trigonometry.cpp
//===----------------------------------------------------------------------===//

/// Returns sin(x) for quarter = 0, cos(x) for quarter = 1.
V sine(V x, int64_t quarter);
V tan(V x);

/// The sine and cosine of an angle without its quarter turns, and their number
/// (in the low bits of an i64).
struct SinCos {
  V sin, cos, n;
};
/// Returns sin(pi x) and cos(pi x) up to a common sign.
SinCos sinCosPi(V x);

V atan64(V x);
V atan2_64(V y, V x);
V asin64(V x);
V acos64(V x);

//===----------------------------------------------------------------------===//
// Hyperbolic.cpp
//===----------------------------------------------------------------------===//

V tanh32(V x);
V sinh64(V x);
V cosh64(V x);
V asinh64(V x);
V acosh64(V x);
V atanh64(V x);
V asinhF64(V x);
V acoshF64(V x);
V atanhF64(V x);

//===----------------------------------------------------------------------===//
// ErrorFunctions.cpp
//===----------------------------------------------------------------------===//

V erf32(V x);
V erfc64(V x);
V erfInv64(V x);
V erfF64(V x);
V erfcF64(V x);
V erfInvF64(V x);

//===----------------------------------------------------------------------===//
// Gamma.cpp
//===----------------------------------------------------------------------===//

V lgamma64(V x);
V digamma64(V x);

} // namespace mlir::fp8::expandmath

#endif // FP8_LIB_CONVERSION_EXPANDMATH_MATHFUNCTIONS_H
