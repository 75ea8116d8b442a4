//===- OperandTiles.cpp - Tiles that several dots read in place -----------===//
//
// The kernels of an attention run over keys or queries in order. In each step
// one warp asks TMA for the tiles of the next steps, and the warpgroups
// multiply those of the current one where they lie. What the block computes
// itself, such as the weights of a step, is written in the same layout.
//
//===----------------------------------------------------------------------===//

#include "OperandTiles.h"
#include "../Blocks/BlockLowering.h"
#include "DotEmitter.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The lines of a swizzle's pattern.
static constexpr int64_t kPatternLines = kWgmmaAlignment / kWgmmaStageBytes;

bool OperandTile::movesAlong(unsigned loop) const {
  return llvm::any_of(moves, [&](const auto &own) {
    return llvm::any_of(own, [&](auto move) { return move.first == loop; });
  });
}

OperandTile gpu_codegen::makeOperandTile(const DotPlan &plan, unsigned operand,
                                         ArrayRef<int64_t> loopOfDim) {
  const OperandBoxes &boxes = plan.boxes[operand];
  OperandTile tile;
  tile.map = boxes.map;
  tile.bytes = plan.bytesInPlace(operand);
  tile.moves.resize(boxes.map.getSizes().size());
  for (auto [dim, loop] : llvm::enumerate(loopOfDim)) {
    auto [dimension, distance] = boxes.loops[dim];
    if (loop >= 0 && distance != 0)
      tile.moves[dimension].push_back({loop, distance});
  }
  for (auto &own : tile.moves)
    llvm::sort(own);
  bool alongK = plan.operands[operand].linesAlongK;
  int64_t count = alongK ? plan.stagesInPlace() : plan.bands(operand);
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<int64_t> offsets(tile.moves.size(), 0);
    if (alongK)
      offsets[boxes.k] = i * plan.stageDepth();
    else
      offsets[boxes.rows] = i * plan.bandRows(operand);
    tile.boxes.push_back(offsets);
  }
  return tile;
}

/// Returns the place of a tile in `tiles`, to which it is added if it is new.
static unsigned addTile(SmallVectorImpl<OperandTile> &tiles, OperandTile tile) {
  for (auto [i, known] : llvm::enumerate(tiles))
    if (known.isSameAs(tile))
      return i;
  tile.offset = tiles.empty() ? 0 : tiles.back().offset + tiles.back().bytes;
  tiles.push_back(std::move(tile));
  return tiles.size() - 1;
}

static int64_t totalBytes(ArrayRef<OperandTile> tiles) {
  return tiles.empty() ? 0 : tiles.back().offset + tiles.back().bytes;
}

/// Returns whether nests write a local in lines of the longest swizzle: no dot
/// stores its sums there, and only structured ops use it.
bool BlockLowering::isInLines(Value buffer) const {
  auto local = locals.find(buffer);
  if (!dots.inPlace || local == locals.end())
    return false;
  MemRefType type = tileType(local->second, tile);
  return type.getShape().back() * elementBytes(type.getElementType()) %
                 kWgmmaStageBytes ==
             0 &&
         llvm::all_of(buffer.getUses(), [](OpOperand &use) {
           auto op = dyn_cast<linalg::GenericOp>(use.getOwner());
           return op && !(isDot(op) && op.isDpsInit(&use));
         });
}

/// Plans the tiles of a dot's operands. Returns why they cannot be in place, or
/// an empty string.
std::string BlockLowering::planTilesOf(linalg::GenericOp dot) {
  SmallVector<int64_t> extents = extentsOf(dot, tile);
  FailureOr<DotPlan> plan = planDot(dot, extents, denseResult(dot, extents),
                                    localInputTypes(dot, tile));
  if (failed(plan))
    return "the strides of an operand are not known";
  if (!plan->inPlace)
    return plan->whyNotTma;
  sumRegisters += plan->sumsPerThread();
  SmallVector<int64_t> loopOfDim(dot.getNumLoops(), -1);
  for (auto [loop, dim] : llvm::enumerate(lowering::taskDims(dot)))
    if (dim >= 0 && domain[loop] != tile[loop])
      loopOfDim[dim] = loop;
  for (unsigned i = 0; i < 2; ++i) {
    Value input = dot.getDpsInputs()[i];
    if (locals.contains(input)) {
      if (!isInLines(input))
        return "it reads the sums of another dot";
      continue;
    }
    OperandTile own = makeOperandTile(*plan, i, loopOfDim);
    if (!llvm::is_contained(maps, own.map))
      maps.push_back(own.map);
    bool moves = own.movesAlong(domain.size() - 1);
    placeOfOperand[{dot, i}] = {
        moves, addTile(moves ? steppedTiles : keptTiles, std::move(own))};
  }
  return "";
}

