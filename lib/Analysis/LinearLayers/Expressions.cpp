//===- Expressions.cpp - Elementwise expressions --------------------------===//

#include "Expressions.h"

#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/Constants.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;

std::optional<double> fp8::getBroadcastNumber(Value value) {
  return stablehlo::getSplatNumber(stablehlo::skipBroadcasts(value));
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

static bool compares(stablehlo::ComparisonDirection direction, double x,
                     double y) {
  switch (direction) {
  case stablehlo::ComparisonDirection::EQ:
    return x == y;
  case stablehlo::ComparisonDirection::NE:
    return x != y;
  case stablehlo::ComparisonDirection::GE:
    return x >= y;
  case stablehlo::ComparisonDirection::GT:
    return x > y;
  case stablehlo::ComparisonDirection::LE:
    return x <= y;
  case stablehlo::ComparisonDirection::LT:
    return x < y;
  }
  return false;
}

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Applies an op to one element of each operand; returns nullopt for ops that
/// do not occur in activations.
static std::optional<double> computeElement(Operation *op,
                                            ArrayRef<double> in) {
  double x = in[0], y = in.size() > 1 ? in[1] : 0;
  if (isa<stablehlo::AddOp>(op))
    return x + y;
  if (isa<stablehlo::SubtractOp>(op))
    return x - y;
  if (isa<stablehlo::MulOp>(op))
    return x * y;
  if (isa<stablehlo::DivOp>(op))
    return x / y;
  if (isa<stablehlo::MaxOp>(op))
    return std::max(x, y);
  if (isa<stablehlo::MinOp>(op))
    return std::min(x, y);
  if (isa<stablehlo::PowOp>(op))
    return std::pow(x, y);
  if (isa<stablehlo::NegOp>(op))
    return -x;
  if (isa<stablehlo::AbsOp>(op))
    return std::abs(x);
  if (isa<stablehlo::SignOp>(op))
    return (x > 0) - (x < 0);
  if (isa<stablehlo::ExpOp>(op))
    return std::exp(x);
  if (isa<stablehlo::Expm1Op>(op))
    return std::expm1(x);
  if (isa<stablehlo::LogOp>(op))
    return std::log(x);
  if (isa<stablehlo::Log1pOp>(op))
    return std::log1p(x);
  if (isa<stablehlo::LogisticOp>(op))
    return logistic(x);
  if (isa<stablehlo::TanhOp>(op))
    return std::tanh(x);
  if (isa<stablehlo::SqrtOp>(op))
    return std::sqrt(x);
  if (isa<stablehlo::RsqrtOp>(op))
    return 1 / std::sqrt(x);
  if (isa<chlo::SquareOp>(op))
    return x * x;
  if (isa<chlo::ErfOp>(op))
    return std::erf(x);
  if (isa<chlo::ErfcOp>(op))
    return std::erfc(x);
  if (isa<stablehlo::ConvertOp, stablehlo::ReducePrecisionOp>(op))
    return x;
  if (isa<stablehlo::SelectOp>(op))
    return x != 0 ? in[1] : in[2];
  if (isa<stablehlo::ClampOp>(op))
    return std::min(std::max(in[1], in[0]), in[2]);
  if (auto compare = dyn_cast<stablehlo::CompareOp>(op))
    return compares(compare.getComparisonDirection(), x, y);
  // The operands of these are predicates.
  if (isa<stablehlo::AndOp>(op))
    return x != 0 && y != 0;
  if (isa<stablehlo::OrOp>(op))
    return x != 0 || y != 0;
  if (isa<stablehlo::NotOp>(op))
    return x == 0;
  return std::nullopt;
}

std::optional<Samples> Evaluator::get(Value value) {
  auto found = known.find(value);
  if (found != known.end())
    return found->second;
  std::optional<Samples> result = compute(value);
  known[value] = result;
  return result;
}

std::optional<Samples> Evaluator::compute(Value value) {
  if (std::optional<Samples> samples = variable(value))
    return samples;
  Samples result;
  if (std::optional<double> number = getBroadcastNumber(value)) {
    result.fill(*number);
    return result;
  }
  if (Value source = views.getSameElementsSource(value, user))
    return get(source);
  Operation *op = value.getDefiningOp();
  if (!op || !stablehlo::worksByElement(op))
    return std::nullopt;
  SmallVector<Samples, 3> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Samples> samples = get(operand);
    if (!samples)
      return std::nullopt;
    operands.push_back(*samples);
  }
  for (unsigned i = 0; i < kNumSamples; ++i) {
    SmallVector<double, 3> in;
    for (const Samples &operand : operands)
      in.push_back(operand[i]);
    std::optional<double> out = computeElement(op, in);
    if (!out)
      return std::nullopt;
    result[i] = *out;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Activations
//===----------------------------------------------------------------------===//

const Samples &fp8::getSamplePoints() {
  static const Samples points = {-8,   -5,  -3.7, -2.5, -2,   -1.5, -1,
                                 -0.7, -.4, -.1,  0.05, 0.25, 0.5,  0.8,
                                 1.2,  1.7, 2.3,  3.1,  4.5,  7};
  return points;
}

StringRef fp8::matchActivation(const Samples &values) {
  using Function = double (*)(double);
  static constexpr std::pair<StringLiteral, Function> activations[] = {
      {"silu", [](double x) { return x * logistic(x); }},
      {"gelu",
       [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }},
      {"gelu_tanh",
       [](double x) {
         double z = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
         return 0.5 * x * (1 + std::tanh(z));
       }},
      {"quick_gelu", [](double x) { return x * logistic(1.702 * x); }},
      {"relu", [](double x) { return std::max(x, 0.0); }},
      {"sigmoid", logistic},
      {"identity", [](double x) { return x; }}};
  // The tolerance is far below the distance of any two activations except the
  // two forms of gelu, of which the nearer one is chosen.
  double best = 5e-3;
  StringRef name;
  for (const auto &[candidate, function] : activations) {
    double error = 0;
    for (unsigned i = 0; i < kNumSamples; ++i) {
      double expected = function(getSamplePoints()[i]);
      double apart =
          std::abs(values[i] - expected) / std::max(1.0, std::abs(expected));
      // A NaN matches nothing.
      error = std::max(error, std::isnan(apart) ? 1.0 : apart);
    }
    if (error < best) {
      best = error;
      name = candidate;
    }
  }
  return name;
}
