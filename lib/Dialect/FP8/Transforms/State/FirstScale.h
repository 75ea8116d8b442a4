//===- FirstScale.h - The first scale of a value ----------------*- C++ -*-===//
//
// A delayed scale exists before the value that it scales, so one kernel
// computes the value and stores it. The value's own amax is needed only before
// the first scale is set. If a branch read the value for that, every step would
// have to keep it in f32. So the branch recomputes the value from what exists
// before it: the payloads that a gradient's dot reads, old state, scalars.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_FIRSTSCALE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_FIRSTSCALE_H

#include "../Quantize/DelayedScaling.h"

#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace fp8 {

/// The ops that recompute a value.
class FirstScaleClone {
public:
  explicit FirstScaleClone(Value value);

  /// Sets the insertion point after all values that are read, and before most
  /// of those that are cloned.
  void setInsertionPoint(OpBuilder &builder) const;

  /// Recomputes the value at the builder's insertion point.
  Value clone(OpBuilder &builder) const;

private:
  void collect(bool throughDots);
  void visit(Value value, bool throughDots);
  void noteRead(Value value);

  Value value;
  Block *block;
  SetVector<Operation *> ops; ///< The ops to clone, operands first.
  Operation *last = nullptr;  ///< The last op in the block that is only read.
};

/// Returns the scale that `makeScale` makes, in a branch that runs if `unset`
/// is true. The other branch gives ones, which nobody reads.
DelayedScaling::Scale makeFirstScale(OpBuilder &builder, Location loc,
                                     Value unset, RankedTensorType type,
                                     function_ref<ComputeScaleOp()> makeScale);

/// Returns the scale that the amax of `value` gives if `unset` is true, made as
/// `current` is made of its amax; else 1.
DelayedScaling::Scale makeFirstScale(OpBuilder &builder, Value unset,
                                     const FirstScaleClone &value,
                                     ScaledType scaled, ComputeScaleOp current);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_FIRSTSCALE_H
