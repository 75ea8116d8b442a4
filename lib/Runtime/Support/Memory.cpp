//===- Memory.cpp - Buffers and pages -------------------------------------===//

#include "Memory.h"
#include "Error.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace fp8::rt {

void FreeDeleter::operator()(void *memory) const {
  if (mappedBytes > 0)
    munmap(memory, mappedBytes);
  else
    std::free(memory);
}

AlignedBuffer allocateAligned(int64_t bytes) {
  // (Unsigned, for any size can be asked for, but not be had.)
  uint64_t least = std::max<int64_t>(bytes, 1),
           rounded = (least + 63) / 64 * 64;
  void *memory = std::aligned_alloc(64, rounded);
  if (!memory)
    throw Error(FP8_ERROR_MEMORY,
                str("out of memory: cannot allocate ", bytesText(bytes)));
  return AlignedBuffer(static_cast<char *>(memory));
}

Mapping::Mapping(int64_t bytes) {
  if (bytes <= 0)
    return;
  uint64_t page = sysconf(_SC_PAGESIZE);
  uint64_t rounded = (bytes + page - 1) / page * page;
  void *address = mmap(nullptr, rounded, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw Error(FP8_ERROR_MEMORY,
                str("out of memory: cannot reserve ", bytesText(bytes), ": ",
                    errnoText(errno)));
  // Huge pages reduce TLB misses; where they are disabled this has no effect.
  if (rounded >= (16 << 20))
    madvise(address, rounded, MADV_HUGEPAGE);
  memory = static_cast<char *>(address);
  length = static_cast<int64_t>(rounded);
}

Mapping::~Mapping() {
  if (memory)
    munmap(memory, length);
}

int64_t Mapping::touched() const {
  if (!memory)
    return 0;
  int64_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> resident(length / page);
  if (mincore(memory, length, resident.data()) != 0)
    return 0;
  int64_t count = 0;
  for (unsigned char flags : resident)
    count += flags & 1;
  return count * page;
}

void Mapping::release(const char *begin, int64_t bytes) {
  int64_t page = sysconf(_SC_PAGESIZE), from = begin - memory,
          end = (from + bytes) / page * page;
  from = (from + page - 1) / page * page;
  if (from < end)
    madvise(memory + from, end - from, MADV_DONTNEED);
}

int64_t peakRss() {
  auto file = classic<std::ifstream>("/proc/self/status");
  std::string line;
  while (std::getline(file, line))
    if (line.rfind("VmHWM:", 0) == 0)
      return std::strtoll(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

} // namespace fp8::rt
