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

/// Adds the patterns that expand f8 and bf16 casts.
void populateExpandCastsPatterns(RewritePatternSet &patterns);

/// Converts an f8 scalar or vector to f32, in integer and f32 arithmetic.
Value expandF8ToF32(OpBuilder &builder, Location loc, Value value);

/// Converts an f32 scalar or vector to `format`, in integer and f32 arithmetic.
/// Rounds to nearest even and overflows as a plain cast does.
Value expandF32ToF8(OpBuilder &builder, Location loc, Value value,
                    FloatType format);

} // namespace fp8
} // namespace mlir

#endif // FP8_DIALECT_FP8_TRANSFORMS_EXPANDCASTS_H
