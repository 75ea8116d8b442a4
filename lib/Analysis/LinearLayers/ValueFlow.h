//===- ValueFlow.h - Sources and equality of values -------------*- C++ -*-===//
//
// Traces views (reshapes, slices, conversions, ...), loops and branches between
// a value and its source, and numbers values such that equal values have equal
// numbers.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_VALUEFLOW_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_VALUEFLOW_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Shapes.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallBitVector.h"

#include <map>
#include <vector>

namespace mlir {
namespace fp8 {

inline bool isBarrier(Operation *op) {
  return isa<stablehlo::OptimizationBarrierOp>(op);
}

/// Returns the values that `value` may take by control flow: for the result of
/// a loop or its block argument, the initial value and the value that the body
/// yields; for the result of a branch, what each region returns. Empty for all
/// other values.
SmallVector<Value> getFlowSources(Value value);

/// Returns the initial value of a loop argument that the loop does not change.
Value getLoopInvariant(BlockArgument arg);

/// Numbers values such that equal numbers mean equal values: results of ops
/// with the same name, attributes, regions and operand numbers. Barriers are
/// transparent, so that a recomputed value equals the original. A value that
/// one loop stacks up has the number of the slice that another loop reads from
/// the stack.
class ValueNumbers {
public:
  explicit ValueNumbers(func::FuncOp function) { number(function.getBody()); }

  unsigned get(Value value) const { return numbers.lookup(value); }

  /// Returns what a branch returned for `value`. If `user` lies in a branch
  /// with the same predicate, that is the value of the region with the same
  /// index (the backward pass of a branch reads what the forward pass saved
  /// there); otherwise it is the only value that any region returned apart from
  /// constants. Returns null if `value` comes from no branch.
  Value getBranchSource(Value value, Operation *user) const;

private:
  using Key = std::vector<uintptr_t>;

  void number(Region &region);
  void number(Operation &op);
  Value getEqual(Value result, Operation *user) const;
  void append(Operation &op, DenseMap<Value, unsigned> &locals, Key &key);
  void appendBroadcast(stablehlo::BroadcastInDimOp broadcast,
                       const DenseMap<Value, unsigned> &locals, Key &key) const;
  unsigned getRead(Value operand, Operation *user) const;

  DenseMap<Value, unsigned> numbers;
  std::map<Key, unsigned> known;
  unsigned next = 1;
};

/// Walks from a value that `user` reads back to the source of its elements.
class Views {
public:
  explicit Views(const ValueNumbers &numbers) : numbers(numbers) {}

  /// Returns the source with the same elements, perhaps rounded, rescaled or
  /// stored in between.
  Value getSameElementsSource(Value value, Operation *user) const;
  /// Returns the source of a view; looks through slices, broadcasts and
  /// reversals, too: the kernel of a transposed convolution is reversed.
  Value getViewSource(Value value, Operation *user) const;

  /// Return the value and its sources, from `value` to its root.
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

/// Returns for each dimension of the first value of a chain of views the
/// dimensions of the last one that it spans.
DimSets getDimSets(ArrayRef<Value> chain);

/// Returns which dimensions of the first value of a chain of views run over the
/// taps of windows: the elements of each.
llvm::SmallBitVector getTaps(ArrayRef<Value> chain);

llvm::SmallBitVector unite(const DimSets &sets, ArrayRef<int64_t> dims,
                           unsigned rank);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_VALUEFLOW_H
