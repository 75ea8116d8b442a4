//===- LowerKernels.cpp - Structured ops to the loops of one task ---------===//

#include "fp8/Codegen/Contraction.h"
#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"
#include <variant>

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERKERNELS
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Lanes of an elementwise vector. Fixed, so that all targets sum alike.
constexpr int64_t kLanes = 16;
/// Lanes of a light reduction: four chains hide the latency of an add.
constexpr int64_t kWideLanes = 64;
/// A nest with fewer body ops than this counts as light.
constexpr unsigned kLightOps = 10;
constexpr int64_t kAlignment = 64;
/// Terms that a sum adds one after the other. The sums of such blocks are added
/// with compensation, so that the error of long sums does not grow.
constexpr int64_t kSumBlock = 16;

/// Booleans are bytes in memory.
Type storageType(Type type) {
  return type.isInteger(1) ? IntegerType::get(type.getContext(), 8) : type;
}

/// The map of an operand with `loop mod size` (which the structured form uses
/// where a tensor is larger than the loop) read as what it is: the loop.
AffineMap indexingMap(linalg::GenericOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : map.getResults()) {
    auto mod = dyn_cast<AffineBinaryOpExpr>(expr);
    if (mod && mod.getKind() == AffineExprKind::Mod)
      if (auto dim = dyn_cast<AffineDimExpr>(mod.getLHS()))
        if (auto size = dyn_cast<AffineConstantExpr>(mod.getRHS());
            size && extents[dim.getPosition()] <= size.getValue())
          expr = dim;
    exprs.push_back(expr);
  }
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

/// How an access moves when the vector loop advances by one.
enum class Stride { Invariant, Contiguous, Other };

/// Vectors start at multiples of `lanes`, if that is more than 1: quotients by
/// multiples of that are the same for all of their lanes.
Stride strideOf(AffineMap map, unsigned dim, int64_t lanes) {
  auto isQuotient = [&](AffineExpr expr) {
    auto quotient = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!quotient || quotient.getKind() != AffineExprKind::FloorDiv)
      return false;
    auto divisor = dyn_cast<AffineConstantExpr>(quotient.getRHS());
    return lanes > 1 && isa<AffineDimExpr>(quotient.getLHS()) && divisor &&
           divisor.getValue() % lanes == 0;
  };
  Stride result = Stride::Invariant;
  for (auto [index, expr] : llvm::enumerate(map.getResults())) {
    if (!expr.isFunctionOfDim(dim) || isQuotient(expr))
      continue;
    AffineExpr d = getAffineDimExpr(dim, map.getContext());
    AffineExpr step = simplifyAffineExpr(expr.replace(d, d + 1) - expr,
                                         map.getNumDims(), map.getNumSymbols());
    auto constant = dyn_cast<AffineConstantExpr>(step);
    if (index + 1 != map.getNumResults() || !constant ||
        constant.getValue() != 1)
      return Stride::Other;
    result = Stride::Contiguous;
  }
  return result;
}

/// A buffer of the kernel's own: as large as one tile, in the task's scratch.
struct Local {
  MemRefType type; // of the whole tensor
  /// Domain loop that each dimension is cut along; -1: held whole.
  SmallVector<int> domainLoop;
  int64_t scratchOffset = 0;
  Value memref; // in the tile being emitted
};

/// Structured ops with equal loops that become one loop nest.
struct Nest {
  SmallVector<linalg::GenericOp> ops;
  SmallVector<int64_t> extents;   // whole
  llvm::SmallBitVector reduction; // loops that some op reduces over
  std::optional<unsigned> vectorLoop;
  int64_t lanes = 1;
  /// Vectors start at multiples of `lanes`.
  bool startsAligned = false;
};

/// A loop that is reduced over, in steps of one vector or of one element.
struct ReductionLoop {
  unsigned loop;
  int64_t extent, step = 1;
  int64_t count() const { return llvm::divideCeil(extent, step); }
};

int64_t volumeOf(ArrayRef<ReductionLoop> order) {
  int64_t volume = 1;
  for (const ReductionLoop &loop : order)
    volume *= loop.count();
  return volume;
}

class KernelLowering {
public:
  KernelLowering(func::FuncOp kernel, ArrayRef<int64_t> domain,
                 ArrayRef<int64_t> tile, const TargetInfo &target)
      : kernel(kernel), target(target), builder(kernel.getContext()),
        domain(domain), tile(tile) {}

  LogicalResult run();

private:
  // Preparation.
  void forEachTileSize(llvm::function_ref<void(ArrayRef<int64_t>)> visit);
  void collectLocals();
  void collectInits();
  SmallVector<std::variant<Nest, Operation *>> collectNests();
  bool canJoin(const Nest &nest, linalg::GenericOp op);
  void chooseVectorLoop(Nest &nest);
  bool startsAligned(const Nest &nest, unsigned loop, int64_t lanes);

  // One tile.
  LogicalResult emitTiles(unsigned loop, SmallVectorImpl<Value> &offsets,
                          SmallVectorImpl<int64_t> &sizes,
                          ArrayRef<Value> tileIndex);
  LogicalResult emitTile(ArrayRef<Value> offsets, ArrayRef<int64_t> sizes);
  LogicalResult emitDot(linalg::GenericOp op);
  void emitFill(linalg::FillOp fill);
  void emitNest(const Nest &nest);

