//===- Scratch.cpp - Local buffers of a task ------------------------------===//

#include "Booleans.h"
#include "IrregularLoops.h"
#include "KernelLowering.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::lowering;

/// The alignment of locals, in bytes.
static constexpr int64_t kAlignment = 64;

/// Returns the op of the kernel's body around an op.
static Operation *nestAround(Operation *op) {
  while (!isa<KernelOp, func::FuncOp>(op->getParentOp()))
    op = op->getParentOp();
  return op;
}

SmallVector<int> lowering::domainLoopsOf(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  SmallVector<int> loops(type.getRank(), -1);
  for (OpOperand &use : buffer.getUses()) {
    if (auto store = dyn_cast<memref::StoreOp>(use.getOwner())) {
      Operation *nest = nestAround(store);
      SmallVector<scf::ForOp> own = loopsOfNest(nest);
      for (auto [i, number] : llvm::enumerate(taskDims(nest)))
        if (number >= 0)
          if (auto dim = dimensionOf(own[number], store.getIndices(), type))
            loops[*dim] = i;
      continue;
    }
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || !generic.isDpsInit(&use))
      continue;
    AffineMap map = generic.getMatchingIndexingMap(&use);
    for (auto [i, dim] : llvm::enumerate(taskDims(generic)))
      if (dim >= 0)
        if (auto position = plainPosition(map, dim))
          loops[*position] = i;
  }
  return loops;
}

std::optional<unsigned> lowering::partOf(Operation *user,
                                         const TileParts &parts) {
  for (auto [index, part] : llvm::enumerate(parts)) {
    const Nest *nest = std::get_if<Nest>(&part);
    if (nest ? llvm::any_of(nest->ops,
                            [&](Operation *op) { return op->isAncestor(user); })
             : std::get<Operation *>(part)->isAncestor(user))
      return index;
  }
  return std::nullopt;
}

Lifetime
lowering::lifetimeOf(Value buffer, const TileParts &parts,
                     const llvm::SmallPtrSetImpl<Operation *> &absorbed) {
  Lifetime lifetime = {static_cast<unsigned>(parts.size()), 0};
  for (Operation *user : buffer.getUsers()) {
    std::optional<unsigned> part = partOf(user, parts);
    if (!part || absorbed.contains(user))
      continue;
    lifetime.first = std::min(lifetime.first, *part);
    lifetime.last = std::max(lifetime.last, *part);
  }
  return lifetime;
}

/// Calls `visit` with the sizes of all kinds of tiles: the last tile of a
/// domain loop may be smaller.
void KernelLowering::forEachTileSize(
    llvm::function_ref<void(ArrayRef<int64_t>)> visit) {
  SmallVector<SmallVector<int64_t>> tiles(1);
  for (auto [extent, size] : llvm::zip(domain, tile)) {
    SmallVector<SmallVector<int64_t>> longer;
    for (int64_t last : {size, extent % size})
      for (SmallVector<int64_t> prefix : tiles)
        if (last > 0) {
          prefix.push_back(last);
          longer.push_back(std::move(prefix));
        }
    tiles = std::move(longer);
  }
  llvm::for_each(tiles, visit);
}

/// Returns the dimension along which a local holds only the keys of a tile:
/// that of keys, if the local has rows of the tile's queries, which see a
/// window and never need all keys.
std::optional<unsigned> KernelLowering::keyDimOf(Value buffer,
                                                 const Local &local) const {
  if (keyCounts.empty() || keyCounts.back() == band->numKeys ||
      !band->rowsToCheck.empty() ||
      !llvm::is_contained(local.domainLoop, static_cast<int>(band->queryLoop)))
    return std::nullopt;
  auto dim = band->keyDims.find(buffer);
  return dim == band->keyDims.end() ? std::nullopt
                                    : std::optional<unsigned>(dim->second);
}

