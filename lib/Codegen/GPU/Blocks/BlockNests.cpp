//===- BlockNests.cpp - The loops of a nest on the threads of a block -----===//

#include "BlockLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

/// The widest access of a thread.
static constexpr int64_t kAccessBytes = 16;
/// Partial sums per thread of a group.
static constexpr int64_t kSumsPerThread = 4;

Value BlockLowering::isBelow(Value index, int64_t bound) {
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult, index,
                               constantIndex(bound));
}

SmallVector<Value>
BlockLowering::ifThenElse(Value condition, TypeRange types,
                          function_ref<SmallVector<Value>()> body,
                          function_ref<SmallVector<Value>()> otherwise) {
  auto branch = scf::IfOp::create(builder, loc, types, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  auto fill = [&](Block *block, function_ref<SmallVector<Value>()> values) {
    builder.setInsertionPointToEnd(block);
    scf::YieldOp::create(builder, loc, values());
  };
  fill(branch.thenBlock(), body);
  fill(branch.elseBlock(), otherwise);
  return branch.getResults();
}

SmallVector<Value>
BlockLowering::ifThen(Value condition, ValueRange otherwise,
                      function_ref<SmallVector<Value>()> body) {
  if (!condition)
    return body();
  return ifThenElse(condition, otherwise.getTypes(), body,
                    [&] { return llvm::to_vector(otherwise); });
}

void BlockLowering::ifThen(Value condition, function_ref<void()> body) {
  if (!condition)
    return body();
  auto branch = scf::IfOp::create(builder, loc, condition);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(branch.thenBlock()->getTerminator());
  body();
}

void BlockLowering::forPoints(int64_t points, Value worker, int64_t workers,
                              bool together,
                              function_ref<void(Value, Value)> body) {
  int64_t turns = llvm::divideCeil(points, workers);
  bool whole = points % workers == 0;
  auto forTurns = [&](Value from, int64_t to, int64_t step,
                      function_ref<void(Value)> inner) {
    auto loop = scf::ForOp::create(builder, loc, from, constantIndex(to),
                                   constantIndex(step));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    inner(loop.getInductionVar());
  };
  if (together) {
    auto turn = [&](Value first) {
      Value point = arith::AddIOp::create(builder, loc, first, worker);
      if (whole)
        return body(point, Value());
      Value exists = isBelow(point, points);
      point = arith::MinUIOp::create(builder, loc, point,
                                     constantIndex(points - 1));
      body(point, exists);
    };
    if (turns == 1)
      return turn(constantIndex(0));
    return forTurns(constantIndex(0), turns * workers, workers, turn);
  }
  if (turns > 1)
    return forTurns(worker, points, workers,
                    [&](Value point) { body(point, Value()); });
  ifThen(whole ? Value() : isBelow(worker, points),
         [&] { body(worker, Value()); });
}

SmallVector<Value> BlockLowering::splitPoint(Value point,
                                             ArrayRef<int64_t> counts) {
  SmallVector<Value> indices(counts.size(), point);
  for (unsigned i = counts.size(); i-- > 1;) {
    Value count = constantIndex(counts[i]);
    indices[i] = arith::RemUIOp::create(builder, loc, point, count);
    point = arith::DivUIOp::create(builder, loc, point, count);
    indices[i - 1] = point;
  }
  return indices;
}

/// Splits the number of a point into the indices of the loops; the last one
/// advances in steps of `lanes`.
void BlockLowering::setIndices(Value point, ArrayRef<unsigned> order,
                               ArrayRef<int64_t> counts, int64_t lanes,
                               Loops &loops) {
  SmallVector<Value> indices = splitPoint(point, counts);
  if (lanes > 1)
    indices.back() = arith::MulIOp::create(builder, loc, indices.back(),
                                           constantIndex(lanes));
  for (auto [loop, index] : llvm::zip_equal(order, indices))
    loops.index[loop] =
        arith::AddIOp::create(builder, loc, index, loops.lower[loop]);
}

/// Returns true if vectors of `lanes` start at multiples of `lanes`.
bool BlockLowering::startsAligned(const Nest &nest, int64_t lanes) {
  for (auto [i, dim] : llvm::enumerate(lowering::taskDims(nest.ops.front())))
    if (dim == *nest.vectorLoop && tile[i] != domain[i] && tile[i] % lanes != 0)
      return false;
  return true;
}

bool BlockLowering::readsAcross() const {
  return !tile.empty() && tile.back() < std::min(domain.back(), kWarp) &&
         llvm::any_of(
             parts,
             [](const auto &part) {
               const Nest *nest = std::get_if<Nest>(&part);
               return nest && nest->vectorLoop &&
                      nest->vectorLoop ==
                          lowering::taskDims(nest->ops.front()).back();
             });
}

/// Returns how many adjacent points a thread computes at once: as many as fit
/// into one access, if that leaves work for all threads.
int64_t BlockLowering::lanesPerThread(const Nest &nest,
                                      ArrayRef<unsigned> order,
                                      const Loops &loops) {
  if (!nest.vectorLoop || order.empty())
    return 1;
  int64_t points = iterationsOf(order, loops.extent), bytes = 1;
  for (linalg::GenericOp op : nest.ops)
    for (Value operand : op->getOperands()) {
      Type element = cast<MemRefType>(operand.getType()).getElementType();
      bytes = std::max<int64_t>(bytes, elementBytes(element));
    }
  int64_t lanes = std::max<int64_t>(kAccessBytes / bytes, 1);
  int64_t extent = loops.extent[*nest.vectorLoop];
  while (lanes > 1 && (extent % lanes != 0 || points / lanes < threads ||
                       !startsAligned(nest, lanes)))
    lanes /= 2;
  return lanes;
}

void BlockLowering::emitParallelLoops(const Nest &nest, Loops &loops,
                                      ArrayRef<unsigned> order) {
  if (nest.vectorLoop && nest.reduction.test(*nest.vectorLoop))
    return emitGroupReduction(nest, loops, order);
  if (emitColumnSums(nest, loops, order))
    return;
  if (linalg::GenericOp op = nest.ops.front();
      isTranspose(op) && locals.contains(op.getInputs()[0]))
    return emitTranspose(op, loops);
  Nest own = nest;
  own.lanes = lanesPerThread(nest, order, loops);
  own.startsAligned = own.lanes > 1;
  SmallVector<int64_t> counts;
  int64_t points = 1;
  for (unsigned loop : order) {
    counts.push_back(loops.extent[loop]);
    if (loop == order.back())
      counts.back() /= own.lanes;
    points *= counts.back();
  }
  if (points == 0)
    return;
  forPoints(points, thread, threads, /*together=*/false,
            [&](Value point, Value) {
              setIndices(point, order, counts, own.lanes, loops);
              emitReduction(own, loops, own.lanes);
            });
}

//===----------------------------------------------------------------------===//
// Sums of a group of threads
//===----------------------------------------------------------------------===//

bool BlockLowering::isExact(Operation *combiner) {
  return isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
             arith::MinUIOp, arith::AddIOp, arith::MulIOp, arith::AndIOp,
             arith::OrIOp, arith::XOrIOp>(combiner);
}

bool BlockLowering::hasGroupSums() const {
  return llvm::any_of(parts, [](const auto &part) {
    const Nest *nest = std::get_if<Nest>(&part);
    return nest && nest->vectorLoop && nest->reduction.test(*nest->vectorLoop);
  });
}

/// Returns the value of the thread that is `threads` further in the warp.
Value BlockLowering::shuffleDown(Value value, int64_t threads) {
  Type type = value.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  auto shuffle = [&](Value word) -> Value {
    return gpu::ShuffleOp::create(builder, loc, word,
                                  static_cast<int32_t>(threads), 32,
                                  gpu::ShuffleMode::DOWN)
        .getShuffleResult();
  };
  if (type.isF32() || type.isInteger(32))
    return shuffle(value);
  Type bitsType = builder.getIntegerType(width), i32 = builder.getI32Type();
  Value bits =
      isa<FloatType>(type)
          ? Value(arith::BitcastOp::create(builder, loc, bitsType, value))
          : value;
  if (width < 32) {
    bits = shuffle(arith::ExtUIOp::create(builder, loc, i32, bits));
    bits = arith::TruncIOp::create(builder, loc, bitsType, bits);
  } else {
    assert(width == 64 && "numbers have up to 64 bits");
    Value half =
        arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(32));
    Value low = arith::TruncIOp::create(builder, loc, i32, bits);
    Value high = arith::TruncIOp::create(
        builder, loc, i32, arith::ShRUIOp::create(builder, loc, bits, half));
    low = arith::ExtUIOp::create(builder, loc, bitsType, shuffle(low));
    high = arith::ExtUIOp::create(builder, loc, bitsType, shuffle(high));
    bits = arith::OrIOp::create(
        builder, loc, low, arith::ShLIOp::create(builder, loc, high, half));
  }
  if (isa<FloatType>(type))
    return arith::BitcastOp::create(builder, loc, type, bits);
  return bits;
}