/// Plans the tiles of all dots' operands. If that is not possible,
/// `whyNotInPlace` says why.
void BlockLowering::planOperandTiles() {
  keptTiles.clear();
  steppedTiles.clear();
  placeOfOperand.clear();
  maps.clear();
  whyNotInPlace.clear();
  sumRegisters = 0;
  for (auto [extent, size] : llvm::zip(domain, tile))
    if (extent % size != 0)
      whyNotInPlace = "the last tile is smaller than others";
  for (auto op : body().getOps<linalg::GenericOp>())
    if (isDot(op) && whyNotInPlace.empty())
      whyNotInPlace = planTilesOf(op);
  if (steppedTiles.empty() && whyNotInPlace.empty())
    whyNotInPlace = "no operand moves from step to step";
  dotAlignment = kWgmmaAlignment;
  ringStages = dots.stages;
  dotBytes =
      totalBytes(keptTiles) + ringStages * totalBytes(steppedTiles) +
      kBarrierBytes * (TmaRing::countBarriers(1, keptTiles.size()) +
                       TmaRing::countBarriers(ringStages, steppedTiles.size()));
}

/// Makes the rings of both kinds of tiles, whose barriers lie behind them.
void BlockLowering::makeRings(function_ref<Value(int64_t, int64_t)> barriers) {
  int64_t numKept = TmaRing::countBarriers(1, keptTiles.size());
  int64_t numStepped = TmaRing::countBarriers(ringStages, steppedTiles.size());
  SmallVector<Value> arguments(mapArguments.begin(), mapArguments.end());
  keptRing = std::make_unique<TmaRing>(builder, loc,
                                       barriers(numKept + numStepped, numKept),
                                       1, arguments, keptTiles.size());
  ring =
      std::make_unique<TmaRing>(builder, loc, barriers(numStepped, numStepped),
                                ringStages, arguments, steppedTiles.size());
}

/// Asks for tiles at the current place in the domain, whose memory begins at
/// byte `start` of shared memory.
void BlockLowering::bringTiles(TmaRing &own, ArrayRef<OperandTile> tiles,
                               Value start) {
  own.waitUntilEmpty();
  for (auto [part, operand] : llvm::enumerate(tiles)) {
    Value barrier = own.expect(operand.bytes, part);
    SmallVector<Value> first;
    for (const auto &moves : operand.moves) {
      first.push_back(constantIndex(0));
      for (auto [loop, distance] : moves)
        first.back() = builder.createOrFold<arith::AddIOp>(
            loc, first.back(),
            builder.createOrFold<arith::MulIOp>(loc, tileOffsets[loop],
                                                constantIndex(distance)));
    }
    unsigned map = llvm::find(maps, operand.map) - maps.begin();
    int64_t each = operand.bytes / operand.boxes.size();
    for (auto [number, offsets] : llvm::enumerate(operand.boxes)) {
      SmallVector<Value> coordinates;
      for (auto [coordinate, offset] : llvm::zip(first, offsets))
        coordinates.push_back(builder.createOrFold<arith::AddIOp>(
            loc, coordinate, constantIndex(offset)));
      Value at = builder.createOrFold<arith::AddIOp>(
          loc, start, constantIndex(operand.offset + number * each));
      own.copyBox(map, coordinates, sharedArgument, at, barrier);
    }
  }
  own.advance();
}

/// Returns the byte of shared memory at which the tiles of the current step
/// begin.
Value BlockLowering::startOfStep() {
  Value slot = arith::MulIOp::create(builder, loc, ring->stage(),
                                     constantIndex(totalBytes(steppedTiles)));
  return arith::AddIOp::create(
      builder, loc, slot, constantIndex(dotOffset + totalBytes(keptTiles)));
}

