//===- DotPlan.cpp - How a block of a GPU computes a dot ------------------===//

#include "DotPlan.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The rows and columns of a block's tile if the dot is at least as large.
static constexpr int64_t kTileRows = 64, kTileColumns = 128;
/// The most rows that one access reads when an operand is transposed.
static constexpr int64_t kMostTransposed = 4;
/// The columns if registers hold both sums and partial sums, if an operand is
/// transposed, and for FMA.
static constexpr int64_t kFewColumns = 64;
/// The most registers of a thread for elements of a stage that it has loaded
/// and not yet stored to shared memory. Their addresses take as many, and sums
/// up to 128 of its 255.
static constexpr int64_t kMostLoaded = 48;

int64_t gpu_codegen::volumeOf(ArrayRef<Dim> dims) {
  int64_t volume = 1;
  for (const Dim &dim : dims)
    volume *= dim.size;
  return volume;
}

static bool isMmaF8(Type type) {
  return isa<Float8E4M3FNType, Float8E5M2Type>(type);
}

/// Chooses the types in which the operands are multiplied. Returns false if
/// these are f32, which tensor cores do not multiply.
static bool chooseTypes(DotPlan &plan) {
  auto [lhs, rhs] = plan.operands;
  MLIRContext *context = lhs.from.getContext();
  auto isExactInBF16 = [](Type type) {
    return type.isBF16() || fp8::isFormat(type);
  };
  auto set = [&](Type l, Type r) {
    plan.operands[0].to = l;
    plan.operands[1].to = r;
    return true;
  };
  if (isMmaF8(lhs.from) && isMmaF8(rhs.from))
    return set(lhs.from, rhs.from);
  if (lhs.from.isF16() && rhs.from.isF16())
    return set(lhs.from, rhs.from);
  Type bf16 = BFloat16Type::get(context), f32 = Float32Type::get(context);
  if (isExactInBF16(lhs.from) && isExactInBF16(rhs.from))
    return set(bf16, bf16);
  set(f32, f32);
  return false;
}

/// Removes the dimension for the inner loop from those of k, and returns it. It
/// is the one along which most operands are contiguous, and of these the
/// largest.
static Dim takeInnerK(SmallVector<Dim> &dims) {
  if (dims.empty())
    return Dim();
  auto rank = [](const Dim &dim) {
    return std::pair(llvm::count(ArrayRef(dim.strides).take_front(2), 1),
                     dim.size);
  };
  Dim *best = dims.begin();
  for (Dim &dim : dims)
    if (rank(dim) >= rank(*best))
      best = &dim;
  Dim inner = *best;
  dims.erase(best);
  return inner;
}

/// Returns the length of partial sums: at most the extent of one scale, and at
/// most what `promote_every` says.
static int64_t runOf(linalg::GenericOp op, const Dim &k) {
  int64_t scale = 0;
  for (const contraction::ScaleStep &step : k.scales)
    if (step.stride != 0)
      scale = std::gcd(scale, step.tile);
  auto every =
      op->getAttrOfType<IntegerAttr>(FP8Dialect::kPromoteEveryAttrName);
  int64_t limit = every ? every.getInt() : k.size;
  if (scale == 0 || scale >= k.size)
    return std::min(limit, k.size);
  int64_t run = scale;
  for (int64_t parts = 2; run > limit; ++parts)
    if (scale % parts == 0)
      run = scale / parts;
  return run;
}

/// Chooses the widest access to the elements of an operand. Every offset of an
/// access must be a multiple of its width.
static void chooseAccess(const contraction::LoopInfo &loops, unsigned operand,
                         int64_t alignment, DotPlan &plan) {
  OperandPlan &own = plan.operands[operand];
  ArrayRef<Dim> rows = operand ? plan.columns : plan.rows;
  int64_t bytes = own.from.getIntOrFloatBitWidth() / 8;
  const Dim *along = own.alongK     ? &plan.k
                     : rows.empty() ? nullptr
                                    : &rows.back();
  if (!along || along->strides[operand] != 1)
    return;
  auto isAlong = [&](unsigned d) {
    return llvm::any_of(along->loops,
                        [&](const auto &loop) { return loop.first == d; });
  };
  int64_t width = std::min(kPiece, alignment) / bytes;
  if (own.linesAlongK != own.alongK)
    width = std::min(width, kMostTransposed);
  // The end of a run must be the end of an access.
  int64_t extent = own.alongK ? std::gcd(plan.run, plan.k.size) : along->size;
  int64_t tile = own.alongK ? plan.stageDepth() : plan.extentOf(operand);
  auto fits = [&] {
    if (extent % width || tile % width)
      return false;
    for (auto [d, stride] : llvm::enumerate(loops.strides[operand])) {
      if (!isAlong(d) && stride % width)
        return false;
      // The first index of the tile must be a multiple, too.
      if (isAlong(d) && loops.sizes[d] != loops.extents[d] &&
          loops.sizes[d] * stride % width)
        return false;
    }
    return true;
  };
  while (width > 1 && !fits())
    width /= 2;
  own.width = std::max<int64_t>(width, 1);
}

