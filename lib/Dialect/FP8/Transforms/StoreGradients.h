//===- StoreGradients.h - Gradients of weights in FP8 -----------*- C++ -*-===//
//
// FP8-LM (arXiv 2310.18313) keeps the gradients of linear layers in FP8: what a
// wgrad dot computes is quantized, and so is every sum of micro-batches, which
// is dequantized, added to and quantized by its new amax (`add_to_fp8` of
// MS-AMP).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREGRADIENTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREGRADIENTS_H

#include "Seeds.h"

#include "fp8/Support/Recipe.h"

namespace mlir {
namespace fp8 {

/// Stores what the wgrad dots compute, `results`, as `recipe` says: between the
/// backward pass and the optimizer, in the stacks of loops over layers and in
/// the sums of loops over micro-batches. Returns the number of tensors stored.
FailureOr<int64_t> storeGradients(ArrayRef<Value> results,
                                  const StorageRecipe &recipe, Seeds &seeds);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STOREGRADIENTS_H
