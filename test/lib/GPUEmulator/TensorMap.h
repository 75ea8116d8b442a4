//===- TensorMap.h - What a tensor map says ---------------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_TENSORMAP_H
#define FP8_TEST_LIB_GPUEMULATOR_TENSORMAP_H

#include <cstdint>
#include <string>

namespace fp8::emulator {

/// The arguments of cuTensorMapEncodeTiled, inner dimension first. The 128
/// bytes of a tensor map are opaque; here they begin with this.
struct TensorMap {
  static constexpr uint64_t kMark = 0x70614d726f736e65;
  static constexpr unsigned kBytes = 128, kMostDims = 5;

  uint64_t mark = kMark;
  uint64_t address = 0;
  uint64_t sizes[kMostDims] = {};
  /// The bytes between two elements of dimension i + 1. Those of dimension 0
  /// are adjacent.
  uint64_t strides[kMostDims - 1] = {};
  uint32_t box[kMostDims] = {};
  uint32_t rank = 2;
  uint32_t elementBytes = 1;
  uint32_t swizzle = 0; ///< Bytes of its span: 0, 32, 64 or 128.

  /// A box consists of rows: its elements along dimension 0.
  unsigned rowBytes() const { return box[0] * elementBytes; }
  unsigned rows() const {
    unsigned count = 1;
    for (unsigned i = 1; i < rank; ++i)
      count *= box[i];
    return count;
  }
  unsigned boxBytes() const { return rowBytes() * rows(); }
  /// Returns why the driver would reject it, or an empty string.
  std::string invalid() const;
};

static_assert(sizeof(TensorMap) <= TensorMap::kBytes, "it is opaque");

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
