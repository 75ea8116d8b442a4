//===- WeightCopies.h - FP8 copies of weights as state ----------*- C++ -*-===//
//
// With delayed scaling the scale of the next step's weights is known before the
// optimizer has updated them. Then the step that updates a weight quantizes it
// too, in the same sweep, and measures its amax; payload and amax are state of
// the step, and no step quantizes a weight that it has not changed. What the
// first step reads is made by the function `fp8_store`.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_WEIGHTCOPIES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_WEIGHTCOPIES_H

#include "DelayedScaling.h"

#include <string>
#include <vector>

namespace mlir {
namespace fp8 {

class WeightCopies {
public:
  WeightCopies(func::FuncOp function, DelayedScaling &delayed)
      : function(function), delayed(delayed), builder(function.getContext()) {}

  /// The payload of `source`, whose scale state is called `name`: an argument
  /// of the step. `current` says how it is scaled. Null if `source` is not
  /// computed from state alone.
  Value get(StringRef name, const OperandRecipe &recipe, ScaledType type,
            Value source, Overflow overflow, const DelayedScaling::Rule &rule);

  /// Makes the next payloads once `delayed` has added its results, where the
  /// step takes its update.
  void makeNextPayloads(const TakenUpdate &when);

private:
  struct Copy {
    std::string name;
    unsigned state;
    OperandRecipe recipe;
    ScaledType type;
    Value source;
    Overflow overflow;
    DelayedScaling::Rule rule;
    /// What `source` is computed by, in order, and from.
    SmallVector<Operation *> ops;
    SmallVector<BlockArgument> leaves;
    BlockArgument payload = {}, amax = {};
  };

  bool addOps(Copy &copy, Value value, DenseSet<Operation *> &seen) const;
  BlockArgument addArgument(Type type, const std::string &path);
  Value cloneSource(const Copy &copy, function_ref<Value(BlockArgument)> leaf);
  ComputeScaleOp makeScale(const Copy &copy, Value amax);
  DelayedScaling::Scale getNextScale(const Copy &copy,
                                     function_ref<Value()> makeSource);
  Value makeNextSource(const Copy &copy);
  SmallVector<Value> makeNext(const Copy &copy);
  Value makeCondition(const Copy &copy, const TakenUpdate &when);
  void makeFirst(const Copy &copy);

  func::FuncOp function;
  DelayedScaling &delayed;
  OpBuilder builder;
  std::vector<Copy> copies;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_WEIGHTCOPIES_H
