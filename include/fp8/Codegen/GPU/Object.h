//===- Object.h - GPU kernels as code for a driver --------------*- C++ -*-===//

#ifndef FP8_CODEGEN_GPU_OBJECT_H
#define FP8_CODEGEN_GPU_OBJECT_H

#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <string>

namespace mlir::fp8 {

/// What a kernel is compiled to.
enum class GPUImage {
  /// LLVM bitcode, for what runs kernels without a GPU.
  Bitcode,
  /// Assembly, which the driver compiles.
  PTX,
  /// Machine code.
  Cubin,
};

/// `bitcode`, `ptx` or `cubin`.
llvm::Expected<GPUImage> parseGPUImage(StringRef name);
StringRef nameOf(GPUImage image);

/// What `ptxas` says that a kernel takes.
struct GPUResources {
  int64_t registers = 0, spilledBytes = 0, stackBytes = 0, sharedBytes = 0;
};

struct GPUCode {
  std::string bytes;
  /// Of a cubin.
  GPUResources resources;
};

/// The path of CUDA's assembler: `FP8_PTXAS` if that is set, in `CUDA_HOME`, in
/// `/usr/local/cuda`, or in `PATH`. Empty if it is nowhere.
std::string findPtxas();

/// Has the context of `module` know how the dialects of kernels become LLVM IR.
void registerGPUTranslations(MLIRContext &context);

/// Compiles a module of the LLVM and NVVM dialects. Products and sums are not
/// contracted: what is to be an FMA is one already. Safe to call on several
/// threads for modules of one context.
llvm::Expected<GPUCode> compileGPUModule(gpu::GPUModuleOp module,
                                         GPUTargetAttr target, GPUImage image);

/// The share of a processor's warps that run at once, given what each block
/// takes.
double occupancyOf(const GPUInfo &info, int64_t threads, int64_t registers,
                   int64_t sharedBytes);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_GPU_OBJECT_H
