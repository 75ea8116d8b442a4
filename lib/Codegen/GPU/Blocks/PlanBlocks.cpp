//===- PlanBlocks.cpp - Division of kernels into GPU blocks ---------------===//

#include "../Attention/KeyCounts.h"
#include "../Attention/SimplifyAttention.h"
#include "../Dots/DotPlan.h"
#include "Alignment.h"
#include "BlockLowering.h"
#include "StageTransposes.h"
#include "TransposeTile.h"

#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Codegen/Tiles.h"
#include "fp8/Kernels/Structure.h"

#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_PLANBLOCKS
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

namespace {

/// The elements that a block of an elementwise kernel computes.
constexpr int64_t kBlockWork = 2048;
/// The rows and columns of a dot that a block computes.
constexpr int64_t kDotRows = 64, kDotFewestRows = 16, kDotColumns = 128;
/// The stages for which a tile of kWideColumns must leave room.
constexpr int64_t kWideStages = 3;
/// The keys of a block that sums over queries, if keys are divided.
constexpr int64_t kAttentionKeys = 64;
/// The queries per block of an attention whose scores are in global memory.
constexpr int64_t kScratchRows = 32;
/// The number of blocks that keeps all multiprocessors of a large card busy.
constexpr int64_t kEnoughBlocks = 256;
constexpr unsigned kThreads = 128, kManyThreads = 256, kMostThreads = 1024;
/// The most threads of a group that shares the sum of a row.
constexpr int64_t kMostGroup = 16;
/// The threads of a block that sums columns: at least 32 for each column, so
/// that enough loads of two bytes are under way.
constexpr unsigned kColumnThreads = 1024;
/// The elements that a thread computes if its block transposes a payload, and
/// the most threads of such a block.
constexpr int64_t kThreadWork = 32, kMostTransposing = 512;
/// With more elements, a kernel of one block gets kManyThreads.
constexpr int64_t kManyElements = 1 << 14;

/// Returns the iterations of the largest op of a kernel.
int64_t largestVolume(KernelOp kernel) {
  int64_t volume = 1;
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>())
    volume = std::max(volume, iterationVolume(generic));
  if (kernel.getCopy())
    volume = cast<MemRefType>(kernel.getArgumentTypes()[0]).getNumElements();
  return volume;
}

/// Returns a tile with the iterations of one block's work, but at least
/// `least` elements, filled from the innermost loop outwards.
SmallVector<int64_t> tileOfElementwise(KernelOp kernel, int64_t least = 1) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  int64_t iterations = llvm::product_of(domain);
  int64_t each = std::max<int64_t>(largestVolume(kernel) / iterations, 1);
  int64_t left = std::max<int64_t>(kBlockWork / each, least);
  SmallVector<int64_t> tile(domain);
  for (unsigned i = tile.size(); i-- > 0;) {
    tile[i] = tileSize(domain[i], left);
    left = std::max<int64_t>(left / tile[i], 1);
  }
  return tile;
}

/// Returns a transpose of a kernel; null if there is none.
linalg::GenericOp transposeOf(KernelOp kernel) {
  for (auto op : kernel.getBody().front().getOps<linalg::GenericOp>())
    if (isTranspose(op))
      return op;
  return nullptr;
}

/// Returns true for the result of a dot that only the elementwise op behind it
/// reads, from registers.
bool hasOnlySums(Value buffer) {
  linalg::GenericOp dot, reader;
  for (OpOperand &use : buffer.getUses()) {
    auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!op)
      continue;
    linalg::GenericOp &known = op.isDpsInit(&use) ? dot : reader;
    if (std::exchange(known, op))
      return false;
    if (op == reader &&
        !(allParallel(op) && op.getMatchingIndexingMap(&use).isPermutation()))
      return false;
  }
  if (!dot || !reader || !isDot(dot))
    return false;
  Operation *next = dot->getNextNode();
  while (isa_and_nonnull<memref::AllocOp, linalg::FillOp>(next))
    next = next->getNextNode();
  return next == reader;
}

