//===- FP8DeviceControl.h - Attributes of control flow on GPUs --*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8DEVICECONTROL_H
#define FP8_DIALECT_FP8_IR_FP8DEVICECONTROL_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fp8 {

/// On a schedule: the GPU evaluates its loops and branches (fp8-plan-graph).
constexpr llvm::StringLiteral kDeviceControlAttr = "fp8.device_control";
/// On an scf.for of such a schedule: the GPU counts its iterations.
constexpr llvm::StringLiteral kDeviceLoopAttr = "fp8.device_loop";
/// On a kernel's module: the number of loops counted by the GPU in which the
/// addresses of its operands change (fp8_gpu_kernel).
constexpr llvm::StringLiteral kLoopsAttr = "fp8.loops";
/// On a kernel's module: the kernel takes several sets of operands (see
/// fp8_gpu_kernel); the value is the number of operands of a set.
constexpr llvm::StringLiteral kSetsAttr = "fp8.sets";
/// On a schedule: the nodes of its graph have an order (fp8-order-graph). The
/// numbers of nodes and edges, and of nodes on the longest path.
constexpr llvm::StringLiteral kGraphAttr = "fp8.graph";
/// On an op of such a schedule that becomes a node: its number, and those of
/// the nodes that it follows, which are in the same block. On an argument that
/// is a result: the same for its copy to the host.
constexpr llvm::StringLiteral kNodeAttr = "fp8.node";
constexpr llvm::StringLiteral kAfterAttr = "fp8.after";

} // namespace mlir::fp8

#endif // FP8_DIALECT_FP8_IR_FP8DEVICECONTROL_H
