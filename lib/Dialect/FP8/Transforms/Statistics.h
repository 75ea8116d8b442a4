//===- Statistics.h - Rows of statistics among the results ------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATISTICS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATISTICS_H

#include "Accumulators.h"
#include "SmallTensors.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Makes elementwise ops and reductions at one place.
struct StatisticBuilder {
  OpBuilder &b;
  Location loc;

  Value constant(RankedTensorType type, double value) {
    return makeSplat(b, loc, type, value);
  }
  Value like(Value other, double value) {
    return constant(tensorOf(other), value);
  }
  Value convert(Value value, Type element) {
    RankedTensorType type = tensorOf(value);
    if (type.getElementType() == element)
      return value;
    return stablehlo::ConvertOp::create(b, loc, type.clone(element), value);
  }
  Value mul(Value lhs, Value rhs) {
    return stablehlo::MulOp::create(b, loc, lhs, rhs);
  }
  Value abs(Value value) { return stablehlo::AbsOp::create(b, loc, value); }
  Value compare(Value lhs, stablehlo::ComparisonDirection direction,
                Value rhs) {
    return stablehlo::CompareOp::create(b, loc, lhs, rhs, direction);
  }
  Value both(Value lhs, Value rhs) {
    return stablehlo::AndOp::create(b, loc, lhs, rhs);
  }
  Value either(Value lhs, Value rhs) {
    return stablehlo::OrOp::create(b, loc, lhs, rhs);
  }
  Value isFinite(Value value) {
    return stablehlo::IsFiniteOp::create(b, loc, value);
  }
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return makeReshape(b, loc, value, shape);
  }

  /// Sums or maxima of f64 values of one shape over the dimensions from `first`
  /// to `end`, in one op.
  SmallVector<Value> reduce(ArrayRef<Value> values, ArrayRef<bool> isMax,
                            int64_t first, int64_t end);
  /// Over all dimensions but the first `keep`, by way of rows, so that the work
  /// can be shared out.
  SmallVector<Value> reduceAll(ArrayRef<Value> values, ArrayRef<bool> isMax,
                               int64_t keep);
  /// Values of one shape side by side, along a new last dimension.
  Value row(ArrayRef<Value> values);
};

/// Adds `row` to the results of `function`, as what is said of `tensor`.
void addStatistic(func::FuncOp function, StringRef tensor, ResultKind kind,
                  Value row);

/// Statistics that ops of one function record, in loops and branches too.
class Statistics {
public:
  explicit Statistics(func::FuncOp function)
      : function(function), accumulators(function) {}

  /// Records `row`, of numbers that add up or, where `isMax` says so, of which
  /// the largest counts. What has one name and is of one type (`quantized`, if
  /// it is) is one tensor: a pass over the layer that computes it again adds to
  /// what the first one has recorded.
  void record(StringRef name, ResultKind kind, Value row, Type quantized,
              ArrayRef<LayerSlot> slots, ArrayRef<bool> isMax);

  /// Adds the statistics to the results of the function.
  void addResults();

private:
  struct Entry {
    std::string name;
    Type type, quantized;
    ResultKind kind;
    unsigned accumulator;
  };

  func::FuncOp function;
  Accumulators accumulators;
  std::vector<Entry> entries;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATISTICS_H
