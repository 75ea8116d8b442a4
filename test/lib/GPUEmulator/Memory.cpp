//===- Memory.cpp - Device memory and who touched it ----------------------===//

#include "Memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>

namespace fp8::emulator {

// The gap between two allocations, so that accesses beyond one are detected.
static constexpr uint64_t gapBytes = 4096;
// cuMemAlloc aligns for every type.
static constexpr uint64_t alignment = 256;

DeviceMemory::DeviceMemory(uint64_t capacity) : capacityBytes(capacity) {
  // The window is large, so that freed addresses are not reused soon.
  windowBytes = std::max<uint64_t>(4 * capacity, uint64_t(1) << 30);
  void *mapped = mmap(nullptr, windowBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    std::abort(); // Without memory, nothing can be emulated.
  window = reinterpret_cast<uint64_t>(mapped);
  next = window;
  pages.resize(windowBytes / pageBytes + 1);
}

DeviceMemory::~DeviceMemory() {
  munmap(reinterpret_cast<void *>(window), windowBytes);
}

uint64_t DeviceMemory::allocate(uint64_t bytes) {
  if (bytes == 0 || bytes > available())
    return 0;
  uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
  auto fits = [&] { return next + rounded + gapBytes <= window + windowBytes; };
  if (!fits()) {
    if (!allocations.empty())
      return 0;
    next = window;
    if (!fits())
      return 0;
  }
  uint64_t address = next;
  next = address + rounded + gapBytes;
  allocations[address] = {address, bytes};
  usedBytes += bytes;
  // New memory has arbitrary contents: here NaNs of every floating-point type.
  std::memset(reinterpret_cast<void *>(address), 0xff, rounded);
  setWritten(address, bytes, false);
  return address;
}

bool DeviceMemory::free(uint64_t address) {
  auto found = allocations.find(address);
  if (found == allocations.end())
    return false;
  usedBytes -= found->second.bytes;
  lastFound = nullptr;
  allocations.erase(found);
  return true;
}

const DeviceMemory::Allocation *DeviceMemory::find(uint64_t address,
                                                   uint64_t bytes) const {
  auto holds = [&](const Allocation &allocation) {
    return address >= allocation.begin && bytes <= allocation.bytes &&
           address - allocation.begin <= allocation.bytes - bytes;
  };
  if (lastFound && holds(*lastFound))
    return lastFound;
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return nullptr;
  const Allocation &allocation = std::prev(after)->second;
  if (!holds(allocation))
    return nullptr;
  lastFound = &allocation;
  return lastFound;
}

void DeviceMemory::setWritten(uint64_t address, uint64_t bytes,
                              bool isWritten) {
  for (uint64_t i = 0; i < bytes; ++i) {
    // A page that was never touched has no written bytes.
    if (!isWritten && !pages[(address + i - window) / pageBytes])
      continue;
    pageOf(address + i).written[(address + i) % pageBytes] = isWritten;
  }
}

//===----------------------------------------------------------------------===//
// Nodes of graphs
//===----------------------------------------------------------------------===//

static void simplifyRanges(std::vector<Touched::Range> &ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Touched::Range &a, const Touched::Range &b) {
              return a.begin < b.begin;
            });
  size_t count = 0;
  for (const Touched::Range &range : ranges)
    if (count > 0 && range.begin <= ranges[count - 1].end)
      ranges[count - 1].end = std::max(ranges[count - 1].end, range.end);
    else
      ranges[count++] = range;
  ranges.resize(count);
}

void Touched::simplify() {
  simplifyRanges(reads);
  simplifyRanges(writes);
}

void DeviceMemory::takeTouched(Touched &touched) {
  for (uint64_t number : touchedPages) {
    Page &page = *pages[number];
    uint64_t begin = window + number * pageBytes;
    for (uint64_t i = 0; i < pageBytes; ++i) {
      if (page.touchedByReads[i])
        touched.add(begin + i, 1, /*isWrite=*/false);
      if (page.touchedByWrites[i])
        touched.add(begin + i, 1, /*isWrite=*/true);
    }
    page.touchedByReads.reset();
    page.touchedByWrites.reset();
    page.isTouched = false;
  }
  touchedPages.clear();
  touched.simplify();
}

} // namespace fp8::emulator
