//===- DeviceStep.h - A step on a GPU ---------------------------*- C++ -*-===//
//
// The arena, the buffers and the constants of a step are one GPU allocation;
// the buffers have a mirror on the host. The entry, which is host code, runs
// once, and its launches are recorded as a graph. From then on a run is one
// launch of that graph, or of several if the host starts collectives or waits
// for them in between. Loops and branches that the GPU decides are conditional
// nodes (DeviceControl.cpp). An entry that itself reads values from the GPU
// cannot be recorded: it runs every time, and launches kernel by kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_DEVICESTEP_H
#define FP8_LIB_RUNTIME_GPU_DEVICESTEP_H

#include "../Collectives/Engine.h"
#include "../Support/Error.h"
#include "../Support/Memory.h"
#include "Work.h"

#include <chrono>
#include <functional>
#include <optional>

struct fp8_executable;

namespace fp8::rt::gpu {

class DeviceStep {
public:
  explicit DeviceStep(const fp8_executable &executable);
  ~DeviceStep();
  DeviceStep(const DeviceStep &) = delete;
  DeviceStep &operator=(const DeviceStep &) = delete;

  /// Returns the mirror of external buffer `number` (an argument or a result)
  /// with the values of the last run.
  const void *value(size_t number);
  /// Returns the mirror of an argument. The next run reads what is written to
  /// it.
  void *argument(size_t number);
  /// Copies a buffer of another step to that of an argument. What either step
  /// does next waits for the copy.
  void take(size_t number, DeviceStep &from, size_t source);
  /// Fills the buffer of an argument with zeros.
  void clear(size_t number);
  /// Copies these arguments to memory of their own, and back.
  void keep(const std::vector<size_t> &numbers);
  void restore(const std::vector<size_t> &numbers);
  /// Starts to copy batches from their mirrors, possibly beside a run in
  /// progress; the next run reads them.
  void stage();
  void run(fp8_step &step);

  /// Called by the entry.
  void launch(int64_t launch, const fp8_gpu_kernel *kernel, int64_t blocks,
              const int64_t *operands, const int64_t *offsets,
              const int64_t *strides, int64_t numOperands);
  void launchSets(int64_t launch, const fp8_gpu_kernel *kernel, int64_t blocks,
                  const int64_t *operands, const int64_t *offsets,
                  int64_t numOperands, int64_t numSets);
  const void *read(int64_t operand, int64_t offset, int64_t bytes);
  void write(int64_t operand, int64_t offset, int64_t bytes, const void *value);
  int64_t beginLoop(const fp8_gpu_kernel *kernel, int64_t trips);
  void keep(const fp8_gpu_kernel *kernel, int64_t condition, int64_t operand,
            int64_t offset, const int64_t *strides, int64_t bytes);
  int64_t beginBranch(const fp8_gpu_kernel *kernel, int64_t condition,
                      int64_t low, int64_t high, bool inverted);
  int64_t testWhile(const fp8_gpu_kernel *kernel, int64_t loop,
                    int64_t condition, int64_t low, int64_t high,
                    bool inverted);
  void end();
  void order(int64_t node, const int64_t *after, int64_t count);
  void fetch(int64_t operand);
  void writeMoving(const fp8_gpu_kernel *kernel, int64_t operand,
                   int64_t offset, const int64_t *strides, int64_t bytes,
                   int64_t value, const int64_t *valueStrides);

  /// Runs `what` on the host behind all earlier launches: now, and in every
  /// later run that replays the recording.
  void call(std::function<void()> what);
  /// Returns true if such a call is made by a replay, in which later work need
  /// not wait for the host: nothing depends on values that the host reads.
  bool isReplaying() const { return replays; }
  /// Does the same as `call` for a copy on the GPU.
  void copy(cuda::DevicePointer target, cuda::DevicePointer source,
            int64_t bytes);
  /// Returns the address of an operand; 0 after a failure.
  cuda::DevicePointer addressOf(int64_t operand, int64_t offset,
                                int64_t number);
  /// Fails the run.
  void fail(const Error &error);
  bool hasFailed() const { return failure.has_value(); }

  /// Drops the recording, which depends on the ranks that run the step.
  void dropRecording();
  /// Makes the engine for the collectives of this step.
  std::unique_ptr<Engine> makeEngine() const;

  /// Measures every launch, which serializes them.
  bool profiling = false;
  std::vector<fp8_launch_stat> *profile = nullptr;

private:
  struct Buffer {
    int64_t place; // offset in the allocation
    // A batch has an offset at which the next one arrives while a run reads
    // `place`; other buffers have -1.
    int64_t staging = -1;
    int64_t bytes;
    char *mirror;
    bool isArgument, isState;
    bool isPinned;    // the mirror
    bool hostIsNewer; // the mirror is, or may be, newer
    bool deviceIsNewer = false;
    bool isStaged = false;  // `staging` is newer than `place`
    bool isFetched = false; // every run copies it to the mirror
    bool isEarly = false;   // as soon as it is complete
  };

