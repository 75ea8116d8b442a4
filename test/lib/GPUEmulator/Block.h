//===- Block.h - The threads of a block -------------------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_BLOCK_H
#define FP8_TEST_LIB_GPUEMULATOR_BLOCK_H

#include "Emulator.h"
#include "Fiber.h"
#include "TensorMap.h"

#include <deque>
#include <functional>
#include <random>

namespace fp8::emulator {

class Block;
struct Thread;
struct Instruction;

/// Runs an instruction for `thread`. Operands and results have 64 bits each, in
/// the order of PTX.
using Handler = void (*)(Thread &thread, const Instruction &instruction,
                         const uint64_t *operands, uint64_t *results);

/// A special instruction in the code of a kernel.
struct Instruction {
  Handler handler = nullptr;
  std::string opcode;     ///< In the syntax of PTX.
  std::string place;      ///< Its text and line, for messages.
  int64_t detail[4] = {}; ///< Modifiers that the handler needs.
};

enum class AccessKind : uint32_t { Read, Write, Atomic };

/// An access to memory in the code of a kernel.
struct AccessSite {
  uint32_t bytes;
  uint32_t alignment;
  AccessKind kind;
  std::string place;
};

/// A use of a register that a wgmma has written, in the code of a kernel.
struct RegisterUse {
  const Instruction *maker;
  std::string place;
};

/// A range of addresses that a kernel may use.
struct Range {
  uint64_t begin, bytes;
  bool isConstant;
  std::string name;
};

/// The lanes of a warp that have reached one instruction.
struct Gathering {
  const Instruction *instruction;
  uint32_t mask, arrived;
  const uint64_t *operands[32];
  uint64_t *results[32];
};
using WarpOperation = void (*)(Block &block, unsigned warp,
                               const Gathering &lanes);

/// A cp.async that has been issued.
struct Copy {
  uint64_t target, source;
  unsigned bytes, sourceBytes; // the rest becomes zeros
  uint64_t group;
  bool hasLanded;
};

struct Thread {
  Block *block = nullptr;
  unsigned index = 0, lane = 0, warp = 0;
  unsigned position[3] = {};
  Context context;
  Stack *stack = nullptr;
  enum { Ready, Waiting, Ended } state = Ready;
  const Instruction *waitsAt = nullptr;
  std::deque<Copy> copies;
  uint64_t group = 0; // of the next cp.async
  // The number of fences that make its writes, or its mbarriers, visible to the
  // async proxy.
  uint32_t proxyFences = 0, barrierFences = 0;
  // How many threads its last barrier.red had, and for how many of them the
  // predicate held.
  uint32_t met = 0, held = 0;
};

/// One launch of a kernel.
struct Grid {
  DeviceMemory &memory;
  Geometry geometry;
  Schedule schedule;
  std::string kernel;
  void (*entry)(const void *const *arguments);
  const void *const *arguments;
  /// The constants of the module and the launch's parameters.
  std::vector<Range> ranges;
  /// The buffers of pointer parameters, if the kernel declares their sizes.
  /// Every global access must then lie in one of them.
  std::vector<Range> buffers;
  uint64_t sharedBase;
  unsigned sharedBytes;
  std::mt19937_64 random;
  uint64_t bankConflicts = 0;
};

class Block {
public:
  Block(Grid &grid, unsigned index);
  Result run();

  Grid &grid;
  const unsigned index;
  unsigned position[3];

  /// The thread that is running.
  static Thread *current;

  //===--- What instructions do ----------------------------------------===//

  /// Ends the launch with a fault. Does not return.
  [[noreturn]] void fail(Thread &thread, Fault fault, const std::string &place,
                         const std::string &message);
  /// Checks an access and records who made it.
  void access(Thread &thread, uint64_t address, uint64_t bytes,
              unsigned alignment, AccessKind kind, const std::string &place);

  /// Waits until every lane of `mask` is at `instruction`. The last one then
  /// runs `operation` for all of them.
  void gather(Thread &thread, const Instruction &instruction, uint32_t mask,
              const uint64_t *operands, uint64_t *results,
              WarpOperation operation);
  /// Returns the mask of all lanes of a warp.
  uint32_t fullMask(unsigned warp) const;

  /// What a thread does at a barrier: barrier.arrive, or, if it `waits`,
  /// barrier.sync or barrier.red, with the thread's predicate.
  struct Arrival {
    bool waits, isAligned, reduces, holds;
  };
  /// Executes a barrier of `count` threads; 0 stands for all threads of the
  /// block.
  void barrier(Thread &thread, const Instruction &instruction, unsigned id,
               unsigned count, const Arrival &arrival);
  /// Orders the accesses of the lanes of a warp.
  void warpBarrier(unsigned warp) { clocks.advance(warp); }

  void startCopy(Thread &thread, const Instruction &instruction,
                 const Copy &copy);
  /// Waits until at most `pending` groups have not landed. If `all` is set,
  /// waits for every copy, even those without a group.
  void waitForCopies(Thread &thread, uint64_t pending, bool all);

  // mbarriers. `address` is that of the mbarrier in shared memory.
  void initBarrier(Thread &thread, const Instruction &instruction,
                   uint64_t address, uint32_t count);
  void invalidateBarrier(Thread &thread, const Instruction &instruction,
                         uint64_t address);
  /// Expects `bytes` more in the current phase, and counts `arrivals` of the
  /// thread. Returns the phase.
  uint64_t arrive(Thread &thread, const Instruction &instruction,
                  uint64_t address, uint32_t arrivals, uint32_t bytes);
  bool tryWait(Thread &thread, const Instruction &instruction, uint64_t address,
               uint32_t parity);
  /// Returns the tensor map at `address`.
  TensorMap readTensorMap(Thread &thread, const Instruction &instruction,
                          uint64_t address);
  /// Executes cp.async.bulk.tensor. The operands are target, mbarrier, tensor
  /// map and one coordinate for each dimension.
  void startBulkCopy(Thread &thread, const Instruction &instruction,
                     const uint64_t *operands);

