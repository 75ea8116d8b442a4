//===- Formats.h - Small floating-point formats -----------------*- C++ -*-===//
//
// The values of the formats that tensor cores and conversions know, computed
// from their definitions: slow and plain.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_FORMATS_H
#define FP8_TEST_LIB_GPUEMULATOR_FORMATS_H

#include <cstdint>

namespace fp8::emulator {

enum class Format { E4M3, E5M2, F16, BF16, TF32, F32 };

/// Bits that one element takes in a fragment.
unsigned bitsOf(Format format);

/// What PTX calls it.
const char *nameOfFormat(Format format);

/// The exact value of an element.
double decode(Format format, uint32_t bits);

/// `value` rounded to the nearest element, ties to even. With `saturate` what
/// is too large becomes the largest finite element (PTX ISA, cvt: .satfinite);
/// NaN becomes the format's canonical NaN.
uint32_t encode(Format format, double value, bool saturate);

/// An element of a lane's 32-bit registers.
double elementOf(const uint64_t *registers, unsigned index, Format format);

float asFloat(uint64_t bits);
uint32_t asBits(float value);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_FORMATS_H
