//===- ComputeType.h - What unquantized dots compute in ---------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_COMPUTETYPE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_COMPUTETYPE_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace fp8 {

/// Whether a dot reads f32 operands that bf16 may take the place of: both are
/// f32 and summed over.
bool canReadBF16(stablehlo::DotGeneralOp dot);

/// Rounds values to bf16, each once.
class Rounder {
public:
  explicit Rounder(MLIRContext *context) : builder(context) {}

  Value get(Value value);

private:
  OpBuilder builder;
  DenseMap<Value, Value> rounded;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_COMPUTETYPE_H
