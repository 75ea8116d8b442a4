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

#include "Driver.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

using fp8::emulator::DeviceMemory;
using fp8::emulator::Fault;
using fp8::emulator::Geometry;
using fp8::emulator::Landing;
using fp8::emulator::Result;
using fp8::emulator::Schedule;

//===----------------------------------------------------------------------===//
// The device
//===----------------------------------------------------------------------===//

static uint64_t setting(const char *name, uint64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : otherwise;
}

static void writeCounts();

/// Never destroyed: handles may be freed after main.
Gpu &fp8::emulator::driver::gpu() {
  static Gpu &gpu = *new Gpu();
  return gpu;
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

Status fp8::emulator::driver::prepare(FunctionHandle *function,
                                      const Geometry &geometry,
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

Status fp8::emulator::driver::copyToDevice(DevicePointer target,
                                           const void *source, size_t bytes) {
  DeviceMemory &memory = *gpu().memory;
  if (!memory.find(target, bytes))
    return InvalidValue;
  std::memcpy(reinterpret_cast<void *>(target), source, bytes);
  memory.setWritten(target, bytes, true);
  gpu().touch(reinterpret_cast<uint64_t>(source), bytes, /*isWrite=*/false);
  gpu().touch(target, bytes, /*isWrite=*/true);
  return Success;
}

Status fp8::emulator::driver::copyToHost(void *target, DevicePointer source,
                                         size_t bytes) {
  if (!gpu().memory->find(source, bytes))
    return InvalidValue;
  std::memcpy(target, reinterpret_cast<const void *>(source), bytes);
  gpu().touch(source, bytes, /*isWrite=*/false);
  gpu().touch(reinterpret_cast<uint64_t>(target), bytes, /*isWrite=*/true);
  return Success;
}

Status fp8::emulator::driver::copyOnDevice(DevicePointer target,
                                           DevicePointer source, size_t bytes) {
  if (!gpu().memory->find(source, bytes))
    return InvalidValue;
  return copyToDevice(target, reinterpret_cast<const void *>(source), bytes);
}

Status fp8::emulator::driver::fill(DevicePointer target, unsigned value,
                                   unsigned elementBytes, size_t count) {
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

Status Launch::operator()() const {
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

thread_local bool fp8::emulator::driver::hasContext = false;

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
