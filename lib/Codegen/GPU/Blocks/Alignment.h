//===- Alignment.h - Alignment of launch operands ---------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_BLOCKS_ALIGNMENT_H
#define FP8_LIB_CODEGEN_GPU_BLOCKS_ALIGNMENT_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "llvm/ADT/StringMap.h"

namespace mlir::fp8::gpu_codegen {

/// Returns the alignment of a launch's operand in bytes. Whole buffers are well
/// aligned; a part of a stack is aligned as its offset is.
int64_t alignmentOf(Value buffer);

/// The alignment of each kernel argument that all launches of a module
/// guarantee.
class LaunchAlignments {
public:
  explicit LaunchAlignments(ModuleOp module);
  SmallVector<int64_t> of(KernelOp kernel) const;

private:
  llvm::StringMap<SmallVector<int64_t>> known;
};

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_BLOCKS_ALIGNMENT_H
