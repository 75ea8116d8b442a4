//===- BlockScatters.cpp - Fills and loop nests of a block ----------------===//
//
// A scatter is a loop nest that reads for each update at which row of its
// result it lands, and adds to the columns of that row. The threads of a block
// share the columns. If the plan says so, each block owns some rows: it reads
// where all updates land and skips those that land elsewhere. So each element
// has one sum in the order of the updates, as on the CPU, without atomics.
//
//   for as many updates as there are threads:
//     each thread: does its update land here? -> a bit in shared memory
//     barrier
//     for each bit that is set, in order: add the update, all threads
//     barrier
//
// Neighbouring rows have different blocks: the rows of frequent words, which
// are often neighbours, are work for several.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::gpu_codegen;

//===----------------------------------------------------------------------===//
// Accesses of a nest
//===----------------------------------------------------------------------===//

static std::pair<Value, OperandRange> placeOf(Operation *access) {
  if (auto load = dyn_cast<memref::LoadOp>(access))
    return {load.getMemRef(), load.getIndices()};
  auto store = cast<memref::StoreOp>(access);
  return {store.getMemRef(), store.getIndices()};
}

/// Returns the accesses to everything that a nest writes; nullopt if it has
/// other effects or control flow than plain loops and branches.
static std::optional<SmallVector<Operation *>>
accessesOfWritten(Operation *nest) {
  llvm::SmallPtrSet<Value, 4> written;
  SmallVector<Operation *> accesses;
  WalkResult result = nest->walk([&](Operation *op) {
    if (isa<memref::LoadOp, memref::StoreOp>(op))
      accesses.push_back(op);
    else if (!isa<scf::ForOp, scf::IfOp, scf::YieldOp>(op) &&
             !isMemoryEffectFree(op))
      return WalkResult::interrupt();
    if (isa<memref::StoreOp>(op))
      written.insert(placeOf(op).first);
    return WalkResult::advance();
  });
  if (result.wasInterrupted())
    return std::nullopt;
  llvm::erase_if(accesses, [&](Operation *access) {
    return !written.contains(placeOf(access).first);
  });
  return accesses;
}

/// Returns true if the iterations of `loop` make `accesses`, to everything that
/// the nest writes, to disjoint elements, and nothing outside of the loop
/// depends on them.
static bool isIndependent(scf::ForOp loop, ArrayRef<Operation *> accesses) {
  if (loop.getNumResults() != 0)
    return false;
  llvm::SmallDenseMap<Value, llvm::SmallBitVector> positions;
  for (Operation *access : accesses) {
    auto [memref, indices] = placeOf(access);
    if (!loop->isProperAncestor(access))
      return false;
    llvm::SmallBitVector own(indices.size());
    for (auto [i, index] : llvm::enumerate(indices))
      if (index == loop.getInductionVar())
        own.set(i);
    auto [it, isNew] = positions.try_emplace(memref, own);
    if (!isNew)
      it->second &= own;
  }
  return llvm::all_of(positions,
                      [](const auto &entry) { return entry.second.any(); });
}

/// Returns the outermost loop whose iterations can run on different threads;
/// null if there is none.
static scf::ForOp independentLoop(Operation *nest,
                                  ArrayRef<Operation *> accesses) {
  scf::ForOp found;
  nest->walk<WalkOrder::PreOrder>([&](scf::ForOp loop) {
    if (!isIndependent(loop, accesses))
      return WalkResult::advance();
    found = loop;
    return WalkResult::interrupt();
  });
  return found;
}

