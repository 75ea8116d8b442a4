//===- Tiles.cpp - The tiles of a kernel ----------------------------------===//

#include "KernelLowering.h"

#include "fp8/Codegen/Tiles.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

SmallVector<int64_t> lowering::extentsIn(ArrayRef<int64_t> tile,
                                         linalg::GenericOp op) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  for (auto [size, dim] : llvm::zip(tile, taskDims(op)))
    if (dim >= 0)
      extents[dim] = size;
  return extents;
}

/// Returns the loop of `op` over keys, if the mask of an attention hides some.
std::optional<unsigned> KernelLowering::keyLoopOf(linalg::GenericOp op) const {
  if (!band)
    return std::nullopt;
  auto loop = band->keyLoops.find(op);
  return loop == band->keyLoops.end() ? std::nullopt
                                      : std::optional<unsigned>(loop->second);
}

/// Returns the loop of `op` over keys, if their number is only known at run
/// time.
std::optional<OpenLoop> KernelLowering::openLoopOf(linalg::GenericOp op) const {
  std::optional<OpenLoop> open = openKeys;
  std::optional<unsigned> loop = keyLoopOf(op);
  if (!open || !loop)
    return std::nullopt;
  open->loop = *loop;
  return open;
}

/// Returns the extents of the loops of `op` in a tile of these sizes; keys only
/// count as far as the current number of keys.
SmallVector<int64_t> KernelLowering::extentsOf(linalg::GenericOp op,
                                               ArrayRef<int64_t> sizes) const {
  SmallVector<int64_t> extents = extentsIn(sizes, op);
  if (numKeys)
    if (std::optional<unsigned> loop = keyLoopOf(op))
      extents[*loop] = *numKeys;
  return extents;
}

/// Returns the loops of `op` over the current tile.
lowering::Loops KernelLowering::loopsOf(linalg::GenericOp op) {
  Loops loops;
  loops.extent = extentsOf(op, tileSizes);
  loops.lower.assign(loops.extent.size(), constantIndex(0));
  for (auto [offset, dim] : llvm::zip(tileOffsets, taskDims(op)))
    if (dim >= 0)
      loops.lower[dim] = offset;
  if (std::optional<unsigned> loop = keyLoopOf(op); firstKey && loop)
    loops.lower[*loop] = firstKey;
  loops.open = openLoopOf(op);
  loops.index = loops.lower;
  return loops;
}

/// Returns loops over the part of `buffer` that the tile owns.
lowering::Loops KernelLowering::loopsOver(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  Loops loops;
  for (auto [dim, loop] : llvm::enumerate(domainLoopsOf(buffer))) {
    loops.lower.push_back(loop < 0 ? constantIndex(0) : tileOffsets[loop]);
    loops.extent.push_back(loop < 0 ? type.getDimSize(dim) : tileSizes[loop]);
  }
  auto local = locals.find(buffer);
  if (local != locals.end() && local->second.keyDim) {
    unsigned keys = *local->second.keyDim;
    loops.lower[keys] = firstKey ? firstKey : constantIndex(0);
    loops.extent[keys] = keyCounts.back();
  }
  loops.index = loops.lower;
  return loops;
}

/// Returns the tile of a dot, without the target's additions.
ContractionTile KernelLowering::contractionOf(linalg::GenericOp dot) {
  Loops loops = loopsOf(dot);
  ContractionTile contraction;
  contraction.op = dot;
  contraction.offsets = loops.lower;
  contraction.sizes = loops.extent;
  contraction.open = loops.open;
  auto local = locals.find(dot.getOutputs()[0]);
  contraction.outIsLocal = local != locals.end();
  contraction.out = contraction.outIsLocal
                        ? keysOf(local->second, dot, dot.getNumDpsInputs())
                        : dot.getOutputs()[0];
  return contraction;
}

