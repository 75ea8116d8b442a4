//===- RankGroups.h - Ranks that have a part of a value each ----*- C++ -*-===//
//
// In a step in jax.shard_map ranks exchange parts between the members of
// groups. Which ranks share a value follows from what is exchanged of it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_RANKGROUPS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_RANKGROUPS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// The exchange that begins a sum of `value` over groups of ranks (`psum`,
/// `psum_scatter`), or null: each rank has a part of the sum.
ExchangeOp findSumOverRanks(Value value);

/// The largest of each element over the groups of ranks, by one exchange of
/// floats that are not negative.
Value reduceMaxOverGroups(OpBuilder &builder, Value value,
                          DenseIntElementsAttr ranks, StringAttr label,
                          StringRef reason);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_RANKGROUPS_H
