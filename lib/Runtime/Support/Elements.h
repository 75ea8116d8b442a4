//===- Elements.h - Elements of tensors of any type -------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_ELEMENTS_H
#define FP8_LIB_RUNTIME_SUPPORT_ELEMENTS_H

#include "TensorType.h"

#include <utility>

namespace fp8::rt {

/// Returns the least and largest value of an integer type, clipped to int64's.
std::pair<int64_t, int64_t> integerRange(fp8_dtype dtype);
/// Return one element of any type.
double elementAsDouble(const void *data, fp8_dtype dtype, int64_t index);
int64_t elementAsInteger(const void *data, fp8_dtype dtype, int64_t index);
/// Stores `value`, which must be in the type's range.
void storeInteger(void *data, fp8_dtype dtype, int64_t index, int64_t value);
/// Stores `value` as f32 or f64.
void storeDouble(void *data, fp8_dtype dtype, int64_t index, double value);
/// Returns the index of the first element that is NaN or infinite, or -1.
int64_t firstNonFinite(const void *data, const TensorType &type);

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_ELEMENTS_H
