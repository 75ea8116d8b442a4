//===- TakenUpdate.h - Whether a step takes its update ----------*- C++ -*-===//
//
// Not every call of a step changes the parameters. Under optax.MultiSteps only
// the last of several calls, its micro-batches, does; apply_if_finite and loss
// scaling skip a call whose gradients have overflowed. Both are found by data
// flow: between a parameter and its new value there is a select, a branch, a
// loop or a factor of 0 or 1 that passes the old value on under a condition. A
// condition computed from scalars alone counts calls; one that reads a tensor
// of floats checks gradients. An update counts as not taken only where the old
// value is proven to stay; everything else counts as taken.
//
// A product with a factor of zero is NaN where the other factor has overflowed,
// so such an element does not keep its old value. `assumesFinite` marks results
// that rely on products; code that keeps an old value has to check for NaN.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_TAKENUPDATE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_TAKENUPDATE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace mlir {
namespace fp8 {

struct TakenUpdate {
  /// Whether any parameter changes: a tensor<i1>; null if one always does.
  Value taken;
  /// Whether the gradients of this call count, in an update now or in a later
  /// call; null if they always do. The same value as `taken` if no update waits
  /// for later calls.
  Value valid;
  /// Whether parameters may become NaN in an update that counts as not taken.
  bool assumesFinite = false;

  bool accumulatesCalls() const { return taken != valid; }
};

/// Computes, at the end of the function, when its parameters change. May
/// replace loops and branches by ones with more results.
TakenUpdate findTakenUpdate(func::FuncOp function);

struct Change {
  /// Whether a value changes: a tensor<i1>; null if it always does.
  Value changed;
  /// Whether elements of an unchanged value may still have become NaN.
  bool assumesFinite = false;
};

/// Computes, at the end of `block`, whether `value`, an update of `own`,
/// differs from it.
Change findChange(func::FuncOp function, Value value, Value own, Block *block);

/// Creates the same op with other operands and results, around the same
/// regions. The old op stays, empty and unused.
Operation *cloneAroundRegions(OpBuilder &builder, Operation *op,
                              ArrayRef<Value> operands, ArrayRef<Type> results);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TAKENUPDATE_H
