//===- Lowering.h - Stages kernels and codegen ------------------*- C++ -*-===//

#ifndef FP8_PIPELINES_LOWERING_H
#define FP8_PIPELINES_LOWERING_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
namespace fp8 {
struct MemoryReport;
struct PlanMemoryOptions;

/// Structured tensors to a planned schedule of deduplicated kernels on buffers.
/// Ends in the contract check `fp8-verify-scheduled`. What the plan holds is
/// also put into `sink`, if there is one; it must outlive the run.
void buildKernelsPipeline(OpPassManager &pm, MemoryReport *sink = nullptr);
void buildKernelsPipeline(OpPassManager &pm, const PlanMemoryOptions &plan,
                          MemoryReport *sink = nullptr);

/// Kernels to the loops of one task: vectors, explicit math and casts. The code
/// is for `cpu`; empty: what the module says, else this machine.
void buildCodegenPipeline(OpPassManager &pm, llvm::StringRef cpu = "");

/// Everything to the LLVM dialect. Ends in the contract check
/// `fp8-verify-lowered`.
void buildLLVMPipeline(OpPassManager &pm);
/// The same for what is lowered by `fp8-lower-schedule` already.
void buildHostPipeline(OpPassManager &pm);

/// Registers `fp8-kernels`, `fp8-codegen` and `fp8-to-llvm`.
void registerLoweringPipelines();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_LOWERING_H
