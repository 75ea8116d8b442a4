//===- Shards.h - Attributes of state that ranks own ------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_SHARDS_H
#define FP8_DIALECT_FP8_IR_SHARDS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fp8 {

/// On state in a shard (FP8Dialect::kShardAttrName): how many slices along its
/// leading dimension have an owner each; one where it is missing. On a kernel:
/// into how many parts along its leading dimension its tasks divide.
inline constexpr llvm::StringLiteral kSlicesAttrName = "fp8.slices";

/// On state that is a stack of layers, but in a shard with one owner: why.
inline constexpr llvm::StringLiteral kWholeReasonAttrName = "fp8.whole_reason";

} // namespace mlir::fp8

#endif // FP8_DIALECT_FP8_IR_SHARDS_H
