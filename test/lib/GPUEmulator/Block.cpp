//===- Block.cpp - The threads of a block ---------------------------------===//

#include "Block.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace fp8::emulator {

Thread *Block::current = nullptr;

std::string hexText(uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

static std::string number(uint64_t value) { return std::to_string(value); }

/// Returns the stack of the thread with this number. All launches share them.
static Stack &stackOf(unsigned thread) {
  static thread_local std::vector<std::unique_ptr<Stack>> stacks;
  while (stacks.size() <= thread)
    stacks.push_back(std::make_unique<Stack>());
  return *stacks[thread];
}

Block::Block(Grid &grid, unsigned index)
    : grid(grid), index(index),
      threads(static_cast<size_t>(grid.geometry.block[0]) *
              grid.geometry.block[1] * grid.geometry.block[2]),
      clocks((threads.size() + 31) / 32), shared(grid.sharedBytes),
      gatherings((threads.size() + 31) / 32), matrices(gatherings.size()),
      matrixIssues((threads.size() + 127) / 128),
      matrixReads(grid.sharedBytes / 16 + 1) {
  position[0] = index % grid.geometry.grid[0];
  position[1] = index / grid.geometry.grid[0] % grid.geometry.grid[1];
  position[2] = index / grid.geometry.grid[0] / grid.geometry.grid[1];
  // Overwrite what an earlier block has left, so that no block depends on it.
  std::memset(reinterpret_cast<void *>(grid.sharedBase), 0xff,
              grid.sharedBytes);
  for (unsigned i = 0; i < threads.size(); ++i) {
    Thread &thread = threads[i];
    thread.block = this;
    thread.index = i;
    thread.lane = i % 32;
    thread.warp = i / 32;
    thread.position[0] = i % grid.geometry.block[0];
    thread.position[1] = i / grid.geometry.block[0] % grid.geometry.block[1];
    thread.position[2] = i / grid.geometry.block[0] / grid.geometry.block[1];
    thread.stack = &stackOf(i);
    thread.context.begin(thread.stack->low(), Stack::bytes, &threadMain);
    ready.push_back(&thread);
  }
  alive = threads.size();
}

//===----------------------------------------------------------------------===//
// Scheduling of threads
//===----------------------------------------------------------------------===//

void Block::threadMain() {
  Thread &thread = *current;
  Block &block = *thread.block;
  block.grid.entry(block.grid.arguments);
  thread.state = Thread::Ended;
  --block.alive;
  for (Copy &copy : thread.copies)
    block.land(copy);
  block.completeBarriers(nullptr);
  thread.context.switchTo(block.scheduler);
  __builtin_unreachable(); // An ended thread is never resumed.
}

Result Block::run() {
  while (alive > 0) {
    // Late copies land when no thread can continue.
    while (ready.empty() && landSomething()) {
    }
    if (ready.empty())
      return deadlock();
    size_t pick = grid.random() % ready.size();
    Thread *thread = ready[pick];
    ready[pick] = ready.back();
    ready.pop_back();
    letSomeLand(*thread);
    letSomeBulkLand();
    current = thread;
    scheduler.switchTo(thread->context);
    current = nullptr;
    if (!result)
      return result;
  }
  if (Result copies = checkBulkCopies(); !copies)
    return copies;
  return checkMatrices();
}

void Block::wait(Thread &thread, const Instruction &instruction) {
  thread.state = Thread::Waiting;
  thread.waitsAt = &instruction;
  thread.context.switchTo(scheduler);
  thread.waitsAt = nullptr;
}

void Block::makeReady(Thread &thread) {
  thread.state = Thread::Ready;
  ready.push_back(&thread);
}

void Block::fail(Thread &thread, Fault fault, const std::string &place,
                 const std::string &message) {
  result.fault = fault;
  result.message = "kernel '" + grid.kernel + "', block " + number(index) +
                   ", thread " + number(thread.index) + ": " + message;
  if (!place.empty())
    result.message += "; at" + place;
  thread.context.switchTo(scheduler);
  __builtin_unreachable(); // The scheduler ends the block.
}

Result Block::deadlock() {
  std::string message =
      "kernel '" + grid.kernel + "', block " + number(index) + ": deadlock:";
  unsigned told = 0, ended = 0;
  const Instruction *last = nullptr;
  for (const Thread &thread : threads) {
    if (thread.state == Thread::Ended) {
      ++ended;
      continue;
    }
    if (thread.waitsAt == last || told == 8)
      continue;
    last = thread.waitsAt;
    ++told;
    message += " thread " + number(thread.index) + " waits at" +
               thread.waitsAt->place + ";";
  }
  message += " " + number(ended) + " of " + number(threads.size()) +
             " threads have ended";
  return {Fault::Deadlock, message};
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

std::string Block::who(Stamp stamp) const {
  std::string text = "thread " + number(stamp.thread());
  if (stamp.block() != (index & 0x7fffff))
    text += " of block " + number(stamp.block());
  return text;
}

std::string Block::nameOf(uint64_t address) const {
  if (address >= grid.sharedBase &&
      address < grid.sharedBase + grid.sharedBytes)
    return "shared memory + " + number(address - grid.sharedBase);
  for (const std::vector<Range> *ranges : {&grid.buffers, &grid.ranges})
    for (const Range &range : *ranges)
      if (address >= range.begin && address - range.begin < range.bytes)
        return range.name + " + " + number(address - range.begin);
  if (const DeviceMemory::Allocation *found = grid.memory.find(address, 1))
    return "an allocation of " + number(found->bytes) + " bytes + " +
           number(address - found->begin);
  return "address " + hexText(address);
}

/// Accesses of different blocks are never ordered: a launch does not define
/// when a block runs, and the emulator does not order by atomics.
bool Block::isBefore(Stamp stamp, const Thread &thread) const {
  return stamp.block() == (index & 0x7fffff) &&
         clocks.isBefore(stamp, thread.index);
}

// PTX ISA 8.8 and 8.10.1: two accesses to one location by two threads, at least
// one of them a write, are a race if neither happens before the other, unless
// both are atomic.
void Block::order(Thread &thread, Cell &cell, AccessKind kind, uint64_t address,
                  const std::string &place) {
  bool isAtomic = kind == AccessKind::Atomic;
  auto conflicts = [&](Stamp stamp) {
    return stamp && !(isAtomic && stamp.isAtomic()) && !isBefore(stamp, thread);
  };
  auto race = [&](const char *mine, const char *its, Stamp stamp) {
    fail(thread, Fault::Race, place,
         std::string(mine) + " of " + nameOf(address) + ", which " +
             who(stamp) + " " + its + " with no barrier between");
  };
  // PTX ISA 9.7.9.25.3: the memory that a cp.async writes or reads must not be
  // used before a wait.
  if (cell.pending)
    fail(thread, Fault::Pending, place,
         std::string(kind == AccessKind::Read ? "read" : "write") + " of " +
             nameOf(address) + ", where an asynchronous copy of " +
             who(cell.pending) + " has not been waited for");
  if (conflicts(cell.write))
    race(kind == AccessKind::Read ? "read" : "write", "wrote", cell.write);
  Stamp stamp(index, thread.index, clocks.now(thread.warp), isAtomic);
  if (kind == AccessKind::Read) {
    if (cell.read && !(cell.read == stamp) && !isBefore(cell.read, thread))
      cell.otherRead = cell.read;
    else if (cell.otherRead && isBefore(cell.otherRead, thread))
      cell.otherRead = Stamp();
    cell.read = stamp;
    return;
  }
  for (Stamp read : {cell.read, cell.otherRead})
    if (conflicts(read))
      race("write", "read", read);
  cell.write = stamp;
  cell.unfenced = thread.proxyFences + 1;
  cell.read = cell.otherRead = Stamp();
}

Cell &Block::cellOf(uint64_t address) {
  return shared[address - grid.sharedBase];
}

void Block::checkShared(Thread &thread, uint64_t address, uint64_t bytes,
                        AccessKind kind, const std::string &place) {
  for (uint64_t i = 0; i < bytes; ++i) {
    Cell &cell = cellOf(address + i);
    if (kind != AccessKind::Write && !cell.write && !cell.pending)
      fail(thread, Fault::Unwritten, place,
           "read of " + nameOf(address + i) +
               ", which nothing has been written to");
    order(thread, cell, kind, address + i, place);
  }
}

/// Describes the buffer that precedes an address.
std::string Block::beforeText(uint64_t address) const {
  const Range *before = nullptr;
  for (const Range &range : grid.buffers)
    if (range.begin <= address && (!before || range.begin >= before->begin))
      before = &range;
  return before ? number(address - before->begin) + " bytes before and has " +
                      number(before->bytes) + ": " + before->name
                : "nowhere";
}

void Block::checkGlobal(Thread &thread, uint64_t address, uint64_t bytes,
                        AccessKind kind, const std::string &place) {
  if (!grid.buffers.empty()) {
    bool isInside = false;
    for (const Range &range : grid.buffers)
      isInside |= address >= range.begin && bytes <= range.bytes &&
                  address - range.begin <= range.bytes - bytes;
    if (!isInside)
      fail(
          thread, Fault::OutOfBounds, place,
          "access of " + number(bytes) + " bytes at " + nameOf(address) +
              " reaches beyond the kernel's arguments (the one before begins " +
              beforeText(address) + ")");
  }
  for (uint64_t i = 0; i < bytes; ++i) {
    if (kind != AccessKind::Write && !grid.memory.isWritten(address + i))
      fail(thread, Fault::Unwritten, place,
           "read of " + nameOf(address + i) +
               ", which nothing has been written to");
    order(thread, grid.memory.cell(address + i), kind, address + i, place);
    grid.memory.touch(address + i, kind != AccessKind::Read);
    if (kind != AccessKind::Read)
      grid.memory.markWritten(address + i);
  }
}

void Block::access(Thread &thread, uint64_t address, uint64_t bytes,
                   unsigned alignment, AccessKind kind,
                   const std::string &place) {
  if (bytes == 0)
    return;
  if (alignment > 1 && address % alignment != 0)
    fail(thread, Fault::Misaligned, place,
         "access of " + nameOf(address) + " (" + hexText(address) +
             "), which is not a multiple of " + number(alignment) + " bytes");
  uint64_t base = grid.sharedBase;
  if (address >= base && address - base < (uint64_t(1) << 24)) {
    if (address - base + bytes > grid.sharedBytes)
      fail(thread, Fault::OutOfBounds, place,
           "access of " + number(bytes) + " bytes at shared memory + " +
               number(address - base) + ", of which there are " +
               number(grid.sharedBytes));
    if (kind != AccessKind::Read)
      checkMatrixReads(thread, address, bytes, place);
    return checkShared(thread, address, bytes, kind, place);
  }
  if (grid.memory.find(address, bytes))
    return checkGlobal(thread, address, bytes, kind, place);
  // The thread's own stack.
  if (thread.stack->contains(address, bytes))
    return;
  for (const Range &range : grid.ranges) {
    if (address < range.begin || bytes > range.bytes ||
        address - range.begin > range.bytes - bytes)
      continue;
    if (range.isConstant && kind != AccessKind::Read)
      fail(thread, Fault::OutOfBounds, place,
           "write to " + nameOf(address) + ", which is constant");
    return;
  }
  fail(thread, Fault::OutOfBounds, place,
       "access of " + number(bytes) + " bytes at " + nameOf(address) +
           ", which is no memory of the device");
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

uint32_t Block::fullMask(unsigned warp) const {
  unsigned lanes = std::min<unsigned>(32, threads.size() - warp * 32);
  return lanes == 32 ? ~0u : (1u << lanes) - 1;
}

void Block::gather(Thread &thread, const Instruction &instruction,
                   uint32_t mask, const uint64_t *operands, uint64_t *results,
                   WarpOperation operation) {
  if (!(mask >> thread.lane & 1))
    fail(thread, Fault::Divergence, instruction.place,
         "lane " + number(thread.lane) + " is not in the mask " +
             hexText(mask));
  if (mask & ~fullMask(thread.warp))
    fail(thread, Fault::Divergence, instruction.place,
         "the mask " + hexText(mask) + " has lanes that the block has not");
  std::vector<Gathering> &all = gatherings[thread.warp];
  auto found =
      std::find_if(all.begin(), all.end(), [&](const Gathering &lanes) {
        return lanes.instruction == &instruction && lanes.mask == mask;
      });
  if (found == all.end()) {
    all.push_back({&instruction, mask, 0, {}, {}});
    found = std::prev(all.end());
  }
  found->arrived |= 1u << thread.lane;
  found->operands[thread.lane] = operands;
  found->results[thread.lane] = results;
  if (found->arrived != mask)
    return wait(thread, instruction);
  Gathering lanes = *found;
  all.erase(found);
  operation(*this, thread.warp, lanes);
  for (unsigned lane = 0; lane < 32; ++lane)
    if (lane != thread.lane && (mask >> lane & 1))
      makeReady(threads[thread.warp * 32 + lane]);
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

static std::string countText(unsigned count) {
  return count ? number(count) + " threads" : "all threads";
}

// PTX ISA 9.7.13.1, barrier: it is complete when as many threads as it expects
// have arrived; without a number, all threads of the block that have not ended.
// It is then reset. The waiting threads see what all arrived threads did
// before. With .aligned, all threads of a warp must execute the same
// instruction. "barrier.red should not be intermixed with barrier.sync or
// barrier.arrive using the same active barrier."
void Block::barrier(Thread &thread, const Instruction &instruction, unsigned id,
                    unsigned count, const Arrival &arrival) {
  auto invalid = [&](const std::string &message) {
    fail(thread, Fault::Invalid, instruction.place, message);
  };
  if (id >= 16)
    invalid("expected a barrier below 16 but got " + number(id));
  if (count % 32 != 0 || count > (threads.size() + 31) / 32 * 32)
    invalid("expected a multiple of 32 threads, at most those of the block, "
            "but got " +
            number(count));
  Barrier &barrier = barriers[id];
  if (barrier.arrived.empty()) {
    barrier.count = count;
    barrier.reduces = arrival.reduces;
    barrier.place.assign(gatherings.size(), nullptr);
  }
  if (barrier.count != count)
    invalid("barrier " + number(id) + " is one of " + countText(barrier.count) +
            " for others but here one of " + countText(count));
  if (barrier.reduces != arrival.reduces)
    invalid("barrier " + number(id) +
            " reduces predicates for some threads and not for others");
  const Instruction *&place = barrier.place[thread.warp];
  if (arrival.isAligned && place && place != &instruction)
    fail(thread, Fault::Divergence, instruction.place,
         "the warp's threads are at different barriers, another one at" +
             place->place);
  place = &instruction;
  barrier.arrived.push_back(&thread);
  barrier.held += arrival.holds;
  if (arrival.waits)
    barrier.waiting.push_back(&thread);
  if (!completeBarriers(&thread) && arrival.waits)
    wait(thread, instruction);
}

/// Resumes the threads that wait at complete barriers. Returns true if `thread`
/// has arrived at one of these.
bool Block::completeBarriers(Thread *thread) {
  bool isThrough = false;
  for (Barrier &barrier : barriers) {
    unsigned expected = barrier.count
                            ? std::min<unsigned>(barrier.count, threads.size())
                            : alive;
    if (barrier.arrived.empty() || barrier.arrived.size() < expected)
      continue;
    Barrier complete;
    std::swap(complete, barrier);
    std::vector<bool> hasReleased(gatherings.size()),
        hasAcquired(gatherings.size());
    for (Thread *arrived : complete.arrived) {
      isThrough |= arrived == thread;
      if (!hasReleased[arrived->warp])
        clocks.release(arrived->warp, complete.clock);
      hasReleased[arrived->warp] = true;
    }
    for (Thread *waiting : complete.waiting) {
      if (!hasAcquired[waiting->warp])
        clocks.acquire(waiting->warp, complete.clock);
      hasAcquired[waiting->warp] = true;
      waiting->met = complete.arrived.size();
      waiting->held = complete.held;
      if (waiting != thread)
        makeReady(*waiting);
    }
  }
  return isThrough;
}

//===----------------------------------------------------------------------===//
// Asynchronous copies
//===----------------------------------------------------------------------===//

void Block::land(Copy &copy) {
  if (copy.hasLanded)
    return;
  copy.hasLanded = true;
  char *target = reinterpret_cast<char *>(copy.target);
  std::memcpy(target, reinterpret_cast<const char *>(copy.source),
              copy.sourceBytes);
  std::memset(target + copy.sourceBytes, 0, copy.bytes - copy.sourceBytes);
}

void Block::letSomeLand(Thread &thread) {
  if (grid.schedule.landing == Landing::Random)
    for (Copy &copy : thread.copies)
      if (grid.random() % 4 == 0)
        land(copy);
}

// PTX ISA 9.7.9.25.3.1, cp.async: the write to shared memory is like one by
// another thread, at any time before a wait of this thread ends.
void Block::startCopy(Thread &thread, const Instruction &instruction,
                      const Copy &copy) {
  const std::string &place = instruction.place;
  if (copy.target < grid.sharedBase ||
      copy.target - grid.sharedBase >= grid.sharedBytes)
    fail(thread, Fault::OutOfBounds, place,
         "expected a cp.async to shared memory but got " + nameOf(copy.target));
  if (copy.sourceBytes > copy.bytes)
    fail(thread, Fault::Invalid, place,
         "expected a source of at most " + number(copy.bytes) +
             " bytes but got " + number(copy.sourceBytes));
  if (copy.sourceBytes)
    access(thread, copy.source, copy.sourceBytes, copy.bytes, AccessKind::Read,
           place);
  access(thread, copy.target, copy.bytes, copy.bytes, AccessKind::Write, place);
  for (unsigned i = 0; i < copy.bytes; ++i) {
    Cell &cell = cellOf(copy.target + i);
    cell.pending = cell.write;
    cell.write = Stamp();
  }
  thread.copies.push_back(copy);
  thread.copies.back().group = thread.group;
  Landing landing = grid.schedule.landing;
  if (landing == Landing::Early ||
      (landing == Landing::Random && grid.random() % 2))
    land(thread.copies.back());
}

// PTX ISA 9.7.9.25.3.3, cp.async.wait_group N: waits until at most the last N
// groups of this thread are pending. wait_all: waits until none is, including
// copies that were not committed.
void Block::waitForCopies(Thread &thread, uint64_t pending, bool all) {
  Stamp stamp(index, thread.index, clocks.now(thread.warp), false);
  while (!thread.copies.empty()) {
    Copy &copy = thread.copies.front();
    if (!all && copy.group + pending >= thread.group)
      return;
    land(copy);
    for (unsigned i = 0; i < copy.bytes; ++i) {
      Cell &cell = cellOf(copy.target + i);
      cell.pending = Stamp();
      cell.write = stamp;
      // The copy is a write through the generic proxy, complete now.
      cell.unfenced = thread.proxyFences + 1;
    }
    thread.copies.pop_front();
  }
}

} // namespace fp8::emulator
