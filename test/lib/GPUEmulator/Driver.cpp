//===- Driver.cpp - A libcuda.so.1 whose GPU is the emulator --------------===//
//
// The functions of NVIDIA's driver that the runtime uses (lib/Runtime/GPU), as
// their documentation says: what is given to a stream happens at once, or when
// somebody waits for it, or at any time between, by the schedule; a fault of a
// kernel is told by the next call that waits, and by every call after it. Its
// message goes to stderr.
//
// The environment says what device this is:
//   FP8_EMULATOR_SEED=N                    order of blocks, threads, copies (0)
//   FP8_EMULATOR_LANDING=early|late|random when asynchronous things happen
//   FP8_EMULATOR_MEMORY=BYTES              of the device (1 GiB)
//   FP8_EMULATOR_CAPABILITY=NN             compute capability, 89: 8.9 (89)
//   FP8_EMULATOR_DEVICES=N                 0: none (1)
//
//===----------------------------------------------------------------------===//

#include "Emulator.h"

#include "GPU/Cuda.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <thread>

using namespace fp8::cuda;
using fp8::emulator::bitcodeBytes;
using fp8::emulator::DeviceMemory;
using fp8::emulator::Fault;
using fp8::emulator::Geometry;
using fp8::emulator::Kernel;
using fp8::emulator::Landing;
using fp8::emulator::Result;
using fp8::emulator::Schedule;

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
  unsigned dynamicShared; // that it may have
};

struct fp8::cuda::EventHandle {
  StreamHandle *stream = nullptr;
  unsigned pending = 0;
};

struct fp8::cuda::GraphNodeHandle {
  std::function<Status()> run;
  std::vector<GraphNodeHandle *> before;
};

struct fp8::cuda::GraphHandle {
  std::vector<std::unique_ptr<GraphNodeHandle>> nodes;
};

struct fp8::cuda::StreamHandle {
  std::deque<std::function<Status()>> work;
  /// What is given to it goes there and does not happen.
  std::unique_ptr<GraphHandle> capture;
};

struct fp8::cuda::GraphExecHandle {
  std::vector<GraphNodeHandle> nodes; // those before by number
  std::vector<std::vector<size_t>> before;
};

struct fp8::cuda::ContextHandle {};

namespace {

constexpr unsigned kStaticLimit = 48 << 10, kSharedLimit = 227 << 10;

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
  // Live handles: others are not valid.
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
  random.seed(schedule.seed + 1);
  memory = std::make_unique<DeviceMemory>(
      setting("FP8_EMULATOR_MEMORY", uint64_t(1) << 30));
}

Status Gpu::enqueue(Stream stream, std::function<Status()> operation) {
  if (sticky != Success)
    return sticky;
  if (!stream || !knows(stream))
    return InvalidHandle;
  if (stream->capture) {
    auto node = std::make_unique<GraphNodeHandle>();
    node->run = std::move(operation);
    auto &nodes = stream->capture->nodes;
    if (!nodes.empty())
      node->before.push_back(nodes.back().get());
    nodes.push_back(std::move(node));
    return Success;
  }
  stream->work.push_back(std::move(operation));
  if (schedule.landing == Landing::Early ||
      (schedule.landing == Landing::Random && random() % 2))
    drain(stream); // A fault is told later.
  return Success;
}

/// Runs the first operation of a stream; false where there is none, or it waits
/// for something outside of this device (NotReady).
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
  if (status != Success)
    sticky = status;
  return true;
}

/// As far as it goes now.
Status Gpu::drain(Stream stream) {
  while (runNext(stream))
    ;
  return sticky;
}

/// Runs a stream until it has come so far. Other threads may call meanwhile.
Status Gpu::wait(std::unique_lock<std::mutex> &lock,
                 const std::function<bool()> &isReached, Stream stream) {
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
/// A launch with its arguments, as it was given.
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
  return Success;
}

