//===- Driver.h - The state of the emulated driver --------------*- C++ -*-===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_DRIVER_H
#define FP8_TEST_LIB_GPUEMULATOR_DRIVER_H

#include "Emulator.h"
#include "GraphRaces.h"

#include "GPU/Cuda.h"

#include <cinttypes>
#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>

struct fp8::cuda::ModuleHandle {
  std::unique_ptr<fp8::emulator::Module> module;
  std::map<std::string, std::unique_ptr<FunctionHandle>> functions;
};

struct fp8::cuda::FunctionHandle {
  emulator::Kernel *kernel;
  unsigned dynamicShared; // the most that it may have
};

struct fp8::cuda::EventHandle {
  StreamHandle *stream = nullptr;
  uint64_t recorded = 0, completed = 0;
};

struct fp8::cuda::GraphNodeHandle {
  std::function<Status()> run;
  std::string name;             // for messages
  EventHandle *event = nullptr; // that it records
  std::vector<GraphNodeHandle *> before;
  /// For a conditional node.
  ConditionalHandle condition = 0;
  ConditionalType type = If;
  std::unique_ptr<GraphHandle> body;
};

struct fp8::cuda::GraphHandle {
  std::vector<std::unique_ptr<GraphNodeHandle>> nodes;
  std::set<const GraphNodeHandle *> known;   // the same nodes
  Graph parent = nullptr;                    // if it is a body
  std::vector<ConditionalHandle> conditions; // created for it
  Graph body = nullptr;                      // returned by cuGraphAddNode
  GraphExecHandle *instance = nullptr;       // if it has conditions
};

struct fp8::cuda::StreamHandle {
  std::deque<std::function<Status()>> work;
  unsigned graphs = 0; // among its work
  /// While it captures, work is added to this graph instead of running.
  std::unique_ptr<GraphHandle> capture;
};

struct fp8::cuda::GraphExecHandle {
  std::vector<std::function<Status()>> nodes;
  std::vector<std::string> names;
  std::vector<std::vector<size_t>> before; // by number
  std::unique_ptr<emulator::GraphPaths> paths;
  std::vector<EventHandle *> events; // that nodes record
  Graph graph = nullptr;             // whose only instance this is
};

struct fp8::cuda::ContextHandle {};

namespace fp8::emulator::driver {

using namespace fp8::cuda;

constexpr unsigned kStaticLimit = 48 << 10, kSharedLimit = 227 << 10;

/// The condition of a conditional node, which kernels set.
struct Condition {
  Graph graph;
  bool isUsed = false, hasDefault = false;
  unsigned atLaunch = 0;
  bool isSet = false;
  unsigned value = 0;
  uint64_t launch = 0, setter = 0; // the thread that set it last
};

enum class Order { Forward, Reverse, Random };

/// How often each kind of event occurred.
struct Counts {
  uint64_t graphs = 0;     // launched
  uint64_t kernels = 0;    // launched on a stream, not in a graph
  uint64_t waits = 0;      // calls that waited for work
  uint64_t pageable = 0;   // copies to or from memory that is not pinned
  uint64_t branches = 0;   // bodies of IF nodes that ran
  uint64_t iterations = 0; // of WHILE nodes
  uint64_t overlaps = 0;   // graphs launched before the one before had ended
};

struct Gpu {
  Gpu();
  std::mutex mutex;
  bool isInitialized = false;
  Status sticky = Success;
  int devices = 1, capability = 89;
  Schedule schedule;
  std::mt19937_64 random;
  std::unique_ptr<DeviceMemory> memory;
  ContextHandle context;
  unsigned retained = 0;
  std::map<uint64_t, size_t> pinned;
  // All valid handles.
  std::set<const void *> handles;

  bool isPinned(const void *address) const {
    auto at = reinterpret_cast<uint64_t>(address);
    auto after = pinned.upper_bound(at);
    return after != pinned.begin() &&
           at - std::prev(after)->first < std::prev(after)->second;
  }
  bool knows(const void *handle) const { return handles.count(handle) != 0; }
  Status enqueue(Stream stream, std::function<Status()> operation);
  Status drain(Stream stream);
  Status drainAll();
  bool runNext(Stream stream);
  Status wait(std::unique_lock<std::mutex> &lock,
              const std::function<bool()> &isReached, Stream stream);
  Status fail(const Result &result);
  std::set<StreamHandle *> streams;
  std::map<ConditionalHandle, Condition> conditions;
  Order order = Order::Random;
  /// What the node of a graph that is running has accessed.
  Touched *touched = nullptr;
  void touch(uint64_t address, uint64_t bytes, bool isWrite) {
    if (touched && bytes > 0)
      touched->add(address, bytes, isWrite);
  }
  const GraphHandle *running = nullptr; // with its bodies
  uint64_t launches = 0;
  Counts counts;
};

/// Returns what all devices of this process share.
Gpu &gpu();

/// Whether this thread has made the context current.
extern thread_local bool hasContext;

/// The status of an operation that has done a part of its work.
inline constexpr Status Unfinished = static_cast<Status>(-1);

/// A launch with copies of its arguments.
struct Launch {
  FunctionHandle *function;
  Geometry geometry;
  std::vector<std::vector<char>> arguments;

  Status operator()() const;
};

/// Checks a launch as the driver does, and copies its arguments.
Status prepare(FunctionHandle *function, const Geometry &geometry,
               void **parameters, Launch &launch);

// What copies and fills do once they run.
Status copyToDevice(DevicePointer target, const void *source, size_t bytes);
Status copyToHost(void *target, DevicePointer source, size_t bytes);
Status copyOnDevice(DevicePointer target, DevicePointer source, size_t bytes);
Status fill(DevicePointer target, unsigned value, unsigned elementBytes,
            size_t count);

/// Implements cudaGraphSetConditional for kernels. Returns what is wrong, or
/// "".
std::string setCondition(uint64_t handle, uint32_t value, uint64_t thread);

} // namespace fp8::emulator::driver

// Only the parts of the driver include this file, and they define its
// functions.
using namespace fp8::cuda;
using namespace fp8::emulator::driver;

#define FP8_CUDA_DECLARE(name, arguments)                                      \
  extern "C" __attribute__((visibility("default"))) Status name arguments;
FP8_CUDA_FUNCTIONS(FP8_CUDA_DECLARE)
#undef FP8_CUDA_DECLARE

/// Begins all other functions: cuInit must come first, and only one call runs
/// at a time.
#define FP8_ENTER()                                                            \
  Gpu &device = gpu();                                                         \
  std::unique_lock<std::mutex> lock(device.mutex);                             \
  if (!device.isInitialized)                                                   \
    return NotInitialized;

/// Begins the functions that need the context, which a fault makes unusable.
#define FP8_ENTER_CONTEXT()                                                    \
  FP8_ENTER()                                                                  \
  if (device.retained == 0 || !hasContext)                                     \
    return InvalidContext;                                                     \
  if (device.sticky != Success)                                                \
    return device.sticky;

#endif // FP8_TEST_LIB_GPUEMULATOR_DRIVER_H
