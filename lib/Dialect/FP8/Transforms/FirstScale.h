//===- FirstScale.h - The scale of a value that has none yet ----*- C++ -*-===//
//
// A delayed scale is there before the value that it scales: one kernel makes
// the value and stores it. Only before the first scale is set the value's own
// amax is needed. If a branch read the value for that, every step would have to
// keep it in f32. So the branch computes the value again, from what is there
// before it: the payloads that a gradient's dot reads, old state, scalars.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_FIRSTSCALE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_FIRSTSCALE_H

#include "DelayedScaling.h"

#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace fp8 {

/// What a value is computed again from.
class Recomputation {
public:
  explicit Recomputation(Value value);

  /// Where all that is read is known, and little of what is cloned.
  void setInsertionPoint(OpBuilder &builder) const;

  /// The value, made where the builder stands.
  Value clone(OpBuilder &builder) const;

private:
  void collect(bool throughDots);
  void visit(Value value, bool throughDots);
  void noteRead(Value value);

  Value value;
  Block *block;
  SetVector<Operation *> ops; ///< To be cloned, operands first.
  Operation *last = nullptr;  ///< The last one in the block that is only read.
};

/// The scale that `makeOwn` makes in a branch that runs where `unset` says so,
/// and ones, which nobody reads, in the other.
DelayedScaling::Scale makeFirstScale(OpBuilder &builder, Location loc,
                                     Value unset, RankedTensorType type,
                                     function_ref<ComputeScaleOp()> makeOwn);

/// The scale that the amax of `value` gives where `unset` holds, as `current`
/// makes it of the amax; else 1.
DelayedScaling::Scale makeFirstScale(OpBuilder &builder, Value unset,
                                     const Recomputation &value,
                                     ScaledType scaled, ComputeScaleOp current);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_FIRSTSCALE_H
