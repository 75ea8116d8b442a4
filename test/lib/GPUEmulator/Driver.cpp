//===- Driver.cpp - A libcuda.so.1 whose GPU is the emulator --------------===//
//
// The functions of NVIDIA's driver that the runtime uses (lib/Runtime/GPU), as
// documented. Work of a stream happens at once, when somebody waits for it, or
// at any time between, depending on the schedule. A graph runs node by node,
// and no further than somebody waits for. A kernel's fault is returned by the
// next call that waits and by every later call; its message goes to stderr.
//
// Environment variables, with defaults in parentheses:
//   FP8_EMULATOR_SEED=N                    order of blocks, threads, copies (0)
//   FP8_EMULATOR_LANDING=early|late|random when asynchronous work runs (random)
//   FP8_EMULATOR_ORDER=forward|reverse|random in which order the nodes of a
//                                          graph run, of those that may
//                                          (random)
//   FP8_EMULATOR_MEMORY=BYTES              memory of the device (1 GiB)
//   FP8_EMULATOR_CAPABILITY=NN             compute capability, 89 is 8.9 (89)
//   FP8_EMULATOR_DEVICES=N                 number of devices (1)
//   FP8_EMULATOR_COUNTS=FILE               file to which exit writes Counts
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"
#include "GraphRaces.h"
#include "TensorMap.h"

#include "GPU/Cuda.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <thread>

using namespace fp8::cuda;
using fp8::emulator::bitcodeBytes;
using fp8::emulator::DeviceMemory;
using fp8::emulator::Fault;
using fp8::emulator::Geometry;
using fp8::emulator::GraphPaths;
using fp8::emulator::GraphRaces;
using fp8::emulator::Kernel;
using fp8::emulator::Landing;
using fp8::emulator::Result;
using fp8::emulator::Schedule;
using fp8::emulator::Touched;

#define FP8_CUDA_DECLARE(name, arguments)                                      \
  extern "C" __attribute__((visibility("default"))) Status name arguments;
FP8_CUDA_FUNCTIONS(FP8_CUDA_DECLARE)
#undef FP8_CUDA_DECLARE

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

struct fp8::cuda::ModuleHandle {
  std::unique_ptr<fp8::emulator::Module> module;
  std::map<std::string, std::unique_ptr<FunctionHandle>> functions;
};

struct fp8::cuda::FunctionHandle {
  Kernel *kernel;
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
  std::unique_ptr<GraphPaths> paths;
  std::vector<EventHandle *> events; // that nodes record
  Graph graph = nullptr;             // whose only instance this is
};

struct fp8::cuda::ContextHandle {};

namespace {

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

/// Never destroyed: handles may be freed after main.
Gpu &gpu() {
  static Gpu &gpu = *new Gpu();
  return gpu;
}

} // namespace

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

static void writeCounts();
static std::string setCondition(uint64_t handle, uint32_t value,
                                uint64_t thread);

Gpu::Gpu() {
  devices = static_cast<int>(setting("FP8_EMULATOR_DEVICES", 1));
  capability = static_cast<int>(setting("FP8_EMULATOR_CAPABILITY", 89));
  schedule.seed = setting("FP8_EMULATOR_SEED", 0);
  std::string landing;
  if (const char *text = std::getenv("FP8_EMULATOR_LANDING"))
    landing = text;
  schedule.landing = landing == "early"  ? Landing::Early
                     : landing == "late" ? Landing::Late
                                         : Landing::Random;
  if (const char *text = std::getenv("FP8_EMULATOR_ORDER"))
    order = std::string_view(text) == "forward"   ? Order::Forward
            : std::string_view(text) == "reverse" ? Order::Reverse
                                                  : Order::Random;
  random.seed(schedule.seed + 1);
  memory = std::make_unique<DeviceMemory>(
      setting("FP8_EMULATOR_MEMORY", uint64_t(1) << 30));
  fp8::emulator::setConditional = &setCondition;
  if (std::getenv("FP8_EMULATOR_COUNTS"))
    std::atexit(writeCounts);
}

static void writeCounts() {
  std::FILE *file = std::fopen(std::getenv("FP8_EMULATOR_COUNTS"), "w");
  if (!file)
    return;
  const Counts &counts = gpu().counts;
  std::fprintf(file,
               "{\"graphs\": %" PRIu64 ", \"kernels\": %" PRIu64
               ", \"waits\": %" PRIu64 ", \"pageable\": %" PRIu64
               ", \"branches\": %" PRIu64 ", \"iterations\": %" PRIu64
               ", \"overlaps\": %" PRIu64 "}\n",
               counts.graphs, counts.kernels, counts.waits, counts.pageable,
               counts.branches, counts.iterations, counts.overlaps);
  std::fclose(file);
}

/// Not a function of the driver: returns the counts in the order of Counts, for
/// tests.
extern "C" __attribute__((visibility("default"))) void
fp8_emulator_counts(uint64_t counts[7]) {
  std::memcpy(counts, &gpu().counts, sizeof(Counts));
}

