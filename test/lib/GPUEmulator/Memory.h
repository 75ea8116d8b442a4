//===- Memory.h - Device memory and who touched it --------------*- C++ -*-===//
//
// Device memory is host memory at the same addresses. For each byte, the last
// accesses are recorded, so that unordered accesses are detected no matter in
// which order they ran.
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

/// The thread that made an access, and the clock of its warp at that time (see
/// Clocks).
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
  /// The last reader, and another reader that is not ordered with it.
  Stamp read, otherRead;
  /// The asynchronous copy that will write here and has not been waited for.
  Stamp pending;
  /// The number of the writer's fence.proxy.async from which on the async proxy
  /// sees the write; 0 if the async proxy made it.
  uint32_t unfenced = 0;
  /// Of device memory: the launch that the accesses belong to.
  uint32_t launch = 0;
};

/// The vector clocks of a block's warps. A barrier orders what all warps did
/// before it before what the waiting warps do after it.
class Clocks {
public:
  explicit Clocks(unsigned warps)
      : warps(warps), known(static_cast<size_t>(warps) * warps, 0) {
    for (unsigned warp = 0; warp < warps; ++warp)
      at(warp, warp) = 1;
  }
  uint32_t now(unsigned warp) const { return known[warp * warps + warp]; }
  /// Returns true if the access of `stamp` happens before what `thread` of this
  /// block does now.
  bool isBefore(Stamp stamp, unsigned thread) const {
    if (stamp.thread() == thread)
      return true;
    unsigned mine = thread / 32, its = stamp.thread() / 32;
    if (mine == its)
      return stamp.clock() < now(mine);
    return stamp.clock() <= known[mine * warps + its];
  }
  /// Adds everything that `warp` has done to the clock of a barrier.
  void release(unsigned warp, std::vector<uint32_t> &barrier) {
    barrier.resize(warps, 0);
    for (unsigned other = 0; other < warps; ++other)
      barrier[other] = std::max(barrier[other], at(warp, other));
    ++at(warp, warp);
  }
  /// Orders what is in the clock of a barrier before what `warp` does next.
  void acquire(unsigned warp, const std::vector<uint32_t> &barrier) {
    for (unsigned other = 0; other < warps; ++other)
      if (other != warp)
        at(warp, other) = std::max(at(warp, other), barrier[other]);
  }
  /// Orders the accesses of the lanes of a warp.
  void advance(unsigned warp) { ++at(warp, warp); }

private:
  uint32_t &at(unsigned warp, unsigned other) {
    return known[warp * warps + other];
  }
  unsigned warps;
  std::vector<uint32_t> known;
};

/// The bytes that a node of a graph has accessed.
struct Touched {
  struct Range {
    uint64_t begin, end;
  };
  std::vector<Range> reads, writes;

  void add(uint64_t address, uint64_t bytes, bool isWrite) {
    std::vector<Range> &ranges = isWrite ? writes : reads;
    if (!ranges.empty() && ranges.back().end == address)
      ranges.back().end += bytes;
    else
      ranges.push_back({address, address + bytes});
  }
  void add(const Touched &other) {
    reads.insert(reads.end(), other.reads.begin(), other.reads.end());
    writes.insert(writes.end(), other.writes.begin(), other.writes.end());
  }
  /// Joins ranges that overlap or adjoin.
  void simplify();
};

/// The global memory of a device.
class DeviceMemory {
public:
  explicit DeviceMemory(uint64_t capacity);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Returns the address of new memory, or 0 if there is not enough.
  uint64_t allocate(uint64_t bytes);
  bool free(uint64_t address);
  uint64_t capacity() const { return capacityBytes; }
  uint64_t available() const { return capacityBytes - usedBytes; }

  struct Allocation {
    uint64_t begin, bytes;
  };
  /// Returns the allocation that contains all of these bytes, or null.
  const Allocation *find(uint64_t address, uint64_t bytes) const;
  bool isInWindow(uint64_t address) const {
    return address >= window && address < window + windowBytes;
  }

  /// Returns the accesses to a byte since the last launch began.
  Cell &cell(uint64_t address) {
    Cell &cell = pageOf(address).cells[address % pageBytes];
    if (cell.launch != launch) {
      cell = Cell();
      cell.launch = launch;
    }
    return cell;
  }
  /// Begins a launch, which is ordered after everything before it.
  void beginLaunch() { ++launch; }

  /// Notes an access of the node that is running, if there is one.
  void touch(uint64_t address, bool isWrite) {
    if (!isTouching)
      return;
    Page &page = pageOf(address);
    if (!page.isTouched)
      touchedPages.push_back((address - window) / pageBytes);
    page.isTouched = true;
    (isWrite ? page.touchedByWrites : page.touchedByReads)
        .set(address % pageBytes);
  }
  void setTouching(bool notes) { isTouching = notes; }
  /// Moves the noted accesses to `touched`.
  void takeTouched(Touched &touched);

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
    std::array<Cell, pageBytes> cells;
    std::bitset<pageBytes> written;
    bool isTouched = false;
    std::bitset<pageBytes> touchedByReads, touchedByWrites;
  };
  Page &pageOf(uint64_t address) {
    std::unique_ptr<Page> &page = pages[(address - window) / pageBytes];
    if (!page)
      page = std::make_unique<Page>();
    return *page;
  }

  uint64_t window = 0;
  uint64_t windowBytes;
  uint64_t capacityBytes, usedBytes = 0;
  uint32_t launch = 1;
  uint64_t next; // where the next allocation may begin
  std::map<uint64_t, Allocation> allocations;
  mutable const Allocation *lastFound = nullptr;
  std::vector<std::unique_ptr<Page>> pages;
  bool isTouching = false;
  std::vector<uint64_t> touchedPages;
};

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_MEMORY_H