  // Loops of a nest.
  struct Loops {
    SmallVector<Value> lower; // first index per loop
    SmallVector<int64_t> extent;
    SmallVector<Value> index; // current index per loop
  };
  void emitParallelLoops(const Nest &nest, Loops &loops,
                         ArrayRef<unsigned> order);
  void emitReduction(const Nest &nest, Loops &loops, int64_t lanes);
  void emitVectorReduction(const Nest &nest, Loops &loops);
  using ReductionBody = function_ref<SmallVector<Value>(ValueRange)>;
  SmallVector<Value>
  emitLoop(int64_t begin, int64_t end, int64_t step, ValueRange carried,
           function_ref<SmallVector<Value>(Value, ValueRange)> body);
  SmallVector<Value> emitReductionLoops(Loops &loops,
                                        ArrayRef<ReductionLoop> order,
                                        ValueRange accumulators,
                                        ReductionBody body);
  SmallVector<Value> emitBlockedSums(Loops &loops,
                                     ArrayRef<ReductionLoop> order,
                                     ValueRange accumulators,
                                     ArrayRef<Operation *> combiners,
                                     ReductionBody body);
  SmallVector<Value> emitSumBlocks(Loops &loops, ArrayRef<ReductionLoop> order,
                                   ValueRange carried,
                                   ArrayRef<Operation *> combiners,
                                   ReductionBody body);
  std::pair<Value, Value> addCompensated(Value sum, Value lost, Value term);
  Value neutralValue(Operation *combiner, Type type);
  SmallVector<Value> emitBody(const Nest &nest, Loops &loops, int64_t lanes,
                              ValueRange accumulators);
  SmallVector<Value> emitPayload(linalg::GenericOp op, const Nest &nest,
                                 Loops &loops, int64_t lanes,
                                 ValueRange running);

  // Accesses.
  Value resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
                SmallVectorImpl<Value> &indices);
  Value load(Value buffer, AffineMap map, const Nest &nest, Loops &loops,
             int64_t lanes);
  void store(Value value, Value buffer, AffineMap map, const Nest &nest,
             Loops &loops, int64_t lanes);
  Value loadElement(Value memref, ValueRange indices, Type type);
  void storeElement(Value value, Value memref, ValueRange indices);
  void accessBooleansAsBytes(Operation *nest);
  Value lane(Value vector, int64_t index);
  Value broadcast(Value value, int64_t lanes);
  Value reduceLanes(Value vector, Operation *combiner);
  Value combine(Operation *combiner, Value a, Value b);
  Value initialValue(linalg::GenericOp op, unsigned result, const Nest &nest,
                     Loops &loops, int64_t lanes);
  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  func::FuncOp kernel;
  const TargetInfo &target;
  OpBuilder builder;
  SmallVector<int64_t> domain, tile;
  Location loc = UnknownLoc::get(kernel.getContext());
  llvm::MapVector<Value, Local> locals;
  /// The constant that a reduction or dot starts from instead of a fill.
  DenseMap<std::pair<Operation *, unsigned>, Value> constantInit;
  llvm::SmallPtrSet<Operation *, 8> absorbedFills;
  /// Arguments that hold booleans (as bytes).
  llvm::SmallDenseSet<Value> boolArguments;
  SmallVector<std::variant<Nest, Operation *>> nests;
  Value scratch;
  int64_t contractionScratch = 0; // offset
  // The tile being emitted.
  SmallVector<Value> tileOffsets;
  SmallVector<int64_t> tileSizes;
  /// Values written by earlier ops of the nest, per buffer, in registers.
  DenseMap<Value, Value> forwarded;
};

SmallVector<int64_t> taskDims(Operation *op) {
  auto attr = op->getAttrOfType<DenseI64ArrayAttr>(kTaskDimsAttr);
  return attr ? llvm::to_vector(attr.asArrayRef()) : SmallVector<int64_t>();
}

/// The domain loop that each dimension of `buffer` is cut along, by those who
/// write it; -1 where a dimension is whole.
SmallVector<int> domainLoopsOf(Value buffer) {
  SmallVector<int> loops(cast<MemRefType>(buffer.getType()).getRank(), -1);
  for (OpOperand &use : buffer.getUses()) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    if (!generic || !generic.isDpsInit(&use))
      continue;
    AffineMap map = generic.getMatchingIndexingMap(&use);
    for (auto [i, dim] : llvm::enumerate(taskDims(generic)))
      if (auto position = plainPosition(map, dim))
        loops[*position] = i;
  }
  return loops;
}

/// Calls `visit` with the sizes of every tile that there is: the last one of a
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

/// Finds every intermediate buffer and how the domain cuts it.
void KernelLowering::collectLocals() {
  int64_t offset = 0;
  for (auto alloc : kernel.getBody().front().getOps<memref::AllocOp>()) {
    Local local;
    local.type = alloc.getType();
    local.domainLoop = domainLoopsOf(alloc);
    int64_t bytes = llvm::divideCeil(
        storageType(local.type.getElementType()).getIntOrFloatBitWidth(), 8);
    for (auto [dim, loop] : llvm::enumerate(local.domainLoop))
      bytes *= loop < 0 ? local.type.getDimSize(dim) : tile[loop];
    local.scratchOffset = offset;
    offset += llvm::alignTo(bytes, kAlignment);
    locals[alloc.getResult()] = local;
  }
  contractionScratch = offset;
  int64_t total = offset;
  for (auto generic : kernel.getBody().front().getOps<linalg::GenericOp>()) {
    if (!isDot(generic))
      continue;
    // A smaller tile may be packed where a whole one is not.
    forEachTileSize([&](ArrayRef<int64_t> tileSizes) {
      SmallVector<int64_t> sizes = generic.getStaticLoopRanges();
      for (auto [i, dim] : llvm::enumerate(taskDims(generic)))
        sizes[dim] = tileSizes[i];
      total = std::max(
          total, offset + contractionScratchBytes(generic, sizes, target));
    });
  }
  kernel->setAttr(kScratchBytesAttr,
                  builder.getI64IntegerAttr(llvm::alignTo(total, kAlignment)));
}

