//===- Tiles.cpp - The tiles of a kernel ----------------------------------===//

#include "KernelLowering.h"

#include "fp8/Codegen/Contraction.h"
#include "fp8/Codegen/Passes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// Writes the constant over the part of the buffer that this task owns.
void KernelLowering::emitFill(linalg::FillOp fill) {
  loc = fill.getLoc();
  Value buffer = fill.getOutputs()[0];
  auto type = cast<MemRefType>(buffer.getType());
  Nest nest;
  Loops loops;
  for (auto [dim, loop] : llvm::enumerate(domainLoopsOf(buffer))) {
    loops.lower.push_back(loop < 0 ? constantIndex(0) : tileOffsets[loop]);
    loops.extent.push_back(loop < 0 ? type.getDimSize(dim) : tileSizes[loop]);
  }
  loops.index = loops.lower;
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

/// Is the input of a dot, a local, cut along the domain as the dot is?
bool KernelLowering::readsOwnTile(linalg::GenericOp op, unsigned input) const {
  const Local &local = locals.find(op.getDpsInputs()[input])->second;
  AffineMap map = op.getIndexingMapsArray()[input];
  for (auto [i, dim] : llvm::enumerate(taskDims(op)))
    if (dim >= 0)
      if (auto position = plainPosition(map, dim);
          position && local.domainLoop[*position] != static_cast<int>(i))
        return false;
  return true;
}

LogicalResult KernelLowering::emitDot(linalg::GenericOp op) {
  loc = op.getLoc();
  ContractionTile contraction;
  contraction.op = op;
  contraction.sizes = op.getStaticLoopRanges();
  contraction.offsets.assign(contraction.sizes.size(), constantIndex(0));
  for (auto [i, dim] : llvm::enumerate(taskDims(op)))
    if (dim >= 0) {
      contraction.offsets[dim] = tileOffsets[i];
      contraction.sizes[dim] = tileSizes[i];
    }
  contraction.accumulate = sumsBlocks(op);
  for (unsigned i = 0; i < 2; ++i) {
    auto input = locals.find(op.getDpsInputs()[i]);
    if (input == locals.end())
      continue;
    if (!readsOwnTile(op, i))
      return op.emitOpError("expected to read what its task computes");
    contraction.localInputs[i] = input->second.memref;
  }
  Value out = op.getOutputs()[0];
  auto local = locals.find(out);
  contraction.outIsLocal = local != locals.end();
  contraction.out = contraction.outIsLocal ? local->second.memref : out;
  int64_t bytes = contractionScratchBytes(op, contraction.sizes, target,
                                          localInputTypes(op, tileSizes));
  int64_t available = cast<MemRefType>(scratch.getType()).getNumElements();
  if (contractionScratch + bytes > available)
    return op.emitOpError("expected at most ")
           << available << " bytes of scratch but needs "
           << contractionScratch + bytes;
  contraction.scratch = memref::ViewOp::create(
      builder, loc, MemRefType::get({bytes}, builder.getI8Type()), scratch,
      constantIndex(contractionScratch), ValueRange{});
  return emitContraction(builder, loc, contraction, target);
}

/// A fill, a dot, or a loop nest of its own, which every task runs whole.
LogicalResult KernelLowering::emitPart(Operation *op) {
  if (auto fill = dyn_cast<linalg::FillOp>(op)) {
    emitFill(fill);
    return success();
  }
  if (auto dot = dyn_cast<linalg::GenericOp>(op))
    return emitDot(dot);
  IRMapping mapping;
  for (auto &[buffer, local] : locals)
    mapping.map(buffer, local.memref);
  Operation *copy = builder.clone(*op, mapping);
  copy->removeAttr(kTaskDimsAttr);
  accessBooleansAsBytes(copy);
  return success();
}

LogicalResult KernelLowering::emitTile(ArrayRef<Value> offsets,
                                       ArrayRef<int64_t> sizes) {
  tileOffsets.assign(offsets.begin(), offsets.end());
  tileSizes.assign(sizes.begin(), sizes.end());
  placeLocals();
  for (auto &part : parts) {
    if (Nest *nest = std::get_if<Nest>(&part))
      emitNest(*nest);
    else if (failed(emitPart(std::get<Operation *>(part))))
      return failure();
  }
  return success();
}

/// Does `op` sum over the loop that is run block by block?
bool KernelLowering::sumsBlocks(linalg::GenericOp op) const {
  SmallVector<int64_t> loops = taskDims(op);
  return inOrder && !loops.empty() && loops.back() >= 0 &&
         op.getIteratorTypesArray()[loops.back()] ==
             utils::IteratorType::reduction;
}

/// The last loop of the domain, block after block.
LogicalResult KernelLowering::emitBlocks(SmallVectorImpl<Value> &offsets,
                                         SmallVectorImpl<int64_t> &sizes) {
  tileOffsets.assign(offsets.begin(), offsets.end());
  tileSizes.assign(sizes.begin(), sizes.end());
  for (linalg::FillOp fill : firstFills)
    emitFill(fill);
  int64_t extent = domain.back(), size = tile.back();
  int64_t whole = extent / size * size;
  auto emit = [&](Value offset, int64_t count) {
    offsets.push_back(offset);
    sizes.push_back(count);
    LogicalResult result = emitTile(offsets, sizes);
    offsets.pop_back();
    sizes.pop_back();
    return result;
  };
  auto loop = scf::ForOp::create(builder, loc, constantIndex(0),
                                 constantIndex(whole), constantIndex(size));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(loop.getBody()->getTerminator());
    if (failed(emit(loop.getInductionVar(), size)))
      return failure();
  }
  return whole == extent ? success()
                         : emit(constantIndex(whole), extent - whole);
}

