//===- PlanTiles.cpp - Division of kernels into CPU tasks -----------------===//

#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/Structure.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_PLANTILES
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The iterations that make a task of an elementwise kernel worth starting.
constexpr int64_t kTaskWork = 1 << 15;
/// The number of tasks of a kernel that is large enough.
constexpr int64_t kMaxTasks = 64;

/// The scratch bytes of a task that stay in the second-level cache.
constexpr int64_t kScratchBytes = 1 << 19;

/// If a point of the domain has at least this many bytes of buffers, it is a
/// row.
constexpr int64_t kRowBytes = 1024;

/// The fewest tasks that columns of `kColumnLines` lines may leave.
constexpr int64_t kColumnTasks = 8;

/// The number of tasks of a copy.
constexpr int64_t kCopyTasks = 16;

/// How a dot is divided into tasks of so many rows. With fewer tasks than
/// `tasks`, the columns are divided, too, into parts of at least `columns`.
struct DotDivision {
  int64_t rows, tasks, columns;
};

/// What the division of a dot depends on.
struct DotCosts {
  /// The division for few threads. The rows share packed panels; they may be
  /// fewer.
  DotDivision coarse;
  /// A task packs the columns that its rows share, which takes about as long as
  /// so many more rows, and the other way around.
  double rowsOfPacking, columnsOfPacking;
};
constexpr DotCosts kVectorCosts = {{128, 8, 128}, 12, 12};
/// Tile registers multiply eight times as fast as vectors pack.
constexpr DotCosts kTileCosts = {{512, 8, 128}, 96, 64};

/// A task has more rows than with vectors only if its local buffers have at
/// most so many bytes.
constexpr int64_t kTaskBytes = 1 << 20;

/// The smallest parts that are worth their packing.
constexpr int64_t kFewestRows = 16, kFewestColumns = 32;

} // namespace

int64_t fp8::countTiles(ArrayRef<int64_t> domain, ArrayRef<int64_t> tile) {
  int64_t tiles = 1;
  for (auto [extent, own] : llvm::zip_equal(domain, tile))
    tiles *= llvm::divideCeil(extent, own);
  return tiles;
}

int64_t fp8::tileSize(int64_t extent, int64_t limit) {
  if (limit >= extent)
    return extent;
  for (int64_t size = limit; size * 2 > limit; --size)
    if (extent % size == 0)
      return size;
  return limit;
}

linalg::GenericOp fp8::contractionOf(KernelOp kernel) {
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>())
    if (isDot(generic))
      return generic;
  return nullptr;
}

bool fp8::isAttention(KernelOp kernel) {
  auto generics = kernel.getBody().front().getOps<linalg::GenericOp>();
  return kernel.getBlock() || llvm::count_if(generics, isDot) > 1;
}

static SmallVector<int64_t> tileOfCopy(KernelOp kernel) {
  SmallVector<int64_t> tile;
  for (int64_t extent : kernel.getDomain())
    tile.push_back(llvm::divideCeil(extent, kCopyTasks));
  return tile;
}

/// Returns the nest of a scatter that tasks divide; null for other kernels.
static scf::ForOp scatterOf(KernelOp kernel) {
  for (auto nest : kernel.getBody().front().getOps<scf::ForOp>())
    if (auto loops = nest->getAttrOfType<DenseI64ArrayAttr>(
            FP8Dialect::kTaskDimsAttrName);
        loops && !loops.empty())
      return nest;
  return nullptr;
}

/// Divides a scatter. If its outermost loop is divided, tasks share nothing.
/// Else each of them goes through all indices, so there is one for a thread,
/// and columns are whole lines of the cache.
static SmallVector<int64_t> tileOfScatter(KernelOp kernel, scf::ForOp nest,
                                          int64_t threads) {
  int64_t extent = kernel.getDomain()[0], bytes = 0;
  for (Type type : kernel.getArgumentTypes())
    if (auto buffer = dyn_cast<MemRefType>(type))
      bytes += byteSize(buffer);
  int64_t tasks = std::clamp<int64_t>(bytes / kTaskWork, 1, kMaxTasks);
  if (nest->getAttrOfType<DenseI64ArrayAttr>(
          FP8Dialect::kTaskDimsAttrName)[0] == 0)
    return {tileSize(extent, llvm::divideCeil(extent, tasks))};
  int64_t columns = llvm::divideCeil(extent, std::min(tasks, threads));
  return {std::min<int64_t>(extent, llvm::alignTo(columns, kLineElements))};
}