/// Combines the `lanes` partial results of a group in the order of reduceLanes.
/// The first thread of the group gets the result.
Value BlockLowering::reduceGroup(Value part, int64_t lanes,
                                 Operation *combiner) {
  SmallVector<Value> own; // the lanes of this thread
  if (auto type = dyn_cast<VectorType>(part.getType()))
    for (int64_t i = 0; i < type.getNumElements(); ++i)
      own.push_back(lane(part, i));
  else
    own.push_back(part);
  int64_t count = own.size();
  auto laneBehind = [&](int64_t distance) {
    Value value = own[distance % count];
    return distance / count ? shuffleDown(value, distance / count) : value;
  };
  Value odd;
  while (lanes > 1) {
    if (lanes % 2) {
      Value last = laneBehind(lanes - 1);
      odd = odd ? combine(combiner, odd, last) : last;
    }
    int64_t half = lanes / 2;
    SmallVector<Value> next(own);
    for (int64_t i = 0; i < std::min(count, half); ++i)
      next[i] = combine(combiner, own[i], laneBehind(i + half));
    own = next;
    lanes = half;
  }
  return odd ? combine(combiner, own[0], odd) : own[0];
}

/// Sums `count` elements from `from` on along the vector loop in `lanes`
/// partial sums. Only the first thread of the group gets the right results.
SmallVector<Value> BlockLowering::emitGroupSums(const Nest &nest, Loops &loops,
                                                ArrayRef<ReductionLoop> order,
                                                ArrayRef<Operation *> combiners,
                                                int64_t from, int64_t count,
                                                int64_t lanes, Value exists) {
  unsigned vectorLoop = *nest.vectorLoop;
  int64_t each = lanes % kSumsPerThread == 0 ? kSumsPerThread : 1;
  bool alone = lanes > each * groupThreads;
  if (alone) // The first thread computes an odd rest of a long row.
    each = lanes;
  Nest own = nest;
  own.lanes = each;
  // Tiles of keys that run in order may begin anywhere.
  own.startsAligned = each > 1 && from % each == 0 && startsAligned(nest, each);
  Value condition = exists;
  int64_t active = lanes / each;
  if (active < groupThreads) {
    Value isActive = isBelow(threadInGroup, active);
    condition =
        exists ? Value(arith::AndIOp::create(builder, loc, exists, isActive))
               : isActive;
  }
  Value lower = loops.lower[vectorLoop];
  Value first =
      arith::MulIOp::create(builder, loc, threadInGroup, constantIndex(each));
  first = arith::AddIOp::create(builder, loc, first, constantIndex(from));
  first = arith::AddIOp::create(builder, loc, first, lower);
  SmallVector<Value> none;
  for (Operation *combiner : combiners) {
    Type type = combiner->getResult(0).getType();
    if (each > 1 && !alone)
      type = VectorType::get({each}, type);
    none.push_back(neutralValue(combiner, type));
  }
  SmallVector<Value> parts =
      ifThen(condition, none, [&]() -> SmallVector<Value> {
        loops.index[vectorLoop] = first;
        if (alone)
          return emitPartialReduction(own, loops, order, combiners, lanes);
        SmallVector<ReductionLoop> all(order);
        loops.lower[vectorLoop] = first;
        if (from == 0)
          all.push_back({vectorLoop, count, lanes});
        SmallVector<Value> sums =
            emitPartialSums(own, loops, all, combiners, each);
        loops.lower[vectorLoop] = lower;
        return sums;
      });
  if (!alone)
    for (auto [part, combiner] : llvm::zip(parts, combiners))
      part = reduceGroup(part, lanes, combiner);
  return parts;
}

