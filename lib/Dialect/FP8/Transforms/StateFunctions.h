//===- StateFunctions.h - Functions that store and load state ---*- C++ -*-===//
//
// Where a step stores its state otherwise than the user has it, two functions
// beside it say how: `fp8_store` makes the step's arguments of the user's
// tensors, `fp8_load` the user's tensors of the step's arguments. Both have
// tree paths, and nothing but what they change (and what `fp8_store` reads).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATEFUNCTIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATEFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Whether the function replaces some of its arguments.
bool replacesState(func::FuncOp function);

/// The type of an argument, of one of which each rank has a part that of the
/// whole: what functions beside the step take and make.
Type getWholeType(func::FuncOp step, unsigned argument);

/// The function beside `step` for the entry "store" or "load"; made if there is
/// none.
func::FuncOp getStateFunction(func::FuncOp step, StringRef entry);

/// The argument with this path; added if there is none.
BlockArgument getStateArgument(func::FuncOp function, StringRef path, Type type,
                               Location loc);

/// Adds a result.
void addStateResult(func::FuncOp function, StringRef path, Value value);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATEFUNCTIONS_H
