//===- SavedActivations.h - What is kept for the backward pass --*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H

#include "mlir/IR/Operation.h"

namespace mlir {
namespace fp8 {

/// A tensor that is so many times smaller than another is little to keep.
constexpr int64_t kSmallPart = 8;
/// Ops that compute a value again; more are not worth it.
constexpr unsigned kMaxRecomputed = 24;

/// Whether an op is cheap to compute again: elementwise, or another layout.
bool isRecomputable(Operation *op);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H
