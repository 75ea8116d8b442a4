//===- Plan.cpp - The plan of a contraction's tile ------------------------===//

#include "Plan.h"

#include "LaneBuilder.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::contraction;

/// Returns true if bf16 represents every number of the format.
static bool isExactInBF16(Type type) {
  return fp8::isFormat(type) || type.isBF16();
}

/// Removes the dimension for the inner loop from a group: the one with unit
/// stride in `unitOperand` if that is not negative, else the largest.
static Dim takeInner(SmallVector<Dim> &group, int unitOperand) {
  if (group.empty())
    return Dim();
  unsigned best = 0;
  auto rank = [&](const Dim &dim) {
    bool unit = unitOperand >= 0 && dim.strides[unitOperand] == 1;
    return std::pair<bool, int64_t>(unit, dim.size);
  };
  for (unsigned i = 1; i < group.size(); ++i)
    if (rank(group[i]) >= rank(group[best]))
      best = i;
  Dim dim = group[best];
  group.erase(group.begin() + best);
  return dim;
}

/// Decides which dimensions are the inner loops, and which operand provides the
/// rows.
static void assignDims(const ContractionDims &dims, const LoopInfo &loops,
                       Plan &plan) {
  SmallVector<Dim> batch = mergeDims(dims.batch, loops, 2);
  SmallVector<Dim> m = mergeDims(dims.m, loops, 2);
  SmallVector<Dim> n = mergeDims(dims.n, loops, 2);
  SmallVector<Dim> k = mergeDims(dims.k, loops, 0);

  // Vectors run along n, so n should be where the result is contiguous.
  auto hasUnit = [](ArrayRef<Dim> group) {
    return llvm::any_of(group, [](const Dim &d) { return d.strides[2] == 1; });
  };
  if (!hasUnit(n) && (hasUnit(m) || (n.empty() && !m.empty()))) {
    plan.operand = {1, 0};
    std::swap(m, n);
  }
  plan.m = takeInner(m, -1);
  plan.n = takeInner(n, 2);
  plan.k = takeInner(k, -1);
  llvm::append_range(plan.outer, batch);
  llvm::append_range(plan.outer, m);
  llvm::append_range(plan.outer, n);
  plan.outerK = k;
  plan.storeThroughScratch = plan.n.size > 1 && plan.n.strides[2] != 1;
}

/// Estimates the cycles of one step of k over the whole tile with a register
/// tile of `rows` x `columns` vectors. A cycle has two FMAs and two loads, and
/// no step is faster than the latency of an FMA.
static double costOfTile(const Dim &m, int64_t vectors, int64_t rows,
                         int64_t columns) {
  auto one = [](int64_t rows, int64_t columns) {
    if (rows == 0 || columns == 0)
      return 0.0;
    return std::max({0.5 * rows * columns, 0.5 * (rows + columns), 4.0}) +
           // Loop control and work that does not overlap.
           0.25;
  };
  int64_t i = m.size / rows, j = vectors / columns;
  int64_t rest = m.stepOfRest(rows), nRest = vectors % columns;
  int64_t iRest = rest == 0 ? 0 : m.size % rows / rest;
  return i * j * one(rows, columns) + iRest * j * one(rest, columns) +
         i * one(rows, nRest) + iRest * one(rest, nRest);
}

/// Returns true if the rows of the lhs are adjacent in memory.
static bool hasAdjacentRows(const Plan &plan) {
  unsigned lhs = plan.operand[0];
  return plan.m.strides[lhs] == 1 && plan.k.strides[lhs] != 1;
}

/// Chooses the register tile: the sums, a row of rhs vectors and one lhs vector
/// must fit into registers.
static void chooseRegisterTile(Type lhsType, const TargetInfo &target,
                               Plan &plan) {
  int64_t vectors = llvm::divideCeil(plan.n.size, plan.lanes);
  if (plan.inTiles) {
    plan.rows = std::min(plan.m.size, 2 * kTileRows);
    // Two tiles of each operand, and their four products.
    plan.columns = std::min<int64_t>(vectors, 2);
    return;
  }
  int64_t registers = target.vectorBits == 512 ? 32 : 16;
  double best = std::numeric_limits<double>::max();
  int64_t maxColumns = target.vectorBits == 512 ? 4 : 3;
  for (int64_t columns = 1; columns <= std::min(maxColumns, vectors);
       ++columns) {
    if (!plan.n.isDividedBy(columns * plan.lanes))
      continue;
    int64_t maxRows = std::min<int64_t>(
        {(registers - columns - 1) / columns, plan.m.size, 16});
    for (int64_t rows = 1; rows <= maxRows; ++rows) {
      double cost = costOfTile(plan.m, vectors, rows, columns);
      // Panels of few rows waste lanes while packing.
      if (hasAdjacentRows(plan))
        cost += llvm::divideCeil(plan.m.size, rows) *
                (lhsType.getIntOrFloatBitWidth() == 8 ? 4 : 2);
      if (cost < best) {
        best = cost;
        plan.rows = rows;
        plan.columns = columns;
      }
    }
  }
}

