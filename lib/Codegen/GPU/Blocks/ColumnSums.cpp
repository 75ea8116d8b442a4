//===- ColumnSums.cpp - Sums over many rows of few columns ----------------===//
//
// Long sums are divided into short blocks, whose sums are added one after the
// other. A block of threads has several threads for each column: each computes
// the sums of other blocks of rows, and the first adds what they have found:
//
//   for each number of blocks of rows, as many as shared memory holds sums of:
//     sums of the thread's blocks of rows -> shared memory
//     barrier
//     the column's first thread: total += sums, in order
//     barrier
//
// Neighbouring threads have neighbouring columns, so that accesses to global
// memory coalesce. The order of all sums is that of the CPU.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

using lowering::isFloatSum;
using lowering::SumBlocks;

/// The bytes of sums that a block keeps before it adds them. While its first
/// threads add, no thread loads: with too few sums at once, memory would wait
/// for additions, and the threads at barriers.
static constexpr int64_t kSumBytes = 32 << 10;

static int64_t bitsOf(Operation *combiner) {
  return combiner->getResult(0).getType().getIntOrFloatBitWidth();
}

/// Returns whether the threads of a block can share the sums of a column.
bool BlockLowering::isColumnSum(const Nest &nest) {
  bool isOfColumns =
      nest.reduction.any() &&
      !(nest.vectorLoop && nest.reduction.test(*nest.vectorLoop));
  return isOfColumns &&
         lowering::isLongSum(lowering::sumLoops(nest, nest.extents)) &&
         llvm::all_of(accumulatorsOf(nest).combiners, [](Operation *combiner) {
           return combiner && (isFloatSum(combiner) || isExact(combiner)) &&
                  bitsOf(combiner) >= 8;
         });
}

bool BlockLowering::hasColumnSums() const { return columnSumBytes() > 0; }

/// Returns the bytes of a sum of a column, for all accumulators.
int64_t BlockLowering::bytesOfSum(const Nest &nest) {
  int64_t bits = 0;
  for (Operation *combiner : accumulatorsOf(nest).combiners)
    bits += bitsOf(combiner);
  return bits / 8;
}

/// Returns how many sums each thread of a column computes before the first adds
/// them.
int64_t BlockLowering::sumsInTurn(const Nest &nest) const {
  SmallVector<int64_t> extents = lowering::extentsIn(tile, nest.ops.front());
  int64_t columns = 1;
  for (auto [loop, extent] : llvm::enumerate(extents))
    if (!nest.reduction.test(loop))
      columns *= extent;
  int64_t numBlocks = ShapedType::getNumElements(
      lowering::sumBlocksOf(lowering::sumLoops(nest, extents)).counts());
  int64_t groups =
      std::max<int64_t>(threads / std::max<int64_t>(columns, 1), 1);
  return std::clamp<int64_t>(kSumBytes / (threads * bytesOfSum(nest)), 1,
                             llvm::divideCeil(numBlocks, groups));
}

/// Returns the most bytes of the sums that the threads of a block share; 0 if
/// they share none.
int64_t BlockLowering::columnSumBytes() const {
  int64_t most = 0;
  for (const auto &part : parts)
    if (const Nest *nest = std::get_if<Nest>(&part); nest && isColumnSum(*nest))
      most = std::max(most, threads * sumsInTurn(*nest) * bytesOfSum(*nest));
  return most;
}

/// What the threads of the columns share.
struct BlockLowering::ColumnSums {
  Accumulators accumulators;
  /// The number of blocks of rows, of columns, of threads per column, and of
  /// sums that each of them computes in turn.
  int64_t numBlocks = 1, columns = 1, groups = 1, turns = 1;
  /// Shared memory for the sums of all threads, for each accumulator.
  SmallVector<Value> memory;
  /// The column of this thread, and its number among the column's threads.
  Value column, group;
};