/// Returns the index that all `accesses`, to everything that the nest writes,
/// have along dimension `dim`, if the nest computes it outside of `columns`.
/// Returns null otherwise.
static Value rowOf(Operation *nest, scf::ForOp columns,
                   ArrayRef<Operation *> accesses, unsigned dim) {
  Value row;
  for (Operation *access : accesses) {
    OperandRange indices = placeOf(access).second;
    if (dim >= indices.size() || (row && indices[dim] != row))
      return {};
    row = indices[dim];
  }
  Region *region = row ? row.getParentRegion() : nullptr;
  bool isInside = region && nest->isAncestor(region->getParentOp()) &&
                  !columns->isAncestor(region->getParentOp());
  // What follows the row becomes conditional, so nothing may depend on it.
  if (!isInside || row.getParentBlock()->getTerminator()->getNumOperands() > 0)
    return {};
  return row;
}

//===----------------------------------------------------------------------===//
// Rows of blocks
//===----------------------------------------------------------------------===//

/// Returns what the kernel writes if it is one scatter, perhaps behind fills of
/// its results, whose rows different blocks can own.
std::optional<BlockLowering::Scatter> BlockLowering::findScatter() const {
  Operation *nest = nullptr;
  SmallVector<Value> filled;
  for (auto &part : parts) {
    Operation *const *op = std::get_if<Operation *>(&part);
    if (!op || nest)
      return std::nullopt;
    if (auto fill = dyn_cast<linalg::FillOp>(*op))
      filled.push_back(fill.getOutputs()[0]);
    else if (isa<scf::ForOp>(*op))
      nest = *op;
    else
      return std::nullopt;
  }
  auto accesses =
      nest && domain.empty() ? accessesOfWritten(nest) : std::nullopt;
  scf::ForOp columns = accesses ? independentLoop(nest, *accesses) : nullptr;
  if (!columns)
    return std::nullopt;
  for (Operation *access : *accesses)
    filled.push_back(placeOf(access).first);
  auto type = cast<MemRefType>(filled.back().getType());
  for (unsigned dim = 0; dim < type.getRank(); ++dim) {
    auto hasRows = [&](Value buffer) {
      auto own = cast<MemRefType>(buffer.getType());
      return isa<BlockArgument>(buffer) && dim < own.getRank() &&
             own.getDimSize(dim) == type.getDimSize(dim);
    };
    if (rowOf(nest, columns, *accesses, dim) && llvm::all_of(filled, hasRows))
      return Scatter{nest, columns, dim, type.getDimSize(dim)};
  }
  return std::nullopt;
}

/// Returns the bytes in which the threads of a block note whose updates land in
/// its rows, a bit each.
int64_t BlockLowering::scatterBytes() const {
  return scatter ? llvm::divideCeil(threads, 8) : 0;
}

/// Returns whether this block owns a row.
Value BlockLowering::ownsRow(Value row) {
  Value owner =
      arith::RemUIOp::create(builder, loc, row, constantIndex(getBlocks()));
  return arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq, owner,
                               block);
}

/// Returns the row of this block with a number.
Value BlockLowering::ownRow(Value number) {
  Value first =
      arith::MulIOp::create(builder, loc, number, constantIndex(getBlocks()));
  return arith::AddIOp::create(builder, loc, first, block);
}

/// Runs what follows the row in its block only if the row belongs to this block
/// of threads.
void BlockLowering::keepOwnRows(Value row) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(row);
  auto branch = scf::IfOp::create(builder, loc, ownsRow(row));
  Block *inside = branch.thenBlock(), *around = branch->getBlock();
  inside->getOperations().splice(inside->begin(), around->getOperations(),
                                 std::next(branch->getIterator()),
                                 std::prev(around->end()));
}

/// Returns the loops of `nest` around the op that computes the row, outermost
/// first; nothing if a bound is not constant, or if a loop's body goes on after
/// the inner loop. Ops before the inner loop may be repeated: what the nest
/// writes is indexed by the row, so they read nothing of it.
static SmallVector<scf::ForOp> loopsAroundRow(Operation *nest, Value row) {
  SmallVector<scf::ForOp> loops;
  for (Operation *inner = row.getDefiningOp(); inner != nest;) {
    auto loop = inner ? dyn_cast<scf::ForOp>(inner->getParentOp()) : nullptr;
    if (!loop || loop.getNumResults() > 0 || !loop.getStaticTripCount() ||
        (!loops.empty() &&
         inner->getNextNode() != loop.getBody()->getTerminator()))
      return {};
    loops.insert(loops.begin(), loop);
    inner = loop;
  }
  return loops;
}

