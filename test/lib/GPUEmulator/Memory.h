//===- Memory.h - Device memory and who touched it --------------*- C++ -*-===//
//
// Device memory is host memory at the same addresses. Beside every byte stands
// who wrote and who read it last, so that two accesses without an order are
// found whatever order they ran in.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_MEMORY_H
#define FP8_TEST_LIB_GPUEMULATOR_MEMORY_H

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace fp8::emulator {

/// Who made an access, and when in the time of its warp (see Clocks).
class Stamp {
public:
  Stamp() = default;
  Stamp(uint32_t block, uint32_t thread, uint32_t clock, bool isAtomic)
      : bits(uint64_t(1) << 63 | uint64_t(isAtomic) << 62 |
             uint64_t(block & 0x7fffff) << 38 | uint64_t(thread & 0x3ff) << 28 |
             (clock & 0xfffffff)) {}
  explicit operator bool() const { return bits != 0; }
  bool operator==(Stamp other) const { return bits == other.bits; }
  bool isAtomic() const { return bits >> 62 & 1; }
  uint32_t block() const { return bits >> 38 & 0x7fffff; }
  uint32_t thread() const { return bits >> 28 & 0x3ff; }
  uint32_t clock() const { return bits & 0xfffffff; }

private:
  uint64_t bits = 0;
};

/// The last accesses of one byte.
struct Cell {
  Stamp write;
  /// The last reader, and another one that has no order with it.
  Stamp read, otherRead;
  /// An asynchronous copy that has not been waited for will write here.
  Stamp pending;
  /// What number the fence.proxy.async of the writer has to have for the write
  /// to be seen through the async proxy; 0: it was made through it.
  uint32_t unfenced = 0;
};

/// The vector clocks of a block's warps. A barrier brings to every warp that
/// waits at it what the others did before.
class Clocks {
public:
  explicit Clocks(unsigned warps)
      : warps(warps), known(static_cast<size_t>(warps) * warps, 0) {
    for (unsigned warp = 0; warp < warps; ++warp)
      at(warp, warp) = 1;
  }
  uint32_t now(unsigned warp) const { return known[warp * warps + warp]; }
  /// Did what `stamp` says happen before what `thread` of this block does now?
  bool isBefore(Stamp stamp, unsigned thread) const {
    if (stamp.thread() == thread)
      return true;
    unsigned mine = thread / 32, its = stamp.thread() / 32;
    if (mine == its)
      return stamp.clock() < now(mine);
    return stamp.clock() <= known[mine * warps + its];
  }
  /// All that `warp` did is now known to a barrier.
  void release(unsigned warp, std::vector<uint32_t> &barrier) {
    barrier.resize(warps, 0);
    for (unsigned other = 0; other < warps; ++other)
      barrier[other] = std::max(barrier[other], at(warp, other));
    ++at(warp, warp);
  }
  /// `warp` knows what a barrier does.
  void acquire(unsigned warp, const std::vector<uint32_t> &barrier) {
    for (unsigned other = 0; other < warps; ++other)
      if (other != warp)
        at(warp, other) = std::max(at(warp, other), barrier[other]);
  }
  /// The lanes of a warp know of each other.
  void advance(unsigned warp) { ++at(warp, warp); }

private:
  uint32_t &at(unsigned warp, unsigned other) {
    return known[warp * warps + other];
  }
  unsigned warps;
  std::vector<uint32_t> known;
};

/// The global memory of a device.
class DeviceMemory {
public:
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// 0 if there is not so much left.
  uint64_t allocate(uint64_t bytes);
  bool free(uint64_t address);
  uint64_t capacity() const { return capacityBytes; }
  uint64_t available() const { return capacityBytes - usedBytes; }

  struct Allocation {
    uint64_t begin, bytes;
  };
  /// The allocation that holds all of these bytes, or null.
  const Allocation *find(uint64_t address, uint64_t bytes) const;
  bool isInWindow(uint64_t address) const {
    return address >= window && address < window + windowBytes;
  }

  /// What is known of the bytes since the last launch began.
  Cell &cell(uint64_t address) {
    Page &page = pageOf(address);
    return page.cells[address % pageBytes];
  }
  /// Nothing that was done before has no order with what comes.
  void beginLaunch() { ++launch; }

  void setWritten(uint64_t address, uint64_t bytes, bool isWritten);
  bool isWritten(uint64_t address) {
    return pageOf(address).written[address % pageBytes];
  }
  void markWritten(uint64_t address) {
    pageOf(address).written[address % pageBytes] = true;
  }

private:
  static constexpr uint64_t pageBytes = 4096;
  struct Page {
    uint64_t launch = 0;
    std::array<Cell, pageBytes> cells;
    std::bitset<pageBytes> written;
  };
  Page &pageOf(uint64_t address);

  uint64_t window = 0;
  uint64_t windowBytes;
  uint64_t capacityBytes, usedBytes = 0;
  uint64_t launch = 1;
  uint64_t next; // where the next allocation may begin
  std::map<uint64_t, Allocation> allocations;
  mutable const Allocation *lastFound = nullptr;
  std::vector<std::unique_ptr<Page>> pages;
};

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_MEMORY_H
