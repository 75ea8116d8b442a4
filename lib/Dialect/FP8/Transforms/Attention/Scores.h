//===- Scores.h - Scores of the attentions of a step ------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SCORES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SCORES_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <string>

namespace mlir::fp8 {

/// The scores of a softmax with all values computed from them element by
/// element and row by row: forward scores, and backward scores, too, if both
/// are in one block.
struct Scores {
  using Dot = stablehlo::DotGeneralOp;
  using Sum = stablehlo::ReduceOp;
  /// The dimension of the attention that each dimension of a value is; -1 for a
  /// dimension of one element.
  using Dims = SmallVector<int, 4>;

  /// The dots that make scores.
  SmallVector<Dot> scoreDots;
  /// The ops that contract scores: dots, and sums that are no row's (the
  /// gradients of biases, of factors).
  SmallVector<Operation *> readers;
  /// The extents of batches and heads, then of queries, then of keys.
  SmallVector<int64_t> sizes;
  unsigned numBatch = 0, numQueries = 0;
  /// Scores, and values with one element for each row of them, in program
  /// order.
  llvm::SetVector<Value> members;
  DenseMap<Value, Dims> dims;
  /// Why scores cannot stay where they are computed; empty if they can.
  std::string problem;
  /// The op that prevents it.
  Operation *obstacle = nullptr;

  bool isMember(Value value) const { return members.contains(value); }
  /// Whether `value` is a member that has queries and keys.
  bool isScore(Value value) const;
  bool isQuery(int dim) const {
    return dim >= static_cast<int>(numBatch) &&
           dim < static_cast<int>(numBatch + numQueries);
  }
  bool isKey(int dim) const {
    return dim >= static_cast<int>(numBatch + numQueries);
  }
  /// Whether a member is an exponential.
  bool hasExponential() const;
  /// Whether the dimensions include both queries and keys.
  bool haveQueriesAndKeys(ArrayRef<int> dims) const;
  /// Returns the index of the operand of a reader that is scores.
  unsigned scoreOperand(Operation *reader) const {
    return isScore(reader->getOperand(0)) ? 0 : 1;
  }
  /// Returns the dimensions of the scores that `reader` reads.
  const Dims &readDims(Operation *reader) const {
    return dims.find(reader->getOperand(scoreOperand(reader)))->second;
  }
  /// Returns the dimensions that a sum leaves, in ascending order.
  Dims getDimsLeft(Sum sum) const;
  /// Whether `reader` is a sum over batches or heads alone: the gradient of a
  /// bias, as large as the scores of one batch or head.
  bool isBiasGradient(Operation *reader) const;
};

/// Whether an op is a dot of two activations, by its verdict.
bool isAttentionDot(Operation *op);

/// Makes a reduction like another one, of `input` over `dims`.
Value makeReduction(OpBuilder &builder, stablehlo::ReduceOp like, Value input,
                    Value init, ArrayRef<int64_t> dims);

/// Returns every softmax over scores in `block`: the values between dots of two
/// activations, if a row is reduced over the keys. Adds to `lost` what cannot
/// be followed to a softmax: dots of scores whose exponential is computed
/// behind an op that mixes dimensions. Their members are followed only until
/// there, and have no dimensions.
std::vector<Scores> findScores(Block &block,
                               std::vector<Scores> *lost = nullptr);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SCORES_H
