//===- EffectiveRecipe.h - The recipe and the verdicts in the IR *- C++ -*-===//
//
// Accessors for what earlier passes of the fp8 stage have left in the IR.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_EFFECTIVERECIPE_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_EFFECTIVERECIPE_H

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace mlir {
namespace fp8 {

/// Returns the recipe that `fp8-resolve-recipe` put on the module; an error
/// without one.
FailureOr<Recipe> getEffectiveRecipe(ModuleOp module);

/// Returns the verdict of `fp8-decide` on an op; null if the op is not a dot,
/// or is a dot that a pass has added since.
VerdictAttr getVerdict(Operation *op);

/// Emits an error at the first dot without a verdict.
LogicalResult verifyDecided(ModuleOp module);

/// Emits an error at the first dot if no dot has a verdict: passes that have
/// run since may have added dots without one.
LogicalResult verifyAnyVerdict(ModuleOp module);

/// Emits an error at the first dot that is to become FP8 and is not FP8 yet.
LogicalResult verifyDotsQuantized(ModuleOp module);

/// Prints a type as in messages and reports, without quotes.
std::string printType(Type type);

/// Returns how the recipe quantizes an operand of a dot with this role; null if
/// it keeps the dot in high precision.
const OperandRecipe *getOperandRecipe(const Recipe &recipe, DotRole role,
                                      OperandKind kind);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_EFFECTIVERECIPE_H
