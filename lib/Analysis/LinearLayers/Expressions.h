//===- Expressions.h - What elementwise expressions compute -----*- C++ -*-===//

#ifndef FP8_LIB_ANALYSIS_LINEARLAYERS_EXPRESSIONS_H
#define FP8_LIB_ANALYSIS_LINEARLAYERS_EXPRESSIONS_H

#include "ValueFlow.h"

#include <array>
#include <optional>

namespace mlir {
namespace fp8 {

/// The number that a constant has throughout, spread or not.
std::optional<double> getSplatNumber(Value value);

/// Values of an expression at the points where its variables are sampled.
constexpr unsigned kNumSamples = 20;
using Samples = std::array<double, kNumSamples>;

/// The points at which activations are told apart.
const Samples &getSamplePoints();

/// Computes an elementwise expression in f64, whatever its types; `variable`
/// has the samples of what is not computed any further. None where something
/// else is read.
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

/// The name of the activation that has these values at the sample points: silu,
/// gelu (by erf), gelu_tanh, quick_gelu, relu, sigmoid or identity; empty if it
/// is none of these. Constants may have been rounded to bf16.
StringRef matchActivation(const Samples &values);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_ANALYSIS_LINEARLAYERS_EXPRESSIONS_H