/// Returns the bytes of the intermediates of a block in memory.
int64_t localBytes(KernelOp kernel, ArrayRef<int64_t> tile) {
  int64_t bytes = 0;
  llvm::SmallPtrSet<Operation *, 1> absorbed;
  lowering::TileParts parts = lowering::collectNests(
      kernel.getBody().front(), kernel.getDomain(), tile, absorbed);
  for (auto alloc : kernel.getBody().front().getOps<memref::AllocOp>()) {
    MemRefType type = alloc.getType();
    if (hasOnlySums(alloc) || staysInNest(alloc, parts))
      continue;
    SmallVector<int64_t> shape(type.getShape());
    for (Operation *user : alloc->getUsers())
      if (auto generic = dyn_cast<linalg::GenericOp>(user))
        for (OpOperand &init : generic.getDpsInitsMutable())
          if (init.get() == alloc.getResult())
            if (auto dims = generic->getAttrOfType<DenseI64ArrayAttr>(
                    FP8Dialect::kTaskDimsAttrName))
              for (auto [i, dim] : llvm::enumerate(dims.asArrayRef()))
                if (auto position = plainPosition(
                        generic.getMatchingIndexingMap(&init), dim))
                  shape[*position] = tile[i];
    bytes += llvm::product_of(shape) *
             llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

/// Returns a tile with one batch and a block of rows and of columns. Tiles are
/// even if a divisor of the extent is near, unless `isWhole`: then all but the
/// last have as many rows and columns as a block may have.
SmallVector<int64_t> tileOfDot(KernelOp kernel, linalg::GenericOp dot,
                               int64_t maxRows,
                               int64_t maxColumns = kDotColumns,
                               bool isWhole = false) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  SmallVector<int64_t> tile(domain);
  ContractionDims dims = *inferContractionDims(dot);
  auto loops =
      dot->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  int64_t rows = maxRows, columns = maxColumns;
  for (unsigned i = tile.size(); i-- > 0;) {
    auto isOf = [&](ArrayRef<unsigned> list) {
      return llvm::is_contained(list, loops[i]);
    };
    if (isOf(dims.batch)) {
      tile[i] = 1;
      continue;
    }
    int64_t &left = isOf(dims.m) ? rows : columns;
    int64_t limit = std::max<int64_t>(left, 1);
    tile[i] = isWhole ? std::min(domain[i], limit) : tileSize(domain[i], limit);
    left /= tile[i];
  }
  return tile;
}

/// Returns the rows of a dot in a block.
int64_t rowsOf(KernelOp kernel, linalg::GenericOp dot, ArrayRef<int64_t> tile) {
  ContractionDims dims = *inferContractionDims(dot);
  auto loops =
      dot->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  int64_t rows = 1;
  for (auto [i, extent] : llvm::enumerate(tile))
    if (llvm::is_contained(dims.m, loops[i]))
      rows *= extent;
  return rows;
}

/// Returns the rows of the last tile, if it is smaller than others.
int64_t lastRowsOf(KernelOp kernel, linalg::GenericOp dot,
                   ArrayRef<int64_t> tile) {
  SmallVector<int64_t> last(tile);
  for (auto [own, extent] : llvm::zip(last, kernel.getDomain()))
    if (extent % own != 0)
      own = extent % own;
  return rowsOf(kernel, dot, last);
}

/// Returns a tile with one batch and a block of queries. The other loops are
/// whole, so that a row of scores is in one block, except for keys in the
/// domain of a kernel that runs over queries in order.
SmallVector<int64_t> tileOfAttention(KernelOp kernel, int64_t maxRows) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  SmallVector<int64_t> tile(domain);
  linalg::GenericOp dot = contractionOf(kernel);
  ContractionDims dims = *inferContractionDims(dot);
  auto loops =
      dot->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  int64_t queries = maxRows, keys = kAttentionKeys;
  for (unsigned i = tile.size(); i-- > 0;) {
    bool isInOrder = kernel.getBlock() && i + 1 == tile.size();
    if (llvm::is_contained(dims.batch, loops[i]) && !isInOrder) {
      tile[i] = 1;
    } else if (llvm::is_contained(dims.m, loops[i]) || kernel.getBlock()) {
      int64_t &left = kernel.getBlock() && !isInOrder ? keys : queries;
      tile[i] = tileSize(domain[i], std::max<int64_t>(left, 1));
      left /= tile[i];
    }
  }
  return tile;
}

