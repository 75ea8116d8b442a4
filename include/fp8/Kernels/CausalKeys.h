//===- CausalKeys.h - Keys that a causal mask hides -------------*- C++ -*-===//

#ifndef FP8_KERNELS_CAUSALKEYS_H
#define FP8_KERNELS_CAUSALKEYS_H

#include "fp8/Kernels/Structure.h"

#include <optional>

namespace mlir::fp8 {

/// In a kernel with the softmax of a causal attention: query i has no part in
/// keys behind i + `offset`, forward and backward. Their scores are a constant
/// so small that the exponential of their distance to the row's largest score
/// is 0, and everything that is summed over them is a multiple of that.
///
/// Ops need not run over these keys. What a product of such a zero with an
/// infinity or a NaN would add is left out then, too.
struct CausalKeys {
  /// The domain loop of queries.
  unsigned queryLoop = 0;
  int64_t offset = 0;
  int64_t numKeys = 0;
  /// The loops over keys of the ops that have queries and keys.
  DenseMap<Operation *, unsigned> keyLoops;

  /// Proved by data flow through the bodies of structured ops on buffers;
  /// nullopt where it cannot be.
  static std::optional<CausalKeys> find(Block &kernel);
};

} // namespace mlir::fp8

#endif // FP8_KERNELS_CAUSALKEYS_H