static Status copyToHost(void *target, DevicePointer source, size_t bytes) {
  if (!gpu().memory->find(source, bytes))
    return InvalidValue;
  std::memcpy(target, reinterpret_cast<const void *>(source), bytes);
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

/// Every other function: not before cuInit, and one at a time.
#define FP8_ENTER()                                                            \
  Gpu &device = gpu();                                                         \
  std::unique_lock<std::mutex> lock(device.mutex);                             \
  if (!device.isInitialized)                                                   \
    return NotInitialized;

/// And those that need the context, which a fault leaves unusable.
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
  // Pinned memory is read when the copy happens; other memory is staged before
  // the call returns.
  if (device.isPinned(source))
    return device.enqueue(stream,
                          [=] { return copyToDevice(target, source, bytes); });
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
    std::memset(target, 0xff, bytes); // It is not to be read before a wait.
  Status status =
      device.enqueue(stream, [=] { return copyToHost(target, source, bytes); });
  if (status != Success || device.isPinned(target))
    return status;
  // Returns when pageable memory is written.
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
    return NotSupported; // Nothing of a capture runs.
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

/// (Used by libraries alone.)
extern "C" __attribute__((visibility("default"))) Status
cuLaunchHostFunc(Stream stream, void (*function)(void *), void *data) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] {
    function(data);
    return Success;
  });
}

/// No function of the driver: for a library whose kernels wait for those of
/// other processes. `function` is asked again while it says
/// CUDA_ERROR_NOT_READY.
extern "C" __attribute__((visibility("default"))) Status
fp8_emulator_work(Stream stream, Status (*function)(void *), void *data) {
  FP8_ENTER_CONTEXT()
  return device.enqueue(stream, [=] { return function(data); });
}

/// No function of the driver: for a library whose kernels run on the host. Of
/// memory that work of a stream, which calls it, reads or writes: false where a
/// kernel would be at fault.
extern "C" __attribute__((visibility("default"))) bool
fp8_emulator_access(DevicePointer address, size_t bytes, bool writes) {
  DeviceMemory &memory = *gpu().memory;
  if (!memory.find(address, bytes))
    return false;
  if (writes)
    memory.setWritten(address, bytes, true);
  for (size_t i = 0; i < bytes; ++i)
    if (!memory.isWritten(address + i))
      return false;
  return true;
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
  device.drainAll(); // Work that is under way may know it.
  delete event;
  return Success;
}

Status cuEventRecord(Event event, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  event->stream = stream;
  ++event->pending;
  return device.enqueue(stream, [event] {
    --event->pending;
    return Success;
  });
}

/// (Who asks again and again waits, too.)
Status cuEventQuery(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  while (event->pending > 0 && device.runNext(event->stream))
    ;
  if (device.sticky != Success)
    return device.sticky;
  return event->pending > 0 ? NotReady : Success;
}

Status cuEventSynchronize(Event event) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(event))
    return InvalidHandle;
  return device.wait(lock, [&] { return event->pending == 0; }, event->stream);
}

Status cuEventElapsedTime(float *milliseconds, Event, Event) {
  FP8_ENTER_CONTEXT()
  *milliseconds = 0; // Nothing here takes as long as on a GPU.
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

Status cuGraphDestroy(Graph graph) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(graph))
    return InvalidHandle;
  delete graph;
  return Success;
}

static Status addNode(GraphNode *node, Graph graph, const GraphNode *before,
                      size_t count, std::function<Status()> run) {
  if (!gpu().knows(graph) || (count && !before))
    return InvalidValue;
  auto made = std::make_unique<GraphNodeHandle>();
  made->run = std::move(run);
  for (size_t i = 0; i < count; ++i) {
    bool isThere = std::any_of(
        graph->nodes.begin(), graph->nodes.end(),
        [&](const auto &known) { return known.get() == before[i]; });
    if (!isThere)
      return InvalidValue;
    made->before.push_back(before[i]);
  }
  *node = made.get();
  graph->nodes.push_back(std::move(made));
  return Success;
}

Status cuGraphAddKernelNode_v2(GraphNode *node, Graph graph,
                               const GraphNode *before, size_t count,
                               const KernelNodeParams *params) {
  FP8_ENTER_CONTEXT()
  if (params->extra || params->kernel)
    return NotSupported;
  Launch launch;
  Geometry geometry{{params->gridX, params->gridY, params->gridZ},
                    {params->blockX, params->blockY, params->blockZ},
                    params->sharedBytes};
  Status status = prepare(params->func, geometry, params->parameters, launch);
  return status == Success
             ? addNode(node, graph, before, count, std::move(launch))
             : status;
}

