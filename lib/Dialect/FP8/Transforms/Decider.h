//===- Decider.h - Which dots become FP8 ------------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DECIDER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DECIDER_H

#include "fp8/Analysis/LinearLayers.h"
#include "fp8/Dialect/FP8/Transforms/VerdictReport.h"
#include "fp8/Support/Recipe.h"

#include "llvm/ADT/BitVector.h"

namespace mlir {
namespace fp8 {

/// How the recipe quantizes an operand of a dot with this role; null if it
/// keeps the dot in high precision.
const OperandRecipe *getOperandRecipe(const Recipe &recipe, DotRole role,
                                      OperandKind kind);

/// Whether Smooth-SwiGLU has moved a factor into or out of an operand.
bool isRescaled(Value operand);

/// Whether an operand that the recipe gives a delayed scale needs its own: a
/// smoothed weight is of another size whenever its factors change.
bool needsCurrentScale(const OperandRecipe &recipe, const DotInfo &info,
                       OperandKind kind);

/// Decides about the dots of one function.
class Decider {
public:
  Decider(const Recipe &recipe, func::FuncOp function);

  const LinearLayers &getLayers() const { return layers; }

  FailureOr<DotVerdict> getVerdict(const DotInfo &info);

  /// The rules that decided about a dot.
  const llvm::BitVector &getUsedRules() const { return used; }

private:
  void describe(const DotInfo &info, DotVerdict &verdict) const;
  FailureOr<const RecipeRule *> findRule(const DotInfo &info,
                                         const DotVerdict &verdict);
  FailureOr<bool> matches(const RecipeRule &rule, const DotInfo &info,
                          const DotVerdict &verdict) const;

  const Recipe &recipe;
  LinearLayers layers;
  llvm::BitVector used;
  int64_t numLayers = 0;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DECIDER_H