Status Gpu::enqueue(Stream stream, std::function<Status()> operation) {
  if (sticky != Success)
    return sticky;
  if (!stream || !knows(stream))
    return InvalidHandle;
  if (stream->capture) {
    auto node = std::make_unique<GraphNodeHandle>();
    node->run = std::move(operation);
    node->name = "captured work";
    auto &nodes = stream->capture->nodes;
    if (!nodes.empty())
      node->before.push_back(nodes.back().get());
    nodes.push_back(std::move(node));
    return Success;
  }
  stream->work.push_back(std::move(operation));
  if (schedule.landing == Landing::Early ||
      (schedule.landing == Landing::Random && random() % 2))
    drain(stream); // Later calls return faults.
  return Success;
}

/// The status of an operation that has done a part of its work.
static constexpr Status Unfinished = static_cast<Status>(-1);

/// Runs the first operation of a stream, or a part of it. Returns false if
/// there is none, or if it waits for something outside this device (NotReady).
bool Gpu::runNext(Stream stream) {
  if (stream->work.empty() || sticky != Success)
    return false;
  std::function<Status()> operation = std::move(stream->work.front());
  stream->work.pop_front();
  Status status = operation();
  if (status == NotReady) {
    stream->work.push_front(std::move(operation));
    return false;
  }
  if (status == Unfinished) {
    stream->work.push_front(std::move(operation));
    return true;
  }
  if (status != Success)
    sticky = status;
  return true;
}

/// Runs a stream as far as it can continue now.
Status Gpu::drain(Stream stream) {
  while (runNext(stream))
    ;
  return sticky;
}

/// Runs a stream until `isReached` is true. Other threads may call the driver
/// in the meantime.
Status Gpu::wait(std::unique_lock<std::mutex> &lock,
                 const std::function<bool()> &isReached, Stream stream) {
  ++counts.waits;
  while (!isReached() && sticky == Success) {
    if (runNext(stream))
      continue;
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.lock();
  }
  return sticky;
}

Status Gpu::drainAll() {
  for (StreamHandle *stream : streams)
    drain(stream);
  return sticky;
}

Status Gpu::fail(const Result &result) {
  std::fprintf(stderr, "GPU emulator: %s\n", result.message.c_str());
  switch (result.fault) {
  case Fault::OutOfBounds:
    return IllegalAddress;
  case Fault::Misaligned:
    return MisalignedAddress;
  case Fault::Deadlock:
    return LaunchTimeout;
  case Fault::Divergence:
  case Fault::Invalid:
    return IllegalInstruction;
  default:
    return LaunchFailed;
  }
}

namespace {
/// A launch with copies of its arguments.
struct Launch {
  FunctionHandle *function;
  Geometry geometry;
  std::vector<std::vector<char>> arguments;

  Status operator()() const {
    Gpu &device = gpu();
    std::vector<const void *> addresses;
    for (const std::vector<char> &argument : arguments)
      addresses.push_back(argument.data());
    Schedule schedule = device.schedule;
    schedule.seed = device.random();
    ++device.launches;
    Result result = function->kernel->launch(*device.memory, geometry, schedule,
                                             addresses.data());
    return result ? Success : device.fail(result);
  }
};
} // namespace

/// Checks a launch as the driver does, and copies its arguments.
static Status prepare(FunctionHandle *function, const Geometry &geometry,
                      void **parameters, Launch &launch) {
  if (!gpu().knows(function))
    return InvalidHandle;
  uint64_t threads = 1;
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (geometry.grid[axis] == 0 || geometry.block[axis] == 0)
      return InvalidValue;
    threads *= geometry.block[axis];
  }
  if (threads > 1024)
    return InvalidValue;
  if (geometry.dynamicShared >
      std::max(function->dynamicShared,
               kStaticLimit -
                   std::min(kStaticLimit, function->kernel->staticShared())))
    return InvalidValue;
  launch.function = function;
  launch.geometry = geometry;
  const std::vector<unsigned> &sizes = function->kernel->parameters();
  if (!sizes.empty() && !parameters)
    return InvalidValue;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const char *from = static_cast<const char *>(parameters[i]);
    launch.arguments.emplace_back(from, from + sizes[i]);
  }
  return Success;
}

static Status copyToDevice(DevicePointer target, const void *source,
                           size_t bytes) {
  DeviceMemory &memory = *gpu().memory;
  if (!memory.find(target, bytes))
    return InvalidValue;
  std::memcpy(reinterpret_cast<void *>(target), source, bytes);
  memory.setWritten(target, bytes, true);
  gpu().touch(reinterpret_cast<uint64_t>(source), bytes, /*isWrite=*/false);
  gpu().touch(target, bytes, /*isWrite=*/true);
  return Success;
}

static Status copyToHost(void *target, DevicePointer source, size_t bytes) {
  if (!gpu().memory->find(source, bytes))
    return InvalidValue;
  std::memcpy(target, reinterpret_cast<const void *>(source), bytes);
  gpu().touch(source, bytes, /*isWrite=*/false);
  gpu().touch(reinterpret_cast<uint64_t>(target), bytes, /*isWrite=*/true);
  return Success;
}

