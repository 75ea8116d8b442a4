//===- Alignment.h - Where operands of launches begin -----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_ALIGNMENT_H
#define FP8_LIB_CODEGEN_GPU_ALIGNMENT_H

#include "mlir/IR/Value.h"

namespace mlir::fp8::gpu_codegen {

/// The alignment of a launch's operand in bytes: buffers are placed well, parts
/// of a stack lie where their offset says.
int64_t alignmentOf(Value buffer);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_ALIGNMENT_H
