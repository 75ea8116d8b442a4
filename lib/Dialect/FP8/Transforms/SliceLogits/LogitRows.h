//===- LogitRows.h - Row-wise computations on logits ------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SLICELOGITS_LOGITROWS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SLICELOGITS_LOGITROWS_H

#include "../DataParallel/RowOrigins.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// How an op works on rows.
struct RowWork {
  /// The operands of which each row reads its own part; all rows read the same
  /// part of the other operands.
  SmallVector<RowOrigin> operands;
  /// The rows of the results; none if the op combines the rows of its operands
  /// (a sum over tokens, a gradient of weights).
  std::optional<RowDim> results;

  /// Returns the rows of an operand, if each row reads its own part of it.
  const RowDim *rowsOf(OpOperand &operand) const;
};

/// Returns how `op` works on rows, of which there are `size`. `rowsOf` has the
/// values whose rows are known.
std::optional<RowWork> matchRowWork(Operation *op, int64_t size,
                                    const DenseMap<Value, RowDim> &rowsOf);

/// Returns the operands of a value's op of which each row of the value reads
/// its own part; nullopt if the op is no cheap computation on rows.
std::optional<SmallVector<RowOrigin>> findCheapOrigins(Value value,
                                                       const RowDim &rows);

/// Changes the attributes of an op that give the number of its rows.
void setRowAttributes(Operation *op, int64_t dim, int64_t extent);

/// The ops of a block between logits and the small values that follow from
/// them. Each op works on the rows of the logits independently, or combines
/// them.
class LogitRows {
public:
  /// `rows` is a dimension of the result of `dot`. `others` are ops to leave
  /// out.
  LogitRows(stablehlo::DotGeneralOp dot, const RowDim &rows,
            const DenseSet<Operation *> &others = {});

  /// Whether all ops that read a value as large as the logits are among these
  /// ops, and none of these needs a result of all rows. Otherwise `getObstacle`
  /// returns the op that prevents it.
  bool canSlice() const { return !obstacle; }
  Operation *getObstacle() const { return obstacle; }
  /// If a result of all rows is all that prevents slicing: lets the ops that
  /// depend on it read logits that are computed again, and returns the dot that
  /// does so. Adds these ops to `others`: without them the rows of the first
  /// dot can be sliced. Returns null and changes nothing otherwise.
  stablehlo::DotGeneralOp recompute(DenseSet<Operation *> &others);

  stablehlo::DotGeneralOp getDot() const { return dot; }
  int64_t getSize() const { return rows.size; }
  /// Returns the ops, the dot first, in program order.
  const llvm::MapVector<Operation *, RowWork> &getOps() const { return ops; }
  /// Returns ops in between that depend on results of these ops.
  ArrayRef<Operation *> getFollowers() const { return followers; }
  /// Whether a value has about as many elements as the logits.
  bool isLarge(Value value) const;
  /// Whether an op outside this set reads `value`.
  bool isReadOutside(Value value) const;

private:
  void collect(const DenseSet<Operation *> &others);
  void dropOpsOnSmallValues();
  Operation *findObstacle();
  Operation *findOutsideReader() const;
  Value again(Value value, OpBuilder &builder, IRMapping &copies) const;

  stablehlo::DotGeneralOp dot;
  RowDim rows;
  DenseMap<Value, RowDim> rowsOf;
  llvm::MapVector<Operation *, RowWork> ops;
  SmallVector<Operation *> followers;
  /// The ops that depend on results of all rows.
  llvm::SetVector<Operation *> late;
  Operation *obstacle = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SLICELOGITS_LOGITROWS_H
