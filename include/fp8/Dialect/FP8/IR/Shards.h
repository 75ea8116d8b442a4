//===- Shards.h - Attributes of state that ranks own ------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_SHARDS_H
#define FP8_DIALECT_FP8_IR_SHARDS_H

#include "llvm/ADT/StringRef.h"

namespace mlir::fp8 {

/// On state in a shard (FP8Dialect::kShardAttrName): the number of slices along
/// its leading dimension, each with an owner; 1 if the attribute is missing. On
/// a kernel: the number of parts along the leading dimension of its domain into
/// which its tasks divide.
inline constexpr llvm::StringLiteral kSlicesAttrName = "fp8.slices";

/// On a stack of layers whose shard has one owner: the reason.
inline constexpr llvm::StringLiteral kWholeReasonAttrName = "fp8.whole_reason";

} // namespace mlir::fp8

#endif // FP8_DIALECT_FP8_IR_SHARDS_H