/// Returns a tile for dots that read their operands in place. It has at most
/// `stepped` iterations of the last loop, at most `kept` of the longest other
/// loop that is no batch (such as the queries of one head of a group), and one
/// of each further loop: the rows of a tile follow one another in memory.
SmallVector<int64_t> tileInPlace(KernelOp kernel, int64_t kept,
                                 int64_t stepped) {
  ArrayRef<int64_t> domain = kernel.getDomain();
  linalg::GenericOp dot = contractionOf(kernel);
  ContractionDims dims = *inferContractionDims(dot);
  auto loops =
      dot->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  SmallVector<int64_t> tile(domain.size(), 1);
  std::optional<unsigned> longest;
  for (unsigned i = 0; i + 1 < domain.size(); ++i)
    if (!llvm::is_contained(dims.batch, loops[i]) &&
        (!longest || domain[i] > domain[*longest]))
      longest = i;
  tile.back() = std::min(domain.back(), stepped);
  if (longest)
    tile[*longest] = std::min(domain[*longest], kept);
  return tile;
}

/// Exchanges the operands of a dot, and so the rows and columns of its tiles.
void swapOperands(linalg::GenericOp dot) {
  Value lhs = dot->getOperand(0), rhs = dot->getOperand(1);
  dot->setOperand(0, rhs);
  dot->setOperand(1, lhs);
  SmallVector<AffineMap> maps = dot.getIndexingMapsArray();
  std::swap(maps[0], maps[1]);
  dot.setIndexingMapsAttr(Builder(dot).getAffineMapArrayAttr(maps));
  Block &body = *dot.getBody();
  BlockArgument left = body.getArgument(0), right = body.getArgument(1);
  SmallVector<OpOperand *> ofLeft, ofRight;
  for (OpOperand &use : left.getUses())
    ofLeft.push_back(&use);
  for (OpOperand &use : right.getUses())
    ofRight.push_back(&use);
  for (OpOperand *use : ofLeft)
    use->set(right);
  for (OpOperand *use : ofRight)
    use->set(left);
  Type type = left.getType();
  left.setType(right.getType());
  right.setType(type);
}

/// Exchanges the operands of the dots of an attention for which `isBetter` with
/// the rows and columns of their tiles exchanged.
void swapDots(
    KernelOp kernel, ArrayRef<int64_t> tile,
    function_ref<bool(linalg::GenericOp, int64_t, int64_t)> isBetter) {
  for (auto dot : kernel.getBody().getOps<linalg::GenericOp>()) {
    if (!isDot(dot) || dot.getNumDpsInputs() != 2 || !multipliesMatrices(dot))
      continue;
    ContractionDims dims = *inferContractionDims(dot);
    SmallVector<int64_t> extents = lowering::extentsIn(tile, dot);
    if (isBetter(dot, iterationsOf(dims.m, extents),
                 iterationsOf(dims.n, extents)))
      swapOperands(dot);
  }
}

/// Exchanges the operands of the dots for which `wgmma` then needs fewer tiles:
/// a tile has 64 rows, but up to twice as many columns.
void swapLongRows(KernelOp kernel, ArrayRef<int64_t> tile) {
  auto countOf = [](int64_t rows, int64_t columns) {
    return llvm::divideCeil(rows, kWgmmaRows) *
           llvm::divideCeil(columns, kDotColumns);
  };
  swapDots(kernel, tile, [&](linalg::GenericOp, int64_t rows, int64_t columns) {
    return columns >= kWgmmaRows &&
           countOf(columns, rows) < countOf(rows, columns);
  });
}

/// Returns true if the domain of an attention divides keys: its blocks run over
/// the queries in order, and have no rows.
bool dividesKeys(KernelOp kernel) {
  linalg::GenericOp dot = contractionOf(kernel);
  ContractionDims dims = *inferContractionDims(dot);
  auto loops =
      dot->getAttrOfType<DenseI64ArrayAttr>(FP8Dialect::kTaskDimsAttrName);
  return kernel.getBlock() &&
         llvm::any_of(loops.asArrayRef().drop_back(), [&](int64_t loop) {
           return !llvm::is_contained(dims.batch, loop);
         });
}

/// Returns true if `buffer` is an argument that the kernel writes.
bool writes(KernelOp kernel, Value buffer) {
  auto argument = dyn_cast<BlockArgument>(buffer);
  return argument && kernel.getAccess(argument.getArgNumber()) != Access::Read;
}

