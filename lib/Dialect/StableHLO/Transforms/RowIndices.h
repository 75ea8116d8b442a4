//===- RowIndices.h - Indices that count rows -------------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_ROWINDICES_H
#define FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_ROWINDICES_H

namespace mlir {
class RewritePatternSet;

namespace stablehlo {

/// Adds patterns that let gathers and scatters, whose indices name each row by
/// its number, read and write each row by itself.
void populateRowIndices(RewritePatternSet &patterns);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_TRANSFORMS_ROWINDICES_H