/// A fill of constant that a reduction overwrites is only its start value.
void KernelLowering::collectInits() {
  for (auto fill : kernel.getBody().front().getOps<linalg::FillOp>()) {
    Value buffer = fill.getOutputs()[0];
    Operation *next = nullptr;
    for (Operation *user : buffer.getUsers())
      if (user != fill && fill->isBeforeInBlock(user) &&
          (!next || user->isBeforeInBlock(next)))
        next = user;
    auto generic = dyn_cast_or_null<linalg::GenericOp>(next);
    if (!generic)
      continue;
    for (auto [index, init] : llvm::enumerate(generic.getDpsInitsMutable())) {
      if (init.get() != buffer)
        continue;
      AffineMap map = generic.getMatchingIndexingMap(&init);
      bool covers =
          llvm::all_of(map.getResults(), llvm::IsaPred<AffineDimExpr>);
      if (!covers || llvm::is_contained(generic.getInputs(), buffer))
        continue;
      constantInit[{generic, static_cast<unsigned>(index)}] =
          fill.getInputs()[0];
      absorbedFills.insert(fill);
    }
  }
}

/// Can the payload run on vectors?
bool isVectorizable(linalg::GenericOp op) {
  return llvm::all_of(*op.getBody(), [](Operation &inner) {
    return isa<linalg::IndexOp, linalg::YieldOp, memref::LoadOp,
               arith::ConstantOp>(inner) ||
           OpTrait::hasElementwiseMappableTraits(&inner);
  });
}

llvm::SmallBitVector reductionLoops(linalg::GenericOp op) {
  llvm::SmallBitVector loops(op.getNumLoops());
  for (auto [i, kind] : llvm::enumerate(op.getIteratorTypesArray()))
    if (kind == utils::IteratorType::reduction)
      loops.set(i);
  return loops;
}

bool KernelLowering::canJoin(const Nest &nest, linalg::GenericOp op) {
  linalg::GenericOp first = nest.ops.front();
  if (op.getStaticLoopRanges() != nest.extents ||
      op->getAttr(kTaskDimsAttr) != first->getAttr(kTaskDimsAttr) ||
      isVectorizable(op) != isVectorizable(first))
    return false;
  llvm::SmallBitVector loops = reductionLoops(op);
  if (loops.any() && nest.reduction.any() && loops != nest.reduction)
    return false;
  // Whatever the nest wrote must be read where it was written.
  for (linalg::GenericOp member : nest.ops)
    for (OpOperand &init : member.getDpsInitsMutable()) {
      AffineMap write = member.getMatchingIndexingMap(&init);
      for (OpOperand &operand : op->getOpOperands())
        if (operand.get() == init.get() &&
            (!allParallel(member) || !op.isDpsInput(&operand) ||
             op.getMatchingIndexingMap(&operand) != write))
          return false;
      bool captured = false;
      op.getBody()->walk([&](memref::LoadOp load) {
        captured |= load.getMemRef() == init.get();
      });
      if (captured)
        return false;
    }
  return true;
}

/// Whether all tiles start at a multiple of `lanes` along a loop.
bool KernelLowering::startsAligned(const Nest &nest, unsigned loop,
                                   int64_t lanes) {
  for (auto [i, dim] : llvm::enumerate(taskDims(nest.ops.front())))
    if (dim == loop && tile[i] != domain[i] && tile[i] % lanes != 0)
      return false;
  return true;
}

/// The loop along which most accesses are contiguous.
void KernelLowering::chooseVectorLoop(Nest &nest) {
  if (!isVectorizable(nest.ops.front()))
    return;
  unsigned bodyOps = 0, best = ~0u;
  bool gathers = false;
  for (unsigned loop = nest.extents.size(); loop-- > 0;) {
    if (nest.extents[loop] == 1)
      continue;
    if (nest.reduction.test(loop)) {
      bool combinable = llvm::all_of(nest.ops, [&](linalg::GenericOp op) {
        if (allParallel(op))
          return true;
        for (unsigned i = 0; i < op.getOutputs().size(); ++i)
          if (!reductionCombiner(op, i))
            return false;
        return true;
      });
      if (!combinable)
        continue;
    }
    unsigned cost = 0;
    for (linalg::GenericOp op : nest.ops) {
      for (OpOperand &operand : op->getOpOperands()) {
        Stride stride =
            strideOf(indexingMap(op, operand), loop,
                     startsAligned(nest, loop, kLanes) ? kLanes : 1);
        if (stride == Stride::Other)
          cost += op.isDpsInit(&operand) ? 3 : 2;
      }
    }
    if (nest.extents[loop] < 8)
      ++cost;
    if (cost < best) {
      best = cost;
      nest.vectorLoop = loop;
      gathers = cost >= 2;
    }
  }
  for (linalg::GenericOp op : nest.ops)
    bodyOps += op.getBody()->getOperations().size();
  if (!nest.vectorLoop)
    return;
  int64_t extent = nest.extents[*nest.vectorLoop];
  bool wide = nest.reduction.any() && !gathers && bodyOps < kLightOps &&
              (extent % kWideLanes == 0 || extent >= 8 * kWideLanes);
  nest.lanes = wide ? kWideLanes : kLanes;
  nest.startsAligned = startsAligned(nest, *nest.vectorLoop, nest.lanes);
}

SmallVector<std::variant<Nest, Operation *>> KernelLowering::collectNests() {
  SmallVector<std::variant<Nest, Operation *>> parts;
  for (Operation &op : kernel.getBody().front()) {
    auto generic = dyn_cast<linalg::GenericOp>(op);
    if (!generic || isDot(generic)) {
      if (generic || isa<linalg::FillOp, scf::ForOp>(op))
        if (!absorbedFills.contains(&op))
          parts.push_back(&op);
      continue;
    }
    Nest *last = parts.empty() ? nullptr : std::get_if<Nest>(&parts.back());
    if (!last || !canJoin(*last, generic)) {
      Nest nest;
      nest.extents = generic.getStaticLoopRanges();
      nest.reduction.resize(nest.extents.size());
      parts.push_back(nest);
      last = std::get_if<Nest>(&parts.back());
    }
    last->ops.push_back(generic);
    last->reduction |= reductionLoops(generic);
  }
  for (auto &part : parts)
    if (Nest *nest = std::get_if<Nest>(&part))
      chooseVectorLoop(*nest);
  return parts;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// The memref behind `buffer` and the indices that `map` gives at `dims`.
Value KernelLowering::resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
                              SmallVectorImpl<Value> &indices) {
  auto it = locals.find(buffer);
  for (auto [position, expr] : llvm::enumerate(map.getResults())) {
    SmallVector<OpFoldResult> operands;
    for (Value dim : dims)
      operands.push_back(dim);
    OpFoldResult folded = affine::makeComposedFoldedAffineApply(
        builder, loc, AffineMap::get(map.getNumDims(), 0, expr), operands);
    Value index = getValueOrCreateConstantIndexOp(builder, loc, folded);
    if (it != locals.end() && it->second.domainLoop[position] >= 0)
      index = arith::SubIOp::create(
          builder, loc, index, tileOffsets[it->second.domainLoop[position]]);
    indices.push_back(index);
  }
  return it == locals.end() ? buffer : it->second.memref;
}

