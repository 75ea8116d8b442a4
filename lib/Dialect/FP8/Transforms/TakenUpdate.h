//===- TakenUpdate.h - Whether a step takes its update ----------*- C++ -*-===//
//
// Not every call of a step changes the parameters. Under optax.MultiSteps only
// the last of several calls, its micro-batches, does; apply_if_finite and loss
// scaling skip a call whose gradients have overflowed. Both are found by data
// flow: between a parameter and its new value there is a select, a branch, a
// loop or a factor of 0 or 1 that passes the old value on under a condition. A
// condition computed from scalars alone counts calls; one that reads a tensor
// of floats judges gradients. An update counts as not taken only where it is
// proven that the old value stays; all else is taken.
//
// A product with a factor of zero is NaN where the other one overflowed. Such
// an element is not kept: what relies on products says so, and who keeps an old
// value looks for NaN.
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
  /// Whether the gradients of this call count, in an update that is taken now
  /// or in a later call; null if they always do. The same value as `taken` if
  /// no update waits for later calls.
  Value valid;
  /// Parameters may become NaN in an update that counts as not taken.
  bool assumesFinite = false;

  bool waits() const { return taken != valid; }
};

/// Finds, and makes at the end of the function, when its parameters change.
/// Loops and branches may be replaced by ones with more results.
TakenUpdate findTakenUpdate(func::FuncOp function);

struct Change {
  /// Whether a value is another one: a tensor<i1>; null if it always is.
  Value changed;
  /// Where it is not, elements may still have become NaN.
  bool assumesFinite = false;
};

/// Finds, and makes at the end of `block`, whether `value` is another one than
/// `own`, which it is an update of.
Change findChange(func::FuncOp function, Value value, Value own, Block *block);

/// The same op with other operands and results, around the same regions. The
/// old one is left empty and unused.
Operation *cloneAroundRegions(OpBuilder &builder, Operation *op,
                              ArrayRef<Value> operands, ArrayRef<Type> results);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TAKENUPDATE_H