/// Makes blocks of k such that scales are constant over each, and that no
/// partial sum is longer than asked for.
static void fixBlocks(linalg::GenericOp op, Plan &plan, int64_t maxK) {
  int64_t run = 0;
  for (const ScaleStep &step : plan.k.scales)
    if (step.stride != 0)
      run = std::gcd(run, step.tile);
  auto every =
      op->getAttrOfType<IntegerAttr>(FP8Dialect::kPromoteEveryAttrName);
  int64_t limit = std::max<int64_t>(maxK, 1);
  if (every)
    limit = std::min(limit, every.getInt());
  if ((run == 0 || run >= plan.k.size) && plan.kc <= limit)
    return;
  plan.fixedBlocks = true;
  if (run == 0 || run >= plan.k.size) {
    plan.kc = limit;
    return;
  }
  // Take the longest divisor of the run that fits.
  plan.kc = run;
  for (int64_t parts = 2; plan.kc > limit; ++parts)
    if (run % parts == 0)
      plan.kc = run / parts;
}

/// Chooses the extent of a block of k. Each block has sums of its own, so the
/// bits of the result depend on the extent, and it must depend neither on the
/// tile nor on how long vectors are.
static void chooseBlocks(linalg::GenericOp op, Plan &plan) {
  // A panel of rhs stays in the first-level cache, or nearly so if it has the
  // longest vectors. Blocks are split into chunks of 4 of these.
  int64_t maxK = 256 * plan.pack, chunk = 64 * plan.pack;
  int64_t blocks = llvm::divideCeil(plan.k.size, maxK);
  plan.kc = plan.k.size;
  if (blocks > 1)
    plan.kc = llvm::alignTo(llvm::divideCeil(plan.k.size, blocks), chunk);
  fixBlocks(op, plan, maxK);
}

/// Decides how the lhs is accessed.
static void chooseLhsForm(Type lhsType, Plan &plan) {
  unsigned lhs = plan.operand[0];
  int64_t lhsM = plan.m.strides[lhs], lhsK = plan.k.strides[lhs];
  int64_t panels = llvm::divideCeil(plan.n.size, plan.panelColumns());
  // A panel, or a few of them that share the lines of the cache.
  bool isPanel = hasAdjacentRows(plan) && 4 * lhsK <= kLineBytes;
  // Rows that are a multiple of a page apart would share one cache set.
  bool direct = lhsType.isF32() &&
                (panels <= 2 || isPanel || (lhsK == 1 && lhsM % 512 != 0));
  plan.lhs = plan.inTiles            ? LhsForm::Tiles
             : direct                ? LhsForm::Direct
             : hasAdjacentRows(plan) ? LhsForm::Panels
                                     : LhsForm::RowMajor;
  if (plan.lhs == LhsForm::Tiles)
    plan.lhsSize =
        llvm::divideCeil(plan.m.size, kTileRows) * plan.lhsTilesStride();
  else if (plan.lhs == LhsForm::RowMajor)
    plan.lhsSize = plan.m.size * plan.lhsRowStride();
  else if (plan.lhs == LhsForm::Panels)
    plan.lhsSize = plan.m.size * plan.packedK() + plan.lanes;
  plan.lhsSize = llvm::alignTo(plan.lhsSize, 16);
}

/// Decides how many panels of the rhs are packed together. Rows that are a
/// multiple of half a page apart share few sets of the first-level cache, so
/// that it has room for the lines of few rows at a time. Packing two panels
/// reads more of each row (on Zen 4 it takes 4 % less of a dot of 2048 by 2048
/// by 2048).
static void choosePanels(Type rhsType, Plan &plan) {
  unsigned rhs = plan.operand[1];
  int64_t rowBits = plan.k.strides[rhs] * rhsType.getIntOrFloatBitWidth();
  if (plan.packRhs && !plan.inTiles && !plan.n.isOpen &&
      plan.n.strides[rhs] == 1 && rowBits % (8 * kPageBytes / 2) == 0 &&
      plan.n.size > plan.panelColumns())
    plan.panels = 2;
}

