//===- SeparateHeads.h - Dots of heads that share a key ---------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SEPARATEHEADS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SEPARATEHEADS_H

#include "Scores.h"

namespace mlir::fp8 {

/// Turns a dot of scores with a key that all heads share, where other dots have
/// keys of each head, into one of each head: the key is broadcast to heads, and
/// its gradient summed over them. Returns false if `scores` have no such
/// obstacle.
bool separateHeads(const Scores &scores);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_ATTENTION_SEPARATEHEADS_H