class PlanBlocks : public fp8::impl::PlanBlocksBase<PlanBlocks> {
public:
  using PlanBlocksBase::PlanBlocksBase;

  void runOnOperation() override {
    FailureOr<GPUTargetAttr> target = gpuTargetOf(getOperation());
    if (failed(target))
      return signalPassFailure();
    LaunchAlignments all(getOperation());
    alignments = &all;
    for (auto kernel : getOperation().getOps<KernelOp>()) {
      if (kernel.isExternal())
        continue;
      if (failed(verifyBody(kernel)))
        return signalPassFailure();
      // The buffers of the transposes are not the CPU's.
      sumTile = cpuTileOf(kernel);
      stageTransposes(kernel);
      if (kernel.getPlan())
        continue;
      if (isAttention(kernel))
        simplifyAttention(kernel);
      keys = KeyCounts::of(kernel);
      FailureOr<GPUPlanAttr> plan = planOf(kernel, GPUInfo::of(*target));
      if (failed(plan))
        return signalPassFailure();
      kernel.setPlanAttr(*plan);
    }
  }

private:
  GPUPlanAttr makePlan(KernelOp kernel, ArrayRef<int64_t> tile,
                       unsigned threads, bool wgmma = false,
                       unsigned stages = kFewestStages, bool tma = false,
                       int64_t rows = 0) const {
    return GPUPlanAttr::get(kernel.getContext(), tile, sumTile, threads, wgmma,
                            stages, rows, tma);
  }

  BlockLowering loweringOf(KernelOp kernel, GPUPlanAttr plan,
                           const GPUInfo &info) const {
    SmallVector<int64_t> aligned(kernel.getNumArguments(), kLocalAlignment);
    if (plan.getTma() && kernel.getBlock())
      aligned = alignments->of(kernel);
    BlockLowering lowering(kernel, kernel.getDomain(), plan,
                           kernel.getBlock().has_value(), info, aligned);
    if (!keys.counts.empty())
      lowering.setKeyCounts(*keys.band, keys.counts);
    return lowering;
  }

  /// Plans the kernel's only dot with TMA, if TMA can bring its operands.
  DotPlan planWithTma(KernelOp kernel, linalg::GenericOp dot,
                      GPUPlanAttr plan) const {
    DotPlan none;
    for (unsigned i = 0; i < 2; ++i)
      if (writes(kernel, dot.getDpsInputs()[i]))
        none.whyNotTma = "the kernel writes an operand";
    if (!none.whyNotTma.empty())
      return none;
    FailureOr<DotPlan> planned =
        BlockLowering::planWithTma(kernel, dot, plan, alignments->of(kernel));
    none.whyNotTma = "the strides of an operand are not known";
    return succeeded(planned) ? *planned : none;
  }

  /// Returns the plan with TMA if TMA can bring the operands of the kernel's
  /// only dot. Fails if the tile is wide, and there is no TMA or not enough
  /// memory and registers for it.
  FailureOr<GPUPlanAttr> withTma(KernelOp kernel, linalg::GenericOp dot,
                                 GPUPlanAttr plan, bool isWide,
                                 const GPUInfo &info) const {
    DotPlan own = planWithTma(kernel, dot, plan);
    bool hasRoom =
        own.tma && !own.hasParts() && own.tileColumns > kDotColumns &&
        localBytes(kernel, plan.getTile()) + kWideStages * own.stageSize() <=
            info.sharedBytes;
    if (isWide && !hasRoom)
      return failure();
    if (own.tma)
      return makePlan(kernel, plan.getTile(), plan.getThreads(),
                      plan.getWgmma(), plan.getStages(), /*tma=*/true);
    return plan;
  }

  /// The bytes that a block needs, and whether a multiprocessor has room for
  /// two blocks.
  struct Memory {
    int64_t shared, scratch;
    bool fitsTwice;
  };
  FailureOr<Memory> measure(KernelOp kernel, GPUPlanAttr plan,
                            const GPUInfo &info) const {
    BlockLowering lowering = loweringOf(kernel, plan, info);
    if (failed(lowering.measure()))
      return failure();
    return Memory{lowering.getSharedBytes(), lowering.getScratchBytes(),
                  lowering.blocksTogether() >= 2};
  }

