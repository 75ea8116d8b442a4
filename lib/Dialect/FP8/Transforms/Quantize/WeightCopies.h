//===- WeightCopies.h - FP8 copies of weights as state ----------*- C++ -*-===//
//
// With delayed scaling the scale of the next step's weights is known before the
// optimizer updates them. So the step that updates a weight also quantizes it,
// in the same sweep, and measures its amax. Payload and amax are state of the
// step, and no step quantizes a weight that it has not changed. The function
// `fp8_store` makes the payloads that the first step reads.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_WEIGHTCOPIES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_WEIGHTCOPIES_H

#include "../State/StateFunctions.h"
#include "DelayedScaling.h"

#include <string>
#include <vector>

namespace mlir {
namespace fp8 {

class WeightCopies {
public:
  WeightCopies(func::FuncOp function, DelayedScaling &delayed)
      : function(function), delayed(delayed), builder(function.getContext()) {}

  /// Returns the payload of `source`, whose scale state is called `name`, as an
  /// argument of the step. `rule` says how the weight is scaled. Null if
  /// `source` is not computed from state alone.
  Value get(StringRef name, const OperandRecipe &recipe, ScaledType type,
            Value source, Overflow overflow, const DelayedScaling::Rule &rule);

  /// Makes the next payloads after `delayed` has added its results, for calls
  /// that take their update.
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
    /// The ops that compute `source`, in order, and the arguments they read.
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
  bool followsFromOtherState(const Copy &copy) const;
  Value makeCondition(const Copy &copy, const TakenUpdate &when);
  void makeFirst(const Copy &copy, StateFunction &store);

  func::FuncOp function;
  DelayedScaling &delayed;
  OpBuilder builder;
  std::vector<Copy> copies;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_WEIGHTCOPIES_H
