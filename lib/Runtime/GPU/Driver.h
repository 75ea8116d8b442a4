//===- Driver.h - NVIDIA's driver, opened on first use ----------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_DRIVER_H
#define FP8_LIB_RUNTIME_GPU_DRIVER_H

#include "Cuda.h"

#include <string>

namespace fp8::rt::gpu {

/// The alignment of buffers in GPU memory: vector loads and TMA descriptors
/// need no more.
constexpr int64_t deviceAlignment = 256;

/// Returns the address of memory of the GPU that is known as a pointer.
inline cuda::DevicePointer addressOf(const void *pointer) {
  return reinterpret_cast<cuda::DevicePointer>(pointer);
}

/// Returns a function of a library. If it is missing, throws an error that
/// begins with `expected`, which names the library that should have it.
void *findFunction(void *library, const char *name, const char *expected);

/// The driver's functions, loaded once per process on first use.
struct Driver : cuda::Functions {
  /// Throws if there is no driver or no GPU.
  static const Driver &get();

  /// Throws the driver's error unless `status` is success; `what` was
  /// attempted.
  void check(cuda::Status status, const std::string &what) const;
  /// Returns "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access ...)".
  std::string textOf(cuda::Status status) const;
  /// Loads an image; if the driver rejects it, `log` is its compiler's message.
  cuda::Status loadModule(const void *image, cuda::Module &module,
                          std::string &log) const;

private:
  Driver();
};

/// The GPU of this process and its primary context.
class Device {
public:
  static Device &get();

  /// Sets which GPU `get` opens on its first call: `number` is this process's
  /// index among the group's processes on this machine (default 0). If there
  /// are more processes than GPUs, they share them.
  static void choose(int64_t number);
  /// Returns whether another process of the group uses this GPU, too.
  bool isShared() const { return shared; }

  const Driver &driver;
  std::string name;
  int capability = 0; // 89: 8.9
  int sharedBytes = 0;

  /// Makes the context current in the calling thread.
  void makeCurrent() const;

  cuda::Context context = nullptr;

private:
  Device();
  bool shared = false;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_DRIVER_H
