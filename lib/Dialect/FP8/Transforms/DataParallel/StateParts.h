//===- StateParts.h - State that is split among ranks -----------*- C++ -*-===//
//
// A step in jax.shard_map that slices its part off an array of the state, and
// gathers the parts of the new value, needs no more than the part. Ops in
// between, for example of an optimizer outside shard_map, may work element by
// element: then they work on parts, too.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_STATEPARTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_STATEPARTS_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Support/Recipe.h"

namespace mlir::fp8 {

/// Gives each rank only its part of the state that it reads and replaces in
/// parts: such arguments get `stablehlo.part` and the types of parts. State
/// that an op reads as a whole stays whole, and so does state that `recipe`
/// (may be null) stores in a form that cannot be split.
void splitState(func::FuncOp func, const Signature &signature,
                const Recipe *recipe);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_STATEPARTS_H
