//===- GPU.h - Codegen for NVIDIA GPUs --------------------------*- C++ -*-===//

#ifndef FP8_PIPELINES_GPU_H
#define FP8_PIPELINES_GPU_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir {
class OpPassManager;
namespace fp8 {

/// Builds `fp8-gpu-codegen`: lowers kernels to GPU modules of their own, with
/// the code of one block and explicit math and casts. The target is `chip`
/// (sm_90a, ...), or the module's if it is empty.
void buildGPUCodegenPipeline(OpPassManager &pm, llvm::StringRef chip = "");

/// Lowers GPU modules to the LLVM and NVVM dialects. Ends in the contract check
/// `fp8-verify-gpu`.
void buildNVVMPipeline(OpPassManager &pm);

/// Lowers the schedule, whose kernels are in the NVVM dialect, to the host code
/// that makes the step's graph. A counted loop is expanded to at most `nodes`
/// launches.
void buildGPUSchedulePipeline(OpPassManager &pm, int64_t nodes);

/// Registers `fp8-gpu-codegen`, `fp8-to-nvvm` and `fp8-gpu-schedule`.
void registerGPUPipelines();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_GPU_H
