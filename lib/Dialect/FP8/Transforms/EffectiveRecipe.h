//===- EffectiveRecipe.h - The recipe and the verdicts in the IR *- C++ -*-===//
//
// What passes of the fp8 stage read of those that ran before them.
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

/// The recipe that `fp8-resolve-recipe` has put on the module; an error without
/// one.
FailureOr<Recipe> getEffectiveRecipe(ModuleOp module);

/// What `fp8-decide` has decided about an op; null for what is no dot, and for
/// dots that passes have added since.
VerdictAttr getVerdict(Operation *op);

/// An error at the first dot that `fp8-decide` has decided nothing about.
LogicalResult verifyDecided(ModuleOp module);

/// An error at the first dot if `fp8-decide` has decided about none: what has
/// run since may have added dots.
LogicalResult verifySomeDecided(ModuleOp module);

/// An error at the first dot that becomes FP8 and has not yet.
LogicalResult verifyDotsQuantized(ModuleOp module);

/// A type as messages and reports have it, without quotes.
std::string printType(Type type);

/// How the recipe quantizes an operand of a dot with this role; null if it
/// keeps the dot in high precision.
const OperandRecipe *getOperandRecipe(const Recipe &recipe, DotRole role,
                                      OperandKind kind);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_EFFECTIVERECIPE_H
