//===- Reductions.h - How values are reduced over ranks ---------*- C++ -*-===//
//
// A partial sum is completed as a sum or as a mean over the ranks: as whatever
// one process computes from the rows of all of them. Constants hide which it
// is, because some of them count rows. Gradients are what the loss is. Any
// other value has to show it by itself.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_REDUCTIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_REDUCTIONS_H

#include "Propagation.h"

#include "fp8/Analysis/Signature.h"

namespace mlir::fp8 {

/// Returns the values that the new state and the loss depend on.
llvm::DenseSet<Value> sourcesOf(func::FuncOp func, const Signature &signature);

/// Decides how the partial values of a step are reduced.
class Reductions {
public:
  /// `layouts` and `whole` are those of a finished propagation. `given` is what
  /// the user says of the loss.
  Reductions(func::FuncOp func, const Signature &signature,
             const Propagation &layouts, const llvm::SetVector<Value> &whole,
             std::optional<Reduction> given);

  /// Checks what the user says of the loss against what is proven.
  LogicalResult verifyGiven();
  /// Returns the reduction of a value, which errors call `label`.
  FailureOr<Reduction> reductionOf(Value value, StringRef label);
  /// Whether a value is a plain sum over the rows of all ranks, and no
  /// gradient, without a look at the loss.
  bool isSurelySum(Value value);
  /// Checks that no function of a completed sum alone, other than a linear one,
  /// is divided by the number of its elements, or by the root of that: both are
  /// those of one rank.
  LogicalResult verifyDivisors();
  /// Whether the new state depends on a value.
  bool entersState(Value value) const { return stateSources.contains(value); }

private:
  /// What the values that a sum over rows follows from say about whether it is
  /// a gradient. Every gradient of a mean has a constant among them, the
  /// reciprocal of the count.
  struct Seeds {
    SmallVector<double> factors; ///< The constants that are not 0, 1 or -1.
    bool ofLoss = false; ///< Some constant is one by which the loss divides.
    bool count = false;  ///< A count that was summed over the ranks.
  };
  enum class Answer { No, Yes, Unknown };

  void findSources();
  void proveLoss();
  void findTermsOf(Value value, bool &mean, bool &byCount);
  void findLossFactors();
  Seeds seedsOf(Value value);
  bool reachesParameter(Value value);
  Answer isGradient(Value value, const Layout &part);
  bool isMeanOfSum(Value value, const Layout &part);
  bool hasGradientByCount();
  bool isOfOtherLoss(Value value);
  LogicalResult emitOtherLoss(Value value, StringRef label);
  LogicalResult verifyDivisorsOf(Value sum);
  bool isPlainCount(Value value);
  bool isRunningAverage(Value value, const Layout &part);
  /// Whether a partial sum is divided by a number of rows.
  bool isMean(Value value, const Layout &part) const;
  std::optional<Reduction> reductionOfOther(Value value, const Layout &part);
  FailureOr<Reduction> reductionOfLoss();
  LogicalResult emitMixedLoss();

  func::FuncOp func;
  const Signature &signature;
  const Propagation &layouts;
  const llvm::SetVector<Value> &whole;
  std::optional<Reduction> given;
  /// The values that the new state, and the loss, depend on.
  llvm::DenseSet<Value> stateSources, lossSources;
  /// The learned values whose completed forms the loss is computed from.
  llvm::SetVector<Value> lossTerms;
  /// The constants by which sums in the loss are multiplied.
  SmallVector<double> lossFactors;
  /// What the loss is proven to be.
  std::optional<Reduction> proven;
  /// Whether some terms of the loss are means and others are divided by a
  /// count: no reduction is right for the gradients of both.
  bool isMixed = false;
  /// Whether every term has a known constant factor.
  bool isScaled = false;
  std::optional<bool> gradientByCount; // hasGradientByCount, once it is asked
};

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_REDUCTIONS_H
