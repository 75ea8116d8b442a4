//===- Emulator.h - NVVM modules on the CPU ---------------------*- C++ -*-===//
//
// Runs kernels in LLVM IR for nvptx64 on the CPU, thread by thread, as the PTX
// ISA defines them, and detects undefined behaviour. Tests use it in place of a
// GPU. Section numbers refer to PTX ISA 9.0.
//
// The blocks of a grid run one after another, in an order drawn from a seed.
// Within a block, the next thread is drawn whenever one waits. So a block
// cannot wait for another one.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_GPUEMULATOR_EMULATOR_H
#define FP8_TEST_LIB_GPUEMULATOR_EMULATOR_H

#include "Memory.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fp8::emulator {

/// When asynchronous copies land: as early or as late as the PTX ISA allows, or
/// at any time between.
enum class Landing { Early, Late, Random };

struct Schedule {
  uint64_t seed = 0;
  Landing landing = Landing::Random;
};

/// The kinds of errors that are detected in a kernel.
enum class Fault {
  None,
  OutOfBounds,
  Misaligned,
  Race,
  Unwritten,  ///< Memory is read that was never written.
  Pending,    ///< The target of an asynchronous copy is used before a wait.
  Deadlock,   ///< Threads wait for something that cannot happen.
  Divergence, ///< Lanes are not where an instruction of the warp needs them.
  Invalid,    ///< An instruction's operands are not valid.
};

struct Result {
  Fault fault = Fault::None;
  std::string message; ///< Kernel, block, thread, instruction and error.
  /// The number of 16-byte lines that ldmatrix reads from the same banks of
  /// shared memory as other lines of the same matrix. Each takes another cycle.
  uint64_t bankConflicts = 0;
  explicit operator bool() const { return fault == Fault::None; }
};

struct Geometry {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamicShared = 0;
};

/// The limits of a device.
struct Limits {
  unsigned threadsPerBlock = 1024;
  unsigned staticShared = 48 << 10;
  unsigned shared = 227 << 10; ///< With the opt-in attribute.
};

/// A compiled kernel.
class Kernel {
public:
  virtual ~Kernel() = default;
  virtual const std::string &name() const = 0;
  /// Returns the size of each parameter in bytes.
  virtual const std::vector<unsigned> &parameters() const = 0;
  virtual unsigned staticShared() const = 0;
  /// Runs the kernel. `arguments` has the address of each parameter's value.
  virtual Result launch(DeviceMemory &memory, const Geometry &geometry,
                        const Schedule &schedule,
                        const void *const *arguments) = 0;
};

/// A module loaded into this process.
class Module {
public:
  virtual ~Module() = default;
  /// Returns the kernel of this name, or null.
  virtual Kernel *find(const std::string &name) = 0;

  /// Compiles LLVM bitcode or textual LLVM IR. If it contains something
  /// unknown, returns null and sets `error`.
  static std::unique_ptr<Module> load(const char *image, size_t bytes,
                                      std::string &error);
};

/// Implements cudaGraphSetConditional. The driver sets it; while it is null,
/// every call is a fault. Returns an error message or an empty string. `thread`
/// identifies a thread of the launch.
using SetConditional = std::string (*)(uint64_t handle, uint32_t value,
                                       uint64_t thread);
extern SetConditional setConditional;

/// Returns the size of the bitcode at `image` in bytes, or 0 if it is not
/// bitcode.
size_t bitcodeBytes(const char *image);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_EMULATOR_H
