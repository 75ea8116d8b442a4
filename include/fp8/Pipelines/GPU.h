//===- GPU.h - Codegen for NVIDIA GPUs --------------------------*- C++ -*-===//

#ifndef FP8_PIPELINES_GPU_H
#define FP8_PIPELINES_GPU_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
namespace fp8 {

/// Kernels to GPU modules of their own: the code of one block, explicit math
/// and casts. The code is for `chip` (sm_90a, ...); empty: what the module
/// says.
void buildGPUCodegenPipeline(OpPassManager &pm, llvm::StringRef chip = "");

/// GPU modules to the LLVM and NVVM dialects. Ends in the contract check
/// `fp8-verify-gpu`.
void buildNVVMPipeline(OpPassManager &pm);

/// Registers `fp8-gpu-codegen` and `fp8-to-nvvm`.
void registerGPUPipelines();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_GPU_H
