//===- Executable.h - What a step runs --------------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_STEP_EXECUTABLE_H
#define FP8_LIB_RUNTIME_STEP_EXECUTABLE_H

#include "../Support/Memory.h"
#include "../Support/TensorType.h"
#include "fp8-c/Runtime.h"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace fp8::rt::gpu {
class Modules;
} // namespace fp8::rt::gpu

namespace fp8::rt {
/// Copies descriptions of arguments or results, as `what` says; throws if one
/// of them is none.
std::vector<TensorInfo> copyInfos(const fp8_tensor_info *infos, int64_t count,
                                  const char *what);
} // namespace fp8::rt

struct fp8_executable {
  explicit fp8_executable(const fp8_executable_desc &desc);

  std::string name;
  fp8_entry_fn entry;
  std::vector<fp8::rt::TensorInfo> arguments;
  std::vector<fp8::rt::TensorInfo> results;
  std::vector<const void *> constants;
  std::vector<int64_t> constantSizes;
  int64_t constantBytes = 0;
  /// The ranks that have the parts of arguments; 0: no argument has parts.
  int64_t numRanks = 0;
  int64_t arenaBytes;
  int64_t scratchBytes;
  std::vector<std::string> launchNames;
  /// For a GPU; empty for the CPU.
  std::vector<const fp8_gpu_kernel *> gpuKernels;

  /// Returns the kernels on the GPU, loaded on the first call.
  std::shared_ptr<fp8::rt::gpu::Modules> modules() const;

  /// Returns whether result i has a buffer of its own.
  bool ownsBuffer(size_t i) const {
    return results[i].stateArg < 0 || results[i].ownBuffer;
  }

  /// Adds one run of a launch to its entry in `profile`.
  void addRun(std::vector<fp8_launch_stat> &profile, int64_t launch,
              int64_t tasks, std::chrono::duration<double> time) const;

private:
  /// Checks which argument each state result replaces; both have one shard.
  void pairState();
  /// Checks that all arguments have parts for the same number of ranks.
  void countRanks();
  void copyConstants(const fp8_executable_desc &desc);
  /// Checks and copies the descriptions of the kernels for a GPU.
  void copyKernels(const fp8_executable_desc &desc);

  std::vector<fp8::rt::AlignedBuffer> constantCopies;
  mutable std::mutex modulesMutex;
  mutable std::weak_ptr<fp8::rt::gpu::Modules> loadedModules;
};

#endif // FP8_LIB_RUNTIME_STEP_EXECUTABLE_H
