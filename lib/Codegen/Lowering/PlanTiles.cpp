//===- PlanTiles.cpp - Division of kernels into CPU tasks -----------------===//

#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/CausalKeys.h"
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
/// The rows of a contraction that share one packed panel.
constexpr int64_t kContractionRows = 128;
/// The number of tasks of a kernel that is large enough.
constexpr int64_t kMaxTasks = 64;

/// The scratch bytes of a task that stay in the second-level cache.
constexpr int64_t kScratchBytes = 1 << 19;

/// If a point of the domain has at least this many bytes of buffers, it is a
/// row.
constexpr int64_t kRowBytes = 1024;

/// The number of tasks of a copy.
constexpr int64_t kCopyTasks = 16;
/// With fewer tasks, the columns of a dot are divided, too, if there are
/// enough.
constexpr int64_t kFewTasks = 8;
constexpr int64_t kManyColumns = 256;

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

static SmallVector<int64_t> tileOfCopy(KernelOp kernel) {
  SmallVector<int64_t> tile;
  for (int64_t extent : kernel.getDomain())
    tile.push_back(llvm::divideCeil(extent, kCopyTasks));
  return tile;
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
  int64_t points = 1;
  for (int64_t extent : kernel.getDomain())
    points *= extent;
  return std::max<int64_t>(points, 1);
}

static SmallVector<int64_t> tileOfElementwise(KernelOp kernel) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  int64_t work = 0;
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>())
    work += iterationVolume(generic);
  SmallVector<int64_t> tile(domain);
  int64_t tasks = std::clamp<int64_t>(work / kTaskWork, 1, kMaxTasks);
  int64_t bytes = bufferBytes(kernel), points = pointsOf(kernel);
  tasks = std::max<int64_t>(tasks, llvm::divideCeil(bytes, kScratchBytes));
  for (unsigned i = 0; i < tile.size() && tasks > 1; ++i) {
    int64_t limit = llvm::divideCeil(domain[i], tasks);
    // Keep vectors whole if they do not run along rows of buffers.
    if (i + 1 == tile.size() && bytes < kRowBytes * points)
      limit = llvm::alignTo(limit, 64);
    tile[i] = tileSize(domain[i], std::max<int64_t>(limit, 1));
    tasks /= llvm::divideCeil(domain[i], tile[i]);
  }
  return tile;
}

/// Returns the rows of a kernel's first dot that a task computes: they share a
/// packed panel, and the intermediates of an attention stay in the cache.
static int64_t rowsOfTask(KernelOp kernel) {
  auto generics = kernel.getBody().front().getOps<linalg::GenericOp>();
  if (llvm::count_if(generics, isDot) < 2)
    return kContractionRows;
  int64_t bytesOfPoint = bufferBytes(kernel) / pointsOf(kernel);
  return std::clamp<int64_t>(
      llvm::bit_floor<uint64_t>(kScratchBytes / (bytesOfPoint + 1)), 16,
      kContractionRows);
}

/// Returns a tile with one batch, a block of rows that reuses a packed panel,
/// and all columns unless there are few rows.
static SmallVector<int64_t> tileOfContraction(KernelOp kernel,
                                              linalg::GenericOp dot) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  SmallVector<int64_t> tile(domain);
  ContractionDims dims = *inferContractionDims(dot);
  auto loops = dot->getAttrOfType<DenseI64ArrayAttr>(kTaskDimsAttr);
  int64_t rows = rowsOfTask(kernel), tasks = 1;
  auto contains = [&](ArrayRef<unsigned> list, unsigned i) {
    return llvm::is_contained(list, loops[i]);
  };
  for (unsigned i = tile.size(); i-- > 0;) {
    if (i + 1 == tile.size() && kernel.getBlock()) {
      tile[i] = *kernel.getBlock();
      continue;
    }
    if (contains(dims.batch, i)) {
      tile[i] = 1;
    } else if (contains(dims.m, i)) {
      tile[i] = tileSize(domain[i], std::max<int64_t>(rows, 1));
      rows /= tile[i];
    }
    tasks *= llvm::divideCeil(domain[i], tile[i]);
  }
  for (unsigned i = tile.size(); i-- > 0 && tasks < kFewTasks;) {
    bool isInOrder = kernel.getBlock() && i + 1 == tile.size();
    if (contains(dims.n, i) && domain[i] >= kManyColumns && !isInOrder) {
      int64_t parts = llvm::divideCeil(kFewTasks, tasks);
      int64_t limit = llvm::alignTo(llvm::divideCeil(domain[i], parts), 64);
      tile[i] = std::min(domain[i], std::max<int64_t>(limit, 128));
      tasks *= llvm::divideCeil(domain[i], tile[i]);
    }
  }
  return tile;
}

/// Returns the largest size up to `limit` that divides `extent`.
static int64_t divisorUpTo(int64_t extent, int64_t limit) {
  int64_t size = std::clamp<int64_t>(limit, 1, extent);
  while (extent % size != 0)
    --size;
  return size;
}

SmallVector<int64_t> fp8::cpuTileOf(KernelOp kernel) {
  linalg::GenericOp dot = contractionOf(kernel);
  SmallVector<int64_t> tile = kernel.getCopy() ? tileOfCopy(kernel)
                              : dot            ? tileOfContraction(kernel, dot)
                                               : tileOfElementwise(kernel);
  // No tile may span two slices, since slices have different owners.
  auto slices = kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kSlicesAttrName);
  if (slices && !tile.empty())
    tile[0] = divisorUpTo(kernel.getDomain()[0] / slices.getInt(), tile[0]);
  return tile;
}

SmallVector<int64_t> fp8::keyCountsOf(KernelOp kernel, KeyCountLimits limits,
                                      ArrayRef<int64_t> tile) {
  std::optional<CausalKeys> keys = CausalKeys::find(kernel.getBody().front());
  SmallVector<int64_t> counts;
  if (keys && keys->keyLoop)
    return {keys->numKeys};
  if (!keys)
    return counts;
  int64_t queries = tile.empty() ? 1 : tile[keys->queryLoop];
  int64_t step =
      llvm::alignTo(llvm::divideCeil(keys->numKeys, limits.most),
                    llvm::alignTo(std::max<int64_t>(queries, 1), limits.step));
  if (keys->numKeys <= step)
    return counts;
  for (int64_t count = step; count < keys->numKeys; count += step)
    counts.push_back(count);
  counts.push_back(keys->numKeys);
  return counts;
}

namespace {

class PlanTiles : public fp8::impl::PlanTilesBase<PlanTiles> {
public:
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (kernel.isExternal() || kernel.getPlan())
        continue;
      SmallVector<int64_t> tile = cpuTileOf(kernel);
      kernel.setPlanAttr(CPUPlanAttr::get(
          &getContext(), tile, keyCountsOf(kernel, kKeyCountsOfCPU, tile)));
    }
  }
};

} // namespace
