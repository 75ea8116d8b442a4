//===- Contraction.cpp - Packed vector loops for contractions -------------===//
//
// The shape of the code, after the dimensions of each group are merged where
// the strides nest (what does not nest becomes outer loops):
//
//   for k0 in K by kc:                      sums over blocks go through memory
//     pack A[m, k0:k0+kc]                   decoded; or read where it lies
//     for j in N by NR:
//       pack B[k0:k0+kc, j:j+NR] as [k][NR] decoded, columns padded with zeros
//       for i in M by MR:
//         for k in kc: MR x NR accumulators in registers
//
// Scales of an operand multiply the sums of each block of k, over which they
// are constant: blocks are as long as the tiles that share a scale.
//
// On AVX512-BF16 two f8 values of neighbouring k form one 32-bit lane of two
// bf16 values; the geometry of the panels stays the same with half the k.
//
//===----------------------------------------------------------------------===//

#include "fp8/Codegen/Contraction.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Plan
//===----------------------------------------------------------------------===//

namespace {

/// How the place of a scale depends on a dimension: (d floordiv tile) * stride.
struct ScaleStep {
  int64_t stride = 0;
  int64_t tile = 1;
};

/// One dimension after merging: its extent, its stride in lhs, rhs and out, and
/// its part in the place of their scales.
struct Dim {
  int64_t size = 1;
  std::array<int64_t, 3> strides = {0, 0, 0};
  std::array<ScaleStep, 2> scales = {};
  /// Loops with the stride of each in this dimension.
  SmallVector<std::pair<unsigned, int64_t>, 2> loops = {};
};

enum class LhsForm {
  /// Read where it lies.
  Direct,
  /// Packed as [m][k].
  RowMajor,
  /// Packed as [m / MR][k][MR].
  Panels,
};

/// Every static decision about a tile.
struct Plan {
  /// The roles of lhs and rhs are exchanged: operand[0] is the one with rows.
  std::array<unsigned, 2> operand = {0, 1};
  SmallVector<Dim> outer, outerK;
  Dim m, n, k;
  int64_t lanes = 0;
  /// The register tile: rows, and columns in vectors.
  int64_t rows = 0, columns = 0;
  /// The extent of a block of k.
  int64_t kc = 0;
  /// Blocks are scaled, or are to be of that extent.
  bool fixedBlocks = false;
  /// Which operands have scales.
  std::array<bool, 2> scaled = {false, false};
  /// Values of k in one 32-bit lane of a panel: 2 for pairs of bf16.
  int64_t pack = 1;
  LhsForm lhs = LhsForm::Direct;
  bool packRhs = true;
  /// The result has no unit stride: it is stored through a register tile in
  /// scratch.
  bool storeThroughScratch = false;
  /// The number of f32 in the packed lhs, the packed rhs, the stored tile, and
  /// the scales of rows and columns in a block of k.
  int64_t lhsSize = 0, rhsSize = 0, tileSize = 0;
  std::array<int64_t, 2> scaleSizes = {0, 0};

  int64_t getScratchBytes() const {
    return 4 * (lhsSize + rhsSize + tileSize + scaleSizes[0] + scaleSizes[1]);
  }
  int64_t panelColumns() const { return columns * lanes; }
  int64_t packedK() const { return llvm::divideCeil(kc, pack); }
  /// The distance of the rows of a lhs packed as [m][k]; off a power of two.
  int64_t lhsRowStride() const {
    return llvm::alignTo(packedK(), lanes) + lanes;
  }
};

} // namespace

/// The stride of every loop dimension in an operand.
static SmallVector<int64_t> stridesOfLoops(AffineMap map,
                                           ArrayRef<int64_t> strides) {
  SmallVector<int64_t> result(map.getNumDims(), 0);
  for (auto [i, expr] : llvm::enumerate(map.getResults()))
    result[cast<AffineDimExpr>(expr).getPosition()] = strides[i];
  return result;
}

/// The step of every loop in the scales of an operand.
static SmallVector<ScaleStep> stepsOfLoops(AffineMap map,
                                           ArrayRef<int64_t> strides) {
  SmallVector<ScaleStep> result(map.getNumDims());
  for (auto [i, place] : llvm::enumerate(map.getResults())) {
    AffineExpr expr = place;
    if (isa<AffineConstantExpr>(expr))
      continue;
    int64_t tile = 1;
    if (auto quotient = dyn_cast<AffineBinaryOpExpr>(expr)) {
      tile = cast<AffineConstantExpr>(quotient.getRHS()).getValue();
      expr = quotient.getLHS();
    }
    result[cast<AffineDimExpr>(expr).getPosition()] =
        ScaleStep{strides[i], tile};
  }
  return result;
}

static SmallVector<int64_t> denseStrides(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t i = int64_t(shape.size()) - 2; i >= 0; --i)
    strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

/// The strides of a value, row-major for a tensor.
static LogicalResult stridesOf(Type type, SmallVector<int64_t> &strides) {
  auto shaped = cast<ShapedType>(type);
  if (!shaped.hasStaticShape())
    return failure();
  auto memref = dyn_cast<MemRefType>(type);
  if (!memref) {
    strides = denseStrides(shaped.getShape());
    return success();
  }
  int64_t offset;
  if (failed(memref.getStridesAndOffset(strides, offset)))
    return failure();
  return success(!llvm::any_of(strides, ShapedType::isDynamic));
}

namespace {
/// The loops of an operation: extents in the tile and in all, strides in lhs,
/// rhs and out, steps in their scales.
struct LoopInfo {
  SmallVector<int64_t> sizes, extents;
  std::array<SmallVector<int64_t>, 3> strides;
  std::array<SmallVector<ScaleStep>, 2> scales;
};
} // namespace

/// The step of two dimensions that become one, if there is one.
static std::optional<ScaleStep> mergeSteps(ScaleStep outer, ScaleStep inner,
                                           int64_t innerSize, bool innerWhole) {
  if (inner.stride == 0)
    return ScaleStep{outer.stride,
                     outer.stride == 0 ? 1 : outer.tile * innerSize};
  if (innerWhole && innerSize % inner.tile == 0 && outer.tile == 1 &&
      outer.stride == innerSize / inner.tile * inner.stride)
    return inner;
  return std::nullopt;
}

/// Merges the dimensions of a group that nest in every operand. Sorted by
/// stride, outermost first.
static SmallVector<Dim> mergeDims(ArrayRef<unsigned> dims,
                                  const LoopInfo &loops, unsigned sortOperand) {
  SmallVector<Dim> merged;
  for (unsigned d : dims)
    if (loops.sizes[d] != 1) {
      Dim dim;
      dim.size = loops.sizes[d];
      for (int j = 0; j < 3; ++j)
        dim.strides[j] = loops.strides[j][d];
      for (int j = 0; j < 2; ++j)
        dim.scales[j] = loops.scales[j][d];
      dim.loops.push_back({d, 1});
      merged.push_back(dim);
    }
  // Insertion keeps the order of loops among equal strides.
  for (unsigned i = 1; i < merged.size(); ++i)
    for (unsigned j = i; j > 0 && merged[j - 1].strides[sortOperand] <
                                      merged[j].strides[sortOperand];
         --j)
      std::swap(merged[j - 1], merged[j]);
  for (int64_t i = int64_t(merged.size()) - 2; i >= 0; --i) {
    Dim &outer = merged[i], &inner = merged[i + 1];
    bool nests = true, innerWhole = true;
    for (int j = 0; j < 3; ++j)
      nests &= outer.strides[j] == inner.strides[j] * inner.size;
    for (auto [loop, stride] : inner.loops)
      innerWhole &= loops.sizes[loop] == loops.extents[loop];
    std::array<ScaleStep, 2> scales;
    for (int j = 0; j < 2; ++j) {
      std::optional<ScaleStep> step =
          mergeSteps(outer.scales[j], inner.scales[j], inner.size, innerWhole);
      nests &= step.has_value();
      scales[j] = step.value_or(ScaleStep());
    }
    if (!nests)
      continue;
    for (auto [loop, stride] : outer.loops)
      inner.loops.push_back({loop, stride * inner.size});
    inner.size *= outer.size;
    inner.scales = scales;
    merged.erase(merged.begin() + i);
  }
  return merged;
}

