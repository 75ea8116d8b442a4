//===- TaskLowering.cpp - Lowering of a kernel to a CPU task --------------===//

#include "TaskLowering.h"

#include "fp8/Codegen/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

int64_t TaskLowering::dotScratchBytes(linalg::GenericOp op,
                                      ArrayRef<int64_t> sizes) {
  return contractionScratchBytes(op, extentsOf(op, sizes), target,
                                 localInputTypes(op, sizes), openLoopOf(op));
}

/// Returns the local that `buffer` can overwrite: the op that computes `buffer`
/// is elementwise, and it alone reads that local for the last time, where it
/// writes. Returns null if there is none.
Local *TaskLowering::overwrittenBy(Value buffer) {
  linalg::GenericOp writer;
  AffineMap write;
  for (OpOperand &use : buffer.getUses()) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || (generic.isDpsInit(&use) && writer))
      return nullptr;
    if (!generic.isDpsInit(&use))
      continue;
    writer = generic;
    write = generic.getMatchingIndexingMap(&use);
  }
  if (!writer || !allParallel(writer) || !write.isPermutation())
    return nullptr;
  const Local &local = locals[buffer];
  auto isReadElsewhere = [&](Value old) {
    return llvm::any_of(old.getUsers(), [&](Operation *user) {
      return user != writer && partOf(user, parts) == local.lifetime.first;
    });
  };
  for (OpOperand *input : writer.getDpsInputOperands()) {
    Value old = input->get();
    if (locals.contains(old) && writer.getMatchingIndexingMap(input) == write &&
        locals[old].lifetime.last == local.lifetime.first &&
        tileType(locals[old], tile) == tileType(local, tile) &&
        llvm::count(writer->getOperands(), old) == 1 && !isReadElsewhere(old))
      return &locals[old];
  }
  return nullptr;
}

/// Locals whose lifetimes do not overlap share memory, and an elementwise op
/// overwrites what it reads: the scores of an attention are computed in place.
void TaskLowering::shareScratch() {
  for (auto &entry : locals)
    entry.second.lifetime = lifetimeOf(entry.first, parts, absorbedFills);
  // Sums over blocks last from one block to the next.
  for (linalg::FillOp fill : firstFills)
    if (auto sum = locals.find(fill.getOutputs()[0]); sum != locals.end())
      sum->second.lifetime = {0, static_cast<unsigned>(parts.size())};
  // All values of rows are checked together.
  if (band)
    for (OpOperand *row : band->rowsToCheck)
      if (auto local = locals.find(row->get()); local != locals.end())
        local->second.lifetime.last =
            std::max(local->second.lifetime.last, partsBeforeCheck());

  SmallVector<Local *> overwritten; // by each local, or null
  llvm::SmallPtrSet<Local *, 8> taken;
  for (auto &entry : locals) {
    Local *old = overwrittenBy(entry.first);
    overwritten.push_back(old && taken.insert(old).second ? old : nullptr);
  }
  // The first of those that overwrite each other lasts as long as the last one.
  for (auto [entry, old] :
       llvm::zip_equal(llvm::reverse(locals), llvm::reverse(overwritten)))
    if (old)
      old->lifetime.last = entry.second.lifetime.last;
  FirstFit memory;
  for (auto [entry, old] : llvm::zip_equal(locals, overwritten)) {
    Local &local = entry.second;
    local.scratchOffset =
        old ? old->scratchOffset : memory.place(local.lifetime, local.bytes);
  }
  localBytes = memory.size();
}

LogicalResult TaskLowering::planScratch() {
  shareScratch();
  int64_t total = llvm::alignTo(localBytes + dotBytes, 64);
  kernel->setAttr(FP8Dialect::kScratchBytesAttrName,
                  builder.getI64IntegerAttr(total));
  kernel->setAttr(FP8Dialect::kTasksAttrName,
                  builder.getI64IntegerAttr(countTasks()));
  return success();
}