  /// A loop or branch that is being run or recorded.
  struct Open {
    bool isNode = false;                    // a node of the graph
    const fp8_gpu_kernel *counts = nullptr; // set for a counted loop
    int64_t trips = 0, level = 0;
    int64_t loop = -1; // number of an uncounted loop
    cuda::ConditionalHandle handle = 0;
  };

  void layOut();
  void requireFree(const std::string &what, int64_t bytes,
                   bool hasFailed = false) const;
  void allocate();
  void uploadConstants();
  cuda::DevicePointer resolve(int64_t operand, int64_t launch) const;
  void upload();
  void uploadArgument(Buffer &buffer);
  void begin(fp8_step &step);
  void recordArrival();
  void fetchResults();
  GraphWork &graph();
  Work &work();
  bool isInBody() const;
  int64_t recordedNodes() const;
  void replayAll();
  void replay();
  void runDirectly();
  const LoadedKernel &find(const fp8_gpu_kernel *kernel,
                           int64_t operands) const;
  void control(const fp8_gpu_kernel *kernel,
               const std::vector<int64_t> &parameters);
  /// Returns whether loops and branches with `kernel` become nodes of the
  /// graph.
  bool isRecordedFor(const fp8_gpu_kernel *kernel) const {
    return kernel && isRecording;
  }
  /// Runs `action`, unless the run has failed; an error fails it.
  template <typename Action> void attempt(const Action &action) {
    if (failure)
      return;
    try {
      action();
    } catch (...) {
      failure = currentError();
    }
  }
  cuda::DevicePointer operandTable(int64_t launch, const int64_t *operands,
                                   const int64_t *offsets, int64_t count);
  void finishLaunch(int64_t launch, int64_t blocks,
                    std::chrono::steady_clock::time_point start);
  cuda::DevicePointer counter(int64_t level);
  cuda::DevicePointer conditionAddress(int64_t condition);
  int64_t conditionValue(int64_t condition);
  bool isConditionTrue(int64_t condition, int64_t low, int64_t high,
                       bool inverted);
  int64_t levelsOpen() const;
  void waitFor(const std::string &what);
  std::string labelOf(int64_t launch) const;

  const fp8_executable &executable;
  Device &device;
  const Driver &driver;
  std::shared_ptr<Modules> modules;
  cuda::DevicePointer memory = 0;
  int64_t totalBytes = 0;
  int64_t scratchPlace = 0;
  std::vector<Buffer> buffers; // arguments, then own results
  std::vector<int64_t> constantPlaces;
  Mapping mirrors;        // of buffers that move on demand
  char *pinned = nullptr; // mirrors of buffers that every run copies
  int64_t pinnedBytes = 0, mirrorBytes = 0;
  std::vector<std::pair<size_t, size_t>> swaps; // own result -> argument
  cuda::Stream stream = nullptr;
  cuda::Stream copies = nullptr; // copies batches beside a run
  // Recorded when batches have left the mirrors, when they have left their
  // staging buffers, when early results have arrived in their mirrors, and when
  // a run has ended.
  cuda::Event uploaded = nullptr, taken = nullptr, arrived = nullptr,
              finished = nullptr;
  bool isRunning = false; // a run may be in progress
  bool isCopying = false; // a copy of batches may be in progress

  /// A graph, or a host call between two graphs.
  struct Part {
    std::unique_ptr<GraphWork> graph;
    std::function<void()> call;
  };
  std::vector<Part> program; // the recording; empty: none yet
  std::optional<StreamWork> direct;
  bool isRecording = false; // launches go to the program, not to the stream
  int64_t nextNode = -1;    // of the next work that is recorded (fp8_order)
  std::vector<int64_t> earlyCopies; // the nodes that copy early results
  bool isDynamic = false;
  bool replays = false;
  bool checksLaunches; // waits after each launch, to name the one that fails
  std::optional<Error> failure; // of a call by the entry
  std::vector<char> readValue;

  std::vector<Open> open;
  /// GPU memory for the counters and the conditions, allocated on first use.
  struct DeviceMemory {
    DeviceMemory(const Driver &driver, int64_t bytes, cuda::Stream stream);
    ~DeviceMemory();
    const Driver &driver;
    cuda::DevicePointer address = 0;
  };
  std::unique_ptr<DeviceMemory> counters;
  std::unique_ptr<DeviceMemory> kept; // the arguments that `keep` copies
  /// The operands of launches with several sets, by the number of the launch.
  std::map<int64_t, std::unique_ptr<DeviceMemory>> operandTables;
  std::vector<std::unique_ptr<DeviceMemory>> conditions;
  std::map<int64_t, int64_t> keptValues; // values of conditions on the host
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_DEVICESTEP_H