static Status copyOnDevice(DevicePointer target, DevicePointer source,
                           size_t bytes) {
  if (!gpu().memory->find(source, bytes))
    return InvalidValue;
  return copyToDevice(target, reinterpret_cast<const void *>(source), bytes);
}

static Status fill(DevicePointer target, unsigned value, unsigned elementBytes,
                   size_t count) {
  DeviceMemory &memory = *gpu().memory;
  if (target % elementBytes != 0 || !memory.find(target, count * elementBytes))
    return InvalidValue;
  for (size_t i = 0; i < count; ++i)
    std::memcpy(reinterpret_cast<char *>(target) + i * elementBytes, &value,
                elementBytes);
  memory.setWritten(target, count * elementBytes, true);
  gpu().touch(target, count * elementBytes, /*isWrite=*/true);
  return Success;
}

//===----------------------------------------------------------------------===//
// Errors, devices, contexts
//===----------------------------------------------------------------------===//

namespace {
struct StatusText {
  Status status;
  const char *name, *text;
};
} // namespace

static const StatusText texts[] = {
    {Success, "CUDA_SUCCESS", "no error"},
    {InvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {InvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {InvalidImage, "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {InvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {InvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {LaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {LaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out and was terminated"},
    {IllegalInstruction, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
     "an illegal instruction was encountered"},
    {MisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"}};

Status cuGetErrorName(Status status, const char **name) {
  for (const StatusText &known : texts)
    if (known.status == status) {
      *name = known.name;
      return Success;
    }
  *name = nullptr;
  return InvalidValue;
}

Status cuGetErrorString(Status status, const char **text) {
  for (const StatusText &known : texts)
    if (known.status == status) {
      *text = known.text;
      return Success;
    }
  *text = nullptr;
  return InvalidValue;
}

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

static thread_local bool hasContext = false;

Status cuInit(unsigned flags) {
  Gpu &device = gpu();
  std::lock_guard<std::mutex> lock(device.mutex);
  if (flags != 0)
    return InvalidValue;
  if (device.devices == 0)
    return NoDevice;
  device.isInitialized = true;
  return Success;
}

Status cuDriverGetVersion(int *version) {
  *version = 13000;
  return Success;
}

Status cuDeviceGetCount(int *count) {
  FP8_ENTER()
  *count = device.devices;
  return Success;
}

Status cuDeviceGet(Device *result, int ordinal) {
  FP8_ENTER()
  if (ordinal < 0 || ordinal >= device.devices)
    return InvalidDevice;
  *result = ordinal;
  return Success;
}

Status cuDeviceGetName(char *name, int length, Device) {
  FP8_ENTER()
  std::snprintf(name, length, "GPU emulator");
  return Success;
}

Status cuDeviceGetAttribute(int *value, DeviceAttribute attribute, Device) {
  FP8_ENTER()
  switch (attribute) {
  case MultiprocessorCount:
    *value = 2;
    return Success;
  case CapabilityMajor:
    *value = device.capability / 10;
    return Success;
  case CapabilityMinor:
    *value = device.capability % 10;
    return Success;
  case SharedMemoryPerBlockOptin:
    *value = kSharedLimit;
    return Success;
  }
  return InvalidValue;
}

Status cuDevicePrimaryCtxRetain(Context *context, Device) {
  FP8_ENTER()
  ++device.retained;
  *context = &device.context;
  return Success;
}

Status cuDevicePrimaryCtxRelease_v2(Device) {
  FP8_ENTER()
  if (device.retained == 0)
    return InvalidContext;
  --device.retained;
  return Success;
}

Status cuCtxSetCurrent(Context context) {
  FP8_ENTER()
  if (context && context != &device.context)
    return InvalidContext;
  hasContext = context;
  return Success;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Status cuMemGetInfo_v2(size_t *available, size_t *total) {
  FP8_ENTER_CONTEXT()
  *available = device.memory->available();
  *total = device.memory->capacity();
  return Success;
}

Status cuMemAlloc_v2(DevicePointer *address, size_t bytes) {
  FP8_ENTER_CONTEXT()
  if (bytes == 0)
    return InvalidValue;
  *address = device.memory->allocate(bytes);
  return *address ? Success : OutOfMemory;
}

Status cuMemFree_v2(DevicePointer address) {
  FP8_ENTER_CONTEXT()
  device.drainAll();
  return device.memory->free(address) ? Success : InvalidValue;
}

Status cuMemHostAlloc(void **address, size_t bytes, unsigned) {
  FP8_ENTER_CONTEXT()
  *address = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  if (!*address)
    return OutOfMemory;
  device.pinned[reinterpret_cast<uint64_t>(*address)] = bytes;
  return Success;
}

Status cuMemFreeHost(void *address) {
  FP8_ENTER_CONTEXT()
  device.drainAll();
  if (!device.pinned.erase(reinterpret_cast<uint64_t>(address)))
    return InvalidValue;
  std::free(address);
  return Success;
}

Status cuMemcpyHtoDAsync_v2(DevicePointer target, const void *source,
                            size_t bytes, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.memory->find(target, bytes))
    return InvalidValue;
  // Pinned memory is read when the copy runs. Other memory is staged before the
  // call returns.
  if (device.isPinned(source))
    return device.enqueue(stream,
                          [=] { return copyToDevice(target, source, bytes); });
  ++device.counts.pageable;
  const char *from = static_cast<const char *>(source);
  std::vector<char> staged(from, from + bytes);
  return device.enqueue(stream, [target, staged = std::move(staged)] {
    return copyToDevice(target, staged.data(), staged.size());
  });
}

Status cuMemcpyDtoHAsync_v2(void *target, DevicePointer source, size_t bytes,
                            Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.memory->find(source, bytes))
    return InvalidValue;
  if (device.isPinned(target))
    std::memset(target, 0xff, bytes); // It must not be read before a wait.
  Status status =
      device.enqueue(stream, [=] { return copyToHost(target, source, bytes); });
  if (status != Success || device.isPinned(target))
    return status;
  ++device.counts.pageable;
  // The call returns after pageable memory is written.
  return device.wait(lock, [&] { return stream->work.empty(); }, stream);
}

Status cuMemcpyDtoDAsync_v2(DevicePointer target, DevicePointer source,
                            size_t bytes, Stream stream) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream,
                        [=] { return copyOnDevice(target, source, bytes); });
}

Status cuMemsetD8Async(DevicePointer target, unsigned char value, size_t count,
                       Stream stream) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] { return fill(target, value, 1, count); });
}

