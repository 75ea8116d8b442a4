//===- Usage.h - What a step does with its inputs ---------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_USAGE_H
#define FP8_LIB_ANALYSIS_USAGE_H

#include "fp8/Analysis/DataFlow.h"

namespace mlir {
namespace fp8 {

/// The types of the keys of JAX's random number generators.
bool isKeyType(Type type);

/// Whether `key` is a random number generator's: of its type, and mixed bit by
/// bit into a stream, by a generator or by its rounds written out.
bool drawsBits(Value key);

/// How the forward pass uses an argument.
enum class ArgumentUse {
  Unknown,
  /// Each step has its own: weights are applied to it.
  Data,
  /// It is applied to data. Trained ones are known to be this beforehand.
  Weights,
  /// It is a scalar or a key, which tells nothing of what it meets.
  Neither
};

/// Tells the `Unknown` ones of `uses` apart as far as `forward`, what the loss
/// is computed from, allows: by what each of them meets first.
void findArgumentUses(func::FuncOp func, const ValueSet &forward,
                      const Dependence &onArguments,
                      std::vector<ArgumentUse> &uses);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_USAGE_H
