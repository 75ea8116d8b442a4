//===- Driver.cpp - NVIDIA's driver, opened on first use ------------------===//

#include "Driver.h"
#include "../Support/Error.h"

#include <atomic>
#include <cstdlib>
#include <dlfcn.h>

namespace fp8::rt::gpu {

static Error noGpu(const std::string &why) {
  return Error(FP8_ERROR_INVALID,
               str("the code is for an NVIDIA GPU, but there is none: ", why));
}

void *findFunction(void *library, const char *name, const char *expected) {
  void *function = dlsym(library, name);
  if (!function)
    throw Error(FP8_ERROR_INVALID, str(expected, " has no '", name, "'"));
  return function;
}

Driver::Driver() {
  // The library is never closed: it has threads and exit handlers of its own.
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw noGpu(dlerror());
  auto find = [&](const char *name) {
    return findFunction(
        library, name,
        "expected a driver for CUDA 12.4 or later but libcuda.so.1");
  };
#define FP8_CUDA_FIND(name, arguments)                                         \
  name = reinterpret_cast<decltype(name)>(find(#name));
  FP8_CUDA_FUNCTIONS(FP8_CUDA_FIND)
#undef FP8_CUDA_FIND
  cuda::Status status = cuInit(0);
  if (status != cuda::Success)
    throw noGpu(str("the driver says ", textOf(status)));
  int count = 0;
  check(cuDeviceGetCount(&count), "count the GPUs");
  if (count == 0)
    throw noGpu("the driver sees no device");
}

const Driver &Driver::get() {
  // If the constructor throws, the next call tries again.
  static const Driver driver;
  return driver;
}

std::string Driver::textOf(cuda::Status status) const {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(status, &name);
  cuGetErrorString(status, &text);
  return str(name ? name : str("error ", static_cast<int>(status)), " (",
             text ? text : "unknown", ")");
}

/// Returns how to find the launch whose kernel failed: the driver reports it
/// with a later call.
static const char *hintFor(cuda::Status status) {
  bool isOfKernel = status >= cuda::IllegalAddress &&
                    status <= cuda::LaunchFailed &&
                    status != cuda::LaunchOutOfResources;
  return isOfKernel && !std::getenv("FP8_GPU_CHECK")
             ? "; with FP8_GPU_CHECK=1 the error names the launch"
             : "";
}

void Driver::check(cuda::Status status, const std::string &what) const {
  if (status != cuda::Success)
    throw Error(
        status == cuda::OutOfMemory ? FP8_ERROR_MEMORY : FP8_ERROR_INTERNAL,
        str("the GPU cannot ", what, ": ", textOf(status), hintFor(status)));
}

cuda::Status Driver::loadModule(const void *image, cuda::Module &module,
                                std::string &log) const {
  char text[4096] = {};
  cuda::JitOption options[] = {cuda::JitErrorLog, cuda::JitErrorLogBytes};
  void *values[] = {text, reinterpret_cast<void *>(sizeof(text) - 1)};
  cuda::Status status = cuModuleLoadDataEx(&module, image, 2, options, values);
  log = text;
  return status;
}

static std::atomic<int64_t> chosen{0};

void Device::choose(int64_t number) { chosen = number; }

Device::Device() : driver(Driver::get()) {
  int count = 0;
  driver.check(driver.cuDeviceGetCount(&count), "be counted");
  shared = chosen >= count;
  cuda::Device device = 0;
  driver.check(driver.cuDeviceGet(&device, static_cast<int>(chosen % count)),
               "be opened");
  char text[256] = {};
  driver.check(driver.cuDeviceGetName(text, sizeof(text) - 1, device),
               "tell its name");
  name = text;
  auto attribute = [&](cuda::DeviceAttribute which) {
    int value = 0;
    driver.check(driver.cuDeviceGetAttribute(&value, which, device),
                 "tell its properties");
    return value;
  };
  capability =
      attribute(cuda::CapabilityMajor) * 10 + attribute(cuda::CapabilityMinor);
  sharedBytes = attribute(cuda::SharedMemoryPerBlockOptin);
  driver.check(driver.cuDevicePrimaryCtxRetain(&context, device),
               "make a context");
}

Device &Device::get() {
  static Device device;
  return device;
}

void Device::makeCurrent() const {
  driver.check(driver.cuCtxSetCurrent(context), "be used by this thread");
}

} // namespace fp8::rt::gpu
