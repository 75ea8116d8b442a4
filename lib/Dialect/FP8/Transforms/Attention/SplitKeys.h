//===- SplitKeys.h - Scores beside those of no key --------------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SPLITKEYS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SPLITKEYS_H

#include "mlir/IR/Block.h"

namespace mlir::fp8 {

/// Computes scores without the sinks that a row has beside them: a softmax over
/// a concatenation becomes one over scores and one element for each row, and so
/// does its gradient. Only sums over the keys change, in their order. Returns
/// the number of ops that were split.
unsigned splitKeys(Block &block);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SPLITKEYS_H
