//===- RankGroups.h - Groups of ranks that share a value --------*- C++ -*-===//
//
// In a step in jax.shard_map ranks exchange parts within groups. The exchanges
// of a value tell which ranks share it.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_RANKGROUPS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_RANKGROUPS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

namespace mlir::fp8 {

/// Returns the exchange that begins a sum of `value` over groups of ranks
/// (`psum`, `psum_scatter`), each of which has a part of the sum; else null.
ExchangeOp findSumOverRanks(Value value);

/// Returns the elementwise maximum over the groups of ranks, by one exchange.
/// The elements must be floats that are not negative.
Value reduceMaxOverGroups(OpBuilder &builder, Value value,
                          DenseIntElementsAttr ranks, StringAttr label,
                          StringRef reason);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_QUANTIZE_RANKGROUPS_H
