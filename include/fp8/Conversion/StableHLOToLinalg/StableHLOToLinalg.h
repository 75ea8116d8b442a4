//===- StableHLOToLinalg.h - StableHLO to linalg ----------------*- C++ -*-===//

#ifndef FP8_CONVERSION_STABLEHLOTOLINALG_STABLEHLOTOLINALG_H
#define FP8_CONVERSION_STABLEHLOTOLINALG_STABLEHLOTOLINALG_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
class TypeConverter;
namespace fp8 {

#define GEN_PASS_DECL
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"

/// Makes the elements of tensors signless; other types do not change.
void populateSignlessTypeConversions(TypeConverter &converter);

/// Adds the lowerings of all supported stablehlo and chlo ops.
void populateStableHLOToLinalgPatterns(const TypeConverter &converter,
                                       RewritePatternSet &patterns);

} // namespace fp8
} // namespace mlir

#endif // FP8_CONVERSION_STABLEHLOTOLINALG_STABLEHLOTOLINALG_H
