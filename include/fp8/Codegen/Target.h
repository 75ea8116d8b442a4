//===- Target.h - The target of code generation -----------------*- C++ -*-===//

#ifndef FP8_CODEGEN_TARGET_H
#define FP8_CODEGEN_TARGET_H

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::fp8 {

/// The instructions that the emitted vector code may use.
struct TargetInfo {
  unsigned vectorBits = 128;
  bool hasFMA = false;
  /// F16C: vcvtph2ps, which decodes f8 through f16.
  bool hasF16C = false;
  /// AVX-512F: vscalefps, which multiplies by a power of two.
  bool hasAVX512 = false;
  /// AVX512-VBMI: byte permutes of two registers, that is, of a table of 128
  /// bytes.
  bool hasVBMI = false;
  bool hasAVX512BF16 = false;
  /// AMX-BF16: products of whole bf16 tiles.
  bool hasAMXBF16 = false;
  /// For tests of packing: pack for bf16 dots, but compute them with FMAs.
  bool emulateBF16Dots = false;
  /// The same for AMX tiles, whose registers are then memory.
  bool emulateAMX = false;

  unsigned getLanes() const { return vectorBits / 32; }

  static TargetInfo of(CPUTargetAttr target);
  /// Returns that of the module around `op`. If it has no CPU target, code may
  /// use no special instructions.
  static TargetInfo around(Operation *op);
};

/// The target that code is compiled for, in LLVM's terms.
struct CodeTarget {
  std::string triple, cpu, features;

  bool operator==(const CodeTarget &other) const {
    return triple == other.triple && cpu == other.cpu &&
           features == other.features;
  }
  bool operator!=(const CodeTarget &other) const { return !(*this == other); }

  static CodeTarget of(CPUTargetAttr target);
};

/// Registers all of LLVM's targets, for descriptions, target machines and
/// objects. Every user of LLVM's targets calls it; only the first call does
/// anything.
void initializeTargets();

/// Returns the target of a CPU: `native`, the machine that the compiler runs
/// on, or LLVM's name of an x86-64 or AArch64 CPU.
llvm::Expected<CodeTarget> findTarget(StringRef cpu);

/// Returns the same target as an attribute.
llvm::Expected<CPUTargetAttr> makeCPUTarget(MLIRContext *context,
                                            StringRef cpu);

/// Returns all features that code for `target` may use, each with a `+`,
/// including those that its CPU implies, as far as this machine knows them. For
/// another architecture, returns the target's features as given.
std::string usedFeatures(const CodeTarget &target);

/// Returns success if this machine can run code for `target`; otherwise an
/// error that names what it lacks.
llvm::Error checkRunsHere(const CodeTarget &target);

/// Returns the CPU target of the module around `op`; emits an error if it has
/// none or one of another kind.
FailureOr<CPUTargetAttr> targetOf(Operation *op);

/// The properties of an NVIDIA GPU architecture.
struct GPUInfo {
  StringRef chip;
  /// The version of PTX that supports all its instructions.
  unsigned ptx = 0;
  /// The most shared memory that one block can have.
  int64_t sharedBytes = 0;
  /// Limits of a multiprocessor, for the occupancy: warps, registers, shared
  /// memory, and concurrent blocks.
  int64_t warps = 0, registers = 0, sharedPerProcessor = 0, blocks = 0;
  /// Whether it has `wgmma` and TMA.
  bool hasWgmma = false;
  /// The multiprocessors of its largest card; 0 where nothing depends on it.
  int64_t processors = 0;

  /// Returns all supported architectures.
  static ArrayRef<GPUInfo> all();
  /// Returns the architecture of a target, which must be a supported one.
  static const GPUInfo &of(GPUTargetAttr target);
};

/// Parses the target of a GPU: its architecture (`sm_90a`), and whether
/// cuBLASLt computes dots, either those of a table of shapes
/// (`sm_90a,cublaslt`) or all that it can (`sm_90a,cublaslt=all`).
llvm::Expected<GPUTargetAttr> makeGPUTarget(MLIRContext *context,
                                            StringRef target);

/// Returns the GPU target of the module around `op`; emits an error if it has
/// none or one of another kind.
FailureOr<GPUTargetAttr> gpuTargetOf(Operation *op);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_TARGET_H
