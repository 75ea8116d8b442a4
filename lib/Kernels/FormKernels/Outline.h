//===- Outline.h - Outlining of a group of ops ------------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_OUTLINE_H
#define FP8_LIB_KERNELS_FORMKERNELS_OUTLINE_H

#include "Groups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Outlines a group in `block` of `func` as the kernel `name`, with a launch in
/// its place. `arguments` maps paths to the function's arguments.
void outlineKernel(func::FuncOp func,
                   const llvm::StringMap<BlockArgument> &arguments,
                   Block &block, const KernelGroups &groups, unsigned group,
                   StringRef name);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_OUTLINE_H
