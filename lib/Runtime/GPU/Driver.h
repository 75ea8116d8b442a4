//===- Driver.h - NVIDIA's driver, opened when it is needed -----*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_DRIVER_H
#define FP8_LIB_RUNTIME_GPU_DRIVER_H

#include "../Support.h"
#include "Cuda.h"

namespace fp8::rt::gpu {

/// Places in memory of a GPU begin at multiples of it.
constexpr int64_t deviceAlignment = 256;

/// A function of a library; without it an error that begins with `expected`,
/// which says what library has it, and which has not.
void *findFunction(void *library, const char *name, const char *expected);

/// The driver's functions. Opened once for the process, on first use.
struct Driver : cuda::Functions {
  /// Throws where there is no driver or no GPU.
  static const Driver &get();

  /// Throws what the driver says of `status`, if it is no success, after
  /// `what` was tried.
  void check(cuda::Status status, const std::string &what) const;
  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access ...)".
  std::string textOf(cuda::Status status) const;
  /// Loads an image; `log` is what its compiler says of one that it refuses.
  cuda::Status loadModule(const void *image, cuda::Module &module,
                          std::string &log) const;

private:
  Driver();
};

/// The GPU of this process and its primary context.
class Device {
public:
  static Device &get();

  /// Which GPU `get` opens when it is first called (0): the number of this
  /// process among those of the group on this machine. Where there are more of
  /// these than GPUs they share them.
  static void choose(int64_t number);
  /// Has another process of the group this GPU, too?
  bool isShared() const { return shared; }

  const Driver &driver;
  std::string name;
  int capability = 0; // 89: 8.9
  int sharedBytes = 0;

  /// Makes the context the calling thread's.
  void makeCurrent() const;

  cuda::Context context = nullptr;

private:
  Device();
  bool shared = false;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_DRIVER_H
