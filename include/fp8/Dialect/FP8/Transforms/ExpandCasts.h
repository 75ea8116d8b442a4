//===- ExpandCasts.h - f8 casts in integer arithmetic -----------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS_H
#define FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS_H

#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
namespace fp8 {

#define GEN_PASS_DECL
#include "fp8/Dialect/FP8/Transforms/ExpandCasts.h.inc"

/// Adds the patterns that expand f8 and bf16 casts. With `byF16`, casts from
/// f8E4M3FN and f8E5M2 take the way of f16, for targets with an instruction
/// from f16 to f32.
void populateExpandCastsPatterns(RewritePatternSet &patterns, bool byF16);

/// Converts an f8 scalar or vector to f32, in integer and f32 arithmetic.
Value expandF8ToF32(OpBuilder &builder, Location loc, Value value);

/// Converts an f32 scalar or vector to `format`, in integer and f32 arithmetic.
/// Rounds to nearest even and overflows as a plain cast does.
Value expandF32ToF8(OpBuilder &builder, Location loc, Value value,
                    FloatType format);

/// Converts an f32 scalar or vector to `format`, which is f8, f16 or bf16, with
/// stochastic rounding: to the upper of two neighbours (in magnitude) if
/// `random` / 2^24 (i32, from 0 to 2^24 - 1) is below the value's relative
/// distance from the lower one. Only the upper 20 bits of `random` count for
/// subnormals of f16. Overflows as a plain cast does.
Value expandStochasticCast(OpBuilder &builder, Location loc, Value value,
                           FloatType format, Value random);

} // namespace fp8
} // namespace mlir

#endif // FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS_H
