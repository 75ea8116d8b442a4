//===- AttentionBuilder.h - The op of one attention -------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBUILDER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBUILDER_H

#include "Scores.h"

#include <map>

namespace mlir::fp8 {

/// A value of the body, with the dimensions of the attention that it has. They
/// are in ascending order except for the operand of a dot.
struct Inner {
  Value value;
  Scores::Dims dims;
};

/// Builds the op of one attention.
class AttentionBuilder {
  using Dot = stablehlo::DotGeneralOp;
  using Sum = Scores::Sum;
  using Dims = Scores::Dims;

public:
  AttentionBuilder(const Scores &scores, Block &block)
      : scores(scores), block(block), builder(block.getParent()->getContext()) {
  }

  /// Builds the op. Fails and changes nothing if results would be inputs.
  LogicalResult run();

private:
  // Choosing what is inside.
  void collect(Value value);
  void setReaders(SmallVector<Operation *> some);
  bool isInputOfOp(Operation *result) const;
  bool isReadOutside(Value value) const;
  bool chooseReaders();
  void addRow(Value row);

  // The body.
  Value addInput(Value value);
  Inner inOrder(Value value, ArrayRef<int> dims);
  Inner read(Value value, const Dims &dims);
  Inner readMember(Value value);
  Inner makeScoreDot(Dot dot);
  Inner makeElementwise(Operation *op, const Dims &dims);
  Inner makeBroadcast(stablehlo::BroadcastInDimOp op, const Dims &dims);
  Inner makeIota(stablehlo::IotaOp op, const Dims &dims);
  Inner makeCheap(Operation *op, const Dims &dims);
  Inner makeReduction(Sum op, function_ref<bool(int)> isReduced);
  Inner makeRow(Sum op);
  Inner makeReadingSum(Sum sum);
  bool isSummedInside(Sum sum, int dim) const;
  Value makeReadingDot(Dot dot);
  void addReader(Operation *reader);
  Value makeOuter(Value member);
  Value extend(const Inner &inner, ArrayRef<int> dims);
  Value transposed(Value value, ArrayRef<int64_t> permutation);
  RankedTensorType typeOf(ArrayRef<int> dims, Type element);
  bool isCheap(Operation *op, const Dims &dims);

  // The op.
  Operation *createOp();
  Value finishSum(Sum sum, Value inside);
  void replaceResults(Operation *op);
  void eraseOutside(Operation *op);

  const Scores &scores;
  Block &block;
  OpBuilder builder;
  /// The dots and sums that contract scores in the op.
  SmallVector<Operation *> readers;
  /// The members that the readers need.
  llvm::SetVector<Value> needed;
  /// The readers, and the ops that compute what they need.
  DenseSet<Operation *> inside;
  SmallVector<Value> inputs, results, yields;
  Block *body = nullptr;
  /// The copies inside of dots outside.
  DenseMap<Operation *, Operation *> copies;
  DenseMap<Value, Value> arguments;
  DenseMap<Value, Inner> members;
  /// Values that are not members, by the dimensions along which they are read.
  std::map<std::pair<const void *, Dims>, Inner> others;
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_ATTENTIONBUILDER_H
