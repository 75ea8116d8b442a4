//===- ComputeType.h - The compute type of unquantized dots -----*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_COMPUTETYPE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_COMPUTETYPE_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Support/Recipe.h"

namespace mlir {
namespace fp8 {

/// Whether a dot can read its operands rounded to bf16: operands and result are
/// f32, and it has a contracting dimension.
bool canReadBF16(stablehlo::DotGeneralOp dot);

/// Rounds values to bf16, each value once.
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

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_COMPUTETYPE_H
