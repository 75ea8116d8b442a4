//===- FP8ToLinalg.h - fp8 to linalg ----------------------------*- C++ -*-===//

#ifndef FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H
#define FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class ModuleOp;
class RewritePatternSet;
class TypeConverter;
namespace fp8 {

#define GEN_PASS_DECL
#include "fp8/Conversion/FP8ToLinalg/Passes.h.inc"

/// Converts `!fp8.scaled` to its payload and its scale tensor.
void populateFP8TypeConversions(TypeConverter &converter);

/// Adds the lowerings of all fp8 ops, and of functions, calls and returns with
/// scaled tensors in their signatures.
void populateFP8ToLinalgPatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns);

} // namespace fp8
} // namespace mlir

#endif // FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H
