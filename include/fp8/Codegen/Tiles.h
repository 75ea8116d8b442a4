//===- Tiles.h - How kernels are divided ------------------------*- C++ -*-===//

#ifndef FP8_CODEGEN_TILES_H
#define FP8_CODEGEN_TILES_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/ContractionDims.h"

namespace mlir::fp8 {

/// The tile of a kernel that one task of a CPU computes.
SmallVector<int64_t> cpuTileOf(KernelOp kernel);

/// The numbers of keys that the code of a tile of a causal attention is to
/// exist for; none if there is one alone.
SmallVector<int64_t> keyCountsOf(KernelOp kernel);

/// The first contraction of a kernel, which all its other ops follow.
linalg::GenericOp contractionOf(KernelOp kernel);

/// The largest divisor of `extent` that is at most `limit`, if it is not much
/// smaller; otherwise `limit` itself (the last tile is then partial).
int64_t tileSize(int64_t extent, int64_t limit);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_TILES_H
