//===- Patterns.h - Lowerings of StableHLO ----------------------*- C++ -*-===//

#ifndef FP8_LIB_CONVERSION_STABLEHLOTOLINALG_PATTERNS_H
#define FP8_LIB_CONVERSION_STABLEHLOTOLINALG_PATTERNS_H

namespace mlir {
class RewritePatternSet;
class TypeConverter;
} // namespace mlir

namespace mlir::fp8 {

/// Lowers elementwise ops, maps and bit casts, and drops results without
/// elements.
void populateElementwisePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns);

/// Lowers constants, iotas, and ops that move elements: reshapes, transposes,
/// broadcasts, slices, concatenations and pads.
void populateMovePatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);

/// Lowers reduce and reduce_window.
void populateReductionPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns);

/// Lowers dots and convolutions.
void populateContractionPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns);

/// Lowers gather, scatter, dynamic_slice and dynamic_update_slice.
void populateIndexedAccessPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns);

/// Lowers sums of values that are padded with zeros.
void populatePaddedSumPatterns(const TypeConverter &converter,
                               RewritePatternSet &patterns);

/// Lowers rng_bit_generator.
void populateRandomBitsPatterns(const TypeConverter &converter,
                                RewritePatternSet &patterns);

/// Lowers sort.
void populateSortPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);

/// Lowers top_k.
void populateTopKPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);

/// Lowers select_and_scatter.
void populateWindowScatterPatterns(const TypeConverter &converter,
                                   RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_STABLEHLOTOLINALG_PATTERNS_H
