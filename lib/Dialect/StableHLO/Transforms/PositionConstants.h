//===- PositionConstants.h - Constants from positions -----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_POSITIONCONSTANTS_H
#define FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_POSITIONCONSTANTS_H

namespace mlir {
class RewritePatternSet;

namespace stablehlo {

/// Adds patterns that compute large constants from iotas: sums of multiples of
/// indices, and bands of two values.
void populatePositionConstants(RewritePatternSet &patterns);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_POSITIONCONSTANTS_H
