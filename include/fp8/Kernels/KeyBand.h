//===- KeyBand.h - Keys that a mask of positions shows ----------*- C++ -*-===//

#ifndef FP8_KERNELS_KEYBAND_H
#define FP8_KERNELS_KEYBAND_H

#include "fp8/Kernels/Structure.h"

#include <optional>

namespace mlir::fp8 {

/// In a kernel with the softmax of an attention whose mask is causal or has a
/// sliding window, query i ignores every key after i + `last`, and every key
/// before i + `first` if there is a window, forward and backward. The masked
/// scores are a constant so small that the exponential of their distance to the
/// row's maximum is 0, and every term that is summed over these keys is a
/// multiple of that zero. The maximum may be a value of the row that another
/// kernel has computed.
///
/// Ops may skip these keys. This also skips the NaN that such a zero times an
/// infinity or a NaN would add.
struct KeyBand {
  /// The domain loop over queries.
  unsigned queryLoop = 0;
  /// The domain loop over keys, if the domain divides them. One of the two
  /// loops is then the last one, which runs in order.
  std::optional<unsigned> keyLoop;
  int64_t last = 0;
  std::optional<int64_t> first;
  int64_t numKeys = 0;
  /// The loop over keys of each op that has both queries and keys.
  DenseMap<Operation *, unsigned> keyLoops;
  /// The dimension of keys of each local buffer.
  DenseMap<Value, unsigned> keyDims;
  /// Operands that hold a value of each row, its maximum or the logarithm of
  /// its sum of exponentials. Where one is not above `kLeastOfRow`, the row may
  /// have no visible key, since padding or a bias hides more than the band;
  /// then all keys count. Empty if every row has a visible key.
  SmallVector<OpOperand *> rowsToCheck;

  /// Which rows the caller can check.
  enum class Checks {
    /// Those of kernels whose tasks have whole rows: the task begins again with
    /// all keys if the values that it has computed ask for that.
    WholeRows,
    /// Those of kernels whose domain divides the keys: another kernel has
    /// computed the values, so they are known before the first block.
    DividedRows,
  };
  static constexpr double kLeastOfRow = -5e8;

  /// Finds the hidden keys of `kernel`, which works on buffers. Proves them by
  /// data flow through the bodies of its structured ops; returns nullopt if it
  /// cannot.
  static std::optional<KeyBand> find(Block &kernel, Checks checks);
};

} // namespace mlir::fp8

#endif // FP8_KERNELS_KEYBAND_H