Status cuMemsetD16Async(DevicePointer target, unsigned short value,
                        size_t count, Stream stream) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] { return fill(target, value, 2, count); });
}

Status cuMemsetD32Async(DevicePointer target, unsigned value, size_t count,
                        Stream stream) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] { return fill(target, value, 4, count); });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

Status cuStreamCreate(Stream *stream, unsigned) {
  FP8_ENTER_CONTEXT()
  *stream = new StreamHandle();
  device.handles.insert(*stream);
  device.streams.insert(*stream);
  return Success;
}

Status cuStreamDestroy_v2(Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(stream))
    return InvalidHandle;
  device.drain(stream);
  device.streams.erase(stream);
  delete stream;
  return Success;
}

Status cuStreamSynchronize(Stream stream) {
  FP8_ENTER_CONTEXT()
  if (device.knows(stream) && stream->capture)
    return NotSupported; // Captured work does not run.
  if (!device.knows(stream))
    return InvalidHandle;
  return device.wait(lock, [&] { return stream->work.empty(); }, stream);
}

Status cuStreamBeginCapture_v2(Stream stream, CaptureMode) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(stream))
    return InvalidHandle;
  if (stream->capture)
    return InvalidValue;
  stream->capture = std::make_unique<GraphHandle>();
  return Success;
}

Status cuStreamEndCapture(Stream stream, Graph *graph) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(stream) || !stream->capture)
    return InvalidHandle;
  *graph = stream->capture.release();
  device.handles.insert(*graph);
  return Success;
}

/// Only libraries use this.
extern "C" __attribute__((visibility("default"))) Status
cuLaunchHostFunc(Stream stream, void (*function)(void *), void *data) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] {
    function(data);
    return Success;
  });
}

/// Not a function of the driver: for libraries whose kernels wait for those of
/// other processes. Calls `function` again while it returns
/// CUDA_ERROR_NOT_READY.
extern "C" __attribute__((visibility("default"))) Status
fp8_emulator_work(Stream stream, Status (*function)(void *), void *data) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] { return function(data); });
}

/// Not a function of the driver: for libraries whose kernels run on the host.
/// Checks an access to device memory by such a kernel. Returns false if a GPU
/// kernel would fault.
extern "C" __attribute__((visibility("default"))) bool
fp8_emulator_access(DevicePointer address, size_t bytes, bool writes) {
  DeviceMemory &memory = *gpu().memory;
  if (!memory.find(address, bytes))
    return false;
  gpu().touch(address, bytes, writes);
  if (writes)
    memory.setWritten(address, bytes, true);
  for (size_t i = 0; i < bytes; ++i)
    if (!memory.isWritten(address + i))
      return false;
  return true;
}

/// Runs the event's stream until the event has completed that record. Returns
/// NotReady if the stream waits for something outside this device.
static Status waitFor(const EventHandle &event, uint64_t record) {
  while (event.completed < record && gpu().runNext(event.stream))
    ;
  if (gpu().sticky != Success)
    return gpu().sticky;
  return event.completed < record ? NotReady : Success;
}

Status cuEventCreate(Event *event, unsigned) {
  FP8_ENTER_CONTEXT()
  *event = new EventHandle();
  device.handles.insert(*event);
  return Success;
}

Status cuEventDestroy_v2(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(event))
    return InvalidHandle;
  device.drainAll(); // Pending work may use it.
  delete event;
  return Success;
}

Status cuEventRecord(Event event, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  event->stream = stream;
  ++event->recorded;
  return device.enqueue(stream, [event] {
    ++event->completed;
    return Success;
  });
}

Status cuStreamWaitEvent(Stream stream, Event event, unsigned flags) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  if (flags != 0)
    return InvalidValue;
  // Waits for the records made so far, if there are any.
  return device.enqueue(stream, [event, record = event->recorded] {
    return waitFor(*event, record);
  });
}

