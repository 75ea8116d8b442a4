//===- Usage.h - Uses of a step's inputs ------------------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_USAGE_H
#define FP8_LIB_ANALYSIS_USAGE_H

#include "fp8/Analysis/DataFlow.h"

namespace mlir {
namespace fp8 {

/// Returns true for the types of the keys of JAX's random number generators.
bool isKeyType(Type type);

/// Returns true if `key` is a key of a random number generator: it has its
/// type, and a generator or its written-out rounds mix it into a stream of
/// bits.
bool drawsBits(Value key);

/// How the forward pass uses an argument.
enum class ArgumentUse {
  Unknown,
  /// Each step has its own: weights are applied to it.
  Data,
  /// It is applied to data. Trained weights are known beforehand.
  Weights,
  /// A scalar or a key, whose uses are no evidence.
  Neither
};

/// Finds the use of the `Unknown` ones of `uses` as far as possible, from the
/// values that each of them is first combined with in `forward`, the values
/// that the loss is computed from.
void findArgumentUses(func::FuncOp func, const ValueSet &forward,
                      const Dependence &onArguments,
                      std::vector<ArgumentUse> &uses);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_USAGE_H
