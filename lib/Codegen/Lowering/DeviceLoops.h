//===- DeviceLoops.h - Loops and conditions on a GPU ------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_DEVICELOOPS_H
#define FP8_LIB_CODEGEN_LOWERING_DEVICELOOPS_H

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace mlir::fp8 {

/// The kernels that set conditions, and their helpers, as
/// fp8-c/Runtime/GPUControl.h describes them. Each has a GPU module of the same
/// name.
constexpr llvm::StringLiteral kCountKernel = "fp8_gpu_count";
constexpr llvm::StringLiteral kKeepKernel = "fp8_gpu_keep";
constexpr llvm::StringLiteral kTestKernel = "fp8_gpu_test";
constexpr llvm::StringLiteral kPutKernel = "fp8_gpu_put";

/// Returns the loops around `op` that the GPU counts, the outermost first.
SmallVector<scf::ForOp> deviceLoopsAround(Operation *op);

/// A condition: a scalar that the schedule loads, and the range of values for
/// which something runs (or does not run, if inverted).
struct Condition {
  memref::LoadOp load;
  int64_t low = 0, high = 0;
  bool inverted = false;
};
/// Returns the condition of an scf.if or scf.condition: `condition`, of type
/// i1, holds.
std::optional<Condition> conditionOf(Value condition);
/// Returns the condition of region `number` of a switch, the default region
/// first.
std::optional<Condition> conditionOf(scf::IndexSwitchOp choice,
                                     unsigned number);

} // namespace mlir::fp8

#endif // FP8_LIB_CODEGEN_LOWERING_DEVICELOOPS_H
