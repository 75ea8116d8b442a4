//===- Sums.cpp - Reductions and long float sums --------------------------===//

#include "KernelLowering.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// The number of terms that a sum adds one after another. The sums of such
/// blocks are added with compensation, so that the error of long sums does not
/// grow.
static constexpr int64_t kSumBlock = 16;

static int64_t volumeOf(ArrayRef<ReductionLoop> order) {
  int64_t volume = 1;
  for (const ReductionLoop &loop : order)
    volume *= loop.count();
  return volume;
}

bool lowering::isLongSum(ArrayRef<ReductionLoop> order) {
  return volumeOf(order) > 2 * kSumBlock;
}

Value KernelLowering::combine(Operation *combiner, Value a, Value b) {
  Operation *op =
      builder.create(loc, combiner->getName().getIdentifier(), ValueRange{a, b},
                     TypeRange{a.getType()}, combiner->getAttrs());
  if (combiner->getPropertiesStorageSize())
    op->copyProperties(combiner->getPropertiesStorage());
  return op->getResult(0);
}

/// Reduces a vector by halves until one lane is left.
Value KernelLowering::reduceLanes(Value vector, Operation *combiner) {
  int64_t lanes = cast<VectorType>(vector.getType()).getNumElements();
  Value odd;
  while (lanes > 1) {
    if (lanes % 2) {
      Value last = lane(vector, lanes - 1);
      odd = odd ? combine(combiner, odd, last) : last;
    }
    int64_t half = lanes / 2;
    auto slice = [&](int64_t offset) -> Value {
      return vector::ExtractStridedSliceOp::create(
          builder, loc, vector, ArrayRef<int64_t>{offset},
          ArrayRef<int64_t>{half}, ArrayRef<int64_t>{1});
    };
    vector = combine(combiner, slice(0), slice(half));
    lanes = half;
  }
  Value result = lane(vector, 0);
  return odd ? combine(combiner, result, odd) : result;
}

/// Emits a loop with carried values; `body` gets the offset of its iteration.
SmallVector<Value> KernelLowering::emitLoop(Value begin, Value end,
                                            int64_t step, ValueRange carried,
                                            LoopBody body) {
  auto forOp = scf::ForOp::create(builder, loc, begin, end, constantIndex(step),
                                  carried);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = forOp.getBody();
  if (!block->empty() && isa<scf::YieldOp>(block->back()))
    block->back().erase();
  builder.setInsertionPointToEnd(block);
  SmallVector<Value> next =
      body(forOp.getInductionVar(), forOp.getRegionIterArgs());
  scf::YieldOp::create(builder, loc, next);
  return forOp.getResults();
}

/// Emits sequential loops over `order` that carry accumulators.
SmallVector<Value>
KernelLowering::emitReductionLoops(Loops &loops, ArrayRef<ReductionLoop> order,
                                   ValueRange accumulators,
                                   ReductionBody body) {
  if (order.empty())
    return body(accumulators);
  const ReductionLoop &loop = order.front();
  Value end = loop.open ? loop.open : constantIndex(loop.extent);
  return emitLoop(
      constantIndex(0), end, loop.step, accumulators,
      [&](Value offset, ValueRange running) {
        loops.index[loop.loop] =
            arith::AddIOp::create(builder, loc, offset, loops.lower[loop.loop]);
        return emitReductionLoops(loops, order.drop_front(), running, body);
      });
}

bool lowering::isFloatSum(Operation *combiner) {
  return isa_and_nonnull<arith::AddFOp>(combiner);
}

Value KernelLowering::neutralValue(Operation *combiner, Type type) {
  Value neutral = arith::ConstantOp::create(
      builder, loc, *arith::getNeutralElement(combiner));
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector::BroadcastOp::create(builder, loc, vector, neutral)
                : neutral;
}

/// Emits Kahan's addition; returns the new sum and the lost part. For a sum
/// that is or becomes infinite, the lost part is 0: an infinite one would make
/// the next sum NaN.
std::pair<Value, Value> KernelLowering::addCompensated(Value sum, Value lost,
                                                       Value term) {
  Value y = arith::SubFOp::create(builder, loc, term, lost);
  Value next = arith::AddFOp::create(builder, loc, sum, y);
  Value added = arith::SubFOp::create(builder, loc, next, sum);
  Value nextLost = arith::SubFOp::create(builder, loc, added, y);
  // The difference of a value to itself is NaN if the value is not finite.
  Value itself = arith::SubFOp::create(builder, loc, nextLost, nextLost);
  Value isFinite = arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::ORD, itself, itself);
  Value none = arith::ConstantOp::create(builder, loc,
                                         builder.getZeroAttr(sum.getType()));
  return {next,
          arith::SelectOp::create(builder, loc, isFinite, nextLost, none)};
}