/// Returns the bytes of a kernel's local buffers over all tasks.
static int64_t bufferBytes(KernelOp kernel) {
  int64_t bytes = 0;
  for (auto alloc : kernel.getBody().front().getOps<memref::AllocOp>())
    bytes += byteSize(alloc.getType());
  return bytes;
}

/// Returns the number of points of a kernel's domain, at least 1.
static int64_t pointsOf(KernelOp kernel) {
  return std::max<int64_t>(llvm::product_of(kernel.getDomain()), 1);
}

/// Returns the iterations of all ops of a kernel.
static int64_t workOf(KernelOp kernel) {
  int64_t work = 0;
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>())
    work += iterationVolume(generic);
  return work;
}

/// Returns how many elements of the value that an op writes lie next to each
/// other at one point of the domain, if the points along its last loop are
/// columns: a dimension that is no loop of the domain is outside of it.
static std::optional<int64_t> columnOf(linalg::GenericOp op) {
  auto loops =
      op->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  OpOperand &output = op.getDpsInitsMutable()[0];
  AffineMap map = op.getMatchingIndexingMap(&output);
  std::optional<unsigned> place;
  if (loops && !loops.empty())
    place = plainPosition(map, loops.asArrayRef().back());
  if (!place)
    return std::nullopt;
  ArrayRef<AffineExpr> outside = map.getResults().take_front(*place);
  if (llvm::all_of(outside, [&](AffineExpr index) {
        auto dim = dyn_cast<AffineDimExpr>(index);
        return dim && llvm::is_contained(loops.asArrayRef(), dim.getPosition());
      }))
    return std::nullopt;
  auto type = cast<MemRefType>(output.get().getType());
  return llvm::product_of(type.getShape().drop_front(*place + 1));
}

/// Returns the fewest points along the last loop of the domain that leave lines
/// of the cache whole, and enough tasks. The other loops are tiled already.
static int64_t fewestColumns(KernelOp kernel, ArrayRef<int64_t> tile) {
  std::optional<int64_t> elements;
  int64_t largest = 0;
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    int64_t size =
        cast<MemRefType>(generic.getOutputs()[0].getType()).getNumElements();
    if (size > largest) {
      largest = size;
      elements = columnOf(generic);
    }
  }
  if (!elements)
    return 1;
  ArrayRef<int64_t> domain = kernel.getDomain();
  int64_t tasks =
      domain.back() * countTiles(domain.drop_back(), tile.drop_back());
  return std::min(llvm::divideCeil(kColumnLines * kLineElements, *elements),
                  llvm::divideCeil(tasks, kColumnTasks));
}

static SmallVector<int64_t> tileOfElementwise(KernelOp kernel) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  SmallVector<int64_t> tile(domain);
  int64_t tasks = std::clamp<int64_t>(workOf(kernel) / kTaskWork, 1, kMaxTasks);
  int64_t bytes = bufferBytes(kernel), points = pointsOf(kernel);
  tasks = std::max<int64_t>(tasks, llvm::divideCeil(bytes, kScratchBytes));
  for (unsigned i = 0; i < tile.size() && tasks > 1; ++i) {
    int64_t limit = llvm::divideCeil(domain[i], tasks);
    // Keep vectors whole if they do not run along rows of buffers.
    bool isLast = i + 1 == tile.size();
    if (isLast && bytes < kRowBytes * points)
      limit = llvm::alignTo(limit, 64);
    limit = std::max<int64_t>(limit, isLast ? fewestColumns(kernel, tile) : 1);
    tile[i] = tileSize(domain[i], limit);
    tasks /= llvm::divideCeil(domain[i], tile[i]);
  }
  return tile;
}

/// Returns the points of an attention's domain that a task computes: their
/// intermediates stay in the cache, and few of the keys that some of them see
/// are hidden from the others.
static int64_t pointsOfAttention(KernelOp kernel) {
  constexpr int64_t kFewest = 16, kMost = 64;
  int64_t bytesOfPoint = bufferBytes(kernel) / pointsOf(kernel);
  return std::clamp<int64_t>(
      llvm::bit_floor<uint64_t>(kScratchBytes / (bytesOfPoint + 1)), kFewest,
      kMost);
}

