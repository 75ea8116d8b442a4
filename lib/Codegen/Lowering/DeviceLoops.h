//===- DeviceLoops.h - Control flow that a GPU decides ----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_DEVICELOOPS_H
#define FP8_LIB_CODEGEN_LOWERING_DEVICELOOPS_H

#include "fp8/Dialect/FP8/IR/FP8DeviceControl.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <optional>

namespace mlir::fp8 {

/// The kernels that set conditions and what belongs to them, as
/// fp8-c/Runtime.h describes them; each has a GPU module of its name.
constexpr llvm::StringLiteral kCountKernel = "fp8_gpu_count";
constexpr llvm::StringLiteral kKeepKernel = "fp8_gpu_keep";
constexpr llvm::StringLiteral kTestKernel = "fp8_gpu_test";
constexpr llvm::StringLiteral kPutKernel = "fp8_gpu_put";

/// The loops around `op` that the GPU counts, the outermost first.
SmallVector<scf::ForOp> deviceLoopsAround(Operation *op);

/// By how much `value`, an integer or index, grows with each iteration of
/// `loops` while no other loop goes on; nothing if that is not one number for
/// each of them.
std::optional<SmallVector<int64_t>> stridesOf(Value value,
                                              ArrayRef<scf::ForOp> loops);
/// The same of the address of a buffer, in bytes.
std::optional<SmallVector<int64_t>> stridesOfBuffer(Value buffer,
                                                    ArrayRef<scf::ForOp> loops);

/// What a condition is: a scalar that the schedule loads, and the values for
/// which something runs (not for which, if inverted).
struct Condition {
  memref::LoadOp load;
  int64_t low = 0, high = 0;
  bool inverted = false;
};
/// Of an scf.if or scf.condition: that `condition`, of type i1, holds.
std::optional<Condition> conditionOf(Value condition);
/// Of region `number` of a switch, the default region first.
std::optional<Condition> conditionOf(scf::IndexSwitchOp choice,
                                     unsigned number);

} // namespace mlir::fp8

#endif // FP8_LIB_CODEGEN_LOWERING_DEVICELOOPS_H
