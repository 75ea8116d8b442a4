//===- Origins.h - Whether values are weights or data -----------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_ORIGINS_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_ORIGINS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/ADT/DenseMap.h"

namespace mlir {
namespace fp8 {

/// What a value depends on: nothing, parameters alone, or data. Random numbers
/// are data, unless they are noise of a weight: one for each of its elements.
enum class Origin { Constant, Random, Weight, Data };

class Origins {
public:
  explicit Origins(func::FuncOp function);

  /// Returns Constant, Weight or Data.
  Origin get(Value value) const {
    Origin origin = origins.lookup(value);
    return origin == Origin::Random ? Origin::Data : origin;
  }

  /// Returns the largest parameter that a weight is computed from.
  BlockArgument getParameter(Value value) const {
    return parameters.lookup(value);
  }

  bool anyParameter() const { return !parameters.empty(); }

  /// Returns true if an argument with this path is a weight.
  bool isWeight(StringAttr path) const { return weights.contains(path); }

  /// Returns true if `value` is a parameter that a loop over whole steps
  /// carries and updates: the block argument of the loop, or its result. Each
  /// iteration reads it as a parameter.
  bool isCarriedParameter(Value value) const { return carried.contains(value); }

  /// The same for any state that such a loop replaces, such as the loss scale
  /// or a moment: each iteration reads what the previous one has written.
  bool isCarriedState(Value value) const {
    return carriedState.contains(value);
  }

  /// Returns true if `value` is the next value of weights that the step
  /// returns: its readers, such as a second loss, read it as a parameter.
  bool isUpdatedParameter(Value value) const { return updated.contains(value); }

  /// Adds values that are read as a parameter, too, and classifies all values
  /// once more.
  void addUpdatedParameters(ArrayRef<std::pair<Value, BlockArgument>> values);

private:
  void classify();
  Origin classify(BlockArgument arg) const;
  void findCarriedState(Operation *loop);
  void findCarriedStateWithin(Operation *outer);
  void addCarriedState(ArrayRef<OpResult> state);
  void findUpdatedParameters();
  void propagate(Block &block);
  void propagate(Operation &op);
  Value getScaledWeight(Operation &op) const;
  bool isNoisyWeight(Operation &op) const;
  void propagateLoop(Operation &loop);
  void propagateBranch(Operation &branch);
  bool merge(Value from, Value into);

  // Reading attributes is not const in MLIR.
  mutable func::FuncOp function;
  DenseMap<Value, Origin> origins;
  DenseMap<Value, BlockArgument> parameters;
  DenseMap<Attribute, BlockArgument> weights; ///< By path.
  DenseSet<Value> carried, carriedState;
  DenseMap<Value, BlockArgument> updated;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_ORIGINS_H
