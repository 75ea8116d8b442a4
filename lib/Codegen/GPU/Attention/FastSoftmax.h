//===- FastSoftmax.h - Instructions for the softmax of 16 bits --*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_ATTENTION_FASTSOFTMAX_H
#define FP8_LIB_CODEGEN_GPU_ATTENTION_FASTSOFTMAX_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8::gpu_codegen {

/// Lets the exponentials and quotients of an attention be approximations, if
/// every dot of it multiplies elements of at most 16 bits.
void allowFastSoftmax(KernelOp kernel);

/// Returns what an instruction of f32 makes of a number, or of each element of
/// a vector.
Value callForEach(OpBuilder &b, Location loc, StringRef instruction, Value x);

/// Makes `ex2.approx` of the exponentials in `op` that may be approximations,
/// and products with `rcp.approx` of the quotients.
void expandFastSoftmax(Operation *op);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_ATTENTION_FASTSOFTMAX_H
