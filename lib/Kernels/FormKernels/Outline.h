//===- Outline.h - A group of ops to a kernel -------------------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_FORMKERNELS_OUTLINE_H
#define FP8_LIB_KERNELS_FORMKERNELS_OUTLINE_H

#include "Groups.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::fp8 {

/// Makes of a group in `block`, which is of `func`, the kernel `name` and a
/// launch in its place. The function's arguments by path tell what is state.
void outlineKernel(func::FuncOp func,
                   const llvm::StringMap<BlockArgument> &arguments,
                   Block &block, const KernelGroups &groups, unsigned group,
                   StringRef name);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FORMKERNELS_OUTLINE_H