  /// Returns the plan with the most stages that leave the block's own buffers
  /// in shared memory, and room for a second block on the multiprocessor.
  FailureOr<GPUPlanAttr> withStages(KernelOp kernel, GPUPlanAttr plan,
                                    const GPUInfo &info) {
    FailureOr<Memory> least = measure(kernel, plan, info);
    if (failed(least))
      return failure();
    int64_t shared = least->shared;
    for (int64_t stages = kFewestStages + 1; stages <= kMostStages; ++stages) {
      GPUPlanAttr more = makePlan(kernel, plan.getTile(), plan.getThreads(),
                                  plan.getWgmma(), stages, plan.getTma());
      FailureOr<Memory> memory = measure(kernel, more, info);
      if (failed(memory))
        return failure();
      // Stop where no dot uses another stage.
      if (memory->shared == shared || memory->shared > info.sharedBytes ||
          memory->scratch > least->scratch ||
          (least->fitsTwice && !memory->fitsTwice))
        break;
      shared = memory->shared;
      plan = more;
    }
    return plan;
  }

  /// Plans an attention whose blocks run keys or queries in order so that its
  /// dots read their operands in place, with tiles of these sizes. Returns
  /// null, and says why, if they cannot, or if a multiprocessor has no room for
  /// `blocks` of them.
  FailureOr<GPUPlanAttr> planInPlace(KernelOp kernel, int64_t kept,
                                     int64_t stepped, int64_t blocks,
                                     const GPUInfo &info, std::string &why) {
    int64_t rows = std::max(kept, stepped);
    SmallVector<int64_t> tile = tileInPlace(kernel, kept, stepped);
    // A tile has as many rows as the warpgroups have together.
    swapDots(kernel, tile,
             [&](linalg::GenericOp dot, int64_t own, int64_t columns) {
               return own != rows && columns == rows &&
                      isa<BlockArgument>(dot.getDpsInits()[0]);
             });
    GPUPlanAttr plan = makePlan(kernel, tile, rows / kWgmmaRows * kWarpgroup,
                                /*wgmma=*/true, kFewestStages, /*tma=*/true);
    BlockLowering lowering = loweringOf(kernel, plan, info);
    if (failed(lowering.measure()))
      return failure();
    why = lowering.getWhyNotInPlace();
    if (why.empty() && lowering.getScratchBytes() > 0)
      why = "they need too much shared memory";
    return why.empty() && lowering.blocksTogether() >= blocks ? plan
                                                              : GPUPlanAttr();
  }

  /// Prefers tiles of which two blocks of one warpgroup fit on a
  /// multiprocessor: one multiplies while the other computes. Next are tiles
  /// for two warpgroups.
  FailureOr<GPUPlanAttr> planInPlace(KernelOp kernel, const GPUInfo &info) {
    for (auto dot : kernel.getBody().getOps<linalg::GenericOp>())
      if (isDot(dot) && llvm::any_of(dot.getDpsInputs(), [&](Value input) {
            return writes(kernel, input);
          }))
        return GPUPlanAttr();
    gatherScores(kernel);
    std::string why;
    constexpr int64_t one = kWgmmaRows, two = 2 * kWgmmaRows;
    for (auto [kept, stepped, blocks] : {std::tuple(one, one, 2),
                                         {one, two, 1},
                                         {two, one, 1},
                                         {one, one, 1}}) {
      FailureOr<GPUPlanAttr> plan =
          planInPlace(kernel, kept, stepped, blocks, info, why);
      if (failed(plan) || *plan)
        return plan;
    }
    if (explain)
      kernel.emitRemark("dots do not read their operands in place: ") << why;
    return GPUPlanAttr();
  }

