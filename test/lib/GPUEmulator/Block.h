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

/// Runs an instruction for `thread`. Every operand has 64 bits of its own, in
/// the order in which PTX writes them; so has every result.
using Handler = void (*)(Thread &thread, const Instruction &instruction,
                         const uint64_t *operands, uint64_t *results);

/// One place in a kernel where a special instruction stands.
struct Instruction {
  Handler handler = nullptr;
  std::string opcode;     ///< As PTX writes it.
  std::string place;      ///< Where it stands, for messages.
  int64_t detail[4] = {}; ///< What the handler has read from the opcode.
};

enum class AccessKind : uint32_t { Read, Write, Atomic };

/// One place in a kernel that reads or writes memory.
struct AccessSite {
  uint32_t bytes;
  uint32_t alignment;
  AccessKind kind;
  std::string place;
};

/// One place in a kernel that uses a register which a wgmma has written.
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

/// The lanes of a warp that have come to one instruction.
struct Gathering {
  const Instruction *instruction;
  uint32_t mask, arrived;
  const uint64_t *operands[32];
  uint64_t *results[32];
};
using WarpOperation = void (*)(Block &block, unsigned warp,
                               const Gathering &lanes);

/// A cp.async on its way.
struct Copy {
  uint64_t target, source;
  unsigned bytes, sourceBytes; // the rest is zeros
  uint64_t group;
  bool hasLanded;
};

struct Thread {
  Block *block = nullptr;
  unsigned index = 0, lane = 0, warp = 0;
  unsigned position[3] = {};
  Context context;
  std::unique_ptr<Stack> stack;
  enum { Ready, Waiting, Ended } state = Ready;
  const Instruction *waitsAt = nullptr;
  std::deque<Copy> copies;
  uint64_t group = 0; // that the next cp.async belongs to
  // How many fences it has made that order its writes, and its mbarriers,
  // before what the async proxy does.
  uint32_t proxyFences = 0, barrierFences = 0;
};

/// One launch of a kernel.
struct Grid {
  DeviceMemory &memory;
  Geometry geometry;
  Schedule schedule;
  std::string kernel;
  void (*entry)(const void *const *arguments);
  const void *const *arguments;
  /// Constants of the module and the launch's parameters.
  std::vector<Range> ranges;
  /// Where the kernel's pointer parameters say how far they reach: global
  /// accesses have to lie in one of these.
  std::vector<Range> buffers;
  uint64_t sharedBase;
  unsigned sharedBytes;
  std::mt19937_64 random;
  std::vector<std::unique_ptr<Stack>> stacks;
  uint64_t bankConflicts = 0;
};

class Block {
public:
  Block(Grid &grid, unsigned index);
  Result run();

  Grid &grid;
  const unsigned index;
  unsigned position[3];

  /// The thread that runs now.
  static Thread *current;

  //===--- What instructions do ----------------------------------------===//

  /// Ends the launch; does not return.
  [[noreturn]] void fail(Thread &thread, Fault fault, const std::string &place,
                         const std::string &message);
  /// Checks an access and writes down who made it.
  void access(Thread &thread, uint64_t address, uint64_t bytes,
              unsigned alignment, AccessKind kind, const std::string &place);

  /// Waits until every lane of `mask` is at `instruction`; then the last one
  /// runs `operation` for all of them.
  void gather(Thread &thread, const Instruction &instruction, uint32_t mask,
              const uint64_t *operands, uint64_t *results,
              WarpOperation operation);
  /// All lanes of the thread's warp.
  uint32_t fullMask(unsigned warp) const;

  /// barrier.sync (waits) or barrier.arrive of `count` threads, 0: all of the
  /// block.
  void barrier(Thread &thread, const Instruction &instruction, unsigned id,
               unsigned count, bool waits, bool isAligned);
  /// The lanes of a warp know of each other's accesses.
  void warpBarrier(unsigned warp) { clocks.advance(warp); }

  void startCopy(Thread &thread, const Instruction &instruction,
                 const Copy &copy);
  /// Lets all but the `pending` last groups land; all of them, and what is in
  /// no group, with `all`.
  void waitForCopies(Thread &thread, uint64_t pending, bool all);

  // mbarriers lie at an address of shared memory; those of one block.
  void initBarrier(Thread &thread, const Instruction &instruction,
                   uint64_t address, uint32_t count);
  void invalidateBarrier(Thread &thread, const Instruction &instruction,
                         uint64_t address);
  /// `arrivals` of the thread, after which the phase waits for `bytes` more.
  uint64_t arrive(Thread &thread, const Instruction &instruction,
                  uint64_t address, uint32_t arrivals, uint32_t bytes);
  bool tryWait(Thread &thread, const Instruction &instruction, uint64_t address,
               uint32_t parity);
  /// cp.async.bulk.tensor: target, mbarrier, tensor map and two coordinates.
  void startBulkCopy(Thread &thread, const Instruction &instruction,
                     const uint64_t *operands);

  // wgmma, by warps.
  void startMatrix(unsigned warp, const Gathering &lanes);
  void fenceMatrices(unsigned warp) {
    matrices[warp].isFenced = true;
    matrices[warp].made.clear();
  }
  void commitMatrices(unsigned warp) { ++matrices[warp].group; }
  void waitForMatrices(unsigned warp, const Instruction &instruction,
                       uint64_t count);
  /// Fails if `use` is of a wgmma that has not been waited for.
  void checkRegisters(Thread &thread, const RegisterUse &use);

  Thread &threadAt(unsigned number) { return threads[number]; }
  unsigned count() const { return threads.size(); }

private:
  struct Barrier {
    unsigned count = 0; // of threads; 0: all that have not ended
    std::vector<Thread *> arrived, waiting;
    std::vector<uint32_t> clock;
    std::vector<const Instruction *> place; // by warp
  };

  struct MemoryBarrier {
    uint32_t expected = 0, pending = 0; // arrivals
    int64_t bytes = 0;                  // that are still to come
    uint64_t phase = 0;
    unsigned maker = 0;    // the thread that made it
    uint32_t unfenced = 0; // as in Cell
    /// What is known to this phase, and to those that are complete.
    std::vector<uint32_t> clock, complete;
    std::vector<std::pair<uint64_t, Stamp>> landed;
    std::vector<Thread *> waiting;
  };
  /// A cp.async.bulk.tensor, of which `landed` rows have landed.
  struct BulkCopy {
    TensorMap map;
    uint64_t target = 0, barrier = 0;
    int64_t x = 0, y = 0;
    unsigned landed = 0;
    Stamp stamp;
    std::vector<uint32_t> clock;
  };

  /// A wgmma that has not been waited for.
  struct MatrixWork {
    const Instruction *instruction;
    uint64_t group;
    std::vector<uint64_t> pieces; // of 16 bytes that it reads
  };
  /// What a warp has to do with wgmma.
  struct Matrices {
    uint64_t group = 0; // that the next one belongs to
    bool isFenced = false;
    size_t issued = 0;
    std::deque<MatrixWork> pending;
    /// Accumulators made since the last fence, of all lanes.
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
  /// How many warps' wgmmas read 16 bytes of shared memory.
  std::vector<uint16_t> matrixReads;
  std::vector<Thread *> ready;
  unsigned alive = 0;
  Context scheduler;
  Result result;
};

/// What a range of addresses is called where nothing is known of it.
std::string hexText(uint64_t value);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_BLOCK_H
