//===- Decider.h - Which dots become FP8 ------------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_VERDICTS_DECIDER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_VERDICTS_DECIDER_H

#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/FP8/IR/FP8Attrs.h"
#include "llvm/ADT/StringSet.h"

namespace mlir {
namespace fp8 {

/// Whether Smooth-SwiGLU has moved a factor into or out of an operand.
bool isRescaled(Value operand);

/// The decision about a dot; see `#fp8.verdict`.
struct DotDecision {
  Verdict kind = Verdict::HighPrecision;
  DotRole role = DotRole::Other;
  DotCategory category = DotCategory::Other;
  std::string layer;
  OperandKind lhs = OperandKind::Other, rhs = OperandKind::Other;
  int64_t batch = 1, m = 1, n = 1, k = 1;
  Type lhsFormat, rhsFormat;
  std::optional<Tiling> lhsTile, rhsTile;
  bool currentScale = false;
  SmallVector<int64_t> loops;
  bool inBranch = false, recomputed = false;
  int64_t rule = 0, number = 0;
  std::string reason;
  SmallVector<std::string> notes;

  VerdictAttr getAttribute(MLIRContext *context) const;
};

/// Decides about the dots of one function.
class Decider {
public:
  Decider(const Recipe &recipe, func::FuncOp function);

  const LinearLayers &getLayers() const { return layers; }

  /// Decides about a dot. Fails, with an error, if it is unknown whether a rule
  /// matches.
  FailureOr<DotDecision> decide(const DotInfo &info) const;

private:
  DotDecision describe(const DotInfo &info) const;
  void addNotes(const DotInfo &info, DotDecision &decision) const;
  FailureOr<DotDecision> decideLayer(const DotInfo &info,
                                     DotDecision decision) const;
  void quantize(const DotInfo &info, DotDecision &decision) const;
  FailureOr<const RecipeRule *> findRule(const DotInfo &info,
                                         const DotDecision &decision) const;
  FailureOr<bool> matches(const RecipeRule &rule, const DotInfo &info,
                          const DotDecision &decision) const;
  FailureOr<bool> matchesLayer(const RecipeRule &rule,
                               const DotInfo &info) const;

  const Recipe &recipe;
  LinearLayers layers;
  int64_t numLayers = 0;
  /// The layers that are one layer, even in a loop: their forward dots read
  /// the whole parameter.
  llvm::StringSet<> single;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_VERDICTS_DECIDER_H