/// Lets the loops run over one block of rows. Returns the condition that the
/// block is a whole one; null if all are.
Value BlockLowering::setBlockIndices(const SumBlocks &blocks, Value number,
                                     Loops &loops) {
  SmallVector<int64_t> counts = blocks.counts();
  SmallVector<Value> indices = splitPoint(number, counts);
  auto at = [&](Value lower, Value index, int64_t step) -> Value {
    return arith::AddIOp::create(
        builder, loc, lower,
        arith::MulIOp::create(builder, loc, index, constantIndex(step)));
  };
  Value isWhole;
  if (blocks.split) {
    const ReductionLoop &loop = *blocks.split;
    Value index = indices.pop_back_val();
    loops.lower[loop.loop] = at(loops.lower[loop.loop], index, blocks.width);
    if (loop.extent % blocks.width != 0)
      isWhole = isBelow(index, loop.extent / blocks.width);
  }
  for (auto [loop, index] : llvm::zip_equal(blocks.outer, indices))
    loops.index[loop.loop] = at(loops.lower[loop.loop], index, loop.step);
  return isWhole;
}

/// Stores the sums of the block of rows with this number to shared memory, as
/// those of `place` in the current round.
void BlockLowering::storeColumnSums(const Nest &nest, const Loops &outer,
                                    const SumBlocks &blocks,
                                    const ColumnSums &sums, Value number,
                                    Value place) {
  Loops loops = outer;
  Value isWhole = setBlockIndices(blocks, number, loops);
  SmallVector<Value> start;
  for (Operation *combiner : sums.accumulators.combiners)
    start.push_back(neutralValue(combiner, combiner->getResult(0).getType()));
  auto sumOf = [&](int64_t extent) {
    return emitReductionLoops(
        loops, blocks.loopsOfBlock(extent), start,
        [&](ValueRange running) { return emitBody(nest, loops, 1, running); });
  };
  SmallVector<Value> parts;
  if (!isWhole)
    parts = sumOf(blocks.width);
  else
    parts = ifThenElse(
        isWhole, ValueRange(start).getTypes(),
        [&] { return sumOf(blocks.width); },
        [&] { return sumOf(blocks.split->extent % blocks.width); });
  for (auto [part, memory] : llvm::zip(parts, sums.memory))
    memref::StoreOp::create(builder, loc, part, memory,
                            placeOfSum(sums, place));
}

Value BlockLowering::placeOfSum(const ColumnSums &sums, Value number) {
  Value row =
      arith::MulIOp::create(builder, loc, number, constantIndex(sums.columns));
  return arith::AddIOp::create(builder, loc, row, sums.column);
}

/// Adds the sums of `count` blocks to those of this thread's column.
SmallVector<Value> BlockLowering::addColumnSums(const ColumnSums &sums,
                                                Value count,
                                                ValueRange carried) {
  auto loop = scf::ForOp::create(builder, loc, constantIndex(0), count,
                                 constantIndex(1), carried);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToEnd(loop.getBody());
  ValueRange running = loop.getRegionIterArgs();
  Value place = placeOfSum(sums, loop.getInductionVar());
  SmallVector<Value> next, losses;
  unsigned loss = sums.memory.size();
  for (auto [i, memory] : llvm::enumerate(sums.memory)) {
    Operation *combiner = sums.accumulators.combiners[i];
    Value part = memref::LoadOp::create(builder, loc, memory, place);
    if (!isFloatSum(combiner)) {
      next.push_back(combine(combiner, running[i], part));
      continue;
    }
    auto [total, lost] = addCompensated(running[i], running[loss++], part);
    next.push_back(total);
    losses.push_back(lost);
  }
  llvm::append_range(next, losses);
  scf::YieldOp::create(builder, loc, next);
  return loop.getResults();
}

/// Stores the sums of this thread's blocks of rows in the round that begins
/// with block `first`.
void BlockLowering::storeSumsInTurn(const Nest &nest, const Loops &loops,
                                    const SumBlocks &blocks,
                                    const ColumnSums &sums, Value first) {
  emitLoop(0, sums.turns * sums.groups, sums.groups, {},
           [&](Value turn, ValueRange) -> SmallVector<Value> {
             Value place =
                 arith::AddIOp::create(builder, loc, turn, sums.group);
             Value number = arith::AddIOp::create(builder, loc, first, place);
             Value exists = arith::AndIOp::create(
                 builder, loc, isBelow(sums.group, sums.groups),
                 isBelow(number, sums.numBlocks));
             ifThen(exists, [&] {
               storeColumnSums(nest, loops, blocks, sums, number, place);
             });
             return {};
           });
}

