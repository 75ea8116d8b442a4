//===- BlockScatters.cpp - Fills and loop nests of a block ----------------===//
//
// A scatter is a loop nest that reads for each update at which row of its
// result it lands, and adds to the columns of that row. The threads of a block
// share the columns. If the plan says so, each block owns some rows: it reads
// where all updates land and skips those that land elsewhere. So each element
// has one sum in the order of the updates, as on the CPU, without atomics.
//
//===----------------------------------------------------------------------===//

#include "BlockLowering.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
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

/// Returns the first row that this block owns.
Value BlockLowering::firstRow() {
  return arith::MulIOp::create(builder, loc, block, constantIndex(rows));
}

/// Runs what follows the row in its block only if the row belongs to this block
/// of threads.
void BlockLowering::keepOwnRows(Value row) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointAfterValue(row);
  // Rows below the first one become large unsigned numbers.
  Value distance = arith::SubIOp::create(builder, loc, row, firstRow());
  auto branch = scf::IfOp::create(builder, loc, isBelow(distance, rows));
  Block *inside = branch.thenBlock(), *around = branch->getBlock();
  inside->getOperations().splice(inside->begin(), around->getOperations(),
                                 std::next(branch->getIterator()),
                                 std::prev(around->end()));
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
    loops.lower[*rowDim] = firstRow();
    loops.extent[*rowDim] = rows;
  }
  SmallVector<unsigned> order =
      llvm::to_vector(llvm::seq<unsigned>(loops.extent.size()));
  int64_t points = 1;
  for (int64_t extent : loops.extent)
    points *= extent;
  if (points == 0)
    return;
  forPoints(
      points, thread, threads, /*together=*/false, [&](Value point, Value) {
        setIndices(point, order, loops.extent, 1, loops);
        Value exists;
        if (rowDim && type.getDimSize(*rowDim) % rows != 0)
          exists = isBelow(loops.index[*rowDim], type.getDimSize(*rowDim));
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
  if (scatter)
    keepOwnRows(rowOf(copy, own, accesses, scatter->dim));
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(own);
  Value first = arith::MulIOp::create(builder, loc, thread, own.getStep());
  own.getLowerBoundMutable().assign(
      arith::AddIOp::create(builder, loc, own.getLowerBound(), first));
  own.getStepMutable().assign(arith::MulIOp::create(builder, loc, own.getStep(),
                                                    constantIndex(threads)));
}
