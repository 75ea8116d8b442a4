//===- Alignment.h - Alignment of launch operands ---------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_ALIGNMENT_H
#define FP8_LIB_CODEGEN_GPU_ALIGNMENT_H

#include "mlir/IR/Value.h"

namespace mlir::fp8::gpu_codegen {

/// Returns the alignment of a launch's operand in bytes. Whole buffers are well
/// aligned; a part of a stack is aligned as its offset is.
int64_t alignmentOf(Value buffer);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_ALIGNMENT_H