/// Returns the registers of a thread for the elements of a stage that come
/// through registers. An access of fewer than four bytes has one, too.
static int64_t registersLoaded(const DotPlan &plan) {
  int64_t registers = 0;
  for (auto [operand, own] : llvm::enumerate(plan.operands)) {
    if (own.copied)
      continue;
    int64_t accesses = llvm::divideCeil(
        plan.extentOf(operand) * plan.stageDepth(), own.width * plan.threads);
    registers +=
        accesses * llvm::divideCeil(own.width * plan.elementBytes(), 4);
  }
  return registers;
}

static void setTypes(linalg::GenericOp op, DotPlan &plan) {
  for (unsigned i = 0; i < 2; ++i)
    plan.operands[i].from =
        cast<ShapedType>(op.getDpsInputs()[i].getType()).getElementType();
  if (chooseTypes(plan))
    plan.multiplier = Multiplier::MmaSync;
}

bool gpu_codegen::multipliesMatrices(linalg::GenericOp dot) {
  DotPlan plan;
  setTypes(dot, plan);
  return plan.multiplier != Multiplier::FMA;
}

/// Chooses whether lines are along k in global and in shared memory. Tensor
/// cores read 16-bit elements from lines along k or along the rows; all others
/// need lines along k.
static void chooseLines(DotPlan &plan) {
  for (auto [own, stride] : llvm::zip(plan.operands, plan.k.strides)) {
    own.alongK = stride == 1;
    own.linesAlongK = own.alongK || plan.multiplier == Multiplier::FMA ||
                      plan.elementBytes() != 2;
  }
}

/// Lines along the rows need a swizzle for `wgmma`, whose pattern must begin
/// with each tile.
static void checkLines(DotPlan &plan) {
  auto fits = [&](unsigned operand) {
    return plan.operands[operand].linesAlongK ||
           plan.lineBytes(operand) >= kMmaBytes;
  };
  auto isAligned = [&](unsigned operand) {
    return plan.stageSize(operand) % kWgmmaAlignment == 0;
  };
  auto isAlongRows = [](const OperandPlan &own) { return !own.linesAlongK; };
  if (!plan.usesWgmma() || llvm::none_of(plan.operands, isAlongRows) ||
      (fits(0) && fits(1) && isAligned(0) && isAligned(1)))
    return;
  for (OperandPlan &own : plan.operands)
    own.linesAlongK = true;
}

/// Chooses the operands that `cp.async` copies: those in global memory that are
/// neither converted nor transposed and whose accesses have 16 bytes. Shared
/// memory then has as many stages as a run, within the limits.
static void chooseCopies(std::array<Type, 2> localInputs, int64_t stages,
                         DotPlan &plan) {
  for (auto [own, local] : llvm::zip(plan.operands, localInputs))
    own.copied = !local && own.from == own.to &&
                 own.linesAlongK == own.alongK &&
                 own.width * plan.elementBytes() == kPiece;
  if (plan.isCopied())
    plan.stages = std::clamp<int64_t>(
        llvm::divideCeil(plan.run, plan.stageDepth()), kFewestStages, stages);
}

/// Chooses how operands are copied. If a stage takes too many registers, as one
/// of f8 that is read byte by byte, stages are made smaller.
static void chooseAccesses(const contraction::LoopInfo &loops,
                           std::array<int64_t, 2> alignments,
                           std::array<Type, 2> localInputs,
                           const DotOptions &options, DotPlan &plan) {
  DotPlan start = plan;
  while (true) {
    checkLines(plan);
    for (unsigned i = 0; i < 2; ++i)
      chooseAccess(loops, i, alignments[i], plan);
    chooseCopies(localInputs, options.stages, plan);
    if (options.tma || options.inPlace ||
        registersLoaded(plan) <= kMostLoaded ||
        start.stageBytes % (2 * kMmaBytes) != 0)
      return;
    start.stageBytes /= 2;
    plan = start;
  }
}

