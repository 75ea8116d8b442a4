//===- StageTransposes.h - Transposes by shared memory ----------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_BLOCKS_STAGETRANSPOSES_H
#define FP8_LIB_CODEGEN_GPU_BLOCKS_STAGETRANSPOSES_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8::gpu_codegen {

/// Lets the transposes of a kernel (see `isTranspose`) read buffers of the
/// kernel, which lie in shared memory. The op that computes a payload for other
/// kernels also writes it to such a buffer, as a second result of the same
/// loops. All ops stay in the nests in which they are on the CPU.
///
/// In an elementwise kernel, an op that computes a payload across the lines of
/// its operands is first split into one that computes it along them, and a
/// transpose.
void stageTransposes(KernelOp kernel);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_BLOCKS_STAGETRANSPOSES_H
