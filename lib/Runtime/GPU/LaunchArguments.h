//===- LaunchArguments.h - The arguments of a launch ------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_GPU_LAUNCHARGUMENTS_H
#define FP8_LIB_RUNTIME_GPU_LAUNCHARGUMENTS_H

#include "Driver.h"

#include "fp8-c/Runtime.h"

#include <vector>

namespace fp8::rt::gpu {

/// The arguments of a launch, which the driver copies: 8 bytes each, and tensor
/// maps of operands, which are encoded for the operands' addresses.
class LaunchArguments {
public:
  /// `parameters` are those of 8 bytes; they must outlive the arguments. Throws
  /// if the driver rejects a tensor map.
  LaunchArguments(const Driver &driver, const fp8_gpu_kernel &kernel,
                  const std::vector<cuda::DevicePointer> &parameters);
  LaunchArguments(const LaunchArguments &) = delete;
  LaunchArguments &operator=(const LaunchArguments &) = delete;

  /// Returns the address of each argument.
  void **data() { return addresses.data(); }

private:
  std::vector<cuda::TensorMap> maps;
  std::vector<void *> addresses;
};

} // namespace fp8::rt::gpu

#endif // FP8_LIB_RUNTIME_GPU_LAUNCHARGUMENTS_H
