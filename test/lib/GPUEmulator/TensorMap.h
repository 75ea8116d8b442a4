//===- TensorMap.h - What a tensor map says ---------------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_TENSORMAP_H
#define FP8_TEST_LIB_GPUEMULATOR_TENSORMAP_H

#include <cstdint>
#include <string>

namespace fp8::emulator {

/// The arguments of cuTensorMapEncodeTiled for a two-dimensional tensor, inner
/// dimension first. The 128 bytes of a tensor map are opaque; here they begin
/// with this.
struct TensorMap {
  static constexpr uint64_t kMark = 0x70614d726f736e65;
  static constexpr unsigned kBytes = 128;

  uint64_t mark = kMark;
  uint64_t address = 0;
  uint64_t sizes[2] = {};
  uint64_t stride = 0; ///< Bytes between two rows.
  uint32_t box[2] = {};
  uint32_t elementBytes = 1;
  uint32_t swizzle = 0; ///< Bytes of its span: 0, 32, 64 or 128.

  unsigned rowBytes() const { return box[0] * elementBytes; }
  unsigned boxBytes() const { return rowBytes() * box[1]; }
  /// Returns why the driver would reject it, or an empty string.
  std::string invalid() const;
};

/// Returns the swizzled address of a byte of shared memory. PTX ISA 5.5.6,
/// "Swizzling Modes": the number of a 16-byte piece in the span is combined by
/// XOR with the number of the 128-byte line in the pattern, which repeats every
/// 256, 512 or 1024 bytes.
inline uint64_t swizzled(uint64_t address, unsigned span) {
  uint64_t pieces = span ? span / 16 - 1 : 0;
  return address ^ ((address >> 7 & pieces) << 4);
}

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_TENSORMAP_H