/// Takes the dimension for the inner loops out of a group: the one with unit
/// stride in `unitOperand` if asked for, else the largest.
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

/// Cycles that one step of k takes over the whole tile with a register tile of
/// `rows` x `columns` vectors: two FMA and two loads a cycle, and no sum
/// faster than the latency of an FMA.
static double costOfTile(int64_t m, int64_t vectors, int64_t rows,
                         int64_t columns) {
  auto one = [](int64_t rows, int64_t columns) {
    if (rows == 0 || columns == 0)
      return 0.0;
    return std::max({0.5 * rows * columns, 0.5 * (rows + columns), 4.0}) +
           // Loop control and what little does not overlap.
           0.25;
  };
  int64_t i = m / rows, j = vectors / columns;
  int64_t mRest = m % rows, nRest = vectors % columns;
  return i * j * one(rows, columns) + j * one(mRest, columns) +
         i * one(rows, nRest) + one(mRest, nRest);
}

/// The formats that are decoded here; the others by `arith.extf`.
static bool isF8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

/// Every number of these formats is one of bf16.
static bool isExactInBF16(Type type) { return fp8::isFormat(type); }

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
  // The longest part of a run that fits.
  plan.kc = run;
  for (int64_t parts = 2; plan.kc > limit; ++parts)
    if (run % parts == 0)
      plan.kc = run / parts;
}

static LogicalResult makePlan(linalg::GenericOp op, ArrayRef<int64_t> sizes,
                              ArrayRef<int64_t> outStrides,
                              const TargetInfo &target, Plan &plan) {
  FailureOr<ContractionDims> dims = inferContractionDims(op);
  if (failed(dims))
    return failure();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  LoopInfo loops;
  loops.sizes.assign(sizes.begin(), sizes.end());
  loops.extents = op.getStaticLoopRanges();
  for (unsigned i = 0; i < 2; ++i) {
    SmallVector<int64_t> s;
    if (failed(stridesOf(op.getDpsInputs()[i].getType(), s)))
      return failure();
    loops.strides[i] = stridesOfLoops(maps[i], s);
    loops.scales[i].resize(sizes.size());
    std::optional<unsigned> scale = dims->scales[i];
    if (!scale)
      continue;
    plan.scaled[i] = true;
    SmallVector<int64_t> scaleStrides;
    if (failed(stridesOf(op.getDpsInputs()[*scale].getType(), scaleStrides)))
      return failure();
    loops.scales[i] = stepsOfLoops(maps[*scale], scaleStrides);
  }
  loops.strides[2] = stridesOfLoops(maps.back(), outStrides);

  SmallVector<Dim> batch = mergeDims(dims->batch, loops, 2);
  SmallVector<Dim> m = mergeDims(dims->m, loops, 2);
  SmallVector<Dim> n = mergeDims(dims->n, loops, 2);
  SmallVector<Dim> k = mergeDims(dims->k, loops, 0);

  // Vectors run along n, so n should be where the result is contiguous.
  auto hasUnit = [](ArrayRef<Dim> group) {
    return llvm::any_of(group, [](const Dim &d) { return d.strides[2] == 1; });
  };
  if (!hasUnit(n) && (hasUnit(m) || (n.empty() && !m.empty()))) {
    plan.operand = {1, 0};
    std::swap(m, n);
  }
  unsigned lhs = plan.operand[0], rhs = plan.operand[1];
  plan.m = takeInner(m, -1);
  plan.n = takeInner(n, 2);
  plan.k = takeInner(k, -1);
  llvm::append_range(plan.outer, batch);
  llvm::append_range(plan.outer, m);
  llvm::append_range(plan.outer, n);
  plan.outerK = k;
  plan.storeThroughScratch = plan.n.size > 1 && plan.n.strides[2] != 1;

  Type lhsType =
      cast<ShapedType>(op.getDpsInputs()[lhs].getType()).getElementType();
  Type rhsType =
      cast<ShapedType>(op.getDpsInputs()[rhs].getType()).getElementType();
  plan.lanes = target.getLanes();
  if ((target.hasAVX512BF16 || target.emulateBF16Dots) &&
      isExactInBF16(lhsType) && isExactInBF16(rhsType))
    plan.pack = 2;

  int64_t lhsM = plan.m.strides[lhs], lhsK = plan.k.strides[lhs];
  bool rowsAdjacent = lhsM == 1 && lhsK != 1;

  // The register tile: the sums, a row's vectors of rhs and one of lhs.
  int64_t vectors = llvm::divideCeil(plan.n.size, plan.lanes);
  int64_t registers = target.vectorBits == 512 ? 32 : 16;
  int64_t maxColumns = target.vectorBits == 512 ? 4 : 3;
  double best = std::numeric_limits<double>::max();
  for (int64_t columns = 1; columns <= std::min(maxColumns, vectors);
       ++columns) {
    int64_t maxRows = std::min<int64_t>(
        {(registers - columns - 1) / columns, plan.m.size, 16});
    for (int64_t rows = 1; rows <= maxRows; ++rows) {
      double cost = costOfTile(plan.m.size, vectors, rows, columns);
      // Panels of few rows waste lanes while packing.
      if (rowsAdjacent)
        cost += llvm::divideCeil(plan.m.size, rows) * (isF8(lhsType) ? 4 : 2);
      if (cost < best) {
        best = cost;
        plan.rows = rows;
        plan.columns = columns;
      }
    }
  }

  // A panel of rhs stays in the first-level cache: 32 KiB.
  // Blocks are cut into chunks of 4 vectors.
  int64_t maxK = 8192 / plan.panelColumns() * plan.pack;
  int64_t chunk = 4 * plan.lanes * plan.pack;
  maxK = std::max<int64_t>(llvm::alignDown(maxK, chunk), chunk);
  int64_t blocks = llvm::divideCeil(plan.k.size, maxK);
  plan.kc = plan.k.size;
  if (blocks > 1)
    plan.kc = llvm::alignTo(llvm::divideCeil(plan.k.size, blocks), chunk);
  fixBlocks(op, plan, maxK);

  int64_t panels = llvm::divideCeil(plan.n.size, plan.panelColumns());
  int64_t blocksOfRows = llvm::divideCeil(plan.m.size, plan.rows);
  // Rows a multiple of the page apart would share one set of the cache.
  bool direct =
      lhsType.isF32() && (panels <= 2 || (lhsK == 1 && lhsM % 512 != 0));
  plan.lhs = direct         ? LhsForm::Direct
             : rowsAdjacent ? LhsForm::Panels
                            : LhsForm::RowMajor;
  if (plan.lhs == LhsForm::RowMajor)
    plan.lhsSize = plan.m.size * plan.lhsRowStride();
  else if (plan.lhs == LhsForm::Panels)
    plan.lhsSize = plan.m.size * plan.packedK() + plan.lanes;
  plan.lhsSize = llvm::alignTo(plan.lhsSize, 16);

  plan.packRhs = !(rhsType.isF32() && plan.n.strides[rhs] == 1 &&
                   plan.n.size % plan.lanes == 0 && blocksOfRows <= 2);
  if (plan.packRhs)
    plan.rhsSize = llvm::alignTo(plan.packedK() * plan.panelColumns(), 16);
  if (plan.storeThroughScratch)
    plan.tileSize = plan.rows * plan.panelColumns();
  // A whole vector may be read from the last scale on.
  if (plan.scaled[lhs])
    plan.scaleSizes[0] = llvm::alignTo(plan.m.size, 16);
  if (plan.scaled[rhs])
    plan.scaleSizes[1] = llvm::alignTo(plan.n.size + plan.lanes, 16);
  return success();
}