namespace {

/// Divides a kernel with a dot among threads.
class DotTiles {
public:
  DotTiles(KernelOp kernel, linalg::GenericOp dot)
      : costs(usesTileRegisters(dot, TargetInfo::around(kernel))
                  ? kTileCosts
                  : kVectorCosts),
        bytesOfPoint(bufferBytes(kernel) / pointsOf(kernel)),
        block(kernel.getBlock()), domain(kernel.getDomain()),
        dims(*inferContractionDims(dot)),
        loops(dot->getAttrOfType<DenseI64ArrayAttr>(
            FP8Dialect::kTaskDimsAttrName)),
        extents(dot.getStaticLoopRanges()) {}

  /// Returns a tile with one batch, a block of rows that reuses a packed panel,
  /// and all columns unless there are few tasks.
  SmallVector<int64_t> tileOf(DotDivision division) const;
  /// Returns the tile with which `threads` threads are the first to finish, of
  /// those whose tasks are no larger than in the coarse division.
  SmallVector<int64_t> tileFor(int64_t threads) const;
  /// Returns the rows of one point of the domain: those of loops that are not
  /// in the domain are part of every task.
  int64_t rowsOfPoint() const {
    return extentOf(dims.m, SmallVector<int64_t>(domain.size(), 1));
  }

private:
  /// Returns true if the last loop of the domain is not divided.
  bool isInOrder(unsigned loop) const {
    return block && loop + 1 == domain.size();
  }
  bool isOneOf(ArrayRef<unsigned> list, unsigned loop) const {
    return llvm::is_contained(list, loops[loop]);
  }
  int64_t extentOf(ArrayRef<unsigned> list, ArrayRef<int64_t> tile) const;
  double timeOf(ArrayRef<int64_t> tile, int64_t threads) const;

  DotCosts costs;
  int64_t bytesOfPoint;
  std::optional<int64_t> block;
  ArrayRef<int64_t> domain;
  ContractionDims dims;
  ArrayRef<int64_t> loops;
  SmallVector<int64_t> extents;
};

} // namespace

SmallVector<int64_t> DotTiles::tileOf(DotDivision division) const {
  SmallVector<int64_t> tile(domain);
  int64_t rows = division.rows / rowsOfPoint(), tasks = 1;
  for (unsigned i = tile.size(); i-- > 0;) {
    if (isInOrder(i)) {
      tile[i] = *block;
      continue;
    }
    if (isOneOf(dims.batch, i)) {
      tile[i] = 1;
    } else if (isOneOf(dims.m, i)) {
      tile[i] = tileSize(domain[i], std::max<int64_t>(rows, 1));
      rows /= tile[i];
    }
    tasks *= llvm::divideCeil(domain[i], tile[i]);
  }
  for (unsigned i = tile.size(); i-- > 0 && tasks < division.tasks;) {
    if (!isOneOf(dims.n, i) || domain[i] < 2 * division.columns || isInOrder(i))
      continue;
    int64_t parts = llvm::divideCeil(division.tasks, tasks);
    int64_t limit =
        llvm::alignTo(llvm::divideCeil(domain[i], parts), division.columns / 2);
    tile[i] = std::min(domain[i], std::max(limit, division.columns));
    tasks *= llvm::divideCeil(domain[i], tile[i]);
  }
  return tile;
}

/// Returns how many rows or columns of the dot, whose loops are `list`, a task
/// computes.
int64_t DotTiles::extentOf(ArrayRef<unsigned> list,
                           ArrayRef<int64_t> tile) const {
  int64_t extent = 1;
  for (unsigned dim : list) {
    const int64_t *loop = llvm::find(loops, static_cast<int64_t>(dim));
    extent *= loop == loops.end() ? extents[dim] : tile[loop - loops.begin()];
  }
  return extent;
}

/// Estimates when the last thread has finished, in products.
double DotTiles::timeOf(ArrayRef<int64_t> tile, int64_t threads) const {
  int64_t rounds = llvm::divideCeil(countTiles(domain, tile), threads);
  return rounds * (extentOf(dims.m, tile) + costs.rowsOfPacking) *
         (extentOf(dims.n, tile) + costs.columnsOfPacking);
}

