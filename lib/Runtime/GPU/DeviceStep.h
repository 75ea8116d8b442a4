//===- DeviceStep.h - A step on a GPU ---------------------------*- C++ -*-===//
//
// The arena, the buffers and the constants of a step in one allocation of the
// GPU, beside a mirror of the buffers on the host. The entry, which is host
// code, runs once and what it launches is written down as a graph; from then on
// a run is one launch of that graph, or of several where the host begins
// collectives or waits for them in between. Loops and branches that the GPU
// decides are conditional nodes (DeviceControl.cpp). An entry that reads what
// the GPU computes itself cannot be written down: it runs every time, and
// launches kernel by kernel.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_GPU_DEVICESTEP_H
#define FP8_LIB_RUNTIME_GPU_DEVICESTEP_H

#include "../Collectives/Engine.h"
#include "Work.h"

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

  /// The mirror of external buffer `number` (an argument or a result), as the
  /// last run has left it. What is written there until the next run, that run
  /// finds in an argument.
  void *buffer(size_t number);
  /// Begins to copy what was written to the mirrors of batches, beside a run
  /// that may be under way; the next run has it.
  void stage();
  void run(fp8_step &step);

  /// What the entry calls.
  void launch(int64_t launch, const fp8_gpu_kernel *kernel, int64_t blocks,
              const int64_t *operands, const int64_t *offsets,
              const int64_t *strides, int64_t numOperands);
  const void *read(int64_t operand, int64_t offset, int64_t bytes);
  void write(int64_t operand, int64_t offset, int64_t bytes, const void *value);
  int64_t beginLoop(const fp8_gpu_kernel *kernel, int64_t trips);
  void keep(const fp8_gpu_kernel *kernel, int64_t condition, int64_t operand,
            int64_t offset, const int64_t *strides, int64_t bytes);
  int64_t beginBranch(const fp8_gpu_kernel *kernel, int64_t condition,
                      int64_t low, int64_t high, bool inverted);
  int64_t repeats(const fp8_gpu_kernel *kernel, int64_t loop, int64_t condition,
                  int64_t low, int64_t high, bool inverted);
  void end();
  void writeMoving(const fp8_gpu_kernel *kernel, int64_t operand,
                   int64_t offset, const int64_t *strides, int64_t bytes,
                   int64_t value, const int64_t *valueStrides);

  /// What the host does behind all that was launched before: now, and in every
  /// run that does not call the entry.
  void call(std::function<void()> what);
  /// The same of a copy on the GPU.
  void copy(cuda::DevicePointer target, cuda::DevicePointer source,
            int64_t bytes);
  /// Where an operand lies; 0 after a failure.
  cuda::DevicePointer addressOf(int64_t operand, int64_t offset,
                                int64_t number);
  /// Fails the run.
  void fail(const Error &error);
  bool hasFailed() const { return failure.has_value(); }

  /// What was written down depends on the ranks that run the step.
  void forget();
  /// What carries out the collectives of this step.
  std::unique_ptr<Engine> makeEngine() const;

  int64_t deviceBytes() const { return totalBytes; }

  /// Measures every launch, which makes them wait for one another.
  bool profiling = false;
  std::vector<fp8_launch_stat> *profile = nullptr;

private:
  struct Buffer {
    int64_t place; // in the allocation
    int64_t staging =
        -1; // of a batch: where it comes while a run reads `place`
    int64_t bytes;
    char *mirror;
    bool isArgument, isState;
    bool hostIsNewer = true; // or may be
    bool deviceIsNewer = false;
    bool isStaged = false;  // `staging` is newer than `place`
    bool isFetched = false; // every run copies it to the mirror
  };

  /// A loop or branch that the entry is in.
  struct Open {
    bool isNode = false;                    // of the graph
    const fp8_gpu_kernel *counts = nullptr; // of a counted loop
    int64_t trips = 0, level = 0;
    int64_t loop = -1; // of another loop: its number
    cuda::ConditionalHandle handle = 0;
  };

  void layOut();
  void allocate();
  void uploadConstants();
  cuda::DevicePointer resolve(int64_t operand, int64_t launch) const;
  void upload();
  void begin(fp8_step &step);
  void fetchResults();
  GraphWork &graph();
  Work &work();
  bool isInBody() const;
  int64_t recordedNodes() const;
  void play();
  void runDirectly();
  const LoadedKernel &find(const fp8_gpu_kernel *kernel,
                           int64_t operands) const;
  void control(const fp8_gpu_kernel *kernel,
               const std::vector<int64_t> &parameters);
  /// Are loops and branches with `kernel` nodes of the graph?
  bool writesDown(const fp8_gpu_kernel *kernel) const {
    return kernel && isRecording;
  }
  /// Runs `action`; what it throws fails the run.
  template <typename Action> void attempt(const Action &action);
  cuda::DevicePointer counter(int64_t level);
  cuda::DevicePointer conditionPlace(int64_t condition);
  int64_t conditionValue(int64_t condition);
  bool takes(int64_t condition, int64_t low, int64_t high, bool inverted);
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
  Mapping mirrors;        // of what is large
  char *pinned = nullptr; // of what every run moves
  int64_t pinnedBytes = 0, mirrorBytes = 0;
  std::vector<std::pair<size_t, size_t>> swaps; // own result -> argument
  cuda::Stream stream = nullptr;
  cuda::Stream copies = nullptr; // of batches, beside a run
  // Batches have left the mirrors; have left their staging; a run has ended.
  cuda::Event uploaded = nullptr, taken = nullptr, finished = nullptr;
  bool isRunning = false; // something may be under way
  bool isCopying = false; // batches may be

  /// A graph, or something that the host does between two.
  struct Part {
    std::unique_ptr<GraphWork> graph;
    std::function<void()> call;
  };
  std::vector<Part> program; // all that a run does; empty: not known yet
  std::optional<StreamWork> direct;
  bool isRecording = false; // launches go to the program, not to the stream
  bool isDynamic = false;
  bool checksLaunches; // waits after each launch, to name the one that fails
  std::optional<Error> failure; // of what the entry called
  std::vector<char> readValue;

  std::vector<Open> open;
  /// What the GPU counts and the conditions that it has kept, once they are
  /// asked for.
  struct DeviceMemory {
    DeviceMemory(const Driver &driver, int64_t bytes, cuda::Stream stream);
    ~DeviceMemory();
    const Driver &driver;
    cuda::DevicePointer address = 0;
  };
  std::unique_ptr<DeviceMemory> counters;
  std::vector<std::unique_ptr<DeviceMemory>> conditions;
  std::map<int64_t, int64_t> keptValues; // of conditions that the host read
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_DEVICESTEP_H