/// Chooses the tile that a block computes at once, for a dot of this many rows
/// and columns, and the warps along its sides.
static void chooseTile(int64_t rows, int64_t columns, DotPlan &plan) {
  auto fit = [](int64_t extent, int64_t least, int64_t most) {
    return std::clamp<int64_t>(llvm::PowerOf2Ceil(extent), least, most);
  };
  if (plan.usesWgmma()) {
    plan.warpRows = plan.threads / kWarp;
    plan.warpColumns = 1;
    plan.tileRows = plan.threads / kWarpgroup * kWgmmaRows;
    // What TMA brings takes no registers.
    int64_t most = plan.hasParts() ? (plan.tma ? kTileColumns : kFewColumns)
                                   : (plan.tma ? kWideColumns : kTileColumns);
    plan.tileColumns = fit(columns, kMmaColumns, most);
    return;
  }
  bool transposes = llvm::any_of(plan.operands, [](const OperandPlan &own) {
    return own.linesAlongK != own.alongK;
  });
  bool usesMma = plan.multiplier == Multiplier::MmaSync;
  bool fewColumns = plan.hasParts() || transposes || !usesMma;
  plan.tileRows = fit(rows, kMmaRows, kTileRows);
  plan.warpRows = plan.tileRows > kMmaRows ? 2 : 1;
  plan.warpColumns = kDotWarps / plan.warpRows;
  plan.tileColumns = fit(columns, plan.warpColumns * kMmaColumns,
                         fewColumns ? kFewColumns : kTileColumns);
  if (!usesMma) {
    plan.tileRows = std::max<int64_t>(plan.tileRows, 16);
    plan.tileColumns = std::max<int64_t>(plan.tileColumns, 16);
  }
}

/// Returns why TMA cannot bring an operand, or an empty string.
static std::string whyNotByTma(const OperandPlan &own, Type local,
                               int64_t alignment) {
  if (local)
    return "the block computes it";
  if (own.from != own.to)
    return "it is converted";
  if (own.alongK != own.linesAlongK)
    return "it is not contiguous along k";
  if (alignment % kPiece != 0)
    return "it may begin at an address that is no multiple of 16 bytes";
  return "";
}

/// Plans the boxes in which TMA brings an operand. Returns why it cannot, or an
/// empty string.
static std::string chooseBoxesOf(linalg::GenericOp op,
                                 const contraction::LoopInfo &loops,
                                 ArrayRef<int64_t> whole, unsigned operand,
                                 Type local, int64_t alignment, DotPlan &plan) {
  std::string why = whyNotByTma(plan.operands[operand], local, alignment);
  if (!why.empty())
    return why;
  auto boxes = planBoxes(op, loops, whole, plan, operand, why);
  if (succeeded(boxes))
    plan.boxes[operand] = *boxes;
  return why;
}

/// Plans the boxes of both operands. If TMA cannot bring them, `whyNotTma` says
/// why.
static void chooseBoxes(linalg::GenericOp op,
                        const contraction::LoopInfo &loops,
                        ArrayRef<int64_t> whole,
                        std::array<int64_t, 2> alignments,
                        std::array<Type, 2> localInputs, DotPlan &plan) {
  std::string why;
  if (!plan.usesWgmma())
    why = "wgmma does not compute the dot";
  else if (plan.run != plan.k.size && plan.run % plan.stageDepth() != 0)
    // A box would reach into the next run.
    why = "its runs of " + std::to_string(plan.run) +
          " elements do not consist of whole stages";
  for (unsigned i = 0; i < 2 && why.empty(); ++i) {
    why =
        chooseBoxesOf(op, loops, whole, i, localInputs[i], alignments[i], plan);
    if (!why.empty())
      why = (i ? "the rhs: " : "the lhs: ") + why;
  }
  plan.tma = why.empty();
  plan.whyNotTma = why;
}

/// Returns why an operand that the block computes cannot stay where it is, or
/// an empty string. It is written in lines along its last dimension, which are
/// divided into bands of the longest swizzle.
static std::string whyNotInPlace(unsigned operand, MemRefType local,
                                 const DotPlan &plan) {
  const OperandPlan &own = plan.operands[operand];
  ArrayRef<Dim> rows = operand ? plan.columns : plan.rows;
  if (own.from != own.to || own.alongK != own.linesAlongK)
    return "it is converted or transposed";
  int64_t line = local.getShape().back();
  bool isPlain =
      rows.size() == 1 && rows[0].loops.size() == 1 &&
      std::max(rows[0].strides[operand], plan.k.strides[operand]) == line;
  if (!isPlain || plan.lineBytes(operand) != kWgmmaStageBytes ||
      line * plan.elementBytes() % kWgmmaStageBytes)
    return "its lines are not those of wgmma";
  return "";
}

