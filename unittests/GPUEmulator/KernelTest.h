//===- KernelTest.h - Kernels in LLVM IR, run in the emulator ---*- C++ -*-===//

#ifndef FP8_UNITTESTS_GPUEMULATOR_KERNELTEST_H
#define FP8_UNITTESTS_GPUEMULATOR_KERNELTEST_H

#include "Emulator.h"

#include "gtest/gtest.h"

#include <cstring>

namespace fp8::emulator {

/// Prints a fault as a number.
inline void PrintTo(Fault fault, std::ostream *os) {
  *os << "fault " << static_cast<int>(fault);
}

/// Returns `text` with one occurrence of `from`, which must exist, replaced.
inline std::string mutate(std::string text, const std::string &from,
                          const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << "'" << from << "' is not there";
  if (at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

/// A device with a few buffers.
class Device {
public:
  Device() : memory(1 << 24) {}

  template <typename T> uint64_t upload(const std::vector<T> &values) {
    uint64_t address = memory.allocate(values.size() * sizeof(T));
    std::memcpy(reinterpret_cast<void *>(address), values.data(),
                values.size() * sizeof(T));
    memory.setWritten(address, values.size() * sizeof(T), true);
    arguments.push_back(address);
    return address;
  }
  template <typename T> uint64_t allocate(size_t count) {
    uint64_t address = memory.allocate(count * sizeof(T));
    arguments.push_back(address);
    return address;
  }
  template <typename T>
  std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), reinterpret_cast<const void *>(address),
                count * sizeof(T));
    return values;
  }

  /// Launches the kernel `k` of a module with the buffers, in the order of
  /// their allocation.
  Result launch(const std::string &text, unsigned blocks, unsigned threads,
                Schedule schedule = {}, unsigned dynamicShared = 0) {
    std::string error;
    std::unique_ptr<Module> module =
        Module::load(text.data(), text.size(), error);
    if (!module)
      return {Fault::Invalid, error};
    Kernel *kernel = module->find("k");
    if (!kernel)
      return {Fault::Invalid, "no kernel 'k'"};
    std::vector<const void *> addresses = firstArguments;
    for (const uint64_t &argument : arguments)
      addresses.push_back(&argument);
    Geometry geometry;
    geometry.grid[0] = blocks;
    geometry.block[0] = threads;
    geometry.dynamicShared = dynamicShared;
    return kernel->launch(memory, geometry, schedule, addresses.data());
  }

  DeviceMemory memory;
  std::vector<uint64_t> arguments;
  /// The addresses of arguments that precede the buffers.
  std::vector<const void *> firstArguments;
};

/// Returns early, late and some random schedules.
inline std::vector<Schedule> schedules() {
  return {{1, Landing::Early},
          {2, Landing::Late},
          {3, Landing::Random},
          {4, Landing::Random},
          {5, Landing::Random}};
}

inline const std::string header = R"(
target triple = "nvptx64-nvidia-cuda"
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare float @llvm.nvvm.shfl.sync.down.f32(i32, float, i32, i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
)";

} // namespace fp8::emulator

#endif // FP8_UNITTESTS_GPUEMULATOR_KERNELTEST_H