static int64_t tripCountOf(scf::ForOp loop) {
  return loop.getStaticTripCount()->getSExtValue();
}

/// Emits what `loops` run in one of all their iterations, or only what computes
/// its `row`. Returns the row.
Value BlockLowering::emitIteration(ArrayRef<scf::ForOp> loops, Value number,
                                   Value row, bool isWhole) {
  SmallVector<int64_t> counts = llvm::map_to_vector(loops, tripCountOf);
  IRMapping mapping;
  for (auto [loop, index] :
       llvm::zip_equal(loops, splitPoint(number, counts))) {
    scf::ForOp own = loop;
    Value offset = arith::MulIOp::create(
        builder, loc, index, mapping.lookupOrDefault(own.getStep()));
    mapping.map(
        own.getInductionVar(),
        arith::AddIOp::create(builder, loc, offset,
                              mapping.lookupOrDefault(own.getLowerBound())));
    for (Operation &op : own.getBody()->without_terminator()) {
      if (llvm::is_contained(loops, dyn_cast<scf::ForOp>(op)))
        continue;
      builder.clone(op, mapping);
      if (!isWhole && &op == row.getDefiningOp())
        break;
    }
  }
  return mapping.lookup(row);
}

/// Notes in `bits` which of the updates from `first` on, one for each thread,
/// land in rows of this block.
void BlockLowering::noteOwnUpdates(ArrayRef<scf::ForOp> loops, Value row,
                                   int64_t updates, Value first, Value bits) {
  Value number = arith::AddIOp::create(builder, loc, first, thread);
  Value exists = updates % threads ? isBelow(number, updates) : Value();
  Value none = arith::ConstantIntOp::create(builder, loc, 0, 1);
  Value isOwn = ifThen(exists, none, [&]() -> SmallVector<Value> {
    return {ownsRow(emitIteration(loops, number, row, /*isWhole=*/false))};
  })[0];
  Type i32 = builder.getI32Type();
  Value all = arith::ConstantIntOp::create(builder, loc, -1, 32);
  Value ballot = NVVM::VoteSyncOp::create(builder, loc, i32, all, isOwn,
                                          NVVM::VoteSyncKind::ballot);
  Value warp = constantIndex(kWarp);
  ifThen(isBelow(arith::RemUIOp::create(builder, loc, thread, warp), 1), [&] {
    memref::StoreOp::create(
        builder, loc, ballot, bits,
        ValueRange{arith::DivUIOp::create(builder, loc, thread, warp)});
  });
}

/// Runs the updates from `first` on whose bits in `word` are set, in order.
void BlockLowering::emitOwnUpdates(ArrayRef<scf::ForOp> loops, Value row,
                                   Value first, Value word) {
  Type i32 = builder.getI32Type();
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(builder, loc, value, 32);
  };
  scf::WhileOp::create(
      builder, loc, i32, word,
      [&](OpBuilder &, Location, ValueRange left) {
        Value some = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::ne, left[0], number(0));
        scf::ConditionOp::create(builder, loc, some, left);
      },
      [&](OpBuilder &, Location, ValueRange left) {
        Value bit = LLVM::CountTrailingZerosOp::create(
            builder, loc, i32, left[0], /*is_zero_poison=*/true);
        bit = arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(),
                                           bit);
        emitIteration(loops, arith::AddIOp::create(builder, loc, first, bit),
                      row, /*isWhole=*/true);
        Value below = arith::SubIOp::create(builder, loc, left[0], number(1));
        Value next = arith::AndIOp::create(builder, loc, left[0], below);
        scf::YieldOp::create(builder, loc, next);
      });
}

