//===- Expressions.h - Elementwise expressions ------------------*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_EXPRESSIONS_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_EXPRESSIONS_H

#include "ValueFlow.h"

#include <array>
#include <optional>

namespace mlir {
namespace fp8 {

/// Returns the value of a splat constant, broadcast or not.
std::optional<double> getBroadcastNumber(Value value);

/// The values of an expression at the sample points of its variables.
constexpr unsigned kNumSamples = 20;
using Samples = std::array<double, kNumSamples>;

/// Returns the points at which activations are compared.
const Samples &getSamplePoints();

/// Evaluates an elementwise expression in f64, regardless of its types.
/// `variable` returns the samples of a value that is not evaluated any further.
/// Returns nullopt if the expression reads anything else.
class Evaluator {
public:
  Evaluator(const Views &views, Operation *user,
            function_ref<std::optional<Samples>(Value)> variable)
      : views(views), user(user), variable(variable) {}

  std::optional<Samples> get(Value value);

private:
  std::optional<Samples> compute(Value value);

  const Views &views;
  Operation *user;
  function_ref<std::optional<Samples>(Value)> variable;
  DenseMap<Value, std::optional<Samples>> known;
};

/// Returns the name of the activation that has these values at the sample
/// points: silu, gelu (by erf), gelu_tanh, quick_gelu, relu, sigmoid or
/// identity; empty if none matches. Constants may have been rounded to bf16.
StringRef matchActivation(const Samples &values);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_EXPRESSIONS_H
