//===- Tiles.h - Tiles of kernels -------------------------------*- C++ -*-===//

#ifndef FP8_CODEGEN_TILES_H
#define FP8_CODEGEN_TILES_H

#include "fp8/Codegen/Contraction.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/KeyBand.h"

namespace mlir::fp8 {

/// Returns the tile of a kernel that one task of a CPU computes. `threads` run
/// the tasks.
SmallVector<int64_t> cpuTileOf(KernelOp kernel, int64_t threads = 1);

/// Returns how many keys a tile of an attention with a causal mask or a window
/// runs over at the most; nullopt if it runs over all of them in any case,
/// since no keys are hidden or they are few.
std::optional<int64_t> mostKeysOf(KernelOp kernel, ArrayRef<int64_t> tile);

/// Tiles that do not run over all keys run over a multiple of this number of
/// keys.
constexpr int64_t kKeyStep = OpenLoop::kMultiple;

/// A tile that begins with another key than the first begins with a multiple of
/// this number, so that vectors of keys are in one line of the cache.
constexpr int64_t kFirstKeyStep = 16;

/// Returns how many keys the queries of a tile of `kernel` see at the most; all
/// keys without a window.
int64_t windowOf(KernelOp kernel, const KeyBand &band, ArrayRef<int64_t> tile);

/// Returns the first contraction of a kernel, which precedes all other ops.
linalg::GenericOp contractionOf(KernelOp kernel);

/// Returns true for a kernel of an attention, whose dots stay in one task or
/// block.
bool isAttention(KernelOp kernel);

/// Returns the largest divisor of `extent` that is at most `limit`, if it is
/// more than half of `limit`; otherwise `limit` (the last tile is then
/// partial).
int64_t tileSize(int64_t extent, int64_t limit);

/// Returns the number of tiles of a domain. The last one of each loop may be
/// smaller.
int64_t countTiles(ArrayRef<int64_t> domain, ArrayRef<int64_t> tile);

} // namespace mlir::fp8

#endif // FP8_CODEGEN_TILES_H
