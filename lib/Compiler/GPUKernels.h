//===- GPUKernels.h - Objects of GPU kernels --------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_GPUKERNELS_H
#define FP8_LIB_COMPILER_GPUKERNELS_H

#include "fp8/Codegen/GPUObject/Object.h"
#include "fp8/Compiler/Executable.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Compiles every GPU module of `module`, whose schedule must be lowered, on
/// `threads` threads (0: one per core), and removes it. The description of each
/// kernel, which contains its image, becomes an object for `host`; the schedule
/// refers to it by the object's symbol. Equal kernels share one object.
FailureOr<std::vector<ObjectCode>> compileGPUKernels(ModuleOp module,
                                                     const CodeTarget &host,
                                                     GPUImage image,
                                                     unsigned threads);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_GPUKERNELS_H
