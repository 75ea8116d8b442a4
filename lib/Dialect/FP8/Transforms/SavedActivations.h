//===- SavedActivations.h - Which activations are saved ---------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H

#include "mlir/IR/Operation.h"

namespace mlir {
namespace fp8 {

/// A tensor that is this many times smaller than another is cheap to save.
constexpr int64_t kSmallPart = 8;
/// The largest number of ops that recompute a value.
constexpr unsigned kMaxRecomputed = 24;

/// Whether an op is cheap to recompute: elementwise, or a change of layout.
bool isRecomputable(Operation *op);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_H