/// Emits one block of a sum, `order` at the current indices: computes its own
/// sums, and adds them to the total sums.
SmallVector<Value> KernelLowering::emitSumBlock(Loops &loops,
                                                ArrayRef<ReductionLoop> order,
                                                ValueRange carried,
                                                ArrayRef<Operation *> combiners,
                                                ReductionBody body) {
  unsigned count = combiners.size();
  SmallVector<Value> start, next, losses;
  for (unsigned i = 0; i < count; ++i)
    start.push_back(isFloatSum(combiners[i])
                        ? neutralValue(combiners[i], carried[i].getType())
                        : carried[i]);
  SmallVector<Value> parts = emitReductionLoops(loops, order, start, body);
  for (unsigned i = 0, sum = count; i < count; ++i) {
    if (!isFloatSum(combiners[i])) {
      next.push_back(parts[i]);
      continue;
    }
    auto [total, lost] = addCompensated(carried[i], carried[sum++], parts[i]);
    next.push_back(total);
    losses.push_back(lost);
  }
  llvm::append_range(next, losses);
  return next;
}

SumBlocks lowering::sumBlocksOf(ArrayRef<ReductionLoop> order) {
  SumBlocks blocks;
  while (volumeOf(order) > kSumBlock) {
    ReductionLoop loop = order.front();
    order = order.drop_front();
    int64_t perBlock = kSumBlock / volumeOf(order);
    if (perBlock > 1) {
      blocks.split = loop;
      blocks.width = perBlock * loop.step;
      break;
    }
    blocks.outer.push_back(loop);
  }
  llvm::append_range(blocks.rest, order);
  return blocks;
}

/// Emits loops over `order` whose float sums are sums of short blocks.
/// `carried` holds the accumulators, then the lost part of each sum.
SmallVector<Value> KernelLowering::emitSumBlocks(
    Loops &loops, ArrayRef<ReductionLoop> order, ValueRange carried,
    ArrayRef<Operation *> combiners, ReductionBody body) {
  SumBlocks blocks = sumBlocksOf(order);
  return emitReductionLoops(
      loops, blocks.outer, carried, [&](ValueRange running) {
        if (!blocks.split)
          return emitSumBlock(loops, blocks.rest, running, combiners, body);
        return emitSplitLoop(loops, blocks, running, combiners, body);
      });
}

/// Emits the loop whose iterations are divided into blocks; the last block may
/// be shorter. That of an open loop has no code of its own.
SmallVector<Value> KernelLowering::emitSplitLoop(
    Loops &loops, const SumBlocks &blocks, ValueRange carried,
    ArrayRef<Operation *> combiners, ReductionBody body) {
  const ReductionLoop &loop = *blocks.split;
  int64_t width = blocks.width;
  Value lower = loops.lower[loop.loop];
  auto part = [&](Value offset, int64_t extent, ValueRange running,
                  Value open = nullptr) {
    loops.lower[loop.loop] = arith::AddIOp::create(builder, loc, offset, lower);
    SmallVector<Value> next = emitSumBlock(
        loops, blocks.loopsOfBlock(extent, open), running, combiners, body);
    loops.lower[loop.loop] = lower;
    return next;
  };
  if (loop.open)
    return emitLoop(
        constantIndex(0), loop.open, width, carried,
        [&](Value offset, ValueRange running) {
          if (OpenLoop::kMultiple % width == 0)
            return part(offset, width, running);
          Value left = arith::SubIOp::create(builder, loc, loop.open, offset);
          left =
              arith::MinUIOp::create(builder, loc, left, constantIndex(width));
          return part(offset, width, running, left);
        });
  int64_t whole = llvm::alignDown(loop.extent, width);
  SmallVector<Value> next =
      emitLoop(0, whole, width, carried, [&](Value offset, ValueRange running) {
        return part(offset, width, running);
      });
  if (whole < loop.extent)
    next = part(constantIndex(whole), loop.extent - whole, next);
  return next;
}

/// Emits loops over `order`. Long float sums are computed in blocks if every
/// output has a combiner.
SmallVector<Value> KernelLowering::emitBlockedSums(
    Loops &loops, ArrayRef<ReductionLoop> order, ValueRange accumulators,
    ArrayRef<Operation *> combiners, ReductionBody body) {
  if (!isLongSum(order) || llvm::none_of(combiners, isFloatSum))
    return emitReductionLoops(loops, order, accumulators, body);
  SmallVector<Value> carried = llvm::to_vector(accumulators);
  for (auto [value, combiner] : llvm::zip(accumulators, combiners))
    if (isFloatSum(combiner))
      carried.push_back(arith::ConstantOp::create(
          builder, loc, builder.getZeroAttr(value.getType())));
  SmallVector<Value> results =
      emitSumBlocks(loops, order, carried, combiners, body);
  results.resize(combiners.size());
  return results;
}
