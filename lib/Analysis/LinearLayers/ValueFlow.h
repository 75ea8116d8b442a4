//===- ValueFlow.h - Where values come from, through control flow -*- C++
//-*-===//
//
// Views (reshapes, slices, conversions, ...), loops and branches between a
// value and what it is made of, and numbers that are equal for equal values.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_VALUEFLOW_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_VALUEFLOW_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>
#include <vector>

namespace mlir {
namespace fp8 {

inline bool isBarrier(Operation *op) {
  return isa<stablehlo::OptimizationBarrierOp>(op);
}

/// Whether an op chooses one of its regions to run.
inline bool isBranch(Operation *op) {
  return isa<stablehlo::IfOp, stablehlo::CaseOp>(op);
}

/// The values that control flow makes `value` one of: the result of a loop or
/// its block argument is the initial value or what the body returns, the result
/// of a branch what one of its regions returns. Empty for all other values.
SmallVector<Value> getFlowSources(Value value);

/// The value that a loop was entered with, if it carries `arg` unchanged.
Value getLoopInvariant(BlockArgument arg);

/// Numbers values so that equal numbers mean equal values: of two ops with the
/// same name, attributes, regions and operand numbers. Barriers are
/// transparent: that is what makes a recomputed value equal to the original. A
/// value that one loop stacks up has the number of the slice that another loop
/// reads of the stack.
class ValueNumbers {
public:
  explicit ValueNumbers(func::FuncOp function) { number(function.getBody()); }

  unsigned get(Value value) const { return numbers.lookup(value); }

  /// What a branch returned for `value`, if `user` lies in a branch chosen by
  /// the same predicate (the backward pass of a branch reads what the forward
  /// pass saved in the region of the same index); else the only thing that any
  /// region returned but a constant. Null if `value` is of no branch.
  Value getBranchSource(Value value, Operation *user) const;

private:
  using Key = std::vector<uintptr_t>;

  void number(Region &region);
  void number(Operation &op);
  Value getEqual(Value result, Operation *user) const;
  void append(Operation &op, DenseMap<Value, unsigned> &locals, Key &key);
  unsigned getRead(Value operand, Operation *user) const;

  DenseMap<Value, unsigned> numbers;
  std::map<Key, unsigned> known;
  unsigned next = 1;
};

/// Walks from a value that `user` reads to what it shows the elements of.
class Views {
public:
  explicit Views(const ValueNumbers &numbers) : numbers(numbers) {}

  /// The same elements, perhaps rounded, rescaled or stored in between.
  Value getSameElementsSource(Value value, Operation *user) const;
  /// The source of a view: slices and broadcasts are looked through as well.
  Value getViewSource(Value value, Operation *user) const;

  /// The value and its sources, from `value` to its root.
  SmallVector<Value> getSameElements(Value value, Operation *user) const;
  SmallVector<Value> getView(Value value, Operation *user) const;
  Value getSameElementsRoot(Value value, Operation *user) const {
    return getSameElements(value, user).back();
  }
  Value getViewRoot(Value value, Operation *user) const {
    return getView(value, user).back();
  }

private:
  const ValueNumbers &numbers;
};

/// For every dimension of a value, the dimensions of its root that it spans.
using DimSets = SmallVector<llvm::SmallBitVector>;

/// The dimensions that the first value of a chain of views spans of the last
/// one.
DimSets getDimSets(ArrayRef<Value> chain);

llvm::SmallBitVector unite(const DimSets &sets, ArrayRef<int64_t> dims,
                           unsigned rank);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_VALUEFLOW_H
