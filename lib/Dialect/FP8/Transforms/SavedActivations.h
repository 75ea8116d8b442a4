//===- SavedActivations.h - What is kept for the backward pass --*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H

#include "fp8/Analysis/LinearLayers.h"
#include "fp8/Support/Recipe.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// A tensor that is so many times smaller than another is little to keep.
constexpr int64_t kSmallPart = 8;
/// Ops that compute a value again; more are not worth it.
constexpr unsigned kMaxRecomputed = 24;

/// Whether an op is cheap to compute again: elementwise, or another layout.
bool isRecomputable(Operation *op);

/// Makes the backward pass read what `compute` says is saved for it: bf16
/// instead of f32, and payloads in groups of 1x16 of what norms and gated units
/// read. What follows elementwise from other saved values is not saved but
/// computed again from these. `isQuantized` tells the dots that read a payload
/// anyway.
void saveActivations(func::FuncOp function, const LinearLayers &layers,
                     const ComputeRecipe &compute,
                     llvm::function_ref<bool(Operation *)> isQuantized);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H