Value KernelLowering::loadElement(Value memref, ValueRange indices, Type type) {
  Value value = memref::LoadOp::create(builder, loc, memref, indices);
  if (type.isInteger(1))
    value = arith::TruncIOp::create(builder, loc, type, value);
  return value;
}

void KernelLowering::storeElement(Value value, Value memref,
                                  ValueRange indices) {
  Type type = cast<MemRefType>(memref.getType()).getElementType();
  if (value.getType().isInteger(1))
    value = arith::ExtUIOp::create(builder, loc, type, value);
  memref::StoreOp::create(builder, loc, value, memref, indices);
}

/// Loads and stores of a loop nest whose boolean buffers have become bytes.
void KernelLowering::accessBooleansAsBytes(Operation *nest) {
  SmallVector<Operation *> accesses;
  nest->walk([&](Operation *op) {
    if (isa<memref::LoadOp, memref::StoreOp>(op))
      accesses.push_back(op);
  });
  OpBuilder::InsertionGuard guard(builder);
  for (Operation *op : accesses) {
    builder.setInsertionPoint(op);
    if (auto read = dyn_cast<memref::LoadOp>(op)) {
      if (!read.getType().isInteger(1))
        continue;
      read.replaceAllUsesWith(
          loadElement(read.getMemRef(), read.getIndices(), read.getType()));
    } else {
      auto write = cast<memref::StoreOp>(op);
      if (!write.getValue().getType().isInteger(1))
        continue;
      storeElement(write.getValue(), write.getMemRef(), write.getIndices());
    }
    op->erase();
  }
}

Value KernelLowering::lane(Value vector, int64_t index) {
  return vector::ExtractOp::create(builder, loc, vector, index);
}

Value KernelLowering::broadcast(Value value, int64_t lanes) {
  if (lanes == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      builder, loc, VectorType::get({lanes}, value.getType()), value);
}

Value KernelLowering::load(Value buffer, AffineMap map, const Nest &nest,
                           Loops &loops, int64_t lanes) {
  if (Value known = forwarded.lookup(buffer))
    return known;
  Type type = getElementTypeOrSelf(buffer.getType());
  bool isBool = false;
  if (auto it = locals.find(buffer); it != locals.end())
    isBool = it->second.type.getElementType().isInteger(1);
  else
    isBool = boolArguments.contains(buffer);
  if (isBool)
    type = builder.getI1Type();
  SmallVector<Value> indices;
  Stride stride = lanes == 1 ? Stride::Invariant
                             : strideOf(map, *nest.vectorLoop,
                                        nest.startsAligned ? nest.lanes : 1);
  if (stride == Stride::Invariant) {
    Value memref = resolve(buffer, map, loops.index, indices);
    return loadElement(memref, indices, type);
  }
  if (stride == Stride::Contiguous) {
    Value memref = resolve(buffer, map, loops.index, indices);
    auto vectorType = VectorType::get({lanes}, storageType(type));
    Value value =
        vector::LoadOp::create(builder, loc, vectorType, memref, indices);
    if (isBool)
      value = arith::TruncIOp::create(builder, loc,
                                      VectorType::get({lanes}, type), value);
    return value;
  }
  SmallVector<Value> elements, dims = loops.index;
  for (int64_t i = 0; i < lanes; ++i) {
    dims[*nest.vectorLoop] = arith::AddIOp::create(
        builder, loc, loops.index[*nest.vectorLoop], constantIndex(i));
    indices.clear();
    Value memref = resolve(buffer, map, dims, indices);
    elements.push_back(loadElement(memref, indices, type));
  }
  return vector::FromElementsOp::create(
      builder, loc, VectorType::get({lanes}, type), elements);
}

void KernelLowering::store(Value value, Value buffer, AffineMap map,
                           const Nest &nest, Loops &loops, int64_t lanes) {
  SmallVector<Value> indices;
  Stride stride = lanes == 1 ? Stride::Invariant
                             : strideOf(map, *nest.vectorLoop,
                                        nest.startsAligned ? nest.lanes : 1);
  if (stride == Stride::Invariant) {
    Value memref = resolve(buffer, map, loops.index, indices);
    storeElement(value, memref, indices);
    return;
  }
  value = broadcast(value, lanes);
  if (stride == Stride::Contiguous) {
    Value memref = resolve(buffer, map, loops.index, indices);
    Type type = cast<VectorType>(value.getType()).getElementType();
    if (type.isInteger(1))
      value = arith::ExtUIOp::create(
          builder, loc, VectorType::get({lanes}, storageType(type)), value);
    vector::StoreOp::create(builder, loc, value, memref, indices);
    return;
  }
  SmallVector<Value> dims = loops.index;
  for (int64_t i = 0; i < lanes; ++i) {
    dims[*nest.vectorLoop] = arith::AddIOp::create(
        builder, loc, loops.index[*nest.vectorLoop], constantIndex(i));
    indices.clear();
    Value memref = resolve(buffer, map, dims, indices);
    storeElement(lane(value, i), memref, indices);
  }
}

//===----------------------------------------------------------------------===//
// Payloads
//===----------------------------------------------------------------------===//

