//===- Descriptor.h - Matrices of wgmma in shared memory --------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_DESCRIPTOR_H
#define FP8_TEST_LIB_GPUEMULATOR_DESCRIPTOR_H

#include "TensorMap.h"

#include <cstdint>
#include <string>

namespace fp8::emulator {

/// A matrix descriptor, PTX ISA 9.7.15.5.1.2.2 ("Matrix Descriptor Format").
/// Bits 0-13 are the start address, 16-29 the byte offset of the leading
/// dimension, 32-45 that of the stride dimension, all without their four low
/// bits. Bits 49-51 are the base offset, 62-63 the swizzle.
struct Descriptor {
  static constexpr uint64_t kReserved = 0x3ff1'c000'c000'c000;

  explicit Descriptor(uint64_t bits)
      : bits(bits), start((bits & 0x3fff) << 4),
        leading((bits >> 16 & 0x3fff) << 4), stride((bits >> 32 & 0x3fff) << 4),
        baseOffset(bits >> 49 & 7), span(spanOf(bits >> 62)) {}

  uint64_t bits, start, leading, stride;
  unsigned baseOffset;
  unsigned span; ///< Bytes that the swizzle spans: 0, 32, 64 or 128.

  /// Returns why the emulator rejects the descriptor, or an empty string.
  std::string invalid() const {
    if (bits & kReserved)
      return "expected zeros in the reserved bits of a matrix descriptor";
    if (baseOffset)
      return "expected a matrix descriptor with a base offset of 0, others are "
             "not known, but got " +
             std::to_string(baseOffset);
    // The pattern of the swizzle begins at a multiple of 8 rows. Within a row,
    // the start address advances along k.
    if (start & (span ? uint64_t(8) * span - 128 : 0))
      return "expected a matrix that begins in the first line of its swizzle, "
             "which repeats every " +
             std::to_string(8 * span) + " bytes, but got one at " +
             std::to_string(start);
    return "";
  }

  /// Returns the address of the 16 bytes that contain an element, in the window
  /// of 256 KiB that descriptors can address. `mn` is the row of A or the
  /// column of B. PTX ISA 9.7.15.5.1.2.1 ("Strides"): core matrices have 8 rows
  /// of 16 bytes. With a swizzle, their rows are `span` bytes apart, so that
  /// the leading offset is unused if the matrix is contiguous along k.
  uint64_t pieceAlongK(unsigned mn, unsigned byte) const {
    uint64_t at = start + mn / 8 * stride;
    at += span ? mn % 8 * span + byte / 16 * 16
               : mn % 8 * 16 + byte / 16 * leading;
    return swizzled(at & 0x3ffff, span);
  }
  /// The same for a matrix that is contiguous along `mn` (imm-trans), with 8
  /// elements of 16 bits in 16 bytes.
  uint64_t pieceAlongMN(unsigned mn, unsigned k) const {
    unsigned piece = mn / 8, pieces = span / 16;
    uint64_t at = start;
    at += span ? piece % pieces * 16 + piece / pieces * leading + k % 8 * span +
                     k / 8 * stride
               : piece * stride + k % 8 * 16 + k / 8 * leading;
    return swizzled(at & 0x3ffff, span);
  }

private:
  static unsigned spanOf(uint64_t mode) { return mode == 0 ? 0 : 256u >> mode; }
};

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_DESCRIPTOR_H
