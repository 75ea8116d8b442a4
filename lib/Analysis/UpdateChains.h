//===- UpdateChains.h - What an optimizer updates ---------------*- C++ -*-===//
//
// The *update chain* of a value is what reaches it through elementwise
// operations of its own shape: this is how an optimizer reads the state that it
// replaces, and where the chain ends at something else (a dot, a reduction, a
// scatter) there is the gradient. Branches, selects and loops over whole steps
// are seen through.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_ANALYSIS_UPDATECHAINS_H
#define FP8_LIB_ANALYSIS_UPDATECHAINS_H

#include "fp8/Analysis/DataFlow.h"

#include "llvm/ADT/MapVector.h"

#include <optional>

namespace mlir {
namespace fp8 {

/// How a source reaches the end of an update chain.
struct Reach {
  /// 3 if it is added as it is, 2 if it is multiplied by something that is not
  /// in the chain, 1 if it is read in any other way.
  uint8_t strength = 3;
  /// Degree of the polynomial, at most 3: 2 for the square or the magnitude of
  /// a gradient, 0 in a denominator.
  uint8_t degree = 1;
  /// Every path has a factor on it, as in an average that decays.
  bool scaled = false;
  /// Every path that is not a choice to keep the old value has a factor.
  bool decays = false;
  /// 1 or -1 with which it is added, 0 if that is unknown. Factors that are not
  /// known to be negative, such as rates, count as positive.
  int8_t sign = 1;
  /// The product of the constant factors before it; NaN if one is no constant.
  double factor = 1;
  /// Some path adds it as it is, some path subtracts it.
  bool adds = true, subtracts = false;
  /// A sum does both: p + (target - p) replaces p by a target.
  bool cancels = false;
};
using Chain = llvm::MapVector<Value, Reach>;

/// Finds and remembers update chains.
class UpdateChains {
public:
  /// Sources of `value`: arguments of blocks, and the values that are not
  /// elementwise (the *leaves*).
  const Chain &of(Value value);

private:
  Chain compute(Value value);
  Chain ofOperand(Value value, unsigned i);
  std::optional<Chain> computeSum(Value value);
  std::optional<Chain> computeProduct(Value value);
  Chain computeQuotient(Value value);
  Chain computePower(Value value);
  Chain computeFunction(Value value);
  Chain computeCarry(OpResult result);
  DenseMap<Value, std::unique_ptr<Chain>> chains;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_UPDATECHAINS_H
