//===- Passes.h - Lowering of kernels and schedule to LLVM ------*- C++ -*-===//

#ifndef FP8_CODEGEN_PASSES_H
#define FP8_CODEGEN_PASSES_H

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Pass/Pass.h"

namespace mlir::fp8 {

/// The function that fp8-lower-schedule makes of a schedule. If that has an
/// `fp8.entry`, an underscore and its value follow.
inline constexpr llvm::StringLiteral kEntryName = "fp8_entry";

/// The suffix of the symbol that describes a GPU kernel to the runtime; the
/// kernel's name precedes it.
inline constexpr llvm::StringLiteral kGPUKernelSuffix = "_gpu";

#define GEN_PASS_DECL
#include "fp8/Codegen/Passes.h.inc"

} // namespace mlir::fp8

#endif // FP8_CODEGEN_PASSES_H
