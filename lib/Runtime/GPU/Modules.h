//===- Modules.h - The kernels of a function on the GPU ---------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_MODULES_H
#define FP8_LIB_RUNTIME_GPU_MODULES_H

#include "CublasLt.h"
#include "Driver.h"

#include <map>
#include <memory>

namespace fp8::rt::gpu {

/// A kernel that can be launched.
struct LoadedKernel {
  cuda::Function function = nullptr;
  const fp8_gpu_kernel *kernel = nullptr;
  /// Set for a dot that cuBLASLt computes, which has no function.
  std::unique_ptr<LibraryDot> dot;
};

/// The kernels of an executable. An image that several kernels share is loaded
/// once.
class Modules {
public:
  Modules(const std::string &function,
          const std::vector<const fp8_gpu_kernel *> &kernels);
  ~Modules();
  Modules(const Modules &) = delete;
  Modules &operator=(const Modules &) = delete;

  /// Returns null if the kernel is not one of the executable's.
  const LoadedKernel *find(const fp8_gpu_kernel *kernel) const {
    auto found = loaded.find(kernel);
    return found == loaded.end() ? nullptr : &found->second;
  }

private:
  cuda::Module load(const fp8_gpu_kernel &kernel);
  void unload();

  Device &device;
  std::map<const void *, cuda::Module> modules; // by image
  std::map<const fp8_gpu_kernel *, LoadedKernel> loaded;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_MODULES_H
