//===- Passes.h - Passes on StableHLO steps ---------------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_H
#define FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_H

#include "fp8/Analysis/Signature.h"

#include "mlir/Pass/Pass.h"

namespace mlir {
class RewritePatternSet;
namespace stablehlo {

#define GEN_PASS_DECL
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"

/// Creates the pass fp8-analyze-signature with the user's options.
std::unique_ptr<Pass>
createAnalyzeSignaturePass(const fp8::SignatureOptions &options);

/// Adds the patterns of stablehlo-simplify.
void populateSimplifyPatterns(RewritePatternSet &patterns);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_DIALECT_STABLEHLO_TRANSFORMS_PASSES_H
