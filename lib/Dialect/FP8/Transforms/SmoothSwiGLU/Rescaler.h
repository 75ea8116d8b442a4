//===- Rescaler.h - Multiplying values by factors ---------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_RESCALER_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_RESCALER_H

#include "DotSides.h"
#include "OpPositions.h"

namespace mlir::fp8::smooth {

/// Multiplies values by factors, along some of their dimensions; each value by
/// each factor once.
class Rescaler {
public:
  Rescaler(RewriterBase &builder, OpPositions &positions)
      : builder(builder), positions(positions) {}

  Value rescale(Value value, Value factor, ArrayRef<int64_t> dims);
  /// Returns the same view of the rescaled root; `dims` are dimensions of the
  /// root.
  Value rescaleView(const View &view, Value factor, ArrayRef<int64_t> dims);
  /// Returns the operand of a dot, rescaled where its views begin, so that
  /// other dots share it. `dims` are dimensions of the operand.
  Value rescaleOperand(const DotOperand &side, Value factor,
                       ArrayRef<int64_t> dims);
  /// Rescales what readers of a dot read.
  void rescaleResult(stablehlo::DotGeneralOp dot, Value factor,
                     ArrayRef<int64_t> dims);
  /// Returns a value that has been rescaled by a factor, or null.
  Value lookup(Value value, Value factor) const {
    return rescaled.lookup({value, factor});
  }

private:
  RewriterBase &builder;
  OpPositions &positions;
  /// The rescaled values, by value and factor, with their views.
  DenseMap<std::pair<Value, Value>, Value> rescaled;
};

} // namespace mlir::fp8::smooth

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_RESCALER_H
