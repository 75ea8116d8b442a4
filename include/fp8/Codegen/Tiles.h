//===- Tiles.h - Tiles of kernels -------------------------------*- C++ -*-===//

#ifndef FP8_CODEGEN_TILES_H
#define FP8_CODEGEN_TILES_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/ContractionDims.h"

namespace mlir::fp8 {

/// Returns the tile of a kernel that one task of a CPU computes.
SmallVector<int64_t> cpuTileOf(KernelOp kernel);

/// The most numbers of keys for which a tile of a causal attention gets code of
/// its own. With n of them, (n + 1) / 2n of the products are computed.
constexpr int64_t kMostKeyCountsOfCPU = 8, kMostKeyCountsOfGPU = 4;

/// Returns these numbers, `most` at the most; empty if there is only one.
SmallVector<int64_t> keyCountsOf(KernelOp kernel, int64_t most);

/// Returns the first contraction of a kernel, which precedes all other ops.
linalg::GenericOp contractionOf(KernelOp kernel);

/// Returns the largest divisor of `extent` that is at most `limit`, if it is
/// more than half of `limit`; otherwise `limit` (the last tile is then
/// partial).
int64_t tileSize(int64_t extent, int64_t limit);

/// Returns the number of tiles of a domain. The last one of each loop may be
/// smaller.
int64_t countTiles(ArrayRef<int64_t> domain, ArrayRef<int64_t> tile);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_TILES_H
