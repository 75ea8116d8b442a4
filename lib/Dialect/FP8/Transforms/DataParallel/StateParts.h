//===- StateParts.h - State of which each rank has its part -----*- C++ -*-===//
//
// A step in jax.shard_map that cuts its part off an array of the state, and
// gathers the parts of the new value, needs no more than the part. What is
// between, an optimizer outside of shard_map say, may work element by element:
// then it works on parts too.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_STATEPARTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_STATEPARTS_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Support/Recipe.h"

namespace mlir::fp8 {

/// Gives each rank its part of the state that it reads and replaces parts of:
/// such arguments have `stablehlo.part`, and the types of parts. State that
/// something reads as a whole stays whole, and so does what `recipe` (null:
/// none) stores in a form that parts cannot have.
void splitState(func::FuncOp func, const Signature &signature,
                const Recipe *recipe);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_STATEPARTS_H
