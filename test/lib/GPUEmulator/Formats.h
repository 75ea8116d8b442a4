//===- Formats.h - Small floating-point formats -----------------*- C++ -*-===//
//
// The formats of tensor cores and conversions. Their values are computed
// directly from the definitions, without regard to speed.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_FORMATS_H
#define FP8_TEST_LIB_GPUEMULATOR_FORMATS_H

#include <cstdint>

namespace fp8::emulator {

enum class Format { E4M3, E5M2, F16, BF16, TF32, F32 };

/// Returns the bits of an element in a fragment.
unsigned bitsOf(Format format);

/// Returns the PTX name of a format.
const char *nameOfFormat(Format format);

/// Returns the exact value of an element.
double decode(Format format, uint32_t bits);

/// Rounds `value` to the nearest element, ties to even. With `saturate`, values
/// out of range become the largest finite element (PTX ISA, cvt: .satfinite).
/// NaN becomes the format's canonical NaN.
uint32_t encode(Format format, double value, bool saturate);

/// Returns an element of a lane's 32-bit registers.
double elementOf(const uint64_t *registers, unsigned index, Format format);

float asFloat(uint64_t bits);
uint32_t asBits(float value);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_FORMATS_H