  /// Takes the largest number of queries whose intermediates fit into shared
  /// memory; twice if keys are divided, because that takes no rows. If even the
  /// smallest does not fit, the intermediates lie in global memory, and the
  /// number is chosen for the tiles of a dot.
  FailureOr<GPUPlanAttr> planOfAttention(KernelOp kernel, const GPUInfo &info) {
    bool wgmma =
        info.hasWgmma &&
        llvm::any_of(kernel.getBody().getOps<linalg::GenericOp>(),
                     [](linalg::GenericOp generic) {
                       return isDot(generic) && multipliesMatrices(generic);
                     });
    auto planOfRows = [&](int64_t rows) {
      return makePlan(kernel, tileOfAttention(kernel, rows), kThreads, wgmma);
    };
    if (wgmma)
      swapLongRows(kernel, tileOfAttention(kernel, kDotRows));
    if (wgmma && kernel.getBlock()) {
      FailureOr<GPUPlanAttr> plan = planInPlace(kernel, info);
      if (failed(plan) || *plan)
        return plan;
    }
    for (bool twice : {true, false}) {
      if (twice && !dividesKeys(kernel))
        continue;
      for (int64_t rows = kDotRows; rows >= kDotFewestRows; rows /= 2) {
        FailureOr<Memory> memory = measure(kernel, planOfRows(rows), info);
        if (failed(memory))
          return failure();
        if (memory->scratch == 0 && (memory->fitsTwice || !twice))
          return withStages(kernel, planOfRows(rows), info);
      }
    }
    return withStages(kernel, planOfRows(kScratchRows), info);
  }

  /// Plans two warpgroups if that leaves enough blocks for all multiprocessors,
  /// with a wide tile if TMA brings its operands; else one. Returns null if a
  /// warpgroup would have too few rows.
  GPUPlanAttr planOfWgmma(KernelOp kernel, linalg::GenericOp dot,
                          const GPUInfo &info) const {
    for (auto [groups, columns] :
         {std::pair(2, kWideColumns), {2, kDotColumns}, {1, kDotColumns}}) {
      int64_t rows = groups * kWgmmaRows;
      SmallVector<int64_t> tile =
          tileOfDot(kernel, dot, rows, columns, /*isWhole=*/true);
      if (rowsOf(kernel, dot, tile) != rows ||
          localBytes(kernel, tile) > info.sharedBytes / 2 ||
          (groups > 1 && countTiles(kernel.getDomain(), tile) < kEnoughBlocks))
        continue;
      FailureOr<GPUPlanAttr> plan =
          withTma(kernel, dot,
                  makePlan(kernel, tile, groups * kWarpgroup, /*wgmma=*/true),
                  columns == kWideColumns, info);
      if (failed(plan))
        continue;
      // Without TMA, mma.sync computes a tile of too few rows, with the threads
      // of one warpgroup.
      if (groups == 1 || plan->getTma() ||
          lastRowsOf(kernel, dot, tile) >= kWgmmaRows)
        return *plan;
    }
    return nullptr;
  }

  FailureOr<GPUPlanAttr> planOf(KernelOp kernel, const GPUInfo &info) {
    if (isAttention(kernel)) {
      if (!contractionOf(kernel))
        return kernel.emitOpError(
            "expected a kernel whose last loop runs in blocks to have a dot");
      return planOfAttention(kernel, info);
    }
    if (linalg::GenericOp dot = contractionOf(kernel)) {
      if (info.hasWgmma && multipliesMatrices(dot))
        if (GPUPlanAttr plan = planOfWgmma(kernel, dot, info)) {
          if (explain && !plan.getTma())
            dot.emitRemark("TMA does not bring the operands: ")
                << planWithTma(kernel, dot, plan).whyNotTma;
          return withStages(kernel, plan, info);
        }
      // Use half of the shared memory, so that two blocks fit on a
      // multiprocessor.
      int64_t rows = kDotRows;
      SmallVector<int64_t> tile = tileOfDot(kernel, dot, rows);
      while (rows > kDotFewestRows &&
             localBytes(kernel, tile) > info.sharedBytes / 2)
        tile = tileOfDot(kernel, dot, rows /= 2);
      return withStages(kernel, makePlan(kernel, tile, kThreads), info);
    }
    if (linalg::GenericOp op = transposeOf(kernel))
      return planOfTranspose(kernel, op, info);
    return planOfNests(kernel, info);
  }

  /// Plans a kernel without a dot.
  FailureOr<GPUPlanAttr> planOfNests(KernelOp kernel, const GPUInfo &info) {
    unsigned threads = kThreads;
    if (kernel.getDomain().empty())
      threads = hasIrregular(kernel)                    ? kMostThreads
                : largestVolume(kernel) > kManyElements ? kManyThreads
                                                        : kThreads;
    GPUPlanAttr plan = makePlan(kernel, tileOfElementwise(kernel), threads);
    BlockLowering lowering = loweringOf(kernel, plan, info);
    if (failed(lowering.measure()))
      return failure();
    if (lowering.hasColumnSums() && !kernel.getDomain().empty())
      return planOfColumns(kernel, info);
    if (std::optional<BlockLowering::Scatter> scatter = lowering.findScatter())
      return planOfScatter(kernel, *scatter, plan);
    if (lowering.hasGroupSums())
      return planOfRows(kernel, plan, info);
    if (lowering.readsAcross())
      return planOfLines(kernel, plan, info);
    return plan;
  }

