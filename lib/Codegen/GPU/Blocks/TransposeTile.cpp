//===- TransposeTile.cpp - Tiles of transposed payloads -------------------===//

#include "TransposeTile.h"

#include "../../Lowering/LowerKernels/Nests.h"

#include "fp8/Codegen/Tiles.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The rows and columns of a payload that a block transposes. They fill sectors
/// of 32 bytes.
static constexpr int64_t kRows = 32, kColumns = 128;
/// The number of rows or columns if a block has them whole.
static constexpr int64_t kWholeRows = 16, kWholeColumns = 32,
                         kFewestWholeColumns = 8;
/// The elements of the widest access to a payload.
static constexpr int64_t kAccess = 16;

/// Returns `tileSize`, in whole accesses if the extent consists of such.
static int64_t tileOfAccesses(int64_t extent, int64_t limit) {
  return extent % kAccess
             ? tileSize(extent, limit)
             : kAccess * tileSize(extent / kAccess,
                                  std::max<int64_t>(limit / kAccess, 1));
}

TransposeTile::TransposeTile(KernelOp kernel, linalg::GenericOp op,
                             int64_t volume, int64_t work)
    : domain(kernel.getDomain()) {
  SmallVector<int64_t> loops = lowering::taskDims(op);
  auto domainLoopOf = [&](unsigned operand) -> size_t {
    AffineExpr last = op.getIndexingMapsArray()[operand].getResults().back();
    return llvm::find(loops, cast<AffineDimExpr>(last).getPosition()) -
           loops.begin();
  };
  column = domainLoopOf(0);
  row = domainLoopOf(1);
  points = work / std::max<int64_t>(volume / llvm::product_of(domain), 1);
}

/// Returns a tile with these rows and columns. If these are few points, it has
/// more of the other loops.
SmallVector<int64_t> TransposeTile::tileOf(int64_t rows,
                                           int64_t columns) const {
  SmallVector<int64_t> tile(domain.size(), 1);
  int64_t left = points;
  for (auto [loop, extent] : {std::pair(row, rows), std::pair(column, columns)})
    if (loop < domain.size()) {
      tile[loop] = tileOfAccesses(domain[loop], extent);
      left /= tile[loop];
    }
  for (size_t i = tile.size(); i-- > 0;)
    if (i != row && i != column) {
      tile[i] = tileSize(domain[i], std::max<int64_t>(left, 1));
      left /= tile[i];
    }
  return tile;
}

SmallVector<int64_t>
TransposeTile::choose(int64_t enough,
                      function_ref<bool(ArrayRef<int64_t>)> fits) const {
  bool hasRow = row < domain.size(), hasColumn = column < domain.size();
  if (hasRow && hasColumn) {
    SmallVector<int64_t> large = tileOf(2 * kRows, kColumns);
    return countTiles(domain, large) >= enough ? large
                                               : tileOf(kRows, kColumns);
  }
  int64_t lines = hasColumn ? kWholeColumns : kWholeRows;
  int64_t fewest = hasColumn ? kFewestWholeColumns : kWholeRows;
  auto isGood = [&](ArrayRef<int64_t> tile) {
    return fits(tile) &&
           (lines <= fewest || countTiles(domain, tile) >= enough);
  };
  while (lines > 1 && !isGood(tileOf(lines, lines)))
    lines /= 2;
  return tileOf(lines, lines);
}