/// Emits the updates of all iterations of `loops` that land in rows of this
/// block. The threads read at once where as many land.
void BlockLowering::emitUpdates(ArrayRef<scf::ForOp> loops, Value row) {
  int64_t updates = 1;
  for (scf::ForOp loop : loops)
    updates *= tripCountOf(loop);
  auto memory = cast<MemRefType>(sharedArgument.getType());
  Value bits = memref::ViewOp::create(
      builder, loc,
      MemRefType::get({scatterBytes() / 4}, builder.getI32Type(),
                      MemRefLayoutAttrInterface(), memory.getMemorySpace()),
      sharedArgument, constantIndex(sumOffset), ValueRange{});
  auto addNoted = [&](Value first, Value from) {
    Value warp =
        arith::DivUIOp::create(builder, loc, from, constantIndex(kWarp));
    Value word = memref::LoadOp::create(builder, loc, bits, ValueRange{warp});
    emitOwnUpdates(loops, row, arith::AddIOp::create(builder, loc, first, from),
                   word);
  };
  emitLoop(0, updates, threads, {},
           [&](Value first, ValueRange) -> SmallVector<Value> {
             noteOwnUpdates(loops, row, updates, first, bits);
             emitBarrier();
             emitLoop(0, threads, kWarp, {},
                      [&](Value from, ValueRange) -> SmallVector<Value> {
                        addNoted(first, from);
                        return {};
                      });
             // The next updates overwrite the bits.
             emitBarrier();
             return {};
           });
}

/// Writes the constant into the part of the buffer that this block owns.
void BlockLowering::emitFill(linalg::FillOp fill) {
  Value buffer = fill.getOutputs()[0];
  auto type = cast<MemRefType>(buffer.getType());
  Nest nest;
  Loops loops = loopsOver(buffer);
  std::optional<unsigned> rowDim;
  if (scatter) {
    rowDim = scatter->dim;
    loops.extent[*rowDim] = rows;
  }
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(loops.extent.size()));
  int64_t points = llvm::product_of(loops.extent);
  if (points == 0)
    return;
  forPoints(
      points, thread, threads, /*together=*/false, [&](Value point, Value) {
        setIndices(point, order, loops.extent, 1, loops);
        Value exists;
        if (rowDim) {
          Value &row = loops.index[*rowDim];
          row = ownRow(row);
          if (rows * getBlocks() != scatter->numRows)
            exists = isBelow(row, scatter->numRows);
        }
        ifThen(exists, [&] {
          store(fill.getInputs()[0], buffer,
                builder.getMultiDimIdentityMap(type.getRank()), nest, loops, 1);
        });
      });
}

/// Distributes the iterations of an independent loop over the threads, which
/// all run the loops around it. Without such a loop, a single thread runs the
/// nest.
void BlockLowering::emitIrregular(Operation *nest) {
  auto known = accessesOfWritten(nest);
  if (!known || !independentLoop(nest, *known))
    return ifThen(isBelow(thread, 1), [&] { cloneIrregular(nest); });
  Operation *copy = cloneIrregular(nest);
  SmallVector<Operation *> accesses = *accessesOfWritten(copy);
  scf::ForOp own = independentLoop(copy, accesses);
  Value row = scatter ? rowOf(copy, own, accesses, scatter->dim) : Value();
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(own);
    Value first = arith::MulIOp::create(builder, loc, thread, own.getStep());
    own.getLowerBoundMutable().assign(
        arith::AddIOp::create(builder, loc, own.getLowerBound(), first));
    own.getStepMutable().assign(arith::MulIOp::create(
        builder, loc, own.getStep(), constantIndex(threads)));
  }
  if (!row)
    return;
  SmallVector<scf::ForOp> loops = loopsAroundRow(copy, row);
  if (loops.empty())
    return keepOwnRows(row);
  builder.setInsertionPointAfter(copy);
  emitUpdates(loops, row);
  copy->erase();
}