int64_t fp8::contractionScratchBytes(linalg::GenericOp op,
                                     ArrayRef<int64_t> sizes,
                                     const TargetInfo &target) {
  // The result may lie in the operation's own buffer, in a local one, or in
  // another with strides not known here.
  Type outType = op.getDpsInits()[0].getType();
  SmallVector<int64_t> own, tileShape;
  for (AffineExpr expr : op.getIndexingMapsArray().back().getResults())
    tileShape.push_back(sizes[cast<AffineDimExpr>(expr).getPosition()]);
  SmallVector<int64_t> local = denseStrides(tileShape);
  SmallVector<int64_t> reversed(llvm::reverse(local));
  SmallVector<int64_t> spread = local;
  for (int64_t &stride : spread)
    stride = 2 * stride + 1;
  SmallVector<SmallVector<int64_t>> all = {local, reversed, spread};
  if (succeeded(stridesOf(outType, own)))
    all.push_back(own);
  int64_t bytes = 0;
  for (ArrayRef<int64_t> strides : all) {
    Plan plan;
    if (succeeded(makePlan(op, sizes, strides, target, plan)))
      bytes = std::max(bytes, plan.getScratchBytes());
  }
  return llvm::alignTo(std::max<int64_t>(bytes, 64), 64);
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

namespace {

/// A one-dimensional view and an index into it.
struct Ref {
  Value memref;
  Value index;
};

/// Where the code is in the operands, and in their scales.
struct Places {
  std::array<Ref, 3> data;
  std::array<Ref, 2> scales;
};

class Emitter {
public:
  Emitter(OpBuilder &b, Location loc, const TargetInfo &target,
          const Plan &plan)
      : b(b), loc(loc), target(target), plan(plan) {}

  LogicalResult emit(const ContractionTile &tile);

private:
  // Index arithmetic, folded.
  Value cst(int64_t v) { return arith::ConstantIndexOp::create(b, loc, v); }
  Value add(Value x, Value y) {
    return b.createOrFold<arith::AddIOp>(loc, x, y);
  }
  Value add(Value x, int64_t c) { return c == 0 ? x : add(x, cst(c)); }
  Value mul(Value x, int64_t c) {
    return c == 1 ? x : b.createOrFold<arith::MulIOp>(loc, x, cst(c));
  }
  Ref at(Ref ref, Value i, int64_t stride) {
    return {ref.memref, add(ref.index, mul(i, stride))};
  }
  Ref at(Ref ref, int64_t offset) {
    return {ref.memref, add(ref.index, offset)};
  }

  void forLoop(Value from, Value to, int64_t step,
               function_ref<void(Value)> body);
  void forLoop(int64_t from, int64_t to, int64_t step,
               function_ref<void(Value)> body);
  /// Calls `body` for every dimension's whole extent, with the references
  /// moved along.
  void forDims(ArrayRef<Dim> dims, Places places,
               function_ref<void(Places)> body);
  /// The same for dimensions of k, which keeps track of the first pass.
  void forOuterK(ArrayRef<Dim> dims, Places places,
                 function_ref<void(Places)> body);
  Value alsoZero(Value condition, Value i);
  /// The scale of an operand at index `i` of a dimension.
  Ref scaleAt(Ref ref, const Dim &dim, unsigned operand, Value i);
  Places moved(Places places, const Dim &dim, Value i);
  /// Cuts [0, end) into chunks of 4 vectors, one vector and a static rest;
  /// `extent` is a static number with the same remainders as `end`.
  void forChunks(Value end, int64_t extent, int64_t unit,
                 function_ref<void(Value, int64_t)> body);

  VectorType f32Vector(int64_t lanes) {
    return VectorType::get({lanes}, b.getF32Type());
  }
  Value zeroVector(int64_t lanes) {
    return arith::ConstantOp::create(b, loc, b.getZeroAttr(f32Vector(lanes)));
  }
  Value intConstant(Type like, int64_t value);
  Value slice(Value vector, int64_t from, int64_t count);
  Value concat(Value x, Value y);

  /// Loads `lanes` contiguous elements into a vector of `width`, zeros behind.
  Value loadLanes(Ref ref, int64_t lanes, int64_t width);
  /// Decodes elements, scalar or vector, to f32.
  Value decode(Value v);
  Value decodeBytesToHalves(Value v, Type element);
  Value load(Ref ref, int64_t lanes, int64_t width) {
    return decode(loadLanes(ref, lanes, width));
  }
  void store(Value vector, Ref ref, int64_t lanes);
  /// Elements as the bits of bf16, which every f8 is exactly.
  Value decodeToWords(Value v);
  Value decodeByTable(Value bytes, Type element);
  /// Neighbouring elements in one f32 lane, the first in the lower half.
  Value loadPairs(Ref ref, int64_t lanes, int64_t width);
  /// Elements of `ref` and of `second`, when there is one, in one lane.
  Value loadInterleaved(Ref ref, std::optional<Ref> second, int64_t lanes,
                        int64_t width);
  void transpose(SmallVectorImpl<Value> &rows);

  void packRowMajorLhs(Ref source, Ref panel, Value kEnd);
  void packLhsPanels(Ref source, Ref panel, Value kEnd);
  void packRhsPanel(Ref source, Ref panel, Value kEnd, int64_t columns);
  /// Packs lines of adjacent elements: for each k, `count` of them from
  /// source + k * stride to panel + k * panelStride, in whole vectors.
  void packLines(Ref source, int64_t stride, Ref panel, int64_t panelStride,
                 Value kEnd, int64_t count);
  void packScalars(Ref source, Dim line, unsigned operand, Ref panel,
                   int64_t lineStride, int64_t kStride, Value kEnd);
  void registerTile(Ref lhs, int64_t lhsM, int64_t lhsK, Ref rhs, int64_t rhsK,
                    Value steps, Ref out, std::array<Ref, 2> scales,
                    int64_t rows, int64_t columns);
  /// All of k, in blocks.
  void blocks(Places places);
  /// The block of k from k0 to k0 + kEnd; `extent` is a static number with the
  /// same remainders as kEnd.
  void block(Places places, Value k0, Value kEnd, int64_t extent);
  void scaleSums(MutableArrayRef<Value> sums, std::array<Ref, 2> scales,
                 int64_t rows, int64_t vectors);
  /// Writes down the scales of an operand, one for every row or column.
  void gatherScales(Ref from, unsigned operand, const Dim &dim, Ref to);
  void ifFirst(function_ref<void()> then, function_ref<void()> otherwise);

  OpBuilder &b;
  Location loc;
  const TargetInfo &target;
  const Plan &plan;
  Ref lhsPanel, rhsPanel, tileBuffer;
  /// The scales of rows and of columns in the current block of k.
  std::array<Ref, 2> scaleLines;
  /// The first index of the tile, per loop.
  SmallVector<Value> offsets;
  /// A static number with the same remainders as the current block of k.
  int64_t kExtent = 0;
  /// Whether this is the first block of k; null where there is only one.
  Value first;
};

} // namespace

void Emitter::forLoop(Value from, Value to, int64_t step,
                      function_ref<void(Value)> body) {
  auto loop = scf::ForOp::create(b, loc, from, to, cst(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  body(loop.getInductionVar());
}

void Emitter::forLoop(int64_t from, int64_t to, int64_t step,
                      function_ref<void(Value)> body) {
  if (from >= to)
    return;
  if (from + step >= to)
    return body(cst(from));
  forLoop(cst(from), cst(to), step, body);
}

Ref Emitter::scaleAt(Ref ref, const Dim &dim, unsigned operand, Value i) {
  ScaleStep step = dim.scales[operand];
  if (!plan.scaled[operand] || step.stride == 0)
    return ref;
  for (auto [loop, stride] : dim.loops)
    i = add(i, mul(offsets[loop], stride));
  if (step.tile != 1)
    i = b.createOrFold<arith::DivUIOp>(loc, i, cst(step.tile));
  return at(ref, i, step.stride);
}

Places Emitter::moved(Places places, const Dim &dim, Value i) {
  for (int j = 0; j < 3; ++j)
    if (dim.strides[j])
      places.data[j] = at(places.data[j], i, dim.strides[j]);
  for (int j = 0; j < 2; ++j)
    places.scales[j] = scaleAt(places.scales[j], dim, j, i);
  return places;
}

void Emitter::forDims(ArrayRef<Dim> dims, Places places,
                      function_ref<void(Places)> body) {
  if (dims.empty())
    return body(places);
  forLoop(0, dims[0].size, 1, [&](Value i) {
    forDims(dims.drop_front(), moved(places, dims[0], i), body);
  });
}

Value Emitter::alsoZero(Value condition, Value i) {
  Value zero =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, i, cst(0));
  if (!condition)
    return zero;
  return arith::AndIOp::create(b, loc, condition, zero);
}

void Emitter::forOuterK(ArrayRef<Dim> dims, Places places,
                        function_ref<void(Places)> body) {
  if (dims.empty())
    return body(places);
  Value outerFirst = first;
  forLoop(0, dims[0].size, 1, [&](Value i) {
    first = alsoZero(outerFirst, i);
    forOuterK(dims.drop_front(), moved(places, dims[0], i), body);
  });
  first = outerFirst;
}

void Emitter::ifFirst(function_ref<void()> then,
                      function_ref<void()> otherwise) {
  if (!first)
    return then();
  auto branch = scf::IfOp::create(b, loc, first, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  then();
  b.setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void Emitter::forChunks(Value end, int64_t extent, int64_t unit,
                        function_ref<void(Value, int64_t)> body) {
  int64_t wide = 4 * unit;
  auto roundDown = [&](int64_t step) -> Value {
    if (std::optional<int64_t> c = getConstantIntValue(end))
      return cst(llvm::alignDown(*c, step));
    Value rest = arith::RemUIOp::create(b, loc, end, cst(step));
    return arith::SubIOp::create(b, loc, end, rest);
  };
  auto loop = [&](Value from, Value to, int64_t step, int64_t lanes) {
    std::optional<int64_t> f = getConstantIntValue(from),
                           t = getConstantIntValue(to);
    if (f && t)
      forLoop(*f, *t, step, [&](Value i) { body(i, lanes); });
    else
      forLoop(from, to, step, [&](Value i) { body(i, lanes); });
  };
  Value done = cst(0);
  if (extent >= wide) {
    Value to = extent % wide ? roundDown(wide) : end;
    loop(done, to, wide, wide);
    done = to;
  }
  if (extent % wide >= unit) {
    Value to = extent % unit ? roundDown(unit) : end;
    loop(done, to, unit, unit);
    done = to;
  }
  // At most one pass: not in the blocks of k before the last.
  if (extent % unit)
    loop(done, end, unit, extent % unit);
}

Value Emitter::intConstant(Type like, int64_t value) {
  Type element = getElementTypeOrSelf(like);
  TypedAttr attr = b.getIntegerAttr(element, value);
  if (auto vector = dyn_cast<VectorType>(like))
    attr = DenseElementsAttr::get(vector, attr);
  return arith::ConstantOp::create(b, loc, attr);
}

Value Emitter::slice(Value vector, int64_t from, int64_t count) {
  auto type = cast<VectorType>(vector.getType());
  if (from == 0 && type.getDimSize(0) == count)
    return vector;
  SmallVector<int64_t> mask;
  for (int64_t i = 0; i < count; ++i)
    mask.push_back(from + i);
  return vector::ShuffleOp::create(b, loc, vector, vector, mask);
}

Value Emitter::concat(Value x, Value y) {
  int64_t n = cast<VectorType>(x.getType()).getDimSize(0) +
              cast<VectorType>(y.getType()).getDimSize(0);
  auto mask = llvm::to_vector(llvm::seq<int64_t>(0, n));
  return vector::ShuffleOp::create(b, loc, x, y, mask);
}

Value Emitter::loadLanes(Ref ref, int64_t lanes, int64_t width) {
  Type element = cast<MemRefType>(ref.memref.getType()).getElementType();
  VectorType type = VectorType::get({width}, element);
  if (lanes == width)
    return vector::LoadOp::create(b, loc, type, ref.memref, ref.index);
  // A zero of an f8 type is made of integers, which every lowering knows.
  auto zero = [&](VectorType type) -> Value {
    Type bits = b.getIntegerType(element.getIntOrFloatBitWidth());
    VectorType bitsType = VectorType::get(type.getShape(), bits);
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(bitsType));
    return arith::BitcastOp::create(b, loc, type, zero);
  };
  if (target.vectorBits == 512) {
    Value mask = vector::ConstantMaskOp::create(
        b, loc, VectorType::get({width}, b.getI1Type()),
        ArrayRef<int64_t>{lanes});
    return vector::MaskedLoadOp::create(
        b, loc, type, ref.memref, ValueRange{ref.index}, mask, zero(type));
  }
  VectorType part = VectorType::get({lanes}, element);
  Value loaded = vector::LoadOp::create(b, loc, part, ref.memref, ref.index);
  SmallVector<int64_t> indices;
  for (int64_t i = 0; i < width; ++i)
    indices.push_back(std::min(i, lanes));
  return vector::ShuffleOp::create(b, loc, loaded, zero(part), indices);
}

/// E4M3FN and E5M2 bytes as f16 bits; E4M3FN values come out 2^-8 too small.
Value Emitter::decodeBytesToHalves(Value v, Type element) {
  Type i8 = b.getI8Type(), i16 = b.getI16Type(), f16 = b.getF16Type();
  auto like = [&](Type element) -> Type {
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      return VectorType::get(vector.getShape(), element);
    return element;
  };
  Type words = like(i16);
  Value byte = arith::BitcastOp::create(b, loc, like(i8), v);
  auto shl = [&](Value x, int64_t n) -> Value {
    return arith::ShLIOp::create(b, loc, x, intConstant(words, n));
  };
  Value bits;
  if (isa<Float8E5M2Type>(element)) {
    bits = shl(arith::ExtUIOp::create(b, loc, words, byte), 8);
  } else {
    // Sign-extended and moved, the copies of the sign end above the exponent:
    // s ssss ssss eeee mmm -> s s eeee mmm 0000000, whose second bit is
    // cleared.
    Value moved = shl(arith::ExtSIOp::create(b, loc, words, byte), 7);
    bits = arith::AndIOp::create(b, loc, moved, intConstant(words, -0x4001));
    // All ones is NaN: one more carries into the cleared bit, which makes the
    // exponent the largest.
    Value carry = arith::AndIOp::create(
        b, loc, arith::AddIOp::create(b, loc, bits, intConstant(words, 0x80)),
        intConstant(words, 0x4000));
    bits = arith::OrIOp::create(b, loc, bits, carry);
  }
  return arith::BitcastOp::create(b, loc, like(f16), bits);
}

Value Emitter::decode(Value v) {
  Type type = v.getType(), element = getElementTypeOrSelf(type);
  if (element.isF32())
    return v;
  Type f32 = b.getF32Type();
  if (auto vector = dyn_cast<VectorType>(type))
    f32 = VectorType::get(vector.getShape(), f32);
  if (!isF8(element) || !target.hasF16C)
    return arith::ExtFOp::create(b, loc, f32, v);
  Value half = decodeBytesToHalves(v, element);
  Value wide = arith::ExtFOp::create(b, loc, f32, half);
  if (isa<Float8E5M2Type>(element))
    return wide;
  TypedAttr scale = b.getF32FloatAttr(256.0f);
  if (auto vector = dyn_cast<VectorType>(f32))
    scale = DenseElementsAttr::get(vector, scale);
  return arith::MulFOp::create(b, loc, wide,
                               arith::ConstantOp::create(b, loc, scale));
}

void Emitter::store(Value vector, Ref ref, int64_t lanes) {
  int64_t width = cast<VectorType>(vector.getType()).getDimSize(0);
  if (lanes == width) {
    vector::StoreOp::create(b, loc, vector, ref.memref, ref.index);
    return;
  }
  Value mask = vector::ConstantMaskOp::create(
      b, loc, VectorType::get({width}, b.getI1Type()),
      ArrayRef<int64_t>{lanes});
  vector::MaskedStoreOp::create(b, loc, ref.memref, ValueRange{ref.index}, mask,
                                vector);
}

Value Emitter::decodeToWords(Value v) {
  Type element = getElementTypeOrSelf(v.getType());
  auto like = [&](Type element) -> Type {
    if (auto vector = dyn_cast<VectorType>(v.getType()))
      return VectorType::get(vector.getShape(), element);
    return element;
  };
  auto vector = dyn_cast<VectorType>(v.getType());
  // The table leaves the sign alone, which is part of a FNUZ format's NaN.
  if (vector && target.hasVBMI &&
      !isa<Float8E4M3FNUZType, Float8E5M2FNUZType>(element)) {
    int64_t n = vector.getDimSize(0);
    Value bytes = arith::BitcastOp::create(b, loc, like(b.getI8Type()), v);
    if (n > 64) {
      assert(n == 128 && "lines are cut into at most 128 elements");
      return concat(decodeByTable(slice(bytes, 0, 64), element),
                    decodeByTable(slice(bytes, 64, 64), element));
    }
    if (n < 64) {
      // The rest does not matter.
      SmallVector<int64_t> mask;
      for (int64_t i = 0; i < 64; ++i)
        mask.push_back(i < n ? i : vector::ShuffleOp::kPoisonIndex);
      bytes = vector::ShuffleOp::create(b, loc, bytes, bytes, mask);
    }
    return slice(decodeByTable(bytes, element), 0, n);
  }
  Type ints = like(b.getI32Type());
  Value bits = arith::BitcastOp::create(b, loc, ints, decode(v));
  return arith::TruncIOp::create(
      b, loc, like(b.getI16Type()),
      arith::ShRUIOp::create(b, loc, bits, intConstant(ints, 16)));
}

/// Looks both bytes of the 128 magnitudes up in registers.
Value Emitter::decodeByTable(Value bytes, Type element) {
  auto type = cast<VectorType>(bytes.getType());
  auto table = [&](bool high, int64_t from) -> Value {
    SmallVector<int8_t> entries;
    for (int64_t code = from; code < from + 64; ++code) {
      APFloat value(cast<FloatType>(element).getFloatSemantics(),
                    APInt(8, code));
      bool inexact;
      value.convert(APFloat::BFloat(), APFloat::rmNearestTiesToEven, &inexact);
      uint64_t bits = value.bitcastToAPInt().getZExtValue();
      entries.push_back(int8_t(high ? bits >> 8 : bits));
    }
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(entries)));
  };
  auto lookUp = [&](bool high) -> Value {
    return LLVM::CallIntrinsicOp::create(
               b, loc, type,
               b.getStringAttr("llvm.x86.avx512.vpermi2var.qi.512"),
               ValueRange{table(high, 0), bytes, table(high, 64)})
        .getResult(0);
  };
  Value low = lookUp(false), high = lookUp(true);
  // The index has seven bits: the sign is not looked at.
  high = arith::OrIOp::create(
      b, loc, high,
      arith::AndIOp::create(b, loc, bytes, intConstant(type, -128)));
  Value both = vector::InterleaveOp::create(b, loc, low, high);
  return vector::BitCastOp::create(b, loc,
                                   VectorType::get({64}, b.getI16Type()), both);
}

Value Emitter::loadPairs(Ref ref, int64_t lanes, int64_t width) {
  Value words = decodeToWords(loadLanes(ref, lanes, width));
  return vector::BitCastOp::create(b, loc, f32Vector(width / 2), words);
}

Value Emitter::loadInterleaved(Ref ref, std::optional<Ref> second,
                               int64_t lanes, int64_t width) {
  Value x = decodeToWords(loadLanes(ref, lanes, width));
  Value y = second ? decodeToWords(loadLanes(*second, lanes, width))
                   : intConstant(x.getType(), 0);
  return vector::BitCastOp::create(b, loc, f32Vector(width),
                                   vector::InterleaveOp::create(b, loc, x, y));
}

/// Transposes square blocks in registers: unpacks within 128 bits, then moves
/// the 128-bit parts.
void Emitter::transpose(SmallVectorImpl<Value> &rows) {
  int64_t n = rows.size();
  auto shuffle = [&](Value x, Value y, function_ref<int64_t(int64_t)> lane) {
    SmallVector<int64_t> mask;
    for (int64_t i = 0; i < n; ++i)
      mask.push_back(lane(i));
    return Value(vector::ShuffleOp::create(b, loc, x, y, mask));
  };
  auto unpack = [&](Value x, Value y, int64_t group, bool high) {
    return shuffle(x, y, [&](int64_t i) {
      int64_t part = i / 4 * 4, in = i % 4;
      int64_t from = group == 1 ? in / 2 + 2 * high : in % 2 + 2 * high;
      bool second = group == 1 ? in % 2 : in / 2;
      return part + from + (second ? n : 0);
    });
  };
  SmallVector<Value> t(n), u(n);
  for (int64_t i = 0; i < n; i += 2) {
    t[i] = unpack(rows[i], rows[i + 1], 1, false);
    t[i + 1] = unpack(rows[i], rows[i + 1], 1, true);
  }
  for (int64_t i = 0; i < n; i += 4) {
    u[i] = unpack(t[i], t[i + 2], 2, false);
    u[i + 1] = unpack(t[i], t[i + 2], 2, true);
    u[i + 2] = unpack(t[i + 1], t[i + 3], 2, false);
    u[i + 3] = unpack(t[i + 1], t[i + 3], 2, true);
  }
  // u[4g + c] holds in its part q the column 4q + c of the rows 4g .. 4g+3.
  auto parts = [&](Value x, Value y, bool odd) {
    int64_t half = n / 2;
    return shuffle(x, y, [&](int64_t i) {
      int64_t part = i % half / 4 * 2 + odd;
      return part * 4 + i % 4 + (i >= half ? n : 0);
    });
  };
  for (int64_t c = 0; c < 4; ++c) {
    if (n == 4) {
      rows[c] = u[c];
    } else if (n == 8) {
      rows[c] = parts(u[c], u[4 + c], false);
      rows[4 + c] = parts(u[c], u[4 + c], true);
    } else {
      for (bool odd : {false, true}) {
        Value x = parts(u[c], u[4 + c], odd);
        Value y = parts(u[8 + c], u[12 + c], odd);
        rows[4 * odd + c] = parts(x, y, false);
        rows[8 + 4 * odd + c] = parts(x, y, true);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Packing
//===----------------------------------------------------------------------===//

void Emitter::packLines(Ref source, int64_t stride, Ref panel,
                        int64_t panelStride, Value kEnd, int64_t count) {
  // Whole vectors in one go, so that the decoding works on wide ones.
  auto line = [&](Value k, bool hasSecond) {
    Ref from = at(source, k, stride);
    Value step = k;
    if (plan.pack == 2)
      step = b.createOrFold<arith::DivUIOp>(loc, k, cst(2));
    Ref to = at(panel, step, panelStride);
    int64_t full = llvm::alignDown(count, plan.lanes);
    auto piece = [&](int64_t j, int64_t lanes, int64_t width) {
      std::optional<Ref> second;
      if (hasSecond)
        second = at(from, j + stride);
      Value x = plan.pack == 2
                    ? loadInterleaved(at(from, j), second, lanes, width)
                    : load(at(from, j), lanes, width);
      for (int64_t i = 0; i < width; i += plan.lanes)
        store(slice(x, i, plan.lanes), at(to, j + i), plan.lanes);
    };
    if (full)
      piece(0, full, full);
    if (count > full)
      piece(full, count - full, plan.lanes);
  };
  if (plan.pack == 1)
    return forLoop(cst(0), kEnd, 1, [&](Value k) { line(k, true); });
  Value even = b.createOrFold<arith::SubIOp>(
      loc, kEnd, b.createOrFold<arith::RemUIOp>(loc, kEnd, cst(2)));
  forLoop(cst(0), even, 2, [&](Value k) { line(k, true); });
  if (kExtent % 2)
    forLoop(even, kEnd, 2, [&](Value k) { line(k, false); });
}

void Emitter::packScalars(Ref source, Dim dim, unsigned operand, Ref panel,
                          int64_t lineStride, int64_t kStride, Value kEnd) {
  int64_t k1 = plan.k.strides[operand];
  auto read = [&](Ref ref) -> Value {
    return memref::LoadOp::create(b, loc, ref.memref, ref.index);
  };
  forLoop(0, dim.size, 1, [&](Value i) {
    Ref from = at(source, i, dim.strides[operand]);
    Ref to = at(panel, i, lineStride);
    auto one = [&](Value k, bool hasSecond) {
      Value x = read(at(from, k, k1)), step = k;
      if (plan.pack == 2) {
        step = b.createOrFold<arith::DivUIOp>(loc, k, cst(2));
        Type i32 = b.getI32Type();
        x = arith::ExtUIOp::create(b, loc, i32, decodeToWords(x));
        if (hasSecond) {
          Value y = arith::ExtUIOp::create(
              b, loc, i32, decodeToWords(read(at(at(from, k, k1), k1))));
          y = arith::ShLIOp::create(b, loc, y, intConstant(i32, 16));
          x = arith::OrIOp::create(b, loc, x, y);
        }
        x = arith::BitcastOp::create(b, loc, b.getF32Type(), x);
      } else {
        x = decode(x);
      }
      Ref target = at(to, step, kStride);
      memref::StoreOp::create(b, loc, x, target.memref, target.index);
    };
    if (plan.pack == 1)
      return forLoop(cst(0), kEnd, 1, [&](Value k) { one(k, true); });
    Value even = b.createOrFold<arith::SubIOp>(
        loc, kEnd, b.createOrFold<arith::RemUIOp>(loc, kEnd, cst(2)));
    forLoop(cst(0), even, 2, [&](Value k) { one(k, true); });
    if (kExtent % 2)
      forLoop(even, kEnd, 2, [&](Value k) { one(k, false); });
  });
}

void Emitter::packRowMajorLhs(Ref source, Ref panel, Value kEnd) {
  unsigned lhs = plan.operand[0];
  int64_t rowStride = plan.lhsRowStride();
  if (plan.k.strides[lhs] != 1)
    return packScalars(source, plan.m, lhs, panel, rowStride, 1, kEnd);
  forLoop(0, plan.m.size, 1, [&](Value i) {
    Ref from = at(source, i, plan.m.strides[lhs]);
    Ref to = at(panel, i, rowStride);
    forChunks(
        kEnd, kExtent, plan.lanes * plan.pack, [&](Value k, int64_t lanes) {
          int64_t width = llvm::alignTo(lanes, plan.lanes * plan.pack);
          Ref line = at(from, k, 1);
          Value x, step = k;
          if (plan.pack == 2) {
            x = loadPairs(line, lanes, width);
            step = b.createOrFold<arith::DivUIOp>(loc, k, cst(2));
          } else {
            x = load(line, lanes, width);
          }
          // Behind the row there is room for a vector.
          for (int64_t j = 0; j < width / plan.pack; j += plan.lanes)
            store(slice(x, j, plan.lanes), at(at(to, step, 1), j), plan.lanes);
        });
  });
}

void Emitter::packLhsPanels(Ref source, Ref panel, Value kEnd) {
  unsigned lhs = plan.operand[0];
  int64_t full = plan.m.size / plan.rows * plan.rows;
  auto rows = [&](Value i, int64_t count) {
    // A line's last vector overlaps the next line, which is written later.
    packLines(at(source, i, plan.m.strides[lhs]), plan.k.strides[lhs],
              at(panel, i, plan.packedK()), count, kEnd, count);
  };
  forLoop(0, full, plan.rows, [&](Value i) { rows(i, plan.rows); });
  if (full != plan.m.size)
    rows(cst(full), plan.m.size - full);
}

void Emitter::packRhsPanel(Ref source, Ref panel, Value kEnd, int64_t columns) {
  unsigned rhs = plan.operand[1];
  int64_t width = llvm::alignTo(columns, plan.lanes);
  if (plan.n.strides[rhs] == 1 || columns == 1)
    return packLines(source, plan.k.strides[rhs], panel, width, kEnd, columns);
  if (plan.k.strides[rhs] != 1) {
    if (width != columns)
      forLoop(0, plan.packedK(), 1, [&](Value k) {
        store(zeroVector(plan.lanes),
              at(at(panel, k, width), width - plan.lanes), plan.lanes);
      });
    Dim line = plan.n;
    line.size = columns;
    return packScalars(source, line, rhs, panel, 1, width, kEnd);
  }
  // Adjacent along k: square blocks transposed in registers.
  auto squares = [&](Value j, int64_t rows) {
    Ref from = at(source, j, plan.n.strides[rhs]);
    int64_t unit = plan.lanes * plan.pack;
    auto square = [&](Value k, int64_t lanes) {
      SmallVector<Value> lines;
      for (int64_t i = 0; i < plan.lanes; ++i) {
        if (i >= rows) {
          lines.push_back(zeroVector(plan.lanes));
          continue;
        }
        Ref line = at(at(from, k, 1), i * plan.n.strides[rhs]);
        lines.push_back(plan.pack == 2 ? loadPairs(line, lanes, unit)
                                       : load(line, lanes, unit));
      }
      transpose(lines);
      Value step = k;
      if (plan.pack == 2)
        step = b.createOrFold<arith::DivUIOp>(loc, k, cst(2));
      Ref to = at(at(panel, step, width), j, 1);
      int64_t steps = llvm::divideCeil(lanes, plan.pack);
      for (int64_t i = 0; i < steps; ++i)
        store(lines[i], at(to, i * width), plan.lanes);
    };
    Value done = cst(0);
    int64_t rest = kExtent % unit;
    if (kExtent >= unit) {
      Value to = kEnd;
      if (rest) {
        Value over = b.createOrFold<arith::RemUIOp>(loc, kEnd, cst(unit));
        to = b.createOrFold<arith::SubIOp>(loc, kEnd, over);
      }
      forLoop(done, to, unit, [&](Value k) { square(k, unit); });
      done = to;
    }
    if (rest)
      forLoop(done, kEnd, unit, [&](Value k) { square(k, rest); });
  };
  int64_t full = llvm::alignDown(columns, plan.lanes);
  forLoop(0, full, plan.lanes, [&](Value j) { squares(j, plan.lanes); });
  if (full != columns)
    squares(cst(full), columns - full);
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

void Emitter::gatherScales(Ref from, unsigned operand, const Dim &dim, Ref to) {
  forLoop(0, dim.size, 1, [&](Value i) {
    Ref source = scaleAt(from, dim, operand, i);
    Value scale = memref::LoadOp::create(b, loc, source.memref, source.index);
    if (!scale.getType().isF32())
      scale = arith::ExtFOp::create(b, loc, b.getF32Type(), scale);
    Ref target = at(to, i, 1);
    memref::StoreOp::create(b, loc, scale, target.memref, target.index);
  });
}

/// Multiplies each sum by the product of its scales.
void Emitter::scaleSums(MutableArrayRef<Value> sums, std::array<Ref, 2> scales,
                        int64_t rows, int64_t vectors) {
  SmallVector<Value> columnScales;
  if (scales[1].memref)
    for (int64_t j = 0; j < vectors; ++j)
      columnScales.push_back(
          loadLanes(at(scales[1], j * plan.lanes), plan.lanes, plan.lanes));
  for (int64_t i = 0; i < rows; ++i) {
    Value rowScale;
    if (scales[0].memref) {
      Ref row = at(scales[0], i);
      rowScale = vector::BroadcastOp::create(
          b, loc, f32Vector(plan.lanes),
          memref::LoadOp::create(b, loc, row.memref, row.index));
    }
    for (int64_t j = 0; j < vectors; ++j) {
      Value scale = rowScale;
      if (!columnScales.empty())
        scale =
            scale ? Value(arith::MulFOp::create(b, loc, scale, columnScales[j]))
                  : columnScales[j];
      Value &sum = sums[i * vectors + j];
      if (scale)
        sum = arith::MulFOp::create(b, loc, sum, scale);
    }
  }
}

void Emitter::registerTile(Ref lhs, int64_t lhsM, int64_t lhsK, Ref rhs,
                           int64_t rhsK, Value steps, Ref out,
                           std::array<Ref, 2> scales, int64_t rows,
                           int64_t columns) {
  int64_t lanes = plan.lanes;
  int64_t vectors = llvm::divideCeil(columns, lanes);
  int64_t rowStride = plan.m.strides[2];
  auto lanesOf = [&](int64_t j) {
    return std::min(lanes, columns - j * lanes);
  };
  bool through = plan.storeThroughScratch;

  // Sums start at zero, also in the later blocks of k: reading the result here
  // would wait for the stores of the tile before.
  SmallVector<Value> sums(rows * vectors, zeroVector(lanes));
  auto loop = scf::ForOp::create(b, loc, cst(0), steps, cst(1), sums);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value k = loop.getInductionVar();
    auto multiply = [&](Value x, Value y, Value sum) -> Value {
      if (plan.pack == 1)
        return vector::FMAOp::create(b, loc, x, y, sum);
      if (!target.emulateBF16Dots) {
        auto type = VectorType::get({2 * lanes}, b.getBF16Type());
        return x86vector::DotBF16Op::create(
            b, loc, sum.getType(), sum,
            vector::BitCastOp::create(b, loc, type, x),
            vector::BitCastOp::create(b, loc, type, y));
      }
      Type ints = VectorType::get({lanes}, b.getI32Type());
      auto half = [&](Value v, bool high) -> Value {
        Value bits = arith::BitcastOp::create(b, loc, ints, v);
        bits = high ? Value(arith::AndIOp::create(b, loc, bits,
                                                  intConstant(ints, -65536)))
                    : Value(arith::ShLIOp::create(b, loc, bits,
                                                  intConstant(ints, 16)));
        return arith::BitcastOp::create(b, loc, sum.getType(), bits);
      };
      for (bool high : {false, true})
        sum = vector::FMAOp::create(b, loc, half(x, high), half(y, high), sum);
      return sum;
    };
    Ref b0 = at(rhs, k, rhsK), a0 = at(lhs, k, lhsK);
    SmallVector<Value> bs, next;
    for (int64_t j = 0; j < vectors; ++j)
      bs.push_back(loadLanes(at(b0, j * lanes), lanes, lanes));
    for (int64_t i = 0; i < rows; ++i) {
      Ref ai = at(a0, i * lhsM);
      Value a = memref::LoadOp::create(b, loc, ai.memref, ai.index);
      a = vector::BroadcastOp::create(b, loc, f32Vector(lanes), a);
      for (int64_t j = 0; j < vectors; ++j) {
        Value sum = loop.getRegionIterArgs()[i * vectors + j];
        next.push_back(multiply(a, bs[j], sum));
      }
    }
    scf::YieldOp::create(b, loc, next);
  }
  SmallVector<Value> results(loop.getResults());
  scaleSums(results, scales, rows, vectors);
  if (!through) {
    auto finish = [&](bool accumulate) {
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < vectors; ++j) {
          Ref to = at(out, i * rowStride + j * lanes);
          Value sum = results[i * vectors + j];
          if (accumulate)
            sum = arith::AddFOp::create(b, loc,
                                        loadLanes(to, lanesOf(j), lanes), sum);
          store(sum, to, lanesOf(j));
        }
    };
    return ifFirst([&] { finish(false); }, [&] { finish(true); });
  }
  int64_t width = vectors * lanes;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < vectors; ++j)
      store(results[i * vectors + j], at(tileBuffer, i * width + j * lanes),
            lanes);
  forLoop(0, rows, 1, [&](Value i) {
    forLoop(0, columns, 1, [&](Value j) {
      Ref from = at(at(tileBuffer, i, width), j, 1);
      Ref to = at(at(out, i, rowStride), j, plan.n.strides[2]);
      Value x = memref::LoadOp::create(b, loc, from.memref, from.index);
      if (first) {
        Value y = memref::LoadOp::create(b, loc, to.memref, to.index);
        y = arith::AddFOp::create(b, loc, y, x);
        x = arith::SelectOp::create(b, loc, first, x, y);
      }
      memref::StoreOp::create(b, loc, x, to.memref, to.index);
    });
  });
}

void Emitter::block(Places places, Value k0, Value kEnd, int64_t extent) {
  kExtent = extent;
  unsigned lhs = plan.operand[0], rhs = plan.operand[1];
  Places here = moved(places, plan.k, k0);
  Ref lhsSource = here.data[lhs], rhsSource = here.data[rhs];
  if (plan.scaled[lhs])
    gatherScales(here.scales[lhs], lhs, plan.m, scaleLines[0]);
  if (plan.scaled[rhs])
    gatherScales(here.scales[rhs], rhs, plan.n, scaleLines[1]);
  if (plan.lhs == LhsForm::RowMajor)
    packRowMajorLhs(lhsSource, lhsPanel, kEnd);
  else if (plan.lhs == LhsForm::Panels)
    packLhsPanels(lhsSource, lhsPanel, kEnd);
  Value steps = kEnd;
  if (plan.pack == 2)
    steps = b.createOrFold<arith::DivUIOp>(loc, add(kEnd, 1), cst(2));

  auto panel = [&](Value j, int64_t columns) {
    Ref source = at(rhsSource, j, plan.n.strides[rhs]);
    int64_t rhsK = plan.k.strides[rhs];
    if (plan.packRhs) {
      packRhsPanel(source, rhsPanel, kEnd, columns);
      source = rhsPanel;
      rhsK = llvm::alignTo(columns, plan.lanes);
    }
    Ref outColumn = at(here.data[2], j, plan.n.strides[2]);
    auto rows = [&](Value i, int64_t count) {
      Ref out = at(outColumn, i, plan.m.strides[2]);
      std::array<Ref, 2> scales;
      if (plan.scaled[lhs])
        scales[0] = at(scaleLines[0], i, 1);
      if (plan.scaled[rhs])
        scales[1] = at(scaleLines[1], j, 1);
      switch (plan.lhs) {
      case LhsForm::Direct:
        return registerTile(at(lhsSource, i, plan.m.strides[lhs]),
                            plan.m.strides[lhs], plan.k.strides[lhs], source,
                            rhsK, steps, out, scales, count, columns);
      case LhsForm::RowMajor:
        return registerTile(at(lhsPanel, i, plan.lhsRowStride()),
                            plan.lhsRowStride(), 1, source, rhsK, steps, out,
                            scales, count, columns);
      case LhsForm::Panels:
        return registerTile(at(lhsPanel, i, plan.packedK()), 1, count, source,
                            rhsK, steps, out, scales, count, columns);
      }
    };
    int64_t full = plan.m.size / plan.rows * plan.rows;
    forLoop(0, full, plan.rows, [&](Value i) { rows(i, plan.rows); });
    if (full != plan.m.size)
      rows(cst(full), plan.m.size - full);
  };
  int64_t width = plan.panelColumns();
  int64_t full = plan.n.size / width * width;
  forLoop(0, full, width, [&](Value j) { panel(j, width); });
  if (full != plan.n.size)
    panel(cst(full), plan.n.size - full);
}

LogicalResult Emitter::emit(const ContractionTile &tile) {
  linalg::GenericOp op = tile.op;
  auto scratchType = cast<MemRefType>(tile.scratch.getType());
  if (scratchType.hasStaticShape() &&
      scratchType.getNumElements() < plan.getScratchBytes())
    return op.emitError("expected at least ")
           << plan.getScratchBytes() << " bytes of scratch but got "
           << scratchType.getNumElements();

  // Flat views: every access is an index into one dimension.
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  offsets.assign(tile.offsets.begin(), tile.offsets.end());
  Places places;
  // A flat view of a buffer, from its first element on.
  auto flatten = [&](Value buffer, SmallVector<int64_t> &strides) -> Ref {
    auto type = cast<MemRefType>(buffer.getType());
    int64_t offset, span = 1;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return Ref();
    for (auto [size, stride] : llvm::zip(type.getShape(), strides))
      span += (size - 1) * stride;
    Value base = buffer;
    OpFoldResult offsetValue = b.getIndexAttr(offset);
    if (ShapedType::isDynamic(offset)) {
      auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, base);
      base = metadata.getBaseBuffer();
      offsetValue = metadata.getOffset();
    }
    bool plain = offset == 0;
    MemRefLayoutAttrInterface layout;
    if (!plain)
      layout = StridedLayoutAttr::get(b.getContext(), offset, {1});
    auto flat = MemRefType::get({span}, type.getElementType(), layout,
                                type.getMemorySpace());
    Value view = memref::ReinterpretCastOp::create(
        b, loc, flat, base, offsetValue,
        ArrayRef<OpFoldResult>{b.getIndexAttr(span)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
    return {view, cst(0)};
  };
  Value buffers[3] = {op.getDpsInputs()[0], op.getDpsInputs()[1], tile.out};
  AffineMap operandMaps[3] = {maps[0], maps[1], maps.back()};
  for (int i = 0; i < 3; ++i) {
    SmallVector<int64_t> strides;
    Ref &ref = places.data[i];
    ref = flatten(buffers[i], strides);
    if (!ref.memref)
      return failure();
    if (i == 2 && tile.outIsLocal)
      continue;
    SmallVector<int64_t> loops = stridesOfLoops(operandMaps[i], strides);
    for (auto [d, stride] : llvm::enumerate(loops))
      if (stride)
        ref = at(ref, tile.offsets[d], stride);
  }
  ContractionDims dims = *inferContractionDims(op);
  for (int i = 0; i < 2; ++i) {
    if (!plan.scaled[i])
      continue;
    unsigned input = *dims.scales[i];
    SmallVector<int64_t> strides;
    Ref &ref = places.scales[i];
    ref = flatten(op.getDpsInputs()[input], strides);
    if (!ref.memref)
      return failure();
    // Loops of one iteration are in no dimension of the plan.
    SmallVector<ScaleStep> steps = stepsOfLoops(maps[input], strides);
    for (auto [d, step] : llvm::enumerate(steps))
      if (tile.sizes[d] == 1) {
        Dim dim;
        dim.scales[i] = step;
        ref = scaleAt(ref, dim, i, tile.offsets[d]);
      }
  }

  int64_t used = 0;
  auto carve = [&](int64_t size) -> Ref {
    if (size == 0)
      return Ref();
    Value view =
        memref::ViewOp::create(b, loc, MemRefType::get({size}, b.getF32Type()),
                               tile.scratch, cst(4 * used), ValueRange());
    used += size;
    return {view, cst(0)};
  };
  rhsPanel = carve(plan.rhsSize);
  lhsPanel = carve(plan.lhsSize);
  tileBuffer = carve(plan.tileSize);
  for (int i = 0; i < 2; ++i)
    scaleLines[i] = carve(plan.scaleSizes[i]);

  forDims(plan.outer, places, [&](Places places) {
    forOuterK(plan.outerK, places, [&](Places places) { blocks(places); });
  });
  return success();
}

void Emitter::blocks(Places places) {
  if (plan.kc == plan.k.size)
    return block(places, cst(0), cst(plan.kc), plan.k.size);
  Value outerFirst = first;
  if (plan.fixedBlocks) {
    // Whole blocks, and the rest: both of static extent.
    int64_t full = plan.k.size / plan.kc * plan.kc;
    forLoop(0, full, plan.kc, [&](Value k0) {
      first = alsoZero(outerFirst, k0);
      block(places, k0, cst(plan.kc), plan.kc);
    });
    if (int64_t rest = plan.k.size - full) {
      first = alsoZero(outerFirst, cst(full));
      block(places, cst(full), cst(rest), rest);
    }
  } else {
    forLoop(0, plan.k.size, plan.kc, [&](Value k0) {
      first = alsoZero(outerFirst, k0);
      Value kEnd = cst(plan.kc);
      if (plan.k.size % plan.kc) {
        Value left = arith::SubIOp::create(b, loc, cst(plan.k.size), k0);
        kEnd = arith::MinUIOp::create(b, loc, kEnd, left);
      }
      block(places, k0, kEnd, plan.k.size);
    });
  }
  first = outerFirst;
}

LogicalResult fp8::emitContraction(OpBuilder &builder, Location loc,
                                   const ContractionTile &tile,
                                   const TargetInfo &target) {
  linalg::GenericOp op = tile.op;
  SmallVector<int64_t> strides;
  if (failed(stridesOf(tile.out.getType(), strides)))
    return op.emitError("expected a result of static shape and strides");
  Plan plan;
  if (failed(makePlan(op, tile.sizes, strides, target, plan)))
    return op.emitError(
        "expected a contraction of memrefs of static shape and strides");
  return Emitter(builder, loc, target, plan).emit(tile);
}
