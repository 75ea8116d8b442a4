//===- ExpandMath.h - Expansion of math functions ---------------*- C++ -*-===//

#ifndef FP8_CONVERSION_EXPANDMATH_EXPANDMATH_H
#define FP8_CONVERSION_EXPANDMATH_EXPANDMATH_H

#include "mlir/IR/Builders.h"
#include "mlir/Pass/Pass.h"

namespace mlir {
namespace fp8 {

#define GEN_PASS_DECL
#include "fp8/Conversion/ExpandMath/Passes.h.inc"

/// Returns the inverse error function of `x` (f32, scalar or vector), for which
/// the math dialect has no op.
Value expandErfInv(OpBuilder &builder, Location loc, Value x);

/// Return log |gamma(x)| and its derivative for `x` of the same types.
Value expandLgamma(OpBuilder &builder, Location loc, Value x);
Value expandDigamma(OpBuilder &builder, Location loc, Value x);

} // namespace fp8
} // namespace mlir

#endif // FP8_CONVERSION_EXPANDMATH_EXPANDMATH_H