Status cuGraphAddMemsetNode(GraphNode *node, Graph graph,
                            const GraphNode *before, size_t count,
                            const MemsetNodeParams *params, Context context) {
  FP8_ENTER_CONTEXT()
  MemsetNodeParams copy = *params;
  if (context != &device.context || copy.height != 1 ||
      (copy.elementBytes != 1 && copy.elementBytes != 2 &&
       copy.elementBytes != 4))
    return InvalidValue;
  return addNode(node, graph, before, count, [copy] {
    return fill(copy.target, copy.value, copy.elementBytes, copy.width);
  });
}

Status cuGraphAddMemcpyNode(GraphNode *node, Graph graph,
                            const GraphNode *before, size_t count,
                            const MemcpyParams *params, Context context) {
  FP8_ENTER_CONTEXT()
  MemcpyParams copy = *params;
  if (context != &device.context || copy.height != 1 || copy.depth != 1)
    return InvalidValue;
  return addNode(node, graph, before, count, [copy] {
    if (copy.sourceType == HostMemory)
      return copyToDevice(copy.targetDevice, copy.sourceHost, copy.width);
    if (copy.targetType == HostMemory)
      return copyToHost(copy.targetHost, copy.sourceDevice, copy.width);
    return copyOnDevice(copy.targetDevice, copy.sourceDevice, copy.width);
  });
}

static std::unique_ptr<GraphExecHandle> instantiate(const GraphHandle &graph) {
  auto executable = std::make_unique<GraphExecHandle>();
  std::map<const GraphNodeHandle *, size_t> numbers;
  for (const auto &node : graph.nodes) {
    numbers[node.get()] = executable->nodes.size();
    executable->nodes.push_back(*node);
    executable->before.emplace_back();
    for (const GraphNodeHandle *before : node->before)
      executable->before.back().push_back(numbers.at(before));
  }
  return executable;
}

Status cuGraphInstantiateWithFlags(GraphExec *result, Graph graph,
                                   unsigned long long) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(graph))
    return InvalidHandle;
  *result = instantiate(*graph).release();
  device.handles.insert(*result);
  return Success;
}

Status cuGraphExecDestroy(GraphExec executable) {
  FP8_ENTER_CONTEXT()
  if (!device.handles.erase(executable))
    return InvalidHandle;
  device.drainAll();
  delete executable;
  return Success;
}

/// All nodes, in an order drawn from those that the edges allow.
static Status runGraph(const GraphExecHandle &graph) {
  std::vector<size_t> missing(graph.nodes.size());
  std::vector<std::vector<size_t>> after(graph.nodes.size());
  std::vector<size_t> ready;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    missing[i] = graph.before[i].size();
    for (size_t before : graph.before[i])
      after[before].push_back(i);
    if (missing[i] == 0)
      ready.push_back(i);
  }
  while (!ready.empty()) {
    size_t pick = gpu().random() % ready.size();
    size_t node = ready[pick];
    ready[pick] = ready.back();
    ready.pop_back();
    Status status = graph.nodes[node].run();
    if (status != Success)
      return status;
    for (size_t next : after[node])
      if (--missing[next] == 0)
        ready.push_back(next);
  }
  return Success;
}

Status cuGraphAddChildGraphNode(GraphNode *node, Graph graph,
                                const GraphNode *before, size_t count,
                                Graph child) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(child))
    return InvalidValue;
  // The child is copied when the node is made.
  std::shared_ptr<GraphExecHandle> copy = instantiate(*child);
  return addNode(node, graph, before, count,
                 [copy] { return runGraph(*copy); });
}

Status cuGraphLaunch(GraphExec executable, Stream stream) {
  FP8_ENTER_CONTEXT()
  if (!device.knows(executable))
    return InvalidHandle;
  return device.enqueue(stream, [executable] { return runGraph(*executable); });
}