/// Returns the partial results of a row. They are the lanes of the CPU's
/// vector, which determine the order of a sum; a maximum, which any order
/// gives, has those of a whole warp, so that a warp reads adjacent elements of
/// one row.
int64_t BlockLowering::lanesOfRow(const Nest &nest, int64_t extent,
                                  ArrayRef<Operation *> combiners) {
  int64_t lanes = nest.lanes;
  if (extent % kSumsPerThread == 0 && llvm::all_of(combiners, isExact))
    lanes = std::max(lanes, kWarp * kSumsPerThread);
  lanes = std::max<int64_t>(std::min(lanes, extent), 1);
  // A group is a part of a warp, also if a block has fewer terms than the CPU's
  // vectors have lanes.
  return lanes > kWarp ? llvm::alignDown(lanes, kSumsPerThread) : lanes;
}

/// Emits a reduction over the vector loop. The lanes of a CPU's vector become
/// the threads of a group.
void BlockLowering::emitGroupReduction(const Nest &nest, Loops &loops,
                                       ArrayRef<unsigned> order) {
  unsigned vectorLoop = *nest.vectorLoop;
  int64_t extent = loops.extent[vectorLoop];
  Accumulators accumulators = accumulatorsOf(nest);
  int64_t lanes = lanesOfRow(nest, extent, accumulators.combiners);
  int64_t whole = extent / lanes * lanes, rest = extent - whole;
  SmallVector<ReductionLoop> others;
  for (unsigned loop : nest.reduction.set_bits())
    if (loop != vectorLoop)
      others.push_back({loop, loops.extent[loop]});
  int64_t each = lanes % kSumsPerThread == 0 ? kSumsPerThread : 1;
  groupThreads = llvm::PowerOf2Ceil(lanes / each);
  Value size = constantIndex(groupThreads);
  threadInGroup = arith::RemUIOp::create(builder, loc, thread, size);
  Value group = arith::DivUIOp::create(builder, loc, thread, size);

  SmallVector<int64_t> counts;
  int64_t points = 1;
  for (unsigned loop : order) {
    counts.push_back(loops.extent[loop]);
    points *= counts.back();
  }
  if (points == 0)
    return;
  forPoints(points, group, threads / groupThreads, /*together=*/true,
            [&](Value point, Value exists) {
              setIndices(point, order, counts, 1, loops);
              SmallVector<Value> totals =
                  emitGroupSums(nest, loops, others, accumulators.combiners, 0,
                                whole, lanes, exists);
              if (rest) {
                SmallVector<Value> parts =
                    emitGroupSums(nest, loops, others, accumulators.combiners,
                                  whole, rest, rest, exists);
                for (auto [total, part, combiner] :
                     llvm::zip(totals, parts, accumulators.combiners))
                  total = combine(combiner, total, part);
              }
              Value leads = isBelow(threadInGroup, 1);
              if (exists)
                leads = arith::AndIOp::create(builder, loc, leads, exists);
              ifThen(leads,
                     [&] { storeTotals(nest, loops, accumulators, totals); });
            });
}