  // wgmma, executed by whole warps.
  void startMatrix(unsigned warp, const Gathering &lanes);
  void fenceMatrices(unsigned warp) {
    matrices[warp].isFenced = true;
    matrices[warp].made.clear();
  }
  void commitMatrices(unsigned warp) { ++matrices[warp].group; }
  void waitForMatrices(unsigned warp, const Instruction &instruction,
                       uint64_t count);
  /// Fails if the wgmma that wrote the register has not been waited for.
  void checkRegisters(Thread &thread, const RegisterUse &use);

  Thread &threadAt(unsigned number) { return threads[number]; }
  unsigned count() const { return threads.size(); }

private:
  struct Barrier {
    unsigned count = 0; // threads; 0: all that have not ended
    bool reduces = false;
    uint32_t held = 0; // predicates
    std::vector<Thread *> arrived, waiting;
    std::vector<uint32_t> clock;
    std::vector<const Instruction *> place; // by warp
  };

  struct MemoryBarrier {
    uint32_t expected = 0, pending = 0; // arrivals
    int64_t bytes = 0;                  // that have not landed yet
    uint64_t phase = 0;
    unsigned maker = 0;    // the thread that initialized it
    uint32_t unfenced = 0; // as in Cell
    /// The clocks of the accesses that the current phase, or all complete
    /// phases, order.
    std::vector<uint32_t> clock, complete;
    std::vector<std::pair<uint64_t, Stamp>> landed;
    std::vector<Thread *> waiting;
  };
  /// A cp.async.bulk.tensor. `landed` of its rows have landed, from `firstRow`
  /// on.
  struct BulkCopy {
    TensorMap map;
    uint64_t target = 0, barrier = 0;
    int32_t coordinates[TensorMap::kMostDims] = {};
    unsigned firstRow = 0, landed = 0;
    Stamp stamp;
    std::vector<uint32_t> clock;
  };

  /// A wgmma that has not been waited for.
  struct MatrixWork {
    const Instruction *instruction;
    uint64_t group;
    std::vector<uint64_t> pieces; // the 16-byte pieces that it reads
  };
  /// The wgmmas of a warp.
  struct Matrices {
    uint64_t group = 0; // of the next wgmma
    bool isFenced = false;
    size_t issued = 0;
    std::deque<MatrixWork> pending;
    /// The accumulators of all lanes written since the last fence.
    std::vector<std::vector<uint32_t>> made;
  };
  struct MatrixIssue {
    const Instruction *instruction;
    uint64_t a, b;
    bool operator==(const MatrixIssue &other) const {
      return instruction == other.instruction && a == other.a && b == other.b;
    }
  };
  void checkWarpgroup(Thread &thread, const Instruction &instruction,
                      uint64_t a, uint64_t b);
  void checkFence(Thread &thread, const Gathering &lanes);
  void checkMatrixReads(Thread &thread, uint64_t address, uint64_t bytes,
                        const std::string &place);
  Result checkMatrices() const;

  MemoryBarrier &barrierAt(Thread &thread, const Instruction &instruction,
                           uint64_t address);
  void completePhase(MemoryBarrier &barrier);
  void accessByProxy(Thread &thread, uint64_t address, uint64_t bytes,
                     unsigned alignment, AccessKind kind,
                     const std::string &place);
  bool landOneRow(size_t which);
  bool landSomething();
  Result checkBulkCopies() const;
  void letSomeBulkLand();

  static void threadMain();
  void wait(Thread &thread, const Instruction &instruction);
  bool completeBarriers(Thread *thread);
  void makeReady(Thread &thread);
  void land(Copy &copy);
  void letSomeLand(Thread &thread);
  Result deadlock();
  void checkShared(Thread &thread, uint64_t address, uint64_t bytes,
                   AccessKind kind, const std::string &place);
  void checkGlobal(Thread &thread, uint64_t address, uint64_t bytes,
                   AccessKind kind, const std::string &place);
  void order(Thread &thread, Cell &cell, AccessKind kind, uint64_t address,
             const std::string &place);
  bool isBefore(Stamp stamp, const Thread &thread) const;
  std::string who(Stamp stamp) const;
  std::string nameOf(uint64_t address) const;
  std::string beforeText(uint64_t address) const;
  Cell &cellOf(uint64_t address);

  std::vector<Thread> threads;
  Clocks clocks;
  std::vector<Cell> shared;
  std::vector<std::vector<Gathering>> gatherings; // by warp
  Barrier barriers[16];
  std::map<uint64_t, MemoryBarrier> memoryBarriers;
  std::vector<BulkCopy> bulkCopies;
  std::vector<Matrices> matrices;                     // by warp
  std::vector<std::vector<MatrixIssue>> matrixIssues; // by warpgroup
  /// The number of warps whose wgmmas read each 16 bytes of shared memory.
  std::vector<uint16_t> matrixReads;
  std::vector<Thread *> ready;
  unsigned alive = 0;
  Context scheduler;
  Result result;
};

/// Returns `value` in hexadecimal.
std::string hexText(uint64_t value);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_BLOCK_H
