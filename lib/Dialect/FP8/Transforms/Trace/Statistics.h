//===- Statistics.h - Rows of statistics among the results ------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_TRACE_STATISTICS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_TRACE_STATISTICS_H

#include "../Accumulators.h"
#include "../SmallTensors.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Makes elementwise ops and reductions at one insertion point.
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

  /// Reduces f64 values of one shape over the dimensions from `first` to `end`,
  /// each to its sum or its maximum, in one op.
  SmallVector<Value> reduce(ArrayRef<Value> values, ArrayRef<bool> isMax,
                            int64_t first, int64_t end);
  /// Reduces over all dimensions but the first `keep`, in two steps if the
  /// tensor is large: the first gives a result per row, so that tasks can share
  /// the work.
  SmallVector<Value> reduceAll(ArrayRef<Value> values, ArrayRef<bool> isMax,
                               int64_t keep);
  /// Joins values of one shape along a new last dimension.
  Value row(ArrayRef<Value> values);
};

/// Adds `row` to the results of `function` as statistics of `tensor`.
void addStatistic(func::FuncOp function, StringRef tensor, ResultKind kind,
                  Value row);

/// Statistics that ops of one function record, also in loops and branches.
class Statistics {
public:
  explicit Statistics(func::FuncOp function)
      : function(function), accumulators(function) {}

  /// Records `row`, whose values are summed or, where `isMax` is set,
  /// maximized. Rows with the same name and type (`quantized`, if it is
  /// quantized) belong to one tensor: a pass over the layer that computes it
  /// again adds to what the first one has recorded.
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

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_TRACE_STATISTICS_H