/// Plans operands that lie in shared memory, all of a tile at once. If they
/// cannot, `whyNotTma` says why.
static void choosePlaces(linalg::GenericOp op,
                         const contraction::LoopInfo &loops,
                         ArrayRef<int64_t> whole,
                         std::array<int64_t, 2> alignments,
                         std::array<Type, 2> localInputs, DotPlan &plan) {
  std::string why;
  plan.inPlace = true; // Boxes depend on it.
  if (!plan.usesWgmma())
    why = "wgmma does not compute the dot";
  else if (plan.hasParts() || volumeOf(plan.outer) != 1 ||
           volumeOf(plan.rows) != plan.tileRows ||
           volumeOf(plan.columns) != plan.tileColumns)
    why = "it is more than one tile, or has partial sums";
  for (unsigned i = 0; i < 2 && why.empty(); ++i) {
    if (plan.extentOf(i) % plan.bandRows(i) != 0)
      why = "its rows are no whole bands";
    else if (localInputs[i])
      why = whyNotInPlace(i, cast<MemRefType>(localInputs[i]), plan);
    else
      why = chooseBoxesOf(op, loops, whole, i, Type(), alignments[i], plan);
  }
  plan.inPlace = why.empty();
  plan.whyNotTma = why;
}

/// Chooses the stages of the ring, which goes on from one run to the next.
static void chooseRing(int64_t most, DotPlan &plan) {
  if (!plan.tma)
    return;
  int64_t stages = volumeOf(plan.outerK) *
                   llvm::divideCeil(plan.k.size, plan.run) *
                   llvm::divideCeil(plan.run, plan.stageDepth());
  plan.stages = std::clamp(stages, kFewestStages, most);
}

/// Finds out whether all rows, or columns, of a tile have one scale.
static void findSharedScales(ArrayRef<int64_t> whole, DotPlan &plan) {
  for (unsigned i = 0; i < 2; ++i) {
    ArrayRef<Dim> dims = i ? plan.columns : plan.rows;
    int64_t extent = plan.extentOf(i);
    plan.sharesScale[i] = llvm::all_of(dims, [&](const Dim &dim) {
      const contraction::ScaleStep &step = dim.scales[i];
      // A tile begins at a multiple of its extent.
      return step.stride == 0 || (dims.size() == 1 && dim.loops.size() == 1 &&
                                  step.tile % extent == 0 &&
                                  whole[dim.loops.front().first] % extent == 0);
    });
  }
}

FailureOr<DotPlan> gpu_codegen::makeDotPlan(
    linalg::GenericOp op, ArrayRef<int64_t> sizes, ArrayRef<int64_t> whole,
    ArrayRef<int64_t> outStrides, std::array<int64_t, 2> alignments,
    std::array<Type, 2> localInputs, const DotOptions &options) {
  FailureOr<ContractionDims> dims = inferContractionDims(op);
  if (failed(dims))
    return failure();
  FailureOr<contraction::LoopInfo> loops =
      contraction::LoopInfo::of(op, *dims, sizes, localInputs, outStrides);
  if (failed(loops))
    return failure();
  DotPlan plan;
  plan.threads = options.threads;
  plan.tma = options.tma;
  for (unsigned i = 0; i < 2; ++i)
    plan.scaled[i] = dims->scales[i].has_value();
  setTypes(op, plan);
  plan.outer = contraction::mergeDims(dims->batch, *loops, 2);
  plan.rows = contraction::mergeDims(dims->m, *loops, 0);
  plan.columns = contraction::mergeDims(dims->n, *loops, 1);
  plan.outerK = contraction::mergeDims(dims->k, *loops, 0);
  plan.k = takeInnerK(plan.outerK);
  plan.run = runOf(op, plan.k);
  ArrayRef<int64_t> extents = options.tma ? whole : sizes;
  int64_t rows = iterationsOf(dims->m, extents),
          columns = iterationsOf(dims->n, extents);
  if (options.wgmma && plan.multiplier == Multiplier::MmaSync &&
      rows >= kWgmmaRows)
    plan.multiplier = Multiplier::Wgmma;
  int64_t runBytes = llvm::alignTo(plan.run * plan.elementBytes(), kMmaBytes);
  plan.stageBytes =
      plan.usesWgmma()
          ? std::min<int64_t>(kWgmmaStageBytes, llvm::PowerOf2Ceil(runBytes))
          : std::min(kStageBytes, runBytes);
  chooseLines(plan);
  chooseTile(rows, columns, plan);
  findSharedScales(whole, plan);
  chooseAccesses(*loops, alignments, localInputs, options, plan);
  if (options.inPlace)
    choosePlaces(op, *loops, whole, alignments, localInputs, plan);
  if (options.tma) {
    chooseBoxes(op, *loops, whole, alignments, localInputs, plan);
    chooseRing(options.stages, plan);
  }
  return plan;
}