  /// Gives a block, whose ops have loops outside of the domain, a warp's points
  /// of a line, if that leaves enough blocks.
  GPUPlanAttr planOfLines(KernelOp kernel, GPUPlanAttr plan,
                          const GPUInfo &info) {
    SmallVector<int64_t> tile = tileOfElementwise(kernel, kWarp);
    if (countTiles(kernel.getDomain(), tile) < info.processors)
      return plan;
    return makePlan(kernel, tile, kManyThreads);
  }

  /// Gives a block the columns of a warp; half of them if multiprocessors would
  /// be left without a block. (A row is then 32 bytes of bf16.)
  GPUPlanAttr planOfColumns(KernelOp kernel, const GPUInfo &info) {
    SmallVector<int64_t> tile = tileOfElementwise(kernel, kWarp);
    if (countTiles(kernel.getDomain(), tile) < info.processors)
      tile = tileOfElementwise(kernel, kWarp / 2);
    return makePlan(kernel, tile, kColumnThreads);
  }

  /// Gives every group of threads that shares a sum a row of its own, if that
  /// leaves enough blocks, and shared memory for several.
  GPUPlanAttr planOfRows(KernelOp kernel, GPUPlanAttr plan,
                         const GPUInfo &info) {
    for (int64_t rows = plan.getThreads() / kMostGroup; rows > 1; rows /= 2) {
      SmallVector<int64_t> tile = tileOfElementwise(kernel, rows);
      if (countTiles(kernel.getDomain(), tile) >= kEnoughBlocks &&
          localBytes(kernel, tile) <= info.sharedBytes / 4)
        return makePlan(kernel, tile, plan.getThreads());
    }
    return plan;
  }

  /// Deals the rows of the result of a large scatter to blocks.
  GPUPlanAttr planOfScatter(KernelOp kernel,
                            const BlockLowering::Scatter &scatter,
                            GPUPlanAttr plan) {
    int64_t updates = 1;
    scatter.nest->walk([&](scf::ForOp loop) {
      if (loop != scatter.columns)
        updates *= tripCount(loop);
    });
    int64_t columns = tripCount(scatter.columns);
    if (updates * columns <= kManyElements)
      return plan;
    int64_t rows = llvm::divideCeil(scatter.numRows, kEnoughBlocks);
    unsigned threads = std::clamp<int64_t>(llvm::PowerOf2Ceil(columns),
                                           kThreads, kMostThreads);
    return makePlan(kernel, {}, threads, /*wgmma=*/false, kFewestStages,
                    /*tma=*/false, rows);
  }

  static int64_t tripCount(scf::ForOp loop) {
    std::optional<APInt> count = loop.getStaticTripCount();
    return count ? count->getSExtValue() : 1;
  }

  /// Plans more threads for larger tiles.
  GPUPlanAttr planOfTranspose(KernelOp kernel, linalg::GenericOp op,
                              const GPUInfo &info) {
    SmallVector<int64_t> tile =
        TransposeTile(kernel, op, largestVolume(kernel), kBlockWork)
            .choose(kEnoughBlocks, [&](ArrayRef<int64_t> candidate) {
              return localBytes(kernel, candidate) <= info.sharedBytes / 2;
            });
    int64_t work = largestVolume(kernel) / countTiles(kernel.getDomain(), tile);
    return makePlan(kernel, tile,
                    std::clamp<int64_t>(llvm::PowerOf2Ceil(work / kThreadWork),
                                        kThreads, kMostTransposing));
  }

  const LaunchAlignments *alignments = nullptr;

  static bool hasIrregular(KernelOp kernel) {
    return !kernel.getBody().front().getOps<scf::ForOp>().empty();
  }

  /// The CPU's tile of the current kernel, which determines how sums are split.
  SmallVector<int64_t> sumTile;
  /// Its numbers of keys with code of their own.
  KeyCounts keys;
};

} // namespace
