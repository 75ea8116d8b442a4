//===- UpdateChains.h - Update chains of an optimizer -----------*- C++ -*-===//
//
// The *update chain* of a value consists of the sources that reach it through
// elementwise operations of its own shape. An optimizer reads the state that it
// replaces this way; other sources, at which the chain ends (a dot, a
// reduction, a scatter), are gradients. The analysis looks through branches,
// selects and loops over whole steps.
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
  /// 3 if it is added unscaled, 2 if it is multiplied by something that is not
  /// in the chain, 1 if it is read in any other way.
  uint8_t strength = 3;
  /// The degree of the polynomial: 2 for the square or the magnitude of a
  /// gradient, 0 in a denominator. Degrees above 4 become 3 or 4.
  uint8_t degree = 1;
  /// Whether every path has a factor, as in a decaying average.
  bool scaled = false;
  /// Whether every path has a factor, or all together have one less than 1,
  /// apart from a choice to keep the old value.
  bool decays = false;
  /// The sign with which it is added, 1 or -1; 0 if unknown. Factors that are
  /// not known to be negative, such as rates, count as positive.
  int8_t sign = 1;
  /// The product of its constant factors, or the sum of such products; NaN if
  /// one is not constant.
  double factor = 1;
  /// Whether some path adds it unscaled, and some path subtracts it.
  bool adds = true, subtracts = false;
  /// Whether a sum does both: p + (target - p) replaces p by a target.
  bool cancels = false;
  /// Whether every path divides by it.
  bool divides = false;
};
using Chain = llvm::MapVector<Value, Reach>;

/// Finds and caches update chains.
class UpdateChains {
public:
  /// Returns the sources of `value`: block arguments, and values that are not
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