/// Returns the part of a local, which is this operand of `dot`, that holds the
/// current keys; all of it if it holds no others, or if the tile begins with
/// the first key.
Value KernelLowering::keysOf(const Local &local, linalg::GenericOp dot,
                             unsigned operand) {
  std::optional<unsigned> loop = keyLoopOf(dot);
  std::optional<unsigned> dim =
      firstKey && loop && !local.keyDim
          ? plainPosition(dot.getIndexingMapsArray()[operand], *loop)
          : std::nullopt;
  if (!dim)
    return local.memref;
  auto type = cast<MemRefType>(local.memref.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), builder.getIndexAttr(0)),
      steps(type.getRank(), builder.getIndexAttr(1)), sizes;
  for (int64_t size : type.getShape())
    sizes.push_back(builder.getIndexAttr(size));
  offsets[*dim] = firstKey;
  sizes[*dim] = builder.getIndexAttr(*numKeys);
  return memref::SubViewOp::create(builder, loc, local.memref, offsets, sizes,
                                   steps);
}

/// Lets a loop from 0 by 1 run over `size` iterations from `offset` on.
static void runOverTile(scf::ForOp loop, Value offset, int64_t size) {
  OpBuilder builder(loop);
  loop.setUpperBound(
      arith::ConstantIndexOp::create(builder, loop.getLoc(), size));
  builder.setInsertionPointToStart(loop.getBody());
  Value counter = loop.getInductionVar();
  auto index = arith::AddIOp::create(builder, loop.getLoc(), counter, offset);
  counter.replaceAllUsesExcept(index, index);
}

/// Clones the nest to work on the locals of the tile.
Operation *KernelLowering::cloneIrregular(Operation *nest) {
  IRMapping mapping;
  for (auto &[buffer, local] : locals)
    mapping.map(buffer, local.memref);
  Operation *copy = builder.clone(*nest, mapping);
  SmallVector<scf::ForOp> loops = loopsOfNest(copy);
  for (auto [loop, offset, size] :
       llvm::zip(taskDims(copy), tileOffsets, tileSizes))
    if (loop >= 0)
      runOverTile(loops[loop], offset, size);
  copy->removeAttr(FP8Dialect::kTaskDimsAttrName);
  accessBooleansAsBytes(copy);
  return copy;
}

/// Returns true if the domain divides the local that is input `input` of a dot
/// as it divides the dot.
bool KernelLowering::readsOwnTile(linalg::GenericOp op, unsigned input) const {
  const Local &local = locals.find(op.getDpsInputs()[input])->second;
  AffineMap map = op.getIndexingMapsArray()[input];
  for (auto [i, dim] : llvm::enumerate(taskDims(op))) {
    if (dim < 0 || !map.isFunctionOfDim(dim))
      continue;
    std::optional<unsigned> position = plainPosition(map, dim);
    if (!position || local.domainLoop[*position] != static_cast<int>(i))
      return false;
  }
  return true;
}

/// Emits a fill, a dot, or a single loop nest.
LogicalResult KernelLowering::emitPart(Operation *op) {
  loc = op->getLoc();
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    emitFill(fill);
    return success();
  }
  if (auto dot = dyn_cast<linalg::GenericOp>(op))
    return emitDot(dot);
  emitIrregular(op);
  return success();
}

LogicalResult KernelLowering::emitParts(size_t first, size_t end) {
  for (size_t index = first; index < end; ++index) {
    Nest *nest = std::get_if<Nest>(&parts[index]);
    if (nest && isEmittedBefore(*nest))
      continue;
    if (index > 0)
      emitPartEnd();
    if (nest)
      emitNest(*nest);
    else if (failed(emitPart(std::get<Operation *>(parts[index]))))
      return failure();
  }
  return success();
}

/// Returns how many keys up to the last one that the queries of the tile see.
Value KernelLowering::seenKeys() {
  unsigned queries = band->queryLoop;
  return arith::AddIOp::create(builder, loc, tileOffsets[queries],
                               constantIndex(tileSizes[queries] + band->last));
}

LogicalResult KernelLowering::emitTile(ArrayRef<Value> offsets,
                                       ArrayRef<int64_t> sizes) {
  tileOffsets.assign(offsets.begin(), offsets.end());
  tileSizes.assign(sizes.begin(), sizes.end());
  placeLocals();
  return keyCounts.empty() ? emitParts() : emitPartsByKeys();
}

/// Returns true if `op` sums over the loop that runs block by block.
bool KernelLowering::sumsBlocks(linalg::GenericOp op) const {
  SmallVector<int64_t> loops = taskDims(op);
  return inOrder && !loops.empty() && loops.back() >= 0 &&
         op.getIteratorTypesArray()[loops.back()] ==
             utils::IteratorType::reduction;
}