/// A query makes progress, so that polling ends.
Status cuEventQuery(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  return waitFor(*event, event->recorded);
}

Status cuEventSynchronize(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  return device.wait(
      lock,
      [&, record = event->recorded] { return event->completed >= record; },
      event->stream);
}

Status cuEventElapsedTime(float *milliseconds, Event, Event) {
  FP8_ENTER_CONTEXT()
  *milliseconds = 0; // Times are not those of a GPU.
  return Success;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

/// Returns the bytes of an element; 0 for types that the emulator lacks.
static unsigned bytesOf(TensorMapType type) {
  switch (type) {
  case MapUInt8:
    return 1;
  case MapUInt16:
  case MapFloat16:
  case MapBFloat16:
    return 2;
  case MapFloat32:
    return 4;
  }
  return 0;
}

Status cuTensorMapEncodeTiled(TensorMap *map, TensorMapType type, uint32_t rank,
                              void *address, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *steps,
                              TensorMapInterleave interleave,
                              TensorMapSwizzle swizzle,
                              TensorMapPromotion promotion,
                              TensorMapFill fill) {
  FP8_ENTER_CONTEXT()
  using Described = fp8::emulator::TensorMap;
  Described described;
  described.elementBytes = bytesOf(type);
  // The emulator copies whole elements side by side; others are an error here
  // even where a card has them.
  if (device.capability < 90 || reinterpret_cast<uint64_t>(map) % 64 != 0 ||
      described.elementBytes == 0 || rank == 0 || rank > Described::kMostDims ||
      interleave != InterleaveNone || swizzle < SwizzleNone ||
      swizzle > Swizzle128Bytes || promotion < PromoteNone || promotion > 3 ||
      fill != FillZeros)
    return InvalidValue;
  described.rank = rank;
  described.address = reinterpret_cast<uint64_t>(address);
  described.swizzle = swizzle == SwizzleNone ? 0 : 16u << swizzle;
  std::copy(sizes, sizes + rank, described.sizes);
  std::copy(strides, strides + rank - 1, described.strides);
  std::copy(box, box + rank, described.box);
  for (uint32_t i = 1; i < rank; ++i)
    if (steps[i] != 1)
      return InvalidValue;
  if (std::string why = described.invalid(); !why.empty()) {
    std::fprintf(stderr, "GPU emulator: cuTensorMapEncodeTiled: %s\n",
                 why.c_str());
    return InvalidValue;
  }
  std::memset(map, 0, sizeof(*map));
  std::memcpy(map, &described, sizeof(described));
  return Success;
}

//===----------------------------------------------------------------------===//
// Modules and launches
//===----------------------------------------------------------------------===//

static void writeLog(unsigned count, JitOption *options, void **values,
                     const std::string &text) {
  char *log = nullptr;
  size_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == JitErrorLog)
      log = static_cast<char *>(values[i]);
    if (options[i] == JitErrorLogBytes)
      bytes = reinterpret_cast<size_t>(values[i]);
  }
  if (log && bytes)
    std::snprintf(log, bytes, "%s", text.c_str());
}

Status cuModuleLoadDataEx(Module *result, const void *image, unsigned count,
                          JitOption *options, void **values) {
  FP8_ENTER_CONTEXT()
  const char *data = static_cast<const char *>(image);
  size_t bytes = bitcodeBytes(data);
  if (bytes == 0) {
    bytes = std::strlen(data);
    if (std::string_view(data, bytes).find("target triple") ==
        std::string_view::npos) {
      writeLog(count, options, values,
               "the GPU emulator loads LLVM IR for nvptx64, but this image is "
               "machine code or PTX");
      return NoBinaryForGpu;
    }
  }
  std::string error;
  auto loaded = fp8::emulator::Module::load(data, bytes, error);
  if (!loaded) {
    writeLog(count, options, values, error);
    return InvalidImage;
  }
  *result = new ModuleHandle{std::move(loaded), {}};
  device.handles.insert(*result);
  return Success;
}

Status cuModuleUnload(Module module) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(module))
    return InvalidHandle;
  device.drainAll();
  for (const auto &[name, function] : module->functions)
    device.handles.erase(function.get());
  delete module;
  return Success;
}

Status cuModuleGetFunction(Function *function, Module module,
                           const char *name) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(module))
    return InvalidHandle;
  Kernel *kernel = module->module->find(name);
  if (!kernel)
    return NotFound;
  std::unique_ptr<FunctionHandle> &found = module->functions[name];
  if (!found)
    found = std::make_unique<FunctionHandle>(FunctionHandle{kernel, 0});
  device.handles.insert(found.get());
  *function = found.get();
  return Success;
}

Status cuFuncGetAttribute(int *value, FunctionAttribute attribute,
                          Function function) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(function))
    return InvalidHandle;
  *value = static_cast<int>(attribute == StaticSharedBytes
                                ? function->kernel->staticShared()
                                : function->dynamicShared);
  return Success;
}

Status cuFuncSetAttribute(Function function, FunctionAttribute attribute,
                          int value) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(function))
    return InvalidHandle;
  if (attribute != MaxDynamicSharedBytes || value < 0 ||
      value + function->kernel->staticShared() > kSharedLimit)
    return InvalidValue;
  function->dynamicShared = value;
  return Success;
}