/// Finds every intermediate buffer and how the domain divides it.
void KernelLowering::collectLocals() {
  for (auto alloc : body().getOps<memref::AllocOp>()) {
    Local local;
    local.type = alloc.getType();
    local.domainLoop = domainLoopsOf(alloc);
    local.keyDim = keyDimOf(alloc, local);
    local.bytes = llvm::divideCeil(
        storageType(local.type.getElementType()).getIntOrFloatBitWidth(), 8);
    for (int64_t size : tileType(local, tile).getShape())
      local.bytes *= size;
    local.bytes = llvm::alignTo(local.bytes, kAlignment);
    local.scratchOffset = localBytes;
    localBytes += local.bytes;
    locals[alloc.getResult()] = local;
  }
  for (auto generic : body().getOps<linalg::GenericOp>()) {
    if (!isDot(generic))
      continue;
    // A smaller tile may be packed even if a whole one is not.
    auto visit = [&](ArrayRef<int64_t> sizes) {
      dotBytes = std::max(dotBytes, dotScratchBytes(generic, sizes));
    };
    forEachTileSize(visit);
    forEachKeySetting([&] { forEachTileSize(visit); });
  }
}

void KernelLowering::forEachKeySetting(function_ref<void()> visit) {
  for (int64_t count : keyCounts) {
    numKeys = count;
    visit();
  }
  numKeys.reset();
}

/// Checks that every writer of a local writes exactly the tile that it holds.
LogicalResult KernelLowering::verifyLocals() {
  for (auto generic : body().getOps<linalg::GenericOp>())
    for (OpOperand &init : generic.getDpsInitsMutable()) {
      auto local = locals.find(init.get());
      if (local == locals.end())
        continue;
      AffineMap map = generic.getMatchingIndexingMap(&init);
      SmallVector<int64_t> loops = taskDims(generic);
      for (auto [position, loop] : llvm::enumerate(local->second.domainLoop))
        if (loop >= 0 &&
            (static_cast<size_t>(loop) >= loops.size() || loops[loop] < 0 ||
             plainPosition(map, loops[loop]) != position))
          return generic.emitOpError("expected to run over loop ")
                 << loop << " of the domain, along which its result is cut";
    }
  return success();
}

/// Turns a constant fill that a reduction overwrites into its start value.
void KernelLowering::collectInits() {
  for (auto fill : body().getOps<linalg::FillOp>()) {
    Value buffer = fill.getOutputs()[0];
    Operation *next = nullptr;
    for (Operation *user : buffer.getUsers())
      if (Operation *nest = nestAround(user);
          fill->isBeforeInBlock(nest) && (!next || nest->isBeforeInBlock(next)))
        next = nest;
    auto generic = dyn_cast_or_null<linalg::GenericOp>(next);
    if (!generic)
      continue;
    // A buffer into which blocks are summed is filled once, before the first
    // block.
    if (sumsBlocks(generic)) {
      firstFills.push_back(fill);
      absorbedFills.insert(fill);
      continue;
    }
    for (auto [index, init] : llvm::enumerate(generic.getDpsInitsMutable())) {
      if (init.get() != buffer)
        continue;
      AffineMap map = generic.getMatchingIndexingMap(&init);
      bool covers = map.isProjectedPermutation();
      if (!covers || llvm::is_contained(generic.getInputs(), buffer))
        continue;
      constantInit[{generic, static_cast<unsigned>(index)}] =
          fill.getInputs()[0];
      absorbedFills.insert(fill);
    }
  }
}

/// Returns the type of a local in a tile of these sizes.
MemRefType KernelLowering::tileType(const Local &local,
                                    ArrayRef<int64_t> sizes) const {
  SmallVector<int64_t> shape;
  for (auto [dim, loop] : llvm::enumerate(local.domainLoop))
    shape.push_back(loop < 0 ? local.type.getDimSize(dim) : sizes[loop]);
  if (local.keyDim)
    shape[*local.keyDim] = keyCounts.back();
  return MemRefType::get(shape, storageType(local.type.getElementType()));
}

/// Returns the types of the operands of a dot that are locals; null for others.
std::array<Type, 2>
KernelLowering::localInputTypes(linalg::GenericOp dot,
                                ArrayRef<int64_t> sizes) const {
  std::array<Type, 2> types;
  for (unsigned i = 0; i < 2; ++i)
    if (auto it = locals.find(dot.getDpsInputs()[i]); it != locals.end())
      types[i] = tileType(it->second, sizes);
  return types;
}

/// Creates the locals of the tile, with its size.
void KernelLowering::placeLocals() {
  for (auto &[buffer, local] : locals) {
    local.memref = placeLocal(buffer, local, tileType(local, tileSizes));
  }
}
