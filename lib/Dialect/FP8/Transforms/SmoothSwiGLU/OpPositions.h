//===- OpPositions.h - Which of two ops comes first -------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_OPPOSITIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_OPPOSITIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::fp8::smooth {

/// The order of ops while others are inserted. It compares the positions of the
/// ops that the function had before: a block numbers all of its ops again when
/// an inserted one is compared with another.
class OpPositions {
public:
  explicit OpPositions(func::FuncOp function);

  /// Returns true if `value` is known before `op`.
  bool dominates(Value value, Operation *op);
  /// Sets the insertion point after the definitions of both values.
  void setInsertionPointAfter(OpBuilder &builder, Value a, Value b);
  /// Moves the ops that compute `values` to before `op`, if they may move.
  LogicalResult moveBefore(RewriterBase &rewriter, ValueRange values,
                           Operation *op);
  /// Forgets an op that is about to be replaced.
  void forget(Operation *op) { positions.erase(op); }

private:
  std::pair<Operation *, unsigned> getPosition(Operation *op) const;
  bool isBefore(Operation *first, Operation *second) const;
  void forgetMoved(Operation *behind);

  DominanceInfo dominance;
  DenseMap<Operation *, unsigned> positions;
};

} // namespace mlir::fp8::smooth

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_OPPOSITIONS_H