Status cuLaunchKernel(Function function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, Stream stream,
                      void **parameters, void **extra) {
  FP8_ENTER_CONTEXT()
  if (extra)
    return NotSupported;
  Launch launch;
  Geometry geometry{{gridX, gridY, gridZ}, {blockX, blockY, blockZ}, shared};
  Status status = prepare(function, geometry, parameters, launch);
  ++device.counts.kernels;
  return status == Success ? device.enqueue(stream, std::move(launch)) : status;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Status cuGraphCreate(Graph *graph, unsigned) {
  FP8_ENTER_CONTEXT()
  *graph = new GraphHandle();
  device.handles.insert(*graph);
  return Success;
}

/// Removes the conditions and bodies of a graph.
static void forget(const GraphHandle &graph) {
  for (ConditionalHandle condition : graph.conditions)
    gpu().conditions.erase(condition);
  for (const auto &node : graph.nodes)
    if (node->body) {
      gpu().handles.erase(node->body.get());
      forget(*node->body);
    }
}

Status cuGraphDestroy(Graph graph) {
  FP8_ENTER_CONTEXT()
  if (graph && graph->parent)
    return InvalidValue; // Its node owns a body.
  if (!device.knows(graph))
    return InvalidHandle;
  if (graph->instance)
    return NotSupported; // A limit of the emulator, not of CUDA.
  device.handles.erase(graph);
  forget(*graph);
  delete graph;
  return Success;
}

static bool hasConditions(const GraphHandle &graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const auto &node) { return node->body != nullptr; });
}

static const GraphHandle &rootOf(const GraphHandle &graph) {
  return graph.parent ? rootOf(*graph.parent) : graph;
}

Status cuGraphConditionalHandleCreate(ConditionalHandle *handle, Graph graph,
                                      Context context, unsigned atLaunch,
                                      unsigned flags) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph) || context != &device.context || flags > 1)
    return InvalidValue;
  // Handles are never reused, so that stale ones are detected.
  static ConditionalHandle next = 0x7000;
  *handle = ++next;
  Condition &made = device.conditions[*handle];
  made.graph = graph;
  made.hasDefault = flags == 1;
  made.atLaunch = atLaunch;
  graph->conditions.push_back(*handle);
  return Success;
}

/// Implements cudaGraphSetConditional for kernels.
static std::string setCondition(uint64_t handle, uint32_t value,
                                uint64_t thread) {
  Gpu &device = gpu();
  auto found = device.conditions.find(handle);
  if (found == device.conditions.end())
    return "expected the handle of a condition but got " +
           std::to_string(handle);
  Condition &condition = found->second;
  if (&rootOf(*condition.graph) != device.running)
    return "a condition is set outside of its graph";
  if (condition.launch == device.launches && condition.setter != thread)
    return "two threads of a launch set one condition";
  condition.launch = device.launches;
  condition.setter = thread;
  device.touch(handle, 1, /*isWrite=*/true);
  condition.isSet = true;
  condition.value = value;
  return "";
}

static Status runGraph(const GraphExecHandle &graph);

/// The number of iterations after which a loop counts as endless.
static constexpr uint64_t kMostIterations = uint64_t(1) << 22;

static Status runConditional(ConditionalHandle handle, ConditionalType type,
                             const GraphExecHandle &body) {
  Gpu &device = gpu();
  device.touch(handle, 1, /*isWrite=*/false);
  for (uint64_t iteration = 0;; ++iteration) {
    const Condition &condition = device.conditions.at(handle);
    if (!condition.isSet) {
      std::fprintf(stderr,
                   "GPU emulator: a %s node asks for a condition that "
                   "nothing has set since the graph was launched\n",
                   type == While ? "WHILE" : "IF");
      return LaunchFailed;
    }
    if (condition.value == 0 || (type == If && iteration == 1))
      return Success;
    if (iteration == kMostIterations) {
      std::fprintf(stderr, "GPU emulator: a WHILE node does not end\n");
      return LaunchTimeout;
    }
    ++(type == While ? device.counts.iterations : device.counts.branches);
    if (Status status = runGraph(body); status != Success)
      return status;
  }
}

static std::unique_ptr<GraphExecHandle> instantiate(const GraphHandle &graph) {
  auto executable = std::make_unique<GraphExecHandle>();
  std::map<const GraphNodeHandle *, size_t> numbers;
  for (const auto &node : graph.nodes) {
    numbers[node.get()] = executable->nodes.size();
    if (node->body) {
      std::shared_ptr<GraphExecHandle> body = instantiate(*node->body);
      executable->nodes.push_back(
          [body, handle = node->condition, type = node->type] {
            return runConditional(handle, type, *body);
          });
    } else {
      executable->nodes.push_back(node->run);
    }
    executable->names.push_back(node->name);
    if (node->event)
      executable->events.push_back(node->event);
    executable->before.emplace_back();
    for (const GraphNodeHandle *before : node->before)
      executable->before.back().push_back(numbers.at(before));
  }
  executable->paths = std::make_unique<GraphPaths>(executable->before);
  return executable;
}

