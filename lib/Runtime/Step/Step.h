//===- Step.h - A step of an executable -------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STEP_STEP_H
#define FP8_LIB_RUNTIME_STEP_STEP_H

#include "../Collectives/InFlight.h"
#include "../Metrics/Timeline.h"
#include "../Support/Error.h"
#include "Executable.h"
#include "ThreadPool.h"
#include "Value.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fp8::rt::gpu {
class DeviceStep;
} // namespace fp8::rt::gpu

namespace fp8::rt {
/// State that one rank owns, or several own in slices.
struct Shard {
  int64_t bytes = 0;
  int64_t slices = 1; ///< All slices have the same size.
  Owners owners = {}; ///< Empty if one rank runs alone.
};
} // namespace fp8::rt

struct fp8_step {
  fp8_step(const fp8_executable &executable, int threads);
  ~fp8_step();

  //===--------------------------------------------------------------------===//
  // Step.cpp: runs
  //===--------------------------------------------------------------------===//

  void run();
  /// Whether the last run has failed: its state is then that of no step.
  bool hasFailed() const;
  /// Returns whether run returns before its work is done.
  bool isAsynchronous() const { return device != nullptr; }
  /// Starts to copy the batch and key arguments of the next run, beside a run
  /// in progress. They must hold their values.
  void stage();
  /// Runs `action` for generated code, which no exception may cross: it fails
  /// the run.
  template <typename Action> void attempt(const Action &action) noexcept {
    try {
      action();
    } catch (...) {
      fail(fp8::rt::currentError());
    }
  }
  void setGroup(fp8_group *group);
  /// Returns the ranks that run the step together; null if it runs alone.
  fp8_group *group() { return inFlight ? &inFlight->ranks() : nullptr; }
  int64_t rank() const { return inFlight ? inFlight->ranks().rank() : 0; }
  int64_t numRanks() const { return inFlight ? inFlight->ranks().size() : 1; }
  fp8::rt::gpu::DeviceStep &onGPU() { return *device; }
  int threads() const { return pool->size(); }
  void clearProfile();

  //===--------------------------------------------------------------------===//
  // Values.cpp: arguments and results
  //===--------------------------------------------------------------------===//

  /// Returns an argument to be written: what a GPU has of it counts no more.
  char *argument(size_t i);
  /// Returns the value of an argument.
  const char *value(size_t i) { return external(i); }
  const char *result(size_t i) { return external(resultSlots[i]); }
  /// Writes an argument; an empty value writes zeros.
  void set(size_t i, const fp8::rt::Value &value);
  /// Keeps the values of these arguments where the step runs, to bring them
  /// back.
  void keep(const std::vector<size_t> &arguments);
  void restore(const std::vector<size_t> &arguments);

  //===--------------------------------------------------------------------===//
  // Launches.cpp: what generated code does
  //===--------------------------------------------------------------------===//

  void launch(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
              const int64_t *operands, const int64_t *offsets,
              int64_t numOperands);
  /// Runs the tasks for the slices of a shard that this rank owns.
  void launchOwned(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                   const int64_t *operands, const int64_t *offsets,
                   int64_t numOperands, int64_t shard);
  void launchSets(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                  const int64_t *operands, const int64_t *offsets,
                  int64_t numOperands, int64_t numSets);
  void *operand(int64_t code);
  const void *read(int64_t code, int64_t offset, int64_t bytes);
  void write(int64_t code, int64_t offset, int64_t bytes, const void *value);

  //===--------------------------------------------------------------------===//
  // Collectives.cpp
  //===--------------------------------------------------------------------===//

  void startAllReduce(int64_t number, const fp8_all_reduce &what, int64_t slice,
                      const int64_t *operands, const int64_t *offsets,
                      int64_t numOperands);
  void startExchange(int64_t number, const fp8_exchange &what,
                     const int64_t *operands, const int64_t *offsets,
                     int64_t numOperands);
  void wait(int64_t number);
  const std::vector<fp8_collective_stat> &collectives() const;
  /// See Engine.
  std::string carrier() const { return inFlight ? inFlight->carrier() : ""; }

  //===--------------------------------------------------------------------===//
  // Buffers.cpp: memory
  //===--------------------------------------------------------------------===//

  void memory(fp8_memory &out) const;
  /// Frees the memory of other ranks' shards.
  void drop();

  //===--------------------------------------------------------------------===//
  // Shards.cpp: state that ranks own
  //===--------------------------------------------------------------------===//