SmallVector<int64_t> DotTiles::tileFor(int64_t threads) const {
  DotDivision coarse = costs.coarse;
  auto isTooLarge = [&](ArrayRef<int64_t> tile) {
    return bytesOfPoint * llvm::product_of(tile) > kTaskBytes;
  };
  while (coarse.rows > kVectorCosts.coarse.rows && isTooLarge(tileOf(coarse)))
    coarse.rows /= 2;
  SmallVector<int64_t> best = tileOf(coarse);
  for (int64_t rows = coarse.rows; rows >= kFewestRows; rows /= 2)
    for (int64_t columns = coarse.columns; columns >= kFewestColumns;
         columns /= 2)
      for (int64_t each : {1, 2, 4}) {
        int64_t tasks = std::max(coarse.tasks, each * threads);
        SmallVector<int64_t> tile = tileOf({rows, tasks, columns});
        // What is hardly faster by this estimate is not worth smaller tasks.
        if (timeOf(tile, threads) < 0.95 * timeOf(best, threads))
          best = tile;
      }
  return best;
}

static SmallVector<int64_t>
tileOfContraction(KernelOp kernel, linalg::GenericOp dot, int64_t threads) {
  DotTiles tiles(kernel, dot);
  if (!isAttention(kernel))
    return tiles.tileFor(threads);
  // The tasks of an attention are many, and their rows share more than panels.
  DotDivision division = kVectorCosts.coarse;
  division.rows = pointsOfAttention(kernel) * tiles.rowsOfPoint();
  return tiles.tileOf(division);
}

/// Returns the largest size up to `limit` that divides `extent`.
static int64_t divisorUpTo(int64_t extent, int64_t limit) {
  int64_t size = std::clamp<int64_t>(limit, 1, extent);
  while (extent % size != 0)
    --size;
  return size;
}

/// Returns whether most of a kernel's work is that of its dot: else a tile of
/// the dot's size may hold more of the other values than fits into the caches.
static bool isMostlyDot(KernelOp kernel, linalg::GenericOp dot) {
  return dot &&
         (isAttention(kernel) || workOf(kernel) <= 2 * iterationVolume(dot));
}

SmallVector<int64_t> fp8::cpuTileOf(KernelOp kernel, int64_t threads) {
  if (scf::ForOp scatter = scatterOf(kernel))
    return tileOfScatter(kernel, scatter, threads);
  linalg::GenericOp dot = contractionOf(kernel);
  SmallVector<int64_t> tile = kernel.getCopy() ? tileOfCopy(kernel)
                              : isMostlyDot(kernel, dot)
                                  ? tileOfContraction(kernel, dot, threads)
                                  : tileOfElementwise(kernel);
  // No tile may span two slices, since slices have different owners.
  auto slices = kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kSlicesAttrName);
  if (slices && !tile.empty())
    tile[0] = divisorUpTo(kernel.getDomain()[0] / slices.getInt(), tile[0]);
  return tile;
}

int64_t fp8::windowOf(KernelOp kernel, const KeyBand &band,
                      ArrayRef<int64_t> tile) {
  if (!band.first)
    return band.numKeys;
  bool isInOrder =
      kernel.getBlock() && band.queryLoop + 1 == kernel.getDomain().size();
  int64_t queries = isInOrder ? *kernel.getBlock() : tile[band.queryLoop];
  int64_t seen = queries + band.last - *band.first;
  return std::min<int64_t>(band.numKeys,
                           llvm::alignTo(seen + kFirstKeyStep - 1, kKeyStep));
}

std::optional<int64_t> fp8::mostKeysOf(KernelOp kernel,
                                       ArrayRef<int64_t> tile) {
  std::optional<KeyBand> band =
      KeyBand::find(kernel.getBody().front(), KeyBand::Checks::WholeRows);
  if (!band || band->keyLoop)
    return band ? std::optional(band->numKeys) : std::nullopt;
  int64_t most = windowOf(kernel, *band, tile);
  int64_t fewest = std::max(tile[band->queryLoop], kKeyStep);
  if (most == band->numKeys && most <= fewest)
    return std::nullopt;
  return most;
}

namespace {

class PlanTiles : public fp8::impl::PlanTilesBase<PlanTiles> {
public:
  using PlanTilesBase::PlanTilesBase;

  void runOnOperation() override {
    if (threads == 0) {
      getOperation().emitError("expected threads > 0 but got 0");
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (kernel.isExternal() || kernel.getPlan())
        continue;
      if (failed(verifyBody(kernel)))
        return signalPassFailure();
      SmallVector<int64_t> tile = cpuTileOf(kernel, threads);
      kernel.setPlanAttr(
          CPUPlanAttr::get(&getContext(), tile, mostKeysOf(kernel, tile)));
    }
  }
};

} // namespace