/// Makes the function that runs a node, and its name. A body may only copy
/// device and pinned memory.
static Status makeRun(const NodeParams &params, bool isInBody,
                      GraphNodeHandle &node) {
  Gpu &device = gpu();
  std::function<Status()> &run = node.run;
  switch (params.type) {
  case KernelNode: {
    const KernelNodeParams &kernel = params.kernel;
    if (kernel.extra || kernel.kernel)
      return NotSupported;
    Launch launch;
    Geometry geometry{{kernel.gridX, kernel.gridY, kernel.gridZ},
                      {kernel.blockX, kernel.blockY, kernel.blockZ},
                      kernel.sharedBytes};
    Status status = prepare(kernel.func, geometry, kernel.parameters, launch);
    if (status == Success)
      node.name = "kernel '" + kernel.func->kernel->name() + "'";
    run = std::move(launch);
    return status;
  }
  case MemsetNode: {
    MemsetNodeParams set = params.memset;
    if (set.context != &device.context || set.height != 1 ||
        (set.elementBytes != 1 && set.elementBytes != 2 &&
         set.elementBytes != 4))
      return InvalidValue;
    node.name = "a memset";
    run = [set] {
      return fill(set.target, set.value, set.elementBytes, set.width);
    };
    return Success;
  }
  case MemcpyNode: {
    MemcpyParams copy = params.memcpy.copy;
    bool fromHost = copy.sourceType == HostMemory,
         toHost = copy.targetType == HostMemory;
    if (params.memcpy.context != &device.context || params.memcpy.flags != 0 ||
        copy.height != 1 || copy.depth != 1)
      return InvalidValue;
    if (isInBody && ((fromHost && !device.isPinned(copy.sourceHost)) ||
                     (toHost && !device.isPinned(copy.targetHost))))
      return InvalidValue;
    node.name = "a copy";
    run = [=] {
      if (fromHost)
        return copyToDevice(copy.targetDevice, copy.sourceHost, copy.width);
      if (toHost)
        return copyToHost(copy.targetHost, copy.sourceDevice, copy.width);
      return copyOnDevice(copy.targetDevice, copy.sourceDevice, copy.width);
    };
    return Success;
  }
  case ChildGraphNode: {
    Graph child = params.child.graph;
    if (!device.knows(child) || params.child.ownership != 0)
      return InvalidValue;
    if (hasConditions(*child))
      return NotSupported;
    // The child is copied when the node is made.
    std::shared_ptr<GraphExecHandle> copy = instantiate(*child);
    node.name = "a child graph";
    run = [copy] { return runGraph(*copy); };
    return Success;
  }
  case EventRecordNode: {
    Event event = params.eventRecord.event;
    if (isInBody || !device.knows(event))
      return InvalidValue;
    node.name = "an event";
    node.event = event;
    run = [event] {
      ++event->completed;
      return Success;
    };
    return Success;
  }
  case EmptyNode:
    run = [] { return Success; };
    return Success;
  case ConditionalNode:
    break;
  }
  return InvalidValue;
}

/// Makes the body of a conditional node of `graph`.
static Status makeBody(ConditionalParams &params, Graph graph,
                       GraphNodeHandle &node) {
  Gpu &device = gpu();
  auto found = device.conditions.find(params.handle);
  if (found == device.conditions.end() || found->second.graph != graph ||
      found->second.isUsed || params.context != &device.context ||
      params.bodies != 1 || (params.type != If && params.type != While))
    return InvalidValue;
  found->second.isUsed = true;
  node.name = params.type == If ? "a branch" : "a loop";
  node.condition = params.handle;
  node.type = params.type;
  node.body = std::make_unique<GraphHandle>();
  node.body->parent = graph;
  node.body->body = node.body.get();
  device.handles.insert(node.body.get());
  params.graphs = &node.body->body;
  return Success;
}

Status cuGraphAddNode_v2(GraphNode *result, Graph graph,
                         const GraphNode *before, const void *edges,
                         size_t count, NodeParams *params) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph) || (count && !before) || edges ||
      params->reserved1 != 0 || params->reserved0[0] != 0)
    return InvalidValue;
  // A graph with an instance must not change.
  if (rootOf(*graph).instance)
    return NotSupported;
  auto node = std::make_unique<GraphNodeHandle>();
  for (size_t i = 0; i < count; ++i) {
    if (!graph->known.count(before[i]))
      return InvalidValue;
    node->before.push_back(before[i]);
  }
  // Each node only once.
  if (std::set<GraphNode>(before, before + count).size() != count)
    return InvalidValue;
  Status status = params->type == ConditionalNode
                      ? makeBody(params->conditional, graph, *node)
                      : makeRun(*params, graph->parent != nullptr, *node);
  if (status != Success)
    return status;
  *result = node.get();
  graph->known.insert(node.get());
  graph->nodes.push_back(std::move(node));
  return Success;
}

/// Returns true if every condition of a graph and of its bodies has a node.
static bool areUsed(const GraphHandle &graph) {
  for (ConditionalHandle condition : graph.conditions)
    if (!gpu().conditions.at(condition).isUsed)
      return false;
  return std::all_of(
      graph.nodes.begin(), graph.nodes.end(),
      [](const auto &node) { return !node->body || areUsed(*node->body); });
}

