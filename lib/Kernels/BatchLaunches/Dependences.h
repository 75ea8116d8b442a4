//===- Dependences.h - Order of the ops of a schedule -----------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_BATCHLAUNCHES_DEPENDENCES_H
#define FP8_LIB_KERNELS_BATCHLAUNCHES_DEPENDENCES_H

#include "fp8/Kernels/Accesses.h"

namespace mlir::fp8 {

/// An op of a block that accesses buffers or has regions.
struct ScheduleNode {
  Operation *op;
  SmallVector<MemoryAccess> accesses;
  /// The nodes that must come before and after this one, by index. A node may
  /// be listed several times.
  SmallVector<unsigned> before, after;
};

/// Returns the nodes of `block` in program order, with an edge between any two
/// that access the same buffer unless both only read it, or a path of such
/// edges. Returns nullopt if the effects of an op are not known.
///
/// Different parts of a buffer count as the same buffer. There are no more
/// edges than twice the accesses.
std::optional<std::vector<ScheduleNode>> findDependences(Block &block);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BATCHLAUNCHES_DEPENDENCES_H
