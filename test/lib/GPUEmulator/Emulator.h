//===- Emulator.h - NVVM modules on the CPU ---------------------*- C++ -*-===//
//
// Runs kernels that are LLVM IR for nvptx64 on the CPU, thread by thread, as
// the PTX ISA defines what they do, and finds what it leaves undefined: for
// tests, which need no GPU. Sections that are quoted are those of PTX ISA 9.0.
//
// The blocks of a grid run one after another in an order drawn from a seed, and
// in a block the thread that goes on is drawn whenever one waits. So a block
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

/// When asynchronous copies land: as soon or as late as they may, or at any
/// time between.
enum class Landing { Early, Late, Random };

struct Schedule {
  uint64_t seed = 0;
  Landing landing = Landing::Random;
};

/// What a kernel did wrong.
enum class Fault {
  None,
  OutOfBounds,
  Misaligned,
  Race,
  Unwritten,  ///< Memory was read that nothing has been written to.
  Pending,    ///< An asynchronous copy's target was used before a wait.
  Deadlock,   ///< Threads wait for what cannot come.
  Divergence, ///< The lanes of a warp are not where an instruction needs them.
  Invalid,    ///< An instruction's operands are not valid.
};

struct Result {
  Fault fault = Fault::None;
  std::string message; ///< Which kernel, block and thread, where, and what.
  /// Lines of 16 bytes that ldmatrix reads from banks of shared memory that
  /// others of the same matrix lie in: each takes a cycle of its own.
  uint64_t bankConflicts = 0;
  explicit operator bool() const { return fault == Fault::None; }
};

struct Geometry {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamicShared = 0;
};

/// What a device can do.
struct Limits {
  unsigned threadsPerBlock = 1024;
  unsigned staticShared = 48 << 10;
  unsigned shared = 227 << 10; ///< After opting in.
};

/// A compiled kernel.
class Kernel {
public:
  virtual ~Kernel() = default;
  virtual const std::string &name() const = 0;
  /// The bytes of each parameter.
  virtual const std::vector<unsigned> &parameters() const = 0;
  virtual unsigned staticShared() const = 0;
  /// `arguments` has the address of each parameter's value.
  virtual Result launch(DeviceMemory &memory, const Geometry &geometry,
                        const Schedule &schedule,
                        const void *const *arguments) = 0;
};

/// A module in this process.
class Module {
public:
  virtual ~Module() = default;
  /// Null if there is none of this name.
  virtual Kernel *find(const std::string &name) = 0;

  /// Compiles LLVM bitcode or textual LLVM IR. Null, and the reason in `error`,
  /// where something in it is not known.
  static std::unique_ptr<Module> load(const char *image, size_t bytes,
                                      std::string &error);
};

/// What cudaGraphSetConditional calls, by whoever has graphs: null, all calls
/// are faults. Returns what is wrong, or nothing. `thread` tells the threads of
/// a launch apart.
using SetConditional = std::string (*)(uint64_t handle, uint32_t value,
                                       uint64_t thread);
extern SetConditional setConditional;

/// How many bytes the bitcode at `image` has; 0 if it is none.
size_t bitcodeBytes(const char *image);

} // namespace fp8::emulator

#endif // FP8_TEST_LIB_GPUEMULATOR_EMULATOR_H