  /// Returns whether each rank has shards of its own.
  bool isDealt() const {
    return !shards.empty() && !shards.front().owners.empty();
  }
  /// Returns the slices of a shard that this rank owns; shards are numbered
  /// from 1.
  fp8::rt::Slice ownSlices(int64_t shard) const;
  /// Returns the range of bytes of an argument or result that a rank has: all,
  /// or those of the slices of its shard that the rank owns.
  fp8::rt::Slice bytesOf(const fp8::rt::TensorInfo &tensor, int64_t rank) const;
  fp8::rt::Slice ownBytes(const fp8::rt::TensorInfo &tensor) const {
    return bytesOf(tensor, rank());
  }
  int64_t shardBytesOf(int64_t rank) const;
  /// Returns the rank that owns all of a shard, or -1 if several ranks own its
  /// slices; shards are numbered from 1.
  int64_t ownerOf(int64_t shard) const;
  /// Copies all shards and parts to all ranks, or to rank `only`. All ranks
  /// call it.
  void gather(int64_t only = -1);
  /// Copies all slices of one argument to all ranks, or to rank `only`. All
  /// ranks call it.
  void gatherShard(size_t i, int64_t only = -1);

  //===--------------------------------------------------------------------===//
  // Parts.cpp: arguments of which each rank has a part
  //===--------------------------------------------------------------------===//

  /// Returns whether some argument has a part on each rank.
  bool hasParts() const;
  /// Throws if the step was compiled for another number of ranks.
  void checkNumRanks() const;
  /// Returns the lowest rank that has the same part of an argument as `rank`.
  int64_t partOf(size_t i, int64_t rank) const;
  /// Copies all parts of an argument to all ranks, or to rank `only`.
  void gatherPart(size_t i, int64_t only = -1);
  /// Returns the whole value of an argument; if it has parts, the gathered one.
  const char *whole(size_t i) {
    return static_cast<const char *>(wholeValue(i).bytes());
  }
  fp8::rt::Value wholeValue(size_t i);
  /// Writes an argument; if it has parts, this rank's part. An empty value
  /// writes zeros.
  void setWhole(size_t i, const fp8::rt::Value &value);
  /// Writes an argument like setWhole, but of a shard only the bytes that this
  /// rank owns.
  void setOwned(size_t i, const void *value);

  const fp8_executable &executable;
  bool profiling = false;
  std::vector<fp8_launch_stat> profile;
  /// If not null, the profile also records the times of every thread here.
  std::unique_ptr<fp8::rt::Timeline> timeline;

private:
  friend fp8::rt::Value;

  // Step.cpp
  void runOnDevice();
  void fail(const fp8::rt::Error &error);

  // Values.cpp
  /// Returns an external buffer, or a GPU's copied to the host.
  const char *external(size_t number);

  // Launches.cpp
  void *resolve(int64_t operand, int64_t launch);
  bool resolveAll(int64_t launch, const int64_t *operands,
                  const int64_t *offsets, int64_t numOperands);
  void runTasks(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                void *const *operands);
  void launchTasks(int64_t launch, fp8_kernel_fn fn, int64_t first,
                   int64_t numTasks, const int64_t *operands,
                   const int64_t *offsets, int64_t numOperands);
  void launchTimed(int64_t launch, fp8_kernel_fn fn, int64_t numTasks,
                   void *const *operands);
  void *nothing();

  // Collectives.cpp
  std::string findMistakeInShard(const fp8_all_reduce &what,
                                 int64_t slice) const;
  /// Returns the addresses of a collective's operands where the step runs; none
  /// after a failure.
  std::vector<char *> addressesOf(const int64_t *operands,
                                  const int64_t *offsets, int64_t numOperands,
                                  int64_t number);
  void copy(char *target, const char *source, int64_t bytes);
  /// Runs the host's part of a collective, in the order of the step.
  void call(std::function<void()> what);
  void failCollective(int64_t number, const char *label,
                      const std::string &mistake);
  std::unique_ptr<fp8::rt::Engine> makeEngine();

  // Buffers.cpp, Shards.cpp
  void measureShards();
  void placeBuffers();
  void dealShards();

  std::shared_ptr<fp8::rt::ThreadPool> pool;
  fp8::rt::Mapping arena;
  fp8::rt::Mapping buffers;
  fp8::rt::Mapping zeros; // of nothing()
  std::vector<fp8::rt::AlignedBuffer> scratchMemory;
  std::vector<void *> scratch;     // per thread
  std::vector<void *> externals;   // by external buffer number
  std::vector<size_t> resultSlots; // result -> external buffer number
  std::vector<void *> operandStorage;
  int64_t argumentBytes = 0;
  int64_t resultBytes = 0;
  std::vector<fp8::rt::Shard> shards;              // by number, from 0
  std::map<size_t, fp8::rt::AlignedBuffer> wholes; // gathered
  std::vector<std::vector<char>> kept;             // by argument
  std::string failure; // of generated code, found in launch
  fp8_status failureStatus = FP8_ERROR_INTERNAL;
  std::unique_ptr<fp8::rt::gpu::DeviceStep> device; // null: on the CPU
  std::unique_ptr<fp8_group> alone;                 // where no group was set
  std::optional<fp8::rt::InFlight> inFlight; // unset: nothing to wait for
};

#endif // FP8_LIB_RUNTIME_STEP_STEP_H
