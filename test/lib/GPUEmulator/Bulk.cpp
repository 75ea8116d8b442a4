//===- Bulk.cpp - mbarrier and cp.async.bulk.tensor -----------------------===//

#include "Instructions.h"
#include "TensorMap.h"

#include <algorithm>
#include <cstring>

namespace fp8::emulator {

static std::string number(uint64_t value) { return std::to_string(value); }

//===----------------------------------------------------------------------===//
// mbarrier, PTX ISA 9.7.13.15
//===----------------------------------------------------------------------===//

// The object is opaque. Uses of its 8 bytes must be ordered after the
// initialization, and nothing may overwrite them.
void Block::initBarrier(Thread &thread, const Instruction &instruction,
                        uint64_t address, uint32_t count) {
  access(thread, address, 8, 8, AccessKind::Write, instruction.place);
  if (count == 0 || count >= 1u << 20)
    fail(thread, Fault::Invalid, instruction.place,
         "expected an mbarrier of 1 to 2^20 - 1 arrivals but got " +
             number(count));
  MemoryBarrier made;
  made.expected = made.pending = count;
  made.maker = thread.index;
  made.unfenced = thread.barrierFences + 1;
  memoryBarriers[address] = made;
}

void Block::invalidateBarrier(Thread &thread, const Instruction &instruction,
                              uint64_t address) {
  barrierAt(thread, instruction, address);
  access(thread, address, 8, 8, AccessKind::Write, instruction.place);
  memoryBarriers.erase(address);
}

Block::MemoryBarrier &Block::barrierAt(Thread &thread,
                                       const Instruction &instruction,
                                       uint64_t address) {
  access(thread, address, 8, 8, AccessKind::Atomic, instruction.place);
  auto found = memoryBarriers.find(address);
  if (found == memoryBarriers.end())
    fail(thread, Fault::Invalid, instruction.place,
         "there is no mbarrier at " + nameOf(address));
  return found->second;
}

// 9.7.13.15.5.1, expect-tx: adds `bytes` to what the current phase expects.
// 9.7.13.15.13, arrive: subtracts from the pending arrivals.
uint64_t Block::arrive(Thread &thread, const Instruction &instruction,
                       uint64_t address, uint32_t arrivals, uint32_t bytes) {
  MemoryBarrier &barrier = barrierAt(thread, instruction, address);
  barrier.bytes += bytes;
  if (barrier.bytes >= 1 << 20)
    fail(thread, Fault::Invalid, instruction.place,
         "an mbarrier waits for at most 2^20 - 1 bytes but got " +
             number(barrier.bytes));
  if (arrivals > barrier.pending)
    fail(thread, Fault::Invalid, instruction.place,
         "the mbarrier expects " + number(barrier.pending) +
             " more arrivals but got " + number(arrivals));
  if (arrivals)
    clocks.release(thread.warp, barrier.clock);
  barrier.pending -= arrivals;
  uint64_t phase = barrier.phase;
  completePhase(barrier);
  return phase;
}

static void join(std::vector<uint32_t> &clock,
                 const std::vector<uint32_t> &other) {
  clock.resize(std::max(clock.size(), other.size()), 0);
  for (size_t i = 0; i < other.size(); ++i)
    clock[i] = std::max(clock[i], other[i]);
}

// 9.7.13.15.5: a phase is complete when no arrivals or bytes are pending. The
// next phase then begins with the initial count.
void Block::completePhase(MemoryBarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  barrier.pending = barrier.expected;
  ++barrier.phase;
  join(barrier.complete, barrier.clock);
  barrier.clock.clear();
  // Threads that wait for the phase may now read the bytes that have landed.
  for (auto [address, stamp] : barrier.landed) {
    Cell &cell = cellOf(address);
    cell.pending = Stamp();
    cell.write = stamp;
    cell.unfenced = 0;
  }
  barrier.landed.clear();
  for (Thread *waiting : barrier.waiting)
    makeReady(*waiting);
  barrier.waiting.clear();
}

// 9.7.13.15.16, try_wait.parity: returns true if the phase of that parity is
// complete, that is, if the parity of the current one differs. It may wait for
// an unspecified time and return false.
bool Block::tryWait(Thread &thread, const Instruction &instruction,
                    uint64_t address, uint32_t parity) {
  auto isComplete = [&](MemoryBarrier &barrier) {
    if (barrier.phase % 2 == parity)
      return false;
    if (!barrier.complete.empty())
      clocks.acquire(thread.warp, barrier.complete);
    return true;
  };
  if (parity > 1)
    fail(thread, Fault::Invalid, instruction.place,
         "expected a parity of 0 or 1 but got " + number(parity));
  MemoryBarrier &barrier = barrierAt(thread, instruction, address);
  if (isComplete(barrier))
    return true;
  if (grid.schedule.landing == Landing::Random && grid.random() % 4 == 0) {
    makeReady(thread);
    wait(thread, instruction);
    return isComplete(barrierAt(thread, instruction, address));
  }
  barrier.waiting.push_back(&thread);
  wait(thread, instruction);
  return isComplete(barrierAt(thread, instruction, address));
}

//===----------------------------------------------------------------------===//
// cp.async.bulk.tensor, PTX ISA 9.7.9.27
//===----------------------------------------------------------------------===//

// The rules of cuTensorMapEncodeTiled in the driver's documentation, as far as
// elements of whole bytes without interleaving need them. The strides of its
// formula: each is a multiple of the one before, and spans that dimension.
std::string TensorMap::invalid() const {
  auto expected = [](const std::string &what, uint64_t got) {
    return "expected " + what + " but got " + number(got);
  };
  if (rank == 0 || rank > kMostDims)
    return expected("1 to 5 dimensions", rank);
  if (address % 16)
    return expected("an address that is a multiple of 16", address);
  for (unsigned i = 0; i < rank; ++i) {
    if (sizes[i] == 0 || sizes[i] > uint64_t(1) << 32)
      return expected("a size of 1 to 2^32", sizes[i]);
    if (box[i] == 0 || box[i] > 256)
      return expected("a box of 1 to 256", box[i]);
  }
  for (unsigned i = 0; i + 1 < rank; ++i) {
    if (strides[i] % 16 || strides[i] >= uint64_t(1) << 40)
      return expected("a stride that is a multiple of 16 below 2^40",
                      strides[i]);
    uint64_t inner = i ? strides[i - 1] : elementBytes;
    if (strides[i] % inner || strides[i] < inner * sizes[i])
      return expected("a stride that is a multiple of " + number(inner) +
                          " and at least " + number(inner * sizes[i]),
                      strides[i]);
  }
  if (rowBytes() % 16)
    return expected("rows of a box that are a multiple of 16 bytes",
                    rowBytes());
  if (swizzle && rowBytes() > swizzle)
    return expected("rows of a box of at most " + number(swizzle) +
                        " bytes, the span of the swizzle,",
                    rowBytes());
  return "";
}

namespace {
/// The part of a row of a box that lies inside the tensor: its address, and its
/// offset in the row and length in bytes.
struct BoxRow {
  uint64_t source = 0;
  unsigned first = 0, bytes = 0;
};
} // namespace

/// Finds row `row` of the box at `coordinates`.
static BoxRow rowOf(const TensorMap &map, const int32_t *coordinates,
                    unsigned row) {
  int64_t begin = std::max<int64_t>(coordinates[0], 0);
  int64_t end = std::min(int64_t(coordinates[0]) + map.box[0],
                         static_cast<int64_t>(map.sizes[0]));
  BoxRow found;
  found.source = map.address + begin * map.elementBytes;
  bool isInside = begin < end;
  for (unsigned i = 1; i < map.rank; ++i) {
    int64_t at = int64_t(coordinates[i]) + row % map.box[i];
    row /= map.box[i];
    isInside &= at >= 0 && at < static_cast<int64_t>(map.sizes[i]);
    found.source += at * static_cast<int64_t>(map.strides[i - 1]);
  }
  if (isInside) {
    found.first =
        static_cast<unsigned>((begin - coordinates[0]) * map.elementBytes);
    found.bytes = static_cast<unsigned>((end - begin) * map.elementBytes);
  }
  return found;
}

TensorMap Block::readTensorMap(Thread &thread, const Instruction &instruction,
                               uint64_t address) {
  TensorMap map;
  access(thread, address, TensorMap::kBytes, 1, AccessKind::Read,
         instruction.place);
  std::memcpy(&map, reinterpret_cast<const void *>(address), sizeof(map));
  if (map.mark != TensorMap::kMark)
    fail(thread, Fault::Invalid, instruction.place,
         "there is no tensor map at " + nameOf(address));
  return map;
}

void Block::startBulkCopy(Thread &thread, const Instruction &instruction,
                          const uint64_t *operands) {
  const std::string &place = instruction.place;
  uint64_t target = operands[0], barrierAddress = operands[1];
  BulkCopy copy;
  copy.map = readTensorMap(thread, instruction, operands[2]);
  const TensorMap &map = copy.map;
  if (map.rank != instruction.detail[0])
    fail(thread, Fault::Invalid, place,
         "expected a tensor map of " +
             number(static_cast<uint64_t>(instruction.detail[0])) +
             " dimensions but got " + number(map.rank));
  if (map.swizzle && map.rowBytes() != map.swizzle)
    fail(thread, Fault::Invalid, place,
         "the emulator swizzles rows of " + number(map.swizzle) +
             " bytes, the whole span, but got " + number(map.rowBytes()));
  copy.target = target;
  copy.barrier = barrierAddress;
  for (unsigned i = 0; i < map.rank; ++i)
    copy.coordinates[i] = static_cast<int32_t>(operands[3 + i]);
  if (grid.schedule.landing == Landing::Random)
    copy.firstRow = grid.random() % map.rows();
  if (target < grid.sharedBase || target - grid.sharedBase >= grid.sharedBytes)
    fail(thread, Fault::OutOfBounds, place,
         "expected a cp.async.bulk to shared memory but got " + nameOf(target));
  // The async proxy uses the barrier, so its init must be fenced.
  MemoryBarrier &barrier = barrierAt(thread, instruction, barrierAddress);
  if (threads[barrier.maker].barrierFences < barrier.unfenced)
    fail(thread, Fault::Race, place,
         "the mbarrier was made by thread " + number(barrier.maker) +
             " with no fence.mbarrier_init or fence.proxy.async after it");
  for (unsigned row = 0; row < map.rows(); ++row) {
    BoxRow part = rowOf(map, copy.coordinates, row);
    accessByProxy(thread, part.source, part.bytes, 1, AccessKind::Read, place);
  }
  accessByProxy(thread, target, map.boxBytes(), 128, AccessKind::Write, place);
  copy.stamp = cellOf(target).write;
  for (unsigned i = 0; i < map.boxBytes(); ++i) {
    Cell &cell = cellOf(target + i);
    cell.pending = cell.write;
    cell.write = Stamp();
  }
  clocks.release(thread.warp, copy.clock);
  auto hasLanded = [](const BulkCopy &other) {
    return other.landed == other.map.rows();
  };
  bulkCopies.erase(
      std::remove_if(bulkCopies.begin(), bulkCopies.end(), hasLanded),
      bulkCopies.end());
  bulkCopies.push_back(copy);
  if (grid.schedule.landing == Landing::Early)
    while (landOneRow(bulkCopies.size() - 1)) {
    }
}

// PTX ISA 8.9 and 9.7.13.6, fence.proxy.async: a write through the generic
// proxy is visible through the async proxy only after such a fence by the
// writer.
void Block::accessByProxy(Thread &thread, uint64_t address, uint64_t bytes,
                          unsigned alignment, AccessKind kind,
                          const std::string &place) {
  bool isShared = address >= grid.sharedBase &&
                  address + bytes <= grid.sharedBase + grid.sharedBytes;
  if (isShared || (bytes && grid.memory.find(address, bytes)))
    for (uint64_t i = 0; i < bytes; ++i) {
      const Cell &cell =
          isShared ? cellOf(address + i) : grid.memory.cell(address + i);
      Stamp write = cell.write;
      if (write && write.block() == (index & 0x7fffff) &&
          threads[write.thread()].proxyFences < cell.unfenced)
        fail(thread, Fault::Race, place,
             "use of " + nameOf(address + i) + ", which " + who(write) +
                 " wrote with no fence.proxy.async after it");
    }
  access(thread, address, bytes, alignment, kind, place);
}

/// Lands one row of a copy and subtracts its bytes from the barrier. Returns
/// false if none is left.
bool Block::landOneRow(size_t which) {
  BulkCopy &copy = bulkCopies[which];
  const TensorMap &map = copy.map;
  if (copy.landed == map.rows())
    return false;
  unsigned row = (copy.firstRow + copy.landed++) % map.rows();
  unsigned rowBytes = map.rowBytes();
  BoxRow part = rowOf(map, copy.coordinates, row);
  const auto *source = reinterpret_cast<const char *>(part.source);
  MemoryBarrier &barrier = memoryBarriers[copy.barrier];
  for (unsigned i = 0; i < rowBytes; ++i) {
    uint64_t at = grid.sharedBase +
                  swizzled(copy.target - grid.sharedBase +
                               static_cast<uint64_t>(row) * rowBytes + i,
                           map.swizzle);
    // Elements out of bounds become zeros, but their bytes count.
    bool isInside = i >= part.first && i - part.first < part.bytes;
    *reinterpret_cast<char *>(at) = isInside ? source[i - part.first] : 0;
    barrier.landed.emplace_back(at, copy.stamp);
  }
  join(barrier.clock, copy.clock);
  barrier.bytes -= rowBytes;
  completePhase(barrier);
  return true;
}

/// Lands one row of any pending copy. Returns false if none is pending.
bool Block::landSomething() {
  for (size_t i = 0; i < bulkCopies.size(); ++i)
    if (landOneRow(i))
      return true;
  bulkCopies.clear();
  return false;
}

/// Checks that all copies have landed when the block ends, because another
/// block may then use its shared memory.
Result Block::checkBulkCopies() const {
  for (const BulkCopy &copy : bulkCopies)
    if (copy.landed != copy.map.rows())
      return {Fault::Pending, "kernel '" + grid.kernel + "', block " +
                                  number(index) +
                                  ": it ends before a cp.async.bulk to " +
                                  nameOf(copy.target) + " has landed"};
  return result;
}

void Block::letSomeBulkLand() {
  if (grid.schedule.landing != Landing::Random)
    return;
  for (size_t i = 0; i < bulkCopies.size(); ++i)
    while (grid.random() % 4 != 0 && landOneRow(i)) {
    }
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static void fenceProxy(Thread &thread, const Instruction &, const uint64_t *,
                       uint64_t *) {
  ++thread.proxyFences;
  ++thread.barrierFences;
}

static void fenceBarrier(Thread &thread, const Instruction &, const uint64_t *,
                         uint64_t *) {
  ++thread.barrierFences;
}

Form findBulkInstruction(const std::string &opcode) {
  auto form = [](Handler handler, unsigned operands, unsigned results) {
    Form made;
    made.handler = handler;
    made.operands = operands;
    made.results = results;
    return made;
  };
  if (opcode == "fence.proxy.async" || opcode == "fence.proxy.async.shared")
    return form(&fenceProxy, 0, 0);
  if (opcode == "fence.mbarrier_init.release.cluster")
    return form(&fenceBarrier, 0, 0);
  if (opcode == "mbarrier.init.shared.b64")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *) {
          thread.block->initBarrier(thread, instruction, in[0],
                                    static_cast<uint32_t>(in[1]));
        },
        2, 0);
  if (opcode == "mbarrier.inval.shared.b64")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *) {
          thread.block->invalidateBarrier(thread, instruction, in[0]);
        },
        1, 0);
  // The result of an arrival is opaque: here it is the number of its phase.
  if (opcode == "mbarrier.arrive.shared.b64")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *results) {
          results[0] = thread.block->arrive(thread, instruction, in[0],
                                            static_cast<uint32_t>(in[1]), 0);
        },
        2, 1);
  if (opcode == "mbarrier.expect_tx.shared.b64")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *) {
          thread.block->arrive(thread, instruction, in[0], 0,
                               static_cast<uint32_t>(in[1]));
        },
        2, 0);
  if (opcode == "mbarrier.arrive.expect_tx.shared.b64")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *results) {
          results[0] = thread.block->arrive(thread, instruction, in[0], 1,
                                            static_cast<uint32_t>(in[1]));
        },
        2, 1);
  if (opcode == "mbarrier.try_wait.parity.shared.b64")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *results) {
          results[0] = thread.block->tryWait(thread, instruction, in[0],
                                             static_cast<uint32_t>(in[1]));
        },
        2, 1);
  // Operands: target, barrier, map, a coordinate for each dimension.
  for (unsigned rank = 1; rank <= TensorMap::kMostDims; ++rank) {
    if (opcode != "cp.async.bulk.tensor." + number(rank) +
                      "d.shared.global.tile.mbarrier::complete_tx::bytes")
      continue;
    Form copy = form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *) {
          thread.block->startBulkCopy(thread, instruction, in);
        },
        3 + rank, 0);
    copy.detail[0] = rank;
    return copy;
  }
  if (opcode == "prefetch.tensormap")
    return form(
        [](Thread &thread, const Instruction &instruction, const uint64_t *in,
           uint64_t *) {
          thread.block->readTensorMap(thread, instruction, in[0]);
        },
        1, 0);
  return {};
}

} // namespace fp8::emulator