/// Tiles have static sizes: where a domain loop's last tile is smaller, the
/// code of the tile exists twice.
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

/// New leading arguments, byte booleans.
void KernelLowering::prepareArguments() {
  Block &entry = kernel.getBody().front();
  int64_t scratchBytes =
      kernel->getAttrOfType<IntegerAttr>(kScratchBytesAttr).getInt();
  for (BlockArgument arg : entry.getArguments()) {
    auto type = cast<MemRefType>(arg.getType());
    if (!type.getElementType().isInteger(1))
      continue;
    boolArguments.insert(arg);
    arg.setType(MemRefType::get(type.getShape(), builder.getI8Type()));
  }
  scratch = entry.insertArgument(
      0u, MemRefType::get({scratchBytes}, builder.getI8Type()), loc);
  entry.insertArgument(0u, builder.getIndexType(), loc);
}

/// Takes the number of a task apart into a tile's place in the domain, and
/// counts the tasks.
SmallVector<Value> KernelLowering::tileIndexOf(Value task) {
  int64_t tasks = 1;
  SmallVector<Value> tileIndex(domain.size());
  Value rest = task;
  for (unsigned loop = domain.size() - inOrder; loop-- > 0;) {
    int64_t count = llvm::divideCeil(domain[loop], tile[loop]);
    tasks *= count;
    tileIndex[loop] =
        arith::RemUIOp::create(builder, loc, rest, constantIndex(count));
    rest = arith::DivUIOp::create(builder, loc, rest, constantIndex(count));
  }
  kernel->setAttr(kTasksAttr, builder.getI64IntegerAttr(tasks));
  return tileIndex;
}

LogicalResult KernelLowering::run() {
  collectLocals();
  if (failed(verifyLocals()))
    return failure();
  collectInits();
  parts = collectNests(kernel, domain, tile, absorbedFills);

  Block &entry = kernel.getBody().front();
  SmallVector<Operation *> old;
  for (Operation &op : entry.without_terminator())
    if (!isa<arith::ConstantOp>(op))
      old.push_back(&op);
  prepareArguments();
  builder.setInsertionPoint(entry.getTerminator());
  loc = kernel.getLoc();
  SmallVector<Value> offsets;
  SmallVector<int64_t> sizes;
  if (failed(emitTiles(0, offsets, sizes, tileIndexOf(entry.getArgument(0)))))
    return failure();
  for (Operation *op : llvm::reverse(old)) {
    op->dropAllUses();
    op->erase();
  }
  kernel.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), {}));
  return success();
}
