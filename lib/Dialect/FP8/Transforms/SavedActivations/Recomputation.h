//===- Recomputation.h - What is cheap to compute again ---------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_RECOMPUTATION_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_RECOMPUTATION_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir {
namespace fp8 {

/// A tensor that is this many times smaller than another is cheap to save.
constexpr int64_t kSmallPart = 8;
/// The largest number of ops that recompute a value.
constexpr unsigned kMaxRecomputed = 24;

/// Returns the number of elements of a tensor; 0 of other values.
int64_t numElements(Value value);

/// Whether an op's result has the elements of its operand, in another layout or
/// repeated.
bool keepsElements(Operation *op);

/// Whether an op compares two floats for equality, such as a maximum with an
/// operand of it. If one of them were rounded, or recomputed from a rounded
/// value, they would never be equal.
bool comparesEqual(Operation *op);

/// Whether an op is cheap to recompute: elementwise, or a change of layout.
bool isRecomputable(Operation *op);

/// Returns the number of ops that compute `value` again from values that
/// `isRead` accepts; 0 if it cannot be recomputed, or should not be. `limitOf`
/// returns how many ops may compute a value that an op makes: 0 if the op must
/// not run again. `counts` keeps the results for further calls.
unsigned countRecomputedOps(Value value, DenseMap<Value, unsigned> &counts,
                            function_ref<unsigned(Value)> limitOf,
                            function_ref<bool(Value)> isRead);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_RECOMPUTATION_H
