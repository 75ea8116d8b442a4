//===- Lowering.h - Stages kernels and codegen ------------------*- C++ -*-===//

#ifndef FP8_PIPELINES_LOWERING_H
#define FP8_PIPELINES_LOWERING_H

#include "llvm/ADT/StringRef.h"

namespace mlir {
class OpPassManager;
namespace fp8 {
struct MemoryReport;
struct PlanMemoryOptions;

/// What kernels are made for. `AsTensors` is for CPUs: payloads lie in the
/// order of their tensors, and a kernel may work on whole rows and sequences.
/// `AlongK` is for GPUs: FP8 operands of dots are contiguous along k
/// (`fp8-assign-layouts`), and kernels are small enough for blocks.
enum class PayloadLayouts { AsTensors, AlongK };

/// Lowers structured tensors to a planned schedule of deduplicated kernels on
/// buffers. Ends in the contract check `fp8-verify-scheduled`. The report of
/// the plan also goes to `sink` if it is not null; it must outlive the run.
void buildKernelsPipeline(OpPassManager &pm, PayloadLayouts layouts,
                          MemoryReport *sink = nullptr);
void buildKernelsPipeline(OpPassManager &pm, PayloadLayouts layouts,
                          const PlanMemoryOptions &plan,
                          MemoryReport *sink = nullptr);

/// Sets the target, and divides kernels into tasks for so many threads. The
/// target is `cpu`. If that is empty, it is the module's, or else this machine.
void buildPlanPipeline(OpPassManager &pm, llvm::StringRef cpu,
                       unsigned threads);

/// Does that, and lowers kernels to the loops of one task: vectors, explicit
/// math and casts.
void buildCodegenPipeline(OpPassManager &pm, llvm::StringRef cpu = "",
                          unsigned threads = 1);

/// Lowers everything to the LLVM dialect. Ends in the contract check
/// `fp8-verify-lowered`.
void buildLLVMPipeline(OpPassManager &pm);
/// The same for a module whose schedule `fp8-lower-schedule` has already
/// lowered and whose kernels run elsewhere: `cpu` becomes the target.
void buildHostPipeline(OpPassManager &pm, llvm::StringRef cpu);

/// Registers `fp8-kernels`, `fp8-codegen`, `fp8-to-llvm` and
/// `fp8-host-to-llvm`.
void registerLoweringPipelines();

} // namespace fp8
} // namespace mlir

#endif // FP8_PIPELINES_LOWERING_H