/// Makes task and scratch the leading arguments.
Value TaskLowering::prepareArguments() {
  int64_t bytes =
      kernel->getAttrOfType<IntegerAttr>(FP8Dialect::kScratchBytesAttrName)
          .getInt();
  scratch = body().insertArgument(
      0u, MemRefType::get({bytes}, builder.getI8Type()), loc);
  return body().insertArgument(0u, builder.getIndexType(), loc);
}

Value TaskLowering::placeLocal(Value, const Local &local, MemRefType type) {
  return memref::ViewOp::create(builder, loc, type, scratch,
                                constantIndex(local.scratchOffset),
                                ValueRange{});
}

/// Writes the constant into the part of the buffer that this task owns.
void TaskLowering::emitFill(linalg::FillOp fill) {
  Value buffer = fill.getOutputs()[0];
  auto type = cast<MemRefType>(buffer.getType());
  Nest nest;
  Loops loops = loopsOver(buffer);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  Value value = fill.getInputs()[0];
  std::function<void(unsigned)> nested = [&](unsigned loop) {
    if (loop == loops.extent.size())
      return store(value, buffer, identity, nest, loops, 1);
    auto forOp =
        scf::ForOp::create(builder, loc, constantIndex(0),
                           constantIndex(loops.extent[loop]), constantIndex(1));
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(forOp.getBody()->getTerminator());
    loops.index[loop] = arith::AddIOp::create(
        builder, loc, forOp.getInductionVar(), loops.lower[loop]);
    nested(loop + 1);
  };
  nested(0);
}

LogicalResult TaskLowering::emitDot(linalg::GenericOp op) {
  ContractionTile contraction = contractionOf(op);
  contraction.accumulate = sumsBlocks(op);
  for (unsigned i = 0; i < 2; ++i) {
    auto input = locals.find(op.getDpsInputs()[i]);
    if (input == locals.end())
      continue;
    if (!readsOwnTile(op, i))
      return op.emitOpError("expected to read what its task computes");
    contraction.localInputs[i] = keysOf(input->second, op, i);
  }
  int64_t bytes = dotScratchBytes(op, tileSizes);
  if (bytes > dotBytes)
    return op.emitOpError("expected at most ")
           << dotBytes << " bytes of scratch but needs " << bytes;
  contraction.scratch = memref::ViewOp::create(
      builder, loc, MemRefType::get({bytes}, builder.getI8Type()), scratch,
      constantIndex(localBytes), ValueRange{});
  return emitContraction(builder, loc, contraction, target);
}

/// The rows that a nest reads for some columns before it reads the next ones.
static constexpr int64_t kRowBlock = 8;

/// Returns the first loop over which a nest reduces, if it is divided into
/// blocks: the vectors lie along columns, so that the rows of one vector are in
/// as many pages, and rows pass on nothing but results. (Long float sums also
/// pass on what they have lost.)
static std::optional<unsigned> rowLoopOf(const Nest &nest,
                                         const lowering::Loops &loops,
                                         ArrayRef<Operation *> combiners) {
  if (!nest.vectorLoop || nest.reduction.none() || loops.open ||
      nest.reduction.test(*nest.vectorLoop) ||
      loops.extent[*nest.vectorLoop] <= nest.lanes ||
      !llvm::all_of(combiners, [](Operation *combiner) {
        return combiner && !isFloatSum(combiner);
      }))
    return std::nullopt;
  unsigned rows = nest.reduction.find_first();
  return loops.extent[rows] > kRowBlock ? std::optional(rows) : std::nullopt;
}

