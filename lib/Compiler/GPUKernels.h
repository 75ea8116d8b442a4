//===- GPUKernels.h - Objects that describe kernels of a GPU ----*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_GPUKERNELS_H
#define FP8_LIB_COMPILER_GPUKERNELS_H

#include "fp8/Codegen/GPU/Object.h"
#include "fp8/Compiler/Executable.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Compiles every GPU module of `module`, whose schedule is lowered, on
/// `threads` threads (0: one a core), and takes it out. What describes a kernel
/// to the runtime, with its image, becomes an object for `host`; the schedule
/// refers to it by the object's symbol. Equal kernels are there once.
FailureOr<std::vector<ObjectCode>> compileGPUKernels(ModuleOp module,
                                                     const CodeTarget &host,
                                                     GPUImage image,
                                                     unsigned threads);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_GPUKERNELS_H
