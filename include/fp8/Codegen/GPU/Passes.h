//===- Passes.h - Lowering of kernels to NVIDIA GPUs ------------*- C++ -*-===//

#ifndef FP8_CODEGEN_GPU_PASSES_H
#define FP8_CODEGEN_GPU_PASSES_H

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fp8 {

#define GEN_PASS_DECL
#include "fp8/Codegen/GPU/Passes.h.inc"

} // namespace mlir::fp8

#endif // FP8_CODEGEN_GPU_PASSES_H
