//===- ShardArguments.h - What a rank has of each argument ------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_SHARDARGUMENTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_SHARDARGUMENTS_H

#include "fp8/Analysis/Signature.h"
#include "fp8/Support/Recipe.h"

namespace mlir::fp8 {

/// Returns whether a step was in jax.shard_map. It is then already the program
/// of one rank.
bool isShardMapStep(func::FuncOp func);

/// Returns the parts of all ranks, along a new leading dimension.
Value gatherFromRanks(OpBuilder &builder, Value part, int64_t ranks,
                      const Twine &label);

/// Changes arguments to what a rank has of them: rows of the batch, and parts
/// of the state or all of it.
LogicalResult shardArguments(func::FuncOp func, const Signature &signature,
                             const Recipe *recipe);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_SHARDARGUMENTS_H
