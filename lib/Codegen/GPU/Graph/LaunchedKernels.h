//===- LaunchedKernels.h - The kernels of launches --------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_GRAPH_LAUNCHEDKERNELS_H
#define FP8_LIB_CODEGEN_GPU_GRAPH_LAUNCHEDKERNELS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::fp8::gpu_codegen {

/// Returns what the kernel of a launch asks for; null if it is not lowered.
GPULaunchAttr gpuLaunchOf(LaunchOp launch, const SymbolTable &symbols);

/// Returns the function of a launch's kernel, or emits an error if
/// `fp8-to-nvvm` has not lowered it.
FailureOr<LLVM::LLVMFuncOp> loweredKernelOf(LaunchOp launch,
                                            const SymbolTable &symbols);

/// Copies a kernel, with its module, under another name. The module of the copy
/// has the attribute `attribute`. Returns the function of the copy.
LLVM::LLVMFuncOp copyKernel(LLVM::LLVMFuncOp kernel, StringAttr name,
                            StringRef attribute, int64_t value,
                            SymbolTable &symbols);

} // namespace mlir::fp8::gpu_codegen

#endif // FP8_LIB_CODEGEN_GPU_GRAPH_LAUNCHEDKERNELS_H
