//===- Object.h - Compilation of GPU kernels --------------------*- C++ -*-===//

#ifndef FP8_CODEGEN_GPUOBJECT_OBJECT_H
#define FP8_CODEGEN_GPUOBJECT_OBJECT_H

#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>

namespace mlir::fp8 {

/// The form in which a kernel's code is emitted.
enum class GPUImage {
  /// LLVM bitcode, for running kernels without a GPU.
  Bitcode,
  /// Assembly, which the driver compiles.
  PTX,
  /// Machine code.
  Cubin,
};

/// Parses `bitcode`, `ptx` or `cubin`.
llvm::Expected<GPUImage> parseGPUImage(StringRef name);
StringRef nameOf(GPUImage image);

/// The resources of a kernel, as reported by `ptxas`.
struct GPUResources {
  int64_t registers = 0, spilledBytes = 0, stackBytes = 0, sharedBytes = 0;
  /// What the assembler says if wgmma instructions do not overlap for want of
  /// registers: the kernel is right but slower. Else empty.
  std::string serialized;
};

struct GPUCode {
  std::string bytes;
  /// Only known for a cubin.
  GPUResources resources;
};

/// Returns the path of CUDA's assembler: `FP8_PTXAS` if that is set, else the
/// one in `CUDA_HOME`, `/usr/local/cuda` or `PATH`. Empty if there is none.
std::string findPtxas();

/// Registers the translations of the kernels' dialects to LLVM IR with
/// `context`.
void registerGPUTranslations(MLIRContext &context);

/// Compiles a module of the LLVM and NVVM dialects. Does not contract products
/// and sums: FMAs must be explicit. Safe to call on several threads for modules
/// of one context.
llvm::Expected<GPUCode> compileGPUModule(gpu::GPUModuleOp module,
                                         GPUTargetAttr target, GPUImage image);

/// Returns the fraction of a multiprocessor's warps that run at once, given the
/// resources of each block.
double occupancyOf(const GPUInfo &info, int64_t threads, int64_t registers,
                   int64_t sharedBytes);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_GPUOBJECT_OBJECT_H
