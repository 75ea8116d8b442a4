//===- Target.h - What code is generated for --------------------*- C++ -*-===//

#ifndef FP8_CODEGEN_TARGET_H
#define FP8_CODEGEN_TARGET_H

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

#include "mlir/IR/Operation.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::fp8 {

/// What the emitted vector code may use.
struct TargetInfo {
  unsigned vectorBits = 128;
  bool hasFMA = false;
  /// vcvtph2ps, which decodes f8 through f16.
  bool hasF16C = false;
  /// Byte permutes of two registers, a table of 128 bytes (AVX512-VBMI).
  bool hasVBMI = false;
  bool hasAVX512BF16 = false;
  /// Products of whole tiles of bf16 (AMX-BF16).
  bool hasAMXBF16 = false;
  /// Pack for bf16 dots but compute them from FMAs: for tests of the packing.
  bool emulateBF16Dots = false;
  /// The same for tiles, whose registers are memory then.
  bool emulateAMX = false;

  unsigned getLanes() const { return vectorBits / 32; }

  static TargetInfo of(CPUTargetAttr target);
};

/// What code is compiled for, in LLVM's words.
struct CodeTarget {
  std::string triple, cpu, features;

  bool operator==(const CodeTarget &other) const {
    return triple == other.triple && cpu == other.cpu &&
           features == other.features;
  }
  bool operator!=(const CodeTarget &other) const { return !(*this == other); }

  static CodeTarget of(CPUTargetAttr target);
};

/// Has LLVM know all targets that it was built with, for descriptions, target
/// machines and objects. Every use of LLVM's targets asks for it; it happens
/// once.
void initializeTargets();

/// The target of a CPU: `native`, the machine that the compiler runs on, or
/// LLVM's name of an x86-64 or AArch64 CPU.
llvm::Expected<CodeTarget> findTarget(StringRef cpu);

/// The same as an attribute.
llvm::Expected<CPUTargetAttr> makeCPUTarget(MLIRContext *context,
                                            StringRef cpu);

/// All features that code for `target` may use, `+` each, also those that its
/// CPU has by its name; as far as they are features that this machine knows.
std::string usedFeatures(const CodeTarget &target);

/// Success if this machine can run code for `target`; else what it lacks.
llvm::Error checkRunsHere(const CodeTarget &target);

/// The CPU that the module around `op` is for; an error if it has no target or
/// another one.
FailureOr<CPUTargetAttr> targetOf(Operation *op);

/// What is known of an NVIDIA GPU by its architecture.
struct GPUInfo {
  StringRef chip;
  /// The version of PTX that has all its instructions.
  unsigned ptx = 0;
  /// The most shared memory that one block can have.
  int64_t sharedBytes = 0;
  /// Warps and registers of a multiprocessor, its shared memory, and the
  /// blocks that it runs at once: for the occupancy.
  int64_t warps = 0, registers = 0, sharedPerProcessor = 0, blocks = 0;
  /// It has `wgmma`.
  bool hasWgmma = false;

  /// All architectures that there is code for.
  static ArrayRef<GPUInfo> all();
  /// That of a target, which is known to be one of them.
  static const GPUInfo &of(GPUTargetAttr target);
};

/// The target of a GPU by its architecture (`sm_90a`), and whether cuBLASLt
/// computes dots: those of a table of shapes (`sm_90a,cublaslt`) or all that it
/// can (`sm_90a,cublaslt=all`).
llvm::Expected<GPUTargetAttr> makeGPUTarget(MLIRContext *context,
                                            StringRef target);

/// The GPU that the module around `op` is for; an error if it has no target or
/// another one.
FailureOr<GPUTargetAttr> gpuTargetOf(Operation *op);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_TARGET_H