/// The producer asks for the tiles that the block keeps; the others wait for
/// them.
void BlockLowering::beginWithTiles() {
  if (ring->fills)
    return bringTiles(*keptRing, keptTiles, constantIndex(dotOffset));
  for (size_t part = 0; part < keptTiles.size(); ++part)
    keptRing->waitUntilFull(part);
}

/// Emits one step: the producer asks for its tiles, the other warps compute and
/// release them.
LogicalResult BlockLowering::emitStep() {
  if (ring->fills) {
    bringTiles(*ring, steppedTiles, startOfStep());
    return success();
  }
  awaited.assign(steppedTiles.size(), false);
  if (failed(KernelLowering::emitParts()))
    return failure();
  Value lane =
      arith::RemUIOp::create(builder, loc, thread, constantIndex(kWarp));
  ifThen(isBelow(lane, 1), [&] { ring->release(); });
  ring->advance();
  return success();
}

/// Waits for the operands of a dot, and returns where they begin.
std::array<Value, 2> BlockLowering::placesOf(linalg::GenericOp dot) {
  std::array<Value, 2> places;
  for (unsigned i = 0; i < 2; ++i) {
    auto found = placeOfOperand.find({dot, i});
    if (found == placeOfOperand.end()) {
      places[i] = memref::ExtractAlignedPointerAsIndexOp::create(
          builder, loc, linesOf.lookup(dot.getDpsInputs()[i]));
      continue;
    }
    auto [moves, number] = found->second;
    Value start = constantIndex(dotOffset);
    if (moves) {
      start = startOfStep();
      if (!std::exchange(awaited[number], true))
        ring->waitUntilFull(number);
    }
    ArrayRef<OperandTile> tiles = moves ? steppedTiles : keptTiles;
    start = arith::AddIOp::create(builder, loc, start,
                                  constantIndex(tiles[number].offset));
    places[i] =
        arith::AddIOp::create(builder, loc,
                              memref::ExtractAlignedPointerAsIndexOp::create(
                                  builder, loc, sharedArgument),
                              start);
  }
  return places;
}

namespace {

/// Emits the places of elements that lie in lines.
struct LineBuilder : contraction::IndexBuilder {
  using IndexBuilder::IndexBuilder;

  /// Returns the number of a line with these indices.
  Value lineOf(ArrayRef<Value> indices, ArrayRef<int64_t> shape) {
    Value line = cst(0);
    for (auto [index, extent] : llvm::zip(indices, shape))
      line = add(mul(line, extent), index);
    return line;
  }

  /// Returns the place of an element. Lines of `width` elements are divided
  /// into bands of all `lines`, and have the swizzle of `wgmma`: the numbers of
  /// their pieces of `piece` elements are combined with that of the line.
  Value placeOf(Value line, Value column, int64_t lines, int64_t width,
                int64_t piece) {
    auto rem = [&](Value x, int64_t c) {
      return b.createOrFold<arith::RemUIOp>(loc, x, cst(c));
    };
    Value pattern = mul(rem(line, kPatternLines), piece);
    Value inLine = arith::XOrIOp::create(b, loc, rem(column, width), pattern);
    line = add(line, mul(div(column, width), lines));
    return add(mul(line, width), inLine);
  }
};

} // namespace

/// A local in lines has one dimension, with the place of each element.
Value BlockLowering::resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
                             SmallVectorImpl<Value> &indices) {
  Value memref = KernelLowering::resolve(buffer, map, dims, indices);
  Value lines = linesOf.lookup(buffer);
  if (!lines)
    return memref;
  hasWrittenLines = true;
  auto type = cast<MemRefType>(memref.getType());
  int64_t bytes = elementBytes(type.getElementType());
  ArrayRef<int64_t> shape = type.getShape().drop_back();
  LineBuilder places(builder, loc);
  Value line = places.lineOf(ArrayRef(indices).drop_back(), shape);
  indices.assign(1,
                 places.placeOf(line, indices.back(), llvm::product_of(shape),
                                kWgmmaStageBytes / bytes, kPiece / bytes));
  return lines;
}