Status cuGraphInstantiateWithFlags(GraphExec *result, Graph graph,
                                   unsigned long long) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph) || graph->parent)
    return InvalidHandle;
  // A graph with conditions has one instance at a time.
  if (!areUsed(*graph) || graph->instance)
    return InvalidValue;
  *result = instantiate(*graph).release();
  (*result)->graph = graph;
  if (hasConditions(*graph))
    graph->instance = *result;
  device.handles.insert(*result);
  return Success;
}

Status cuGraphExecDestroy(GraphExec executable) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(executable))
    return InvalidHandle;
  device.drainAll();
  if (device.knows(executable->graph) &&
      executable->graph->instance == executable)
    executable->graph->instance = nullptr;
  delete executable;
  return Success;
}

/// Takes the node that runs next from those that may.
static size_t takeNext(std::vector<size_t> &ready) {
  Gpu &device = gpu();
  auto pick = device.order == Order::Forward
                  ? std::min_element(ready.begin(), ready.end())
              : device.order == Order::Reverse
                  ? std::max_element(ready.begin(), ready.end())
                  : ready.begin() + device.random() % ready.size();
  size_t node = *pick;
  *pick = ready.back();
  ready.pop_back();
  return node;
}

/// Runs a node, and checks that no node without a path to it has accessed what
/// it accesses.
static Status runNode(const GraphExecHandle &graph, size_t node,
                      GraphRaces &races) {
  Gpu &device = gpu();
  Touched touched, *outer = device.touched;
  device.touched = &touched;
  device.memory->setTouching(true);
  Status status = graph.nodes[node]();
  device.memory->takeTouched(touched);
  device.touched = outer;
  device.memory->setTouching(outer != nullptr);
  if (outer)
    outer->add(touched);
  GraphRaces::Race race;
  if (status != Success || !races.add(node, touched, race))
    return status;
  std::fprintf(stderr,
               "GPU emulator: race between two nodes of a graph, %zu (%s) and "
               "%zu (%s): both access address 0x%" PRIx64
               ", one of them writes, and there is no path between them\n",
               race.first, graph.names[race.first].c_str(), race.second,
               graph.names[race.second].c_str(), race.address);
  return LaunchFailed;
}

namespace {
/// A run of a graph, in an order that respects the edges.
struct GraphRun {
  explicit GraphRun(const GraphExecHandle &graph)
      : graph(graph), missing(graph.nodes.size()), after(graph.nodes.size()),
        races(*graph.paths) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      missing[i] = graph.before[i].size();
      for (size_t before : graph.before[i])
        after[before].push_back(i);
      if (missing[i] == 0)
        ready.push_back(i);
    }
  }
  bool hasEnded() const { return ready.empty(); }
  Status runOne() {
    size_t node = takeNext(ready);
    Status status = runNode(graph, node, races);
    for (size_t next : after[node])
      if (--missing[next] == 0)
        ready.push_back(next);
    return status;
  }

  const GraphExecHandle &graph;
  std::vector<size_t> missing; // the number of nodes before that have not run
  std::vector<std::vector<size_t>> after;
  std::vector<size_t> ready;
  GraphRaces races;
};
} // namespace

static Status runGraph(const GraphExecHandle &graph) {
  GraphRun run(graph);
  while (!run.hasEnded())
    if (Status status = run.runOne(); status != Success)
      return status;
  return Success;
}

/// Resets conditions to their defaults, if they have one, before a launch.
static void resetConditions(const GraphHandle &graph) {
  for (ConditionalHandle handle : graph.conditions) {
    Condition &condition = gpu().conditions.at(handle);
    condition.isSet = condition.hasDefault;
    condition.value = condition.atLaunch;
  }
  for (const auto &node : graph.nodes)
    if (node->body)
      resetConditions(*node->body);
}

/// Runs one node of a launched graph.
static Status runNextNode(GraphExecHandle &executable, Stream stream,
                          std::optional<GraphRun> &run) {
  Gpu &device = gpu();
  bool hasConditions = device.knows(executable.graph) &&
                       executable.graph->instance == &executable;
  if (!run) {
    run.emplace(executable);
    if (hasConditions)
      resetConditions(*executable.graph);
  }
  Status status = Success;
  device.running = hasConditions ? executable.graph : nullptr;
  if (!run->hasEnded())
    status = run->runOne();
  device.running = nullptr;
  if (status == Success && !run->hasEnded())
    return Unfinished;
  --stream->graphs;
  return status;
}

Status cuGraphLaunch(GraphExec executable, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(executable) || !device.knows(stream))
    return InvalidHandle;
  ++device.counts.graphs;
  device.counts.overlaps += stream->graphs > 0;
  ++stream->graphs;
  for (Event event : executable->events) {
    event->stream = stream;
    ++event->recorded;
  }
  auto run = std::make_shared<std::optional<GraphRun>>();
  return device.enqueue(stream, [executable, stream, run] {
    return runNextNode(*executable, stream, *run);
  });
}
