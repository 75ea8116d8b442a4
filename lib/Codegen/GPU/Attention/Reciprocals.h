//===- Reciprocals.h - Reciprocals of vectors -------------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_ATTENTION_RECIPROCALS_H
#define FP8_LIB_CODEGEN_GPU_ATTENTION_RECIPROCALS_H

#include "mlir/IR/Operation.h"

namespace mlir::fp8::gpu_codegen {

/// Lets the elements of each vector of reciprocals in `op` share one branch.
void expandReciprocals(Operation *op);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_ATTENTION_RECIPROCALS_H