/// Returns a bound of the last loop that holds if every row has a visible key,
/// else `otherwise`.
Value KernelLowering::ifEveryRowSees(Value bound, int64_t otherwise) {
  if (!everyRowSees)
    return bound;
  return arith::SelectOp::create(builder, loc, everyRowSees, bound,
                                 constantIndex(otherwise));
}

/// Returns where the first block of the last loop begins in which some query
/// sees some key of the tile.
Value KernelLowering::firstBlock() {
  if (!band || !band->keyLoop)
    return constantIndex(0);
  bool isOfQueries = band->queryLoop + 1 == domain.size();
  std::optional<int64_t> distance =
      isOfQueries ? std::optional<int64_t>(-band->last) : band->first;
  if (!distance)
    return constantIndex(0);
  Value seen = arith::AddIOp::create(
      builder, loc, tileOffsets[isOfQueries ? *band->keyLoop : band->queryLoop],
      constantIndex(*distance));
  seen = arith::MaxSIOp::create(builder, loc, seen, constantIndex(0));
  Value number =
      arith::DivUIOp::create(builder, loc, seen, constantIndex(tile.back()));
  Value first =
      arith::MulIOp::create(builder, loc, number, constantIndex(tile.back()));
  return ifEveryRowSees(first, 0);
}

/// Returns from where on no query sees a key of the tile, along the last loop;
/// null if that is its end.
Value KernelLowering::seenEnd() {
  if (!band || !band->keyLoop)
    return nullptr;
  bool isOfQueries = band->queryLoop + 1 == domain.size();
  if (isOfQueries && !band->first)
    return nullptr;
  int64_t distance = isOfQueries ? -*band->first : band->last;
  unsigned other = isOfQueries ? *band->keyLoop : band->queryLoop;
  Value end = arith::AddIOp::create(builder, loc, tileOffsets[other],
                                    constantIndex(tileSizes[other] + distance));
  return ifEveryRowSees(end, domain.back());
}

LogicalResult KernelLowering::beginBlocks(ArrayRef<int64_t> largest) {
  for (linalg::FillOp fill : firstFills) {
    emitFill(fill);
    emitPartEnd();
  }
  return success();
}

/// Emits the last loop of the domain, block by block.
LogicalResult KernelLowering::emitBlocks(SmallVectorImpl<Value> &offsets,
                                         SmallVectorImpl<int64_t> &sizes) {
  SmallVector<int64_t> largest(sizes.begin(), sizes.end());
  largest.push_back(tile.back());
  auto setTile = [&] {
    tileOffsets.assign(offsets.begin(), offsets.end());
    tileSizes.assign(sizes.begin(), sizes.end());
  };
  setTile();
  if (failed(beginBlocks(largest)) || failed(emitEachBlock(offsets, sizes)))
    return failure();
  setTile();
  return endBlocks(largest);
}

LogicalResult KernelLowering::emitEachBlock(SmallVectorImpl<Value> &offsets,
                                            SmallVectorImpl<int64_t> &sizes) {
  int64_t extent = domain.back(), size = tile.back();
  int64_t whole = extent / size * size;
  auto emit = [&](Value offset, int64_t count) {
    offsets.push_back(offset);
    sizes.push_back(count);
    LogicalResult result = emitTile(offsets, sizes);
    emitPartEnd();
    offsets.pop_back();
    sizes.pop_back();
    return result;
  };
  Value first = firstBlock(), seen = seenEnd(), end = constantIndex(whole);
  if (seen)
    end = arith::MinSIOp::create(builder, loc, seen, end);
  auto loop = scf::ForOp::create(builder, loc, first, end, constantIndex(size));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop.getBody()->getTerminator());
  if (failed(emit(loop.getInductionVar(), size)))
    return failure();
  builder.setInsertionPointAfter(loop);
  if (whole == extent)
    return success();
  if (seen) {
    Value sees = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sgt,
                                       seen, constantIndex(whole));
    auto branch = scf::IfOp::create(builder, loc, sees);
    builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  }
  return emit(constantIndex(whole), extent - whole);
}

