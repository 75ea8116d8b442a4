//===- KeyCounts.h - Numbers of keys with code of their own -----*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_GPU_ATTENTION_KEYCOUNTS_H
#define FP8_LIB_CODEGEN_GPU_ATTENTION_KEYCOUNTS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/KeyBand.h"

namespace mlir::fp8 {

/// The numbers of keys for which a tile of an attention with a causal mask gets
/// code of its own, in ascending order.
struct KeyCounts {
  std::optional<KeyBand> band;
  /// Empty if there is only one.
  SmallVector<int64_t> counts;

  static KeyCounts of(KernelOp kernel);
};

} // namespace mlir::fp8

#endif // FP8_LIB_CODEGEN_GPU_ATTENTION_KEYCOUNTS_H