/// One op of the nest at the current indices. `running` are the values of its
/// outputs so far; the result is what it yields.
SmallVector<Value> KernelLowering::emitPayload(linalg::GenericOp op,
                                               const Nest &nest, Loops &loops,
                                               int64_t lanes,
                                               ValueRange running) {
  IRMapping mapping;
  Block *body = op.getBody();
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument arg = body->getArgument(input->getOperandNumber());
    if (!arg.use_empty())
      mapping.map(
          arg, load(input->get(), indexingMap(op, *input), nest, loops, lanes));
  }
  for (auto [arg, value] : llvm::zip(op.getRegionOutputArgs(), running))
    if (value)
      mapping.map(arg, value);

  llvm::SmallDenseSet<Value> laneIndices; // vectors of consecutive indices
  for (Operation &inner : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      Value scalar = loops.index[index.getDim()];
      if (lanes > 1 && index.getDim() == *nest.vectorLoop) {
        auto type = VectorType::get({lanes}, builder.getIndexType());
        Value step = vector::StepOp::create(builder, loc, type);
        scalar =
            arith::AddIOp::create(builder, loc, broadcast(scalar, lanes), step);
        laneIndices.insert(scalar);
      }
      mapping.map(index.getResult(), scalar);
      continue;
    }
    if (auto gather = dyn_cast<memref::LoadOp>(inner)) {
      SmallVector<Value> indices;
      for (Value index : gather.getIndices())
        indices.push_back(mapping.lookupOrDefault(index));
      Value memref = gather.getMemRef();
      Type type = gather.getType();
      bool scalar = llvm::none_of(
          indices, [](Value v) { return isa<VectorType>(v.getType()); });
      bool rows = !scalar && laneIndices.contains(indices.back()) &&
                  llvm::none_of(ArrayRef(indices).drop_back(), [](Value v) {
                    return isa<VectorType>(v.getType());
                  });
      Value value;
      if (scalar) {
        value = loadElement(memref, indices, type);
      } else if (rows && !type.isInteger(1)) {
        indices.back() = lane(indices.back(), 0);
        value = vector::LoadOp::create(
            builder, loc, VectorType::get({lanes}, type), memref, indices);
      } else {
        SmallVector<Value> elements;
        for (int64_t i = 0; i < lanes; ++i) {
          SmallVector<Value> at;
          for (Value index : indices)
            at.push_back(isa<VectorType>(index.getType()) ? lane(index, i)
                                                          : index);
          elements.push_back(loadElement(memref, at, type));
        }
        value = vector::FromElementsOp::create(
            builder, loc, VectorType::get({lanes}, type), elements);
      }
      mapping.map(gather.getResult(), value);
      continue;
    }
    bool vectors = llvm::any_of(inner.getOperands(), [&](Value operand) {
      return isa<VectorType>(mapping.lookupOrDefault(operand).getType());
    });
    if (!vectors) {
      builder.clone(inner, mapping);
      continue;
    }
    SmallVector<Value> operands;
    for (Value operand : inner.getOperands())
      operands.push_back(broadcast(mapping.lookupOrDefault(operand), lanes));
    SmallVector<Type> types;
    for (Type type : inner.getResultTypes())
      types.push_back(VectorType::get({lanes}, type));
    Operation *copy = builder.create(loc, inner.getName().getIdentifier(),
                                     operands, types, inner.getAttrs());
    if (inner.getPropertiesStorageSize())
      copy->copyProperties(inner.getPropertiesStorage());
    mapping.map(inner.getResults(), copy->getResults());
  }
  SmallVector<Value> results;
  for (Value value : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

Value KernelLowering::combine(Operation *combiner, Value a, Value b) {
  Operation *op =
      builder.create(loc, combiner->getName().getIdentifier(), ValueRange{a, b},
                     TypeRange{a.getType()}, combiner->getAttrs());
  if (combiner->getPropertiesStorageSize())
    op->copyProperties(combiner->getPropertiesStorage());
  return op->getResult(0);
}

/// Halves the vector until one lane is left.
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

/// What output `result` of `op` holds before the nest.
Value KernelLowering::initialValue(linalg::GenericOp op, unsigned result,
                                   const Nest &nest, Loops &loops,
                                   int64_t lanes) {
  if (Value constant = constantInit.lookup({op, result}))
    return broadcast(constant, lanes);
  OpOperand &init = op.getDpsInitsMutable()[result];
  return broadcast(load(init.get(), indexingMap(op, init), nest, loops, lanes),
                   lanes);
}

//===----------------------------------------------------------------------===//
// Nests
//===----------------------------------------------------------------------===//

/// All ops of the nest at the current indices. Elementwise results are stored
/// (unless only this nest reads them); returns the new accumulators.
SmallVector<Value> KernelLowering::emitBody(const Nest &nest, Loops &loops,
                                            int64_t lanes,
                                            ValueRange accumulators) {
  SmallVector<Value> next;
  forwarded.clear();
  for (linalg::GenericOp op : nest.ops) {
    unsigned outputs = op.getOutputs().size();
    if (!allParallel(op)) {
      SmallVector<Value> results = emitPayload(
          op, nest, loops, lanes, accumulators.slice(next.size(), outputs));
      for (auto [value, acc] :
           llvm::zip(results, accumulators.slice(next.size(), outputs)))
        next.push_back(isa<VectorType>(acc.getType()) ? broadcast(value, lanes)
                                                      : value);
      continue;
    }
    SmallVector<Value> running;
    for (unsigned i = 0; i < outputs; ++i)
      running.push_back(op.getRegionOutputArgs()[i].use_empty()
                            ? Value()
                            : initialValue(op, i, nest, loops, lanes));
    SmallVector<Value> results = emitPayload(op, nest, loops, lanes, running);
    for (auto [value, init] : llvm::zip(results, op.getDpsInitsMutable())) {
      AffineMap map = indexingMap(op, init);
      forwarded[init.get()] = value;
      bool inNestOnly =
          locals.contains(init.get()) &&
          llvm::all_of(init.get().getUsers(), [&](Operation *user) {
            return llvm::is_contained(nest.ops, user);
          });
      if (!inNestOnly)
        store(value, init.get(), map, nest, loops, lanes);
    }
  }
  forwarded.clear();
  return next;
}

/// A loop that carries values; `body` has the offset of its iteration.
SmallVector<Value> KernelLowering::emitLoop(
    int64_t begin, int64_t end, int64_t step, ValueRange carried,
    function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto forOp =
      scf::ForOp::create(builder, loc, constantIndex(begin), constantIndex(end),
                         constantIndex(step), carried);
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

/// Sequential loops over `order`, carrying accumulators.
SmallVector<Value>
KernelLowering::emitReductionLoops(Loops &loops, ArrayRef<ReductionLoop> order,
                                   ValueRange accumulators,
                                   ReductionBody body) {
  if (order.empty())
    return body(accumulators);
  const ReductionLoop &loop = order.front();
  return emitLoop(
      0, loop.extent, loop.step, accumulators,
      [&](Value offset, ValueRange running) {
        loops.index[loop.loop] =
            arith::AddIOp::create(builder, loc, offset, loops.lower[loop.loop]);
        return emitReductionLoops(loops, order.drop_front(), running, body);
      });
}

bool isFloatSum(Operation *combiner) {
  return isa_and_nonnull<arith::AddFOp>(combiner);
}

Value KernelLowering::neutralValue(Operation *combiner, Type type) {
  Value neutral = arith::ConstantOp::create(
      builder, loc, *arith::getNeutralElement(combiner));
  auto vector = dyn_cast<VectorType>(type);
  return vector ? vector::BroadcastOp::create(builder, loc, vector, neutral)
                : neutral;
}

/// Kahan's addition: the new sum and what it lost. An infinite sum has lost
/// nothing (its difference to itself would be NaN).
std::pair<Value, Value> KernelLowering::addCompensated(Value sum, Value lost,
                                                       Value term) {
  Value y = arith::SubFOp::create(builder, loc, term, lost);
  Value next = arith::AddFOp::create(builder, loc, sum, y);
  Value added = arith::SubFOp::create(builder, loc, next, sum);
  Value nextLost = arith::SubFOp::create(builder, loc, added, y);
  Value isNumber = arith::CmpFOp::create(
      builder, loc, arith::CmpFPredicate::ORD, nextLost, nextLost);
  Value none = arith::ConstantOp::create(builder, loc,
                                         builder.getZeroAttr(sum.getType()));
  return {next,
          arith::SelectOp::create(builder, loc, isNumber, nextLost, none)};
}

/// Loops over `order` whose float sums are sums of short blocks. `carried` has
/// the accumulators, then what each of the sums lost.
SmallVector<Value> KernelLowering::emitSumBlocks(
    Loops &loops, ArrayRef<ReductionLoop> order, ValueRange carried,
    ArrayRef<Operation *> combiners, ReductionBody body) {
  unsigned count = combiners.size();
  // One block: `inner` at the current indices.
  auto block = [&](ArrayRef<ReductionLoop> inner, ValueRange carried) {
    SmallVector<Value> start, next, losses;
    for (unsigned i = 0; i < count; ++i)
      start.push_back(isFloatSum(combiners[i])
                          ? neutralValue(combiners[i], carried[i].getType())
                          : carried[i]);
    SmallVector<Value> parts = emitReductionLoops(loops, inner, start, body);
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
  };
  if (volumeOf(order) <= kSumBlock)
    return block(order, carried);
  ReductionLoop loop = order.front();
  ArrayRef<ReductionLoop> rest = order.drop_front();
  int64_t perBlock = kSumBlock / volumeOf(rest);
  if (perBlock <= 1)
    return emitLoop(0, loop.extent, loop.step, carried,
                    [&](Value offset, ValueRange running) {
                      loops.index[loop.loop] = arith::AddIOp::create(
                          builder, loc, offset, loops.lower[loop.loop]);
                      return emitSumBlocks(loops, rest, running, combiners,
                                           body);
                    });
  // Several iterations of this loop are one block.
  int64_t width = perBlock * loop.step;
  int64_t whole = loop.extent / width * width;
  Value lower = loops.lower[loop.loop];
  auto part = [&](Value offset, int64_t extent, ValueRange running) {
    loops.lower[loop.loop] = arith::AddIOp::create(builder, loc, offset, lower);
    SmallVector<ReductionLoop> inner{{loop.loop, extent, loop.step}};
    llvm::append_range(inner, rest);
    SmallVector<Value> next = block(inner, running);
    loops.lower[loop.loop] = lower;
    return next;
  };
  SmallVector<Value> next =
      emitLoop(0, whole, width, carried, [&](Value offset, ValueRange running) {
        return part(offset, width, running);
      });
  if (whole < loop.extent)
    next = part(constantIndex(whole), loop.extent - whole, next);
  return next;
}

/// Loops over `order`; long float sums are blocked where every output has a
/// combiner.
SmallVector<Value> KernelLowering::emitBlockedSums(
    Loops &loops, ArrayRef<ReductionLoop> order, ValueRange accumulators,
    ArrayRef<Operation *> combiners, ReductionBody body) {
  if (volumeOf(order) <= 2 * kSumBlock || llvm::none_of(combiners, isFloatSum))
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

/// Reduction with whole accumulators per lane: the vector loop is parallel (or
/// there is none). Also the plain elementwise case, without accumulators.
void KernelLowering::emitReduction(const Nest &nest, Loops &loops,
                                   int64_t lanes) {
  SmallVector<Value> accumulators;
  SmallVector<Operation *> combiners;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
        accumulators.push_back(initialValue(op, i, nest, loops, lanes));
        combiners.push_back(reductionCombiner(op, i));
      }
  SmallVector<ReductionLoop> order;
  for (unsigned loop : nest.reduction.set_bits())
    order.push_back({loop, loops.extent[loop]});
  SmallVector<Value> results = emitBlockedSums(
      loops, order, accumulators, combiners, [&](ValueRange running) {
        return emitBody(nest, loops, lanes, running);
      });
  unsigned next = 0;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (OpOperand &init : op.getDpsInitsMutable())
        store(results[next++], init.get(), indexingMap(op, init), nest, loops,
              lanes);
}

/// Reduction over the vector loop: lanes hold partial results.
void KernelLowering::emitVectorReduction(const Nest &nest, Loops &loops) {
  unsigned vectorLoop = *nest.vectorLoop;
  int64_t extent = loops.extent[vectorLoop];
  int64_t lanes = std::max<int64_t>(std::min(nest.lanes, extent), 1);
  int64_t whole = extent / lanes * lanes, rest = extent - whole;
  struct Output {
    linalg::GenericOp op;
    unsigned result;
  };
  SmallVector<Output> outputs;
  SmallVector<Operation *> combiners;
  for (linalg::GenericOp op : nest.ops)
    if (!allParallel(op))
      for (unsigned i = 0; i < op.getOutputs().size(); ++i) {
        outputs.push_back({op, i});
        combiners.push_back(reductionCombiner(op, i));
      }
  SmallVector<ReductionLoop> order;
  for (unsigned loop : nest.reduction.set_bits())
    if (loop != vectorLoop)
      order.push_back({loop, loops.extent[loop]});

  // The whole vectors, then what is left of each row.
  auto reduce = [&](ArrayRef<ReductionLoop> order, int64_t width) {
    SmallVector<Value> accumulators;
    for (Operation *combiner : combiners) {
      Type type = combiner->getResult(0).getType();
      if (width > 1)
        type = VectorType::get({width}, type);
      accumulators.push_back(neutralValue(combiner, type));
    }
    SmallVector<Value> results = emitBlockedSums(
        loops, order, accumulators, combiners, [&](ValueRange running) {
          return emitBody(nest, loops, width, running);
        });
    for (auto [result, combiner] : llvm::zip(results, combiners))
      if (isa<VectorType>(result.getType()))
        result = reduceLanes(result, combiner);
    return results;
  };
  order.push_back({vectorLoop, whole, lanes});
  SmallVector<Value> totals = reduce(order, lanes);
  if (rest) {
    order.pop_back();
    loops.index[vectorLoop] = arith::AddIOp::create(
        builder, loc, loops.lower[vectorLoop], constantIndex(whole));
    for (auto [total, part, combiner] :
         llvm::zip(totals, reduce(order, rest), combiners))
      total = combine(combiner, total, part);
  }
  for (auto [output, total, combiner] : llvm::zip(outputs, totals, combiners)) {
    // The vector loop is reduced away: no access below depends on it.
    Value init = initialValue(output.op, output.result, nest, loops, 1);
    total = combine(combiner, init, total);
    OpOperand &operand = output.op.getDpsInitsMutable()[output.result];
    store(total, operand.get(), indexingMap(output.op, operand), nest, loops,
          1);
  }
}

void KernelLowering::emitParallelLoops(const Nest &nest, Loops &loops,
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

void KernelLowering::emitNest(const Nest &nest) {
  Loops loops;
  linalg::GenericOp first = nest.ops.front();
  loc = first.getLoc();
  loops.extent = nest.extents;
  loops.lower.assign(nest.extents.size(), constantIndex(0));
  for (auto [i, dim] : llvm::enumerate(taskDims(first))) {
    loops.lower[dim] = tileOffsets[i];
    loops.extent[dim] = tileSizes[i];
  }
  loops.index = loops.lower;
  // Parallel loops outside, the vector loop the innermost of them.
  SmallVector<unsigned> order;
  for (unsigned loop = 0; loop < nest.extents.size(); ++loop)
    if (!nest.reduction.test(loop) && nest.vectorLoop != loop)
      order.push_back(loop);
  if (nest.vectorLoop && !nest.reduction.test(*nest.vectorLoop))
    order.push_back(*nest.vectorLoop);
  emitParallelLoops(nest, loops, order);
}

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

LogicalResult KernelLowering::emitDot(linalg::GenericOp op) {
  loc = op.getLoc();
  ContractionTile contraction;
  contraction.op = op;
  contraction.sizes = op.getStaticLoopRanges();
  contraction.offsets.assign(contraction.sizes.size(), constantIndex(0));
  for (auto [i, dim] : llvm::enumerate(taskDims(op))) {
    contraction.offsets[dim] = tileOffsets[i];
    contraction.sizes[dim] = tileSizes[i];
  }
  Value out = op.getOutputs()[0];
  auto local = locals.find(out);
  contraction.outIsLocal = local != locals.end();
  contraction.out = contraction.outIsLocal ? local->second.memref : out;
  int64_t bytes = contractionScratchBytes(op, contraction.sizes, target);
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

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

LogicalResult KernelLowering::emitTile(ArrayRef<Value> offsets,
                                       ArrayRef<int64_t> sizes) {
  tileOffsets.assign(offsets.begin(), offsets.end());
  tileSizes.assign(sizes.begin(), sizes.end());
  for (auto &[buffer, local] : locals) {
    SmallVector<int64_t> shape;
    for (auto [dim, loop] : llvm::enumerate(local.domainLoop))
      shape.push_back(loop < 0 ? local.type.getDimSize(dim) : sizes[loop]);
    auto type =
        MemRefType::get(shape, storageType(local.type.getElementType()));
    local.memref = memref::ViewOp::create(builder, loc, type, scratch,
                                          constantIndex(local.scratchOffset),
                                          ValueRange{});
  }
  for (auto &part : nests) {
    if (Nest *nest = std::get_if<Nest>(&part)) {
      emitNest(*nest);
      continue;
    }
    Operation *op = std::get<Operation *>(part);
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      emitFill(fill);
    } else if (auto dot = dyn_cast<linalg::GenericOp>(op)) {
      if (failed(emitDot(dot)))
        return failure();
    } else {
      IRMapping mapping;
      for (auto &[buffer, local] : locals)
        mapping.map(buffer, local.memref);
      Operation *copy = builder.clone(*op, mapping);
      copy->removeAttr(kTaskDimsAttr);
      accessBooleansAsBytes(copy);
    }
  }
  return success();
}

/// Tiles have static sizes: where a domain loop's last tile is smaller, the
/// code of the tile exists twice.
LogicalResult KernelLowering::emitTiles(unsigned loop,
                                        SmallVectorImpl<Value> &offsets,
                                        SmallVectorImpl<int64_t> &sizes,
                                        ArrayRef<Value> tileIndex) {
  if (loop == domain.size())
    return emitTile(offsets, sizes);
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

LogicalResult KernelLowering::run() {
  collectLocals();
  collectInits();
  nests = collectNests();

  Block &entry = kernel.getBody().front();
  SmallVector<Operation *> old;
  for (Operation &op : entry.without_terminator())
    if (!isa<arith::ConstantOp>(op))
      old.push_back(&op);

  // New leading arguments, byte booleans.
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
  Value task = entry.insertArgument(0u, builder.getIndexType(), loc);

  builder.setInsertionPoint(entry.getTerminator());
  loc = kernel.getLoc();
  int64_t tasks = 1;
  SmallVector<Value> tileIndex(domain.size());
  Value rest = task;
  for (unsigned loop = domain.size(); loop-- > 0;) {
    int64_t count = llvm::divideCeil(domain[loop], tile[loop]);
    tasks *= count;
    tileIndex[loop] =
        arith::RemUIOp::create(builder, loc, rest, constantIndex(count));
    rest = arith::DivUIOp::create(builder, loc, rest, constantIndex(count));
  }
  kernel->setAttr(kTasksAttr, builder.getI64IntegerAttr(tasks));
  SmallVector<Value> offsets;
  SmallVector<int64_t> sizes;
  if (failed(emitTiles(0, offsets, sizes, tileIndex)))
    return failure();
  for (Operation *op : llvm::reverse(old)) {
    op->dropAllUses();
    op->erase();
  }
  kernel.setFunctionType(builder.getFunctionType(entry.getArgumentTypes(), {}));
  return success();
}

MemRefType byteType(MemRefType type) {
  return MemRefType::get(type.getShape(), storageType(type.getElementType()));
}

/// Booleans of the schedule are bytes as those of the kernels are.
void storeBooleansAsBytes(ScheduleOp schedule) {
  OpBuilder builder(schedule.getContext());
  auto convert = [](Value value) {
    if (auto type = dyn_cast<MemRefType>(value.getType()))
      value.setType(byteType(type));
  };
  schedule.walk([&](Block *block) {
    llvm::for_each(block->getArguments(), convert);
    for (Operation &op : *block)
      llvm::for_each(op.getResults(), convert);
  });
  // Conditions are read, flags written, by the schedule itself.
  schedule.walk([&](Operation *op) {
    builder.setInsertionPointAfter(op);
    if (auto load = dyn_cast<memref::LoadOp>(op);
        load && load.getType().isInteger(1)) {
      Value byte = memref::LoadOp::create(builder, op->getLoc(),
                                          load.getMemRef(), load.getIndices());
      Value bit =
          arith::TruncIOp::create(builder, op->getLoc(), load.getType(), byte);
      load.replaceAllUsesWith(bit);
      load.erase();
    } else if (auto store = dyn_cast<memref::StoreOp>(op);
               store && store.getValueToStore().getType().isInteger(1)) {
      builder.setInsertionPoint(op);
      Value byte = arith::ExtUIOp::create(
          builder, op->getLoc(), builder.getI8Type(), store.getValueToStore());
      store.getValueMutable().assign(byte);
    }
  });
  schedule.setFunctionType(builder.getFunctionType(
      schedule.getBody().front().getArgumentTypes(), {}));
}

void storeBooleansAsBytes(ModuleOp module) {
  OpBuilder builder(module.getContext());
  for (auto global : module.getOps<memref::GlobalOp>()) {
    auto elements =
        dyn_cast_or_null<DenseElementsAttr>(global.getInitialValueAttr());
    if (!elements || !elements.getElementType().isInteger(1))
      continue;
    auto bytes = elements.mapValues(
        builder.getI8Type(), [](const APInt &bit) { return bit.zext(8); });
    global.setInitialValueAttr(bytes);
    global.setType(byteType(cast<MemRefType>(global.getType())));
  }
}

/// The kernel as a function, for its tasks to be emitted into.
func::FuncOp toFunction(KernelOp kernel) {
  OpBuilder builder(kernel);
  func::FuncOp func = moveToFunction(builder, kernel, kernel.getSymName());
  func.setPrivate();
  kernel.erase();
  return func;
}

class LowerKernels : public fp8::impl::LowerKernelsBase<LowerKernels> {
public:
  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<CPUTargetAttr> attr = targetOf(module);
    if (failed(attr))
      return signalPassFailure();
    TargetInfo target = TargetInfo::of(*attr);
    for (auto schedule : module.getOps<ScheduleOp>())
      storeBooleansAsBytes(schedule);
    storeBooleansAsBytes(module);
    for (auto kernel : llvm::make_early_inc_range(module.getOps<KernelOp>()))
      if (failed(lower(kernel, target)))
        return signalPassFailure();
  }

private:
  static LogicalResult lower(KernelOp kernel, const TargetInfo &target) {
    CPUPlanAttr plan = kernel.getPlanAttr();
    if (kernel.isExternal() || !plan)
      return kernel.emitOpError(
          "expected a body and a plan: run --fp8-plan-tiles first");
    SmallVector<int64_t> domain(kernel.getDomain());
    return KernelLowering(toFunction(kernel), domain, plan.getTile(), target)
        .run();
  }
};

} // namespace