/// Emits tiles, which have static sizes: if a domain loop's last tile is
/// smaller, it gets code of its own.
LogicalResult KernelLowering::emitTiles(unsigned loop,
                                        SmallVectorImpl<Value> &offsets,
                                        SmallVectorImpl<int64_t> &sizes,
                                        ArrayRef<Value> tileIndex) {
  if (loop == domain.size())
    return emitTile(offsets, sizes);
  if (inOrder && loop + 1 == domain.size())
    return emitBlocks(offsets, sizes);
  Value offset = arith::MulIOp::create(builder, loc, tileIndex[loop],
                                       constantIndex(tile[loop]));
  auto descend = [&](int64_t size) {
    offsets.push_back(offset);
    sizes.push_back(size);
    LogicalResult result = emitTiles(loop + 1, offsets, sizes, tileIndex);
    offsets.pop_back();
    sizes.pop_back();
    return result;
  };
  int64_t rest = domain[loop] % tile[loop];
  if (rest == 0)
    return descend(tile[loop]);
  Value isLast = arith::CmpIOp::create(
      builder, loc, arith::CmpIPredicate::eq, tileIndex[loop],
      constantIndex(domain[loop] / tile[loop]));
  auto ifOp = scf::IfOp::create(builder, loc, isLast, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(ifOp.thenBlock()->getTerminator());
  if (failed(descend(rest)))
    return failure();
  builder.setInsertionPoint(ifOp.elseBlock()->getTerminator());
  return descend(tile[loop]);
}

LogicalResult KernelLowering::emitTask(Value task) {
  SmallVector<Value> offsets;
  SmallVector<int64_t> sizes;
  return emitTiles(0, offsets, sizes, tileIndexOf(task));
}

/// Turns arguments of booleans into arguments of bytes.
void KernelLowering::keepBooleansAsBytes() {
  for (BlockArgument arg : body().getArguments()) {
    auto type = cast<MemRefType>(arg.getType());
    if (!type.getElementType().isInteger(1))
      continue;
    boolArguments.insert(arg);
    arg.setType(MemRefType::get(type.getShape(), builder.getI8Type()));
  }
}

int64_t KernelLowering::countTasks() {
  return countTiles(ArrayRef(domain).drop_back(inOrder),
                    ArrayRef(tile).drop_back(inOrder));
}

/// Splits the number of a task into the index of its tile along each domain
/// loop.
SmallVector<Value> KernelLowering::tileIndexOf(Value task) {
  SmallVector<Value> tileIndex(domain.size());
  Value rest = task;
  for (unsigned loop = domain.size() - inOrder; loop-- > 0;) {
    int64_t count = llvm::divideCeil(domain[loop], tile[loop]);
    tileIndex[loop] =
        arith::RemUIOp::create(builder, loc, rest, constantIndex(count));
    rest = arith::DivUIOp::create(builder, loc, rest, constantIndex(count));
  }
  return tileIndex;
}

/// Checks that the ops of a nest, which share its loops, either all run over
/// fewer keys or none does.
LogicalResult KernelLowering::verifyKeyLoops() {
  for (const auto &part : parts)
    if (const Nest *nest =
            keyCounts.empty() ? nullptr : std::get_if<Nest>(&part))
      for (linalg::GenericOp op : nest->ops)
        if (keyLoopOf(op) != keyLoopOf(nest->ops.front()))
          return op.emitOpError("expected all ops of a nest to run over the "
                                "keys that its queries see, or none");
  return success();
}

LogicalResult KernelLowering::findParts() {
  collectLocals();
  if (failed(verifyLocals()))
    return failure();
  collectInits();
  parts = collectNests(body(), domain, sumTile, absorbedFills);
  return success();
}

LogicalResult KernelLowering::run() {
  if (failed(findParts()) || failed(verifyKeyLoops()) || failed(planScratch()))
    return failure();

  SmallVector<Operation *> old;
  for (Operation &op : body().without_terminator())
    if (!isa<arith::ConstantOp>(op))
      old.push_back(&op);
  keepBooleansAsBytes();
  loc = kernel.getLoc();
  builder.setInsertionPoint(body().getTerminator());
  if (failed(emitTasks(prepareArguments())))
    return failure();
  for (Operation *op : llvm::reverse(old)) {
    op->dropAllUses();
    op->erase();
  }
  kernel.setType(builder.getFunctionType(body().getArgumentTypes(), {}));
  return success();
}