/// Emits the vector loop of a nest once for each block of rows. The results of
/// the blocks before are in memory.
void TaskLowering::emitRowBlocks(const Nest &nest, Loops &loops,
                                 unsigned rows) {
  emitEach(nest, loops, *nest.vectorLoop,
           [&](int64_t lanes) { storeStart(nest, loops, lanes); });
  int64_t extent = loops.extent[rows];
  Value lower = loops.lower[rows];
  auto block = [&](Value offset, int64_t count) {
    loops.lower[rows] = arith::AddIOp::create(builder, loc, lower, offset);
    loops.extent[rows] = count;
    emitEach(nest, loops, *nest.vectorLoop, [&](int64_t lanes) {
      emitReduction(nest, loops, lanes, /*resumes=*/true);
    });
  };
  int64_t whole = llvm::alignDown(extent, kRowBlock);
  emitLoop(0, whole, kRowBlock, {}, [&](Value offset, ValueRange) {
    block(offset, kRowBlock);
    return SmallVector<Value>();
  });
  if (whole < extent)
    block(constantIndex(whole), extent - whole);
  loops.lower[rows] = lower;
  loops.extent[rows] = extent;
}

/// Emits a reduction over the vector loop, whose lanes hold partial results.
void TaskLowering::emitVectorReduction(const Nest &nest, Loops &loops) {
  unsigned vectorLoop = *nest.vectorLoop;
  auto [lanes, whole, rest, open] = loops.stepsOf(vectorLoop, nest.lanes);
  Accumulators accumulators = accumulatorsOf(nest);
  ArrayRef<Operation *> combiners = accumulators.combiners;
  SmallVector<ReductionLoop> order = sumLoops(nest, loops);
  llvm::erase_if(order, [&](const ReductionLoop &loop) {
    return loop.loop == vectorLoop;
  });

  auto reduce = [&](int64_t width) {
    return emitPartialReduction(nest, loops, order, combiners, width);
  };
  // First the whole vectors, then the remainder of each row.
  order.push_back({vectorLoop, whole, lanes, open});
  SmallVector<Value> totals = reduce(lanes);
  if (rest) {
    order.pop_back();
    loops.index[vectorLoop] = arith::AddIOp::create(
        builder, loc, loops.lower[vectorLoop], constantIndex(whole));
    for (auto [total, part, combiner] :
         llvm::zip(totals, reduce(rest), combiners))
      total = combine(combiner, total, part);
  }
  storeTotals(nest, loops, accumulators, totals);
}

/// Emits one loop around `body`, which gets the lanes of its iterations.
void TaskLowering::emitEach(const Nest &nest, Loops &loops, unsigned loop,
                            function_ref<void(int64_t)> body) {
  bool isVector = nest.vectorLoop == loop;
  if (loops.extent[loop] == 0)
    return;
  LoopSteps steps = loops.stepsOf(loop, isVector ? nest.lanes : 1);
  auto each = [&](Value offset, int64_t lanes) {
    loops.index[loop] =
        arith::AddIOp::create(builder, loc, offset, loops.lower[loop]);
    body(isVector ? lanes : 1);
  };
  Value end = steps.open ? steps.open : constantIndex(steps.whole);
  emitLoop(constantIndex(0), end, steps.step, {},
           [&](Value offset, ValueRange) {
             each(offset, steps.step);
             return SmallVector<Value>();
           });
  if (steps.rest)
    each(constantIndex(steps.whole), steps.rest);
}

void TaskLowering::emitParallelLoops(const Nest &nest, Loops &loops,
                                     ArrayRef<unsigned> order) {
  auto emitInner = [&](int64_t lanes) {
    if (nest.vectorLoop && nest.reduction.test(*nest.vectorLoop))
      emitVectorReduction(nest, loops);
    else
      emitReduction(nest, loops, lanes);
  };
  if (order.empty())
    return emitInner(1);
  if (order.size() == 1)
    if (std::optional<unsigned> rows =
            rowLoopOf(nest, loops, accumulatorsOf(nest).combiners))
      return emitRowBlocks(nest, loops, *rows);
  emitEach(nest, loops, order.front(), [&](int64_t lanes) {
    if (order.size() == 1)
      emitInner(lanes);
    else
      emitParallelLoops(nest, loops, order.drop_front());
  });
}