/// Decides whether the rhs is packed, and computes the scratch sizes.
static void chooseScratch(Type rhsType, const TargetInfo &target, Plan &plan) {
  unsigned lhs = plan.operand[0], rhs = plan.operand[1];
  int64_t blocksOfRows = llvm::divideCeil(plan.m.size, plan.rows);
  bool isPanel =
      plan.n.size == plan.panelColumns() && plan.k.strides[rhs] == plan.n.size;
  plan.packRhs =
      !(rhsType.isF32() && plan.n.strides[rhs] == 1 &&
        plan.n.size % plan.lanes == 0 && (blocksOfRows <= 3 || isPanel));
  choosePanels(rhsType, plan);
  if (plan.packRhs)
    plan.rhsSize = llvm::alignTo(plan.rhsLanes() * plan.groupColumns(), 16);
  if (plan.storeThroughScratch)
    plan.tileSize = (plan.inTiles ? 1 : plan.rows) * plan.panelColumns();
  // A whole vector may be read at the last scale.
  if (plan.scaled[lhs])
    plan.scaleSizes[0] = llvm::alignTo(plan.m.size, 16);
  if (plan.scaled[rhs])
    plan.scaleSizes[1] = llvm::alignTo(plan.n.size + plan.lanes, 16);
  if (!plan.inTiles)
    return;
  plan.sumsSize = llvm::alignTo(plan.rows, kTileRows) * plan.panelColumns();
  plan.configurationSize = 16;
  if (target.emulateAMX)
    plan.registersSize = kTileRegisters * kTileLanes;
}

static Type elementTypeOf(linalg::GenericOp op, unsigned operand) {
  return cast<ShapedType>(op.getDpsInputs()[operand].getType())
      .getElementType();
}

/// Returns whether dots of pairs of bf16 in vectors are faster than FMAs. On
/// CPUs with AMX (Emerald Rapids, measured) they have half the rate of FMAs.
static bool hasFastPairs(const TargetInfo &target) {
  return target.emulateBF16Dots || (target.hasAVX512BF16 && !target.hasAMXBF16);
}

/// The decision does not depend on the tile of a task, since vectors round
/// otherwise.
bool fp8::usesTileRegisters(linalg::GenericOp op, const TargetInfo &target) {
  FailureOr<ContractionDims> dims = inferContractionDims(op);
  if (failed(dims) || target.getLanes() != kTileRows ||
      !(target.hasAMXBF16 || target.emulateAMX))
    return false;
  // Products smaller than a tile register use vectors.
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  return isExactInBF16(elementTypeOf(op, 0)) &&
         isExactInBF16(elementTypeOf(op, 1)) &&
         iterationsOf(dims->m, extents) >= kTileRows &&
         iterationsOf(dims->n, extents) >= kTileRows;
}

FailureOr<Plan> contraction::makePlan(linalg::GenericOp op,
                                      ArrayRef<int64_t> sizes,
                                      const std::optional<OpenLoop> &open,
                                      std::array<Type, 2> localInputs,
                                      ArrayRef<int64_t> outStrides,
                                      const TargetInfo &target) {
  FailureOr<ContractionDims> dims = inferContractionDims(op);
  if (failed(dims))
    return failure();
  FailureOr<LoopInfo> loops =
      LoopInfo::of(op, *dims, sizes, localInputs, outStrides, open);
  if (failed(loops))
    return failure();
  Plan plan;
  for (unsigned i = 0; i < 2; ++i)
    plan.scaled[i] = dims->scales[i].has_value();
  assignDims(*dims, *loops, plan);

  Type lhsType = elementTypeOf(op, plan.operand[0]);
  Type rhsType = elementTypeOf(op, plan.operand[1]);
  plan.lanes = target.getLanes();
  plan.inTiles = usesTileRegisters(op, target) && plan.k.size >= 2 * kTileRows;
  if (plan.inTiles || (hasFastPairs(target) && isExactInBF16(lhsType) &&
                       isExactInBF16(rhsType)))
    plan.pack = 2;
  chooseRegisterTile(lhsType, target, plan);
  chooseBlocks(op, plan);
  // All blocks have the remainders of the last one.
  if (plan.k.isOpen && plan.kc < plan.k.size &&
      plan.kc % OpenLoop::kMultiple != 0)
    return failure();
  chooseLhsForm(lhsType, plan);
  chooseScratch(rhsType, target, plan);
  return plan;
}