/// Emits the loop over the blocks of rows, as many at once as there is memory
/// for. Returns the totals, which the first threads of the columns have.
SmallVector<Value> BlockLowering::emitSumRounds(const Nest &nest,
                                                const Loops &loops,
                                                const SumBlocks &blocks,
                                                const ColumnSums &sums,
                                                ValueRange carried) {
  int64_t most = sums.groups * sums.turns;
  return emitLoop(0, sums.numBlocks, most, carried,
                  [&](Value first, ValueRange running) -> SmallVector<Value> {
                    storeSumsInTurn(nest, loops, blocks, sums, first);
                    emitBarrier();
                    Value left = arith::SubIOp::create(
                        builder, loc, constantIndex(sums.numBlocks), first);
                    Value count = arith::MinUIOp::create(builder, loc, left,
                                                         constantIndex(most));
                    SmallVector<Value> next =
                        ifThen(isBelow(thread, sums.columns), running, [&] {
                          return addColumnSums(sums, count, running);
                        });
                    // The next round overwrites the sums.
                    emitBarrier();
                    return next;
                  });
}

/// Emits the sums of the columns of a tile. Returns false if each thread should
/// rather have columns of its own.
bool BlockLowering::emitColumnSums(const Nest &nest, Loops &loops,
                                   ArrayRef<unsigned> order) {
  ColumnSums sums;
  SmallVector<int64_t> counts;
  for (unsigned loop : order) {
    counts.push_back(loops.extent[loop]);
    sums.columns *= counts.back();
  }
  if (!isColumnSum(nest) || sums.columns == 0 || 2 * sums.columns > threads)
    return false;
  SumBlocks blocks =
      lowering::sumBlocksOf(lowering::sumLoops(nest, loops.extent));
  sums.numBlocks = ShapedType::getNumElements(blocks.counts());
  sums.groups = std::min(threads / sums.columns, sums.numBlocks);
  sums.turns = sumsInTurn(nest);
  sums.accumulators = accumulatorsOf(nest);
  Value columns = constantIndex(sums.columns);
  sums.column = arith::RemUIOp::create(builder, loc, thread, columns);
  sums.group = arith::DivUIOp::create(builder, loc, thread, columns);
  SmallVector<Value> start = startColumnSums(nest, loops, order, counts, sums);
  SmallVector<Value> totals = emitSumRounds(nest, loops, blocks, sums, start);
  ifThen(isBelow(thread, sums.columns), [&] {
    storeResults(nest, loops, 1, sums.accumulators,
                 ArrayRef(totals).take_front(sums.memory.size()));
  });
  return true;
}

/// Sets the indices of this thread's column and the memory for sums. Returns
/// the initial values of the accumulators and of the lost parts of float sums.
SmallVector<Value> BlockLowering::startColumnSums(const Nest &nest,
                                                  Loops &loops,
                                                  ArrayRef<unsigned> order,
                                                  ArrayRef<int64_t> counts,
                                                  ColumnSums &sums) {
  setIndices(sums.column, order, counts, 1, loops);
  SmallVector<Value> carried, losses;
  int64_t offset = sumOffset;
  for (auto [output, combiner] :
       llvm::zip(sums.accumulators.outputs, sums.accumulators.combiners)) {
    carried.push_back(
        initialValue(output.first, output.second, nest, loops, 1));
    Type type = carried.back().getType();
    if (isFloatSum(combiner))
      losses.push_back(
          arith::ConstantOp::create(builder, loc, builder.getZeroAttr(type)));
    auto memory = MemRefType::get(
        {threads * sums.turns}, type, MemRefLayoutAttrInterface(),
        cast<MemRefType>(sharedArgument.getType()).getMemorySpace());
    sums.memory.push_back(
        memref::ViewOp::create(builder, loc, memory, sharedArgument,
                               constantIndex(offset), ValueRange{}));
    offset += threads * sums.turns * type.getIntOrFloatBitWidth() / 8;
  }
  llvm::append_range(carried, losses);
  return carried;
}
