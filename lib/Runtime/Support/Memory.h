//===- Memory.h - Buffers and pages -----------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_MEMORY_H
#define FP8_LIB_RUNTIME_SUPPORT_MEMORY_H

#include <cstdint>
#include <memory>
#include <utility>

namespace fp8::rt {

struct FreeDeleter {
  void operator()(void *memory) const;
  int64_t mappedBytes = 0; // of a mapped file; 0: heap memory
};
using AlignedBuffer = std::unique_ptr<char, FreeDeleter>;
/// Allocates 64-byte aligned memory that is not cleared.
AlignedBuffer allocateAligned(int64_t bytes);

/// Rounds up to a multiple of `alignment`; the default is that of host buffers.
constexpr int64_t alignUp(int64_t bytes, int64_t alignment = 64) {
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Zeroed pages that take memory only once they are touched.
class Mapping {
public:
  Mapping() = default;
  explicit Mapping(int64_t bytes);
  ~Mapping();
  Mapping(Mapping &&other) noexcept { *this = std::move(other); }
  Mapping &operator=(Mapping &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(length, other.length);
    return *this;
  }
  char *data() const { return memory; }
  int64_t reserved() const { return length; }
  int64_t touched() const;
  /// Frees the whole pages of a range: they read as zeros again.
  void release(const char *begin, int64_t bytes);

private:
  char *memory = nullptr;
  int64_t length = 0;
};

/// Returns the largest resident set of the process so far (VmHWM); 0 if
/// unknown.
int64_t peakRss();

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_MEMORY_H
