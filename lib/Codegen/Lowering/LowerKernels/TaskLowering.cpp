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
                                 localInputTypes(op, sizes));
}

/// Returns the local that `buffer` can overwrite: the op that computes `buffer`
/// is elementwise, and it alone reads that local for the last time, where it
/// writes. Returns null if there is none.
Value TaskLowering::overwrittenBy(Value buffer, ArrayRef<Lifetime> lifetimes) {
  auto numberOf = [&](Value local) {
    return std::distance(locals.begin(), locals.find(local));
  };
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
  unsigned part = lifetimes[numberOf(buffer)].first;
  for (OpOperand *input : writer.getDpsInputOperands()) {
    Value local = input->get();
    if (!locals.contains(local) ||
        writer.getMatchingIndexingMap(input) != write ||
        lifetimes[numberOf(local)].last != part ||
        tileType(locals[local], tile) != tileType(locals[buffer], tile))
      continue;
    auto reads = [&](Operation *user) {
      return user != writer.getOperation() && partOf(user, parts) == part;
    };
    if (llvm::none_of(local.getUsers(), reads) &&
        llvm::count(writer->getOperands(), local) == 1)
      return local;
  }
  return nullptr;
}

/// Locals whose lifetimes do not overlap share memory, and an elementwise op
/// overwrites what it reads: the scores of an attention are computed in place.
void TaskLowering::shareScratch() {
  struct Slot {
    Lifetime lifetime;
    int64_t bytes, offset = 0;
  };
  SmallVector<Lifetime> lifetimes;
  for (auto &entry : locals) {
    Value buffer = entry.first;
    // Sums over blocks last from one block to the next.
    bool isSum = llvm::any_of(firstFills, [&](linalg::FillOp fill) {
      return fill.getOutputs()[0] == buffer;
    });
    lifetimes.push_back(isSum ? Lifetime{0, static_cast<unsigned>(parts.size())}
                              : lifetimeOf(buffer, parts, absorbedFills));
  }
  SmallVector<Slot> slots;
  llvm::SmallDenseMap<Value, unsigned> slotOf;
  llvm::SmallDenseSet<Value> overwritten;
  for (auto [entry, lifetime] : llvm::zip_equal(locals, lifetimes)) {
    auto &[buffer, local] = entry;
    Value old = overwrittenBy(buffer, lifetimes);
    if (old && overwritten.insert(old).second) {
      unsigned slot = slotOf[buffer] = slotOf[old];
      slots[slot].lifetime.last = lifetime.last;
      continue;
    }
    slotOf[buffer] = slots.size();
    slots.push_back({lifetime, local.bytes});
  }
  localBytes = 0;
  for (auto [number, slot] : llvm::enumerate(slots)) {
    SmallVector<std::pair<int64_t, int64_t>> taken;
    for (const Slot &other : ArrayRef(slots).take_front(number))
      if (other.lifetime.overlaps(slot.lifetime))
        taken.push_back({other.offset, other.offset + other.bytes});
    slot.offset = firstFit(taken, slot.bytes);
    localBytes = std::max(localBytes, slot.offset + slot.bytes);
  }
  for (auto &[buffer, local] : locals)
    local.scratchOffset = slots[slotOf[buffer]].offset;
}

LogicalResult TaskLowering::planScratch() {
  shareScratch();
  int64_t total = llvm::alignTo(localBytes + dotBytes, 64);
  kernel->setAttr(kScratchBytesAttr, builder.getI64IntegerAttr(total));
  kernel->setAttr(kTasksAttr, builder.getI64IntegerAttr(countTasks()));
  return success();
}

/// Makes task and scratch the leading arguments.
Value TaskLowering::prepareArguments() {
  int64_t bytes =
      kernel->getAttrOfType<IntegerAttr>(kScratchBytesAttr).getInt();
  scratch = body().insertArgument(
      0u, MemRefType::get({bytes}, builder.getI8Type()), loc);
  return body().insertArgument(0u, builder.getIndexType(), loc);
}

Value TaskLowering::placeLocal(const Local &local, MemRefType type) {
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
    contraction.localInputs[i] = input->second.memref;
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

/// Emits a reduction over the vector loop, whose lanes hold partial results.
void TaskLowering::emitVectorReduction(const Nest &nest, Loops &loops) {
  unsigned vectorLoop = *nest.vectorLoop;
  int64_t extent = loops.extent[vectorLoop];
  int64_t lanes = std::max<int64_t>(std::min(nest.lanes, extent), 1);
  int64_t whole = extent / lanes * lanes, rest = extent - whole;
  Accumulators accumulators = accumulatorsOf(nest);
  ArrayRef<Operation *> combiners = accumulators.combiners;
  SmallVector<ReductionLoop> order;
  for (unsigned loop : nest.reduction.set_bits())
    if (loop != vectorLoop)
      order.push_back({loop, loops.extent[loop]});

  auto reduce = [&](int64_t width) {
    return emitPartialReduction(nest, loops, order, combiners, width);
  };
  // First the whole vectors, then the remainder of each row.
  order.push_back({vectorLoop, whole, lanes});
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
  unsigned loop = order.front();
  int64_t extent = loops.extent[loop];
  bool isVector = nest.vectorLoop == loop;
  if (extent == 0)
    return;
  int64_t step = isVector ? std::min(nest.lanes, extent) : 1;
  int64_t whole = extent / step * step, rest = extent - whole;
  auto inner = [&](Value index, int64_t lanes) {
    loops.index[loop] = index;
    if (order.size() == 1)
      emitInner(isVector ? lanes : 1);
    else
      emitParallelLoops(nest, loops, order.drop_front());
  };
  auto forOp = scf::ForOp::create(builder, loc, constantIndex(0),
                                  constantIndex(whole), constantIndex(step));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(forOp.getBody()->getTerminator());
    inner(arith::AddIOp::create(builder, loc, forOp.getInductionVar(),
                                loops.lower[loop]),
          step);
  }
  if (rest)
    inner(arith::AddIOp::create(builder, loc, loops.lower[loop],
                                constantIndex(whole)),
          rest);
}
