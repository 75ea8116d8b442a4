//===- KernelLowering.h - One kernel to the loops of one task ---*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_KERNELLOWERING_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_KERNELLOWERING_H

#include "Nests.h"

#include "fp8/Codegen/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fp8::lowering {

/// A buffer of the kernel's own: as large as one tile, in the task's scratch.
struct Local {
  MemRefType type; // of the whole tensor
  /// Domain loop that each dimension is cut along; -1: held whole.
  SmallVector<int> domainLoop;
  int64_t scratchOffset = 0;
  Value memref; // in the tile being emitted
};

/// A loop that is reduced over, in steps of one vector or of one element.
struct ReductionLoop {
  unsigned loop;
  int64_t extent, step = 1;
  int64_t count() const { return llvm::divideCeil(extent, step); }
};

/// Emits the loops of one task in place of the structured ops of a kernel.
class KernelLowering {
public:
  /// The last loop of the domain is run in order if there is a `block` of it.
  KernelLowering(func::FuncOp kernel, ArrayRef<int64_t> domain,
                 ArrayRef<int64_t> tile, std::optional<int64_t> block,
                 const TargetInfo &target)
      : kernel(kernel), target(target), builder(kernel.getContext()),
        domain(domain), tile(tile), inOrder(block.has_value()) {
    if (block)
      this->tile.back() = *block;
  }

  LogicalResult run();

private:
  // Preparation.
  void forEachTileSize(llvm::function_ref<void(ArrayRef<int64_t>)> visit);
  void collectLocals();
  LogicalResult verifyLocals();
  bool sumsBlocks(linalg::GenericOp op) const;
  void collectInits();
  void prepareArguments();
  SmallVector<Value> tileIndexOf(Value task);

  // One tile.
  LogicalResult emitTiles(unsigned loop, SmallVectorImpl<Value> &offsets,
                          SmallVectorImpl<int64_t> &sizes,
                          ArrayRef<Value> tileIndex);
  LogicalResult emitBlocks(SmallVectorImpl<Value> &offsets,
                           SmallVectorImpl<int64_t> &sizes);
  LogicalResult emitTile(ArrayRef<Value> offsets, ArrayRef<int64_t> sizes);
  MemRefType tileType(const Local &local, ArrayRef<int64_t> sizes) const;
  std::array<Type, 2> localInputTypes(linalg::GenericOp dot,
                                      ArrayRef<int64_t> sizes) const;
  void placeLocals();
  LogicalResult emitPart(Operation *op);
  bool readsOwnTile(linalg::GenericOp op, unsigned input) const;
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
  SmallVector<Value> emitPartialReduction(const Nest &nest, Loops &loops,
                                          ArrayRef<ReductionLoop> order,
                                          ArrayRef<Operation *> combiners,
                                          int64_t width);
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
  SmallVector<Value> emitSumBlock(Loops &loops, ArrayRef<ReductionLoop> order,
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
  void mapArguments(linalg::GenericOp op, const Nest &nest, Loops &loops,
                    int64_t lanes, ValueRange running, IRMapping &mapping);
  Value emitIndex(unsigned dim, const Nest &nest, Loops &loops, int64_t lanes);
  Value emitGather(memref::LoadOp gather, SmallVector<Value> indices,
                   bool hasLaneIndex, int64_t lanes);
  void emitPayloadOp(Operation &op, int64_t lanes, IRMapping &mapping);

  // Accesses.
  Value resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
                SmallVectorImpl<Value> &indices);
  Value load(Value buffer, AffineMap map, const Nest &nest, Loops &loops,
             int64_t lanes);
  void store(Value value, Value buffer, AffineMap map, const Nest &nest,
             Loops &loops, int64_t lanes);
  bool holdsBooleans(Value buffer);
  Stride strideAt(AffineMap map, const Nest &nest, int64_t lanes);
  Value placeOfLane(Value buffer, AffineMap map, const Nest &nest, Loops &loops,
                    int64_t index, SmallVectorImpl<Value> &indices);
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
  /// Whether a task runs all of the last loop, block after block.
  bool inOrder;
  Location loc = UnknownLoc::get(kernel.getContext());
  llvm::MapVector<Value, Local> locals;
  /// The constant that a reduction or dot starts from instead of a fill.
  DenseMap<std::pair<Operation *, unsigned>, Value> constantInit;
  llvm::SmallPtrSet<Operation *, 8> absorbedFills;
  /// Fills of what the blocks of the last loop are added to.
  SmallVector<linalg::FillOp> firstFills;
  /// Arguments that hold booleans (as bytes).
  llvm::SmallDenseSet<Value> boolArguments;
  TileParts parts;
  Value scratch;
  int64_t contractionScratch = 0; // offset
  // The tile being emitted.
  SmallVector<Value> tileOffsets;
  SmallVector<int64_t> tileSizes;
  /// Values written by earlier ops of the nest, per buffer, in registers.
  DenseMap<Value, Value> forwarded;
};

/// The domain loop that each dimension of `buffer` is cut along, by those who
/// write it; -1 where a dimension is whole.
SmallVector<int> domainLoopsOf(Value buffer);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_KERNELLOWERING_H
