//===- ElementArithmetic.h - Arithmetic on many element types ---*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_COLLECTIVES_ELEMENTARITHMETIC_H
#define FP8_LIB_RUNTIME_COLLECTIVES_ELEMENTARITHMETIC_H

#include "fp8-c/Runtime.h"

#include <cstdint>
#include <vector>

namespace fp8::rt {

/// Returns whether elements of this type can be reduced.
bool hasReduction(fp8_dtype dtype);

/// Convert elements to f32 and back (to nearest, ties to even; f8 saturates).
/// Types: f32, bf16, f16, f8e4m3fn, f8e5m2.
void loadFloats(fp8_dtype dtype, const char *data, int64_t begin, int64_t count,
                float *values);
void storeFloats(fp8_dtype dtype, char *data, int64_t begin, int64_t count,
                 const float *values);

/// Convert between elements and contiguous bf16.
void convertToBFloat16(fp8_dtype dtype, const char *data, int64_t begin,
                       int64_t count, char *wire);
void convertFromBFloat16(fp8_dtype dtype, char *data, int64_t begin,
                         int64_t count, const char *wire);

/// Reduces pieces of `count` elements in their order: floats in f32 (f64 in
/// f64), integers exactly (sums wrap around). NaN wins both maxima and minima.
/// A reduction of bools is "any" or "all".
void reduceExactly(fp8_dtype dtype, fp8_reduction reduction, int64_t count,
                   const std::vector<const char *> &pieces, char *result);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_COLLECTIVES_ELEMENTARITHMETIC_H
