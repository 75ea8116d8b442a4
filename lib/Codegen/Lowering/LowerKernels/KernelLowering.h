//===- KernelLowering.h - Lowering of a kernel to a task --------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_KERNELLOWERING_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_KERNELLOWERING_H

#include "Nests.h"

#include "fp8/Codegen/Contraction.h"
#include "fp8/Kernels/KeyBand.h"
#include "fp8/Support/FirstFit.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"

#include <numeric>

namespace mlir::fp8::lowering {

/// A local buffer of the kernel, as large as one tile.
struct Local {
  MemRefType type; // of the whole tensor
  /// The domain loop that divides each dimension; -1 if it is whole.
  SmallVector<int> domainLoop;
  /// The dimension along which it only holds the keys that a tile sees.
  std::optional<unsigned> keyDim;
  int64_t bytes = 0, scratchOffset = 0;
  Lifetime lifetime;     // in parts
  bool inShared = false; // on a GPU: in shared memory
  bool isStaged = false; // on a GPU: a transpose reads it
  Value memref;          // the buffer in the current tile
};

/// Returns the number of the part that `user` is in.
std::optional<unsigned> partOf(Operation *user, const TileParts &parts);

/// Returns the first and the last part that uses `buffer`; fills that were
/// absorbed do not count.
Lifetime lifetimeOf(Value buffer, const TileParts &parts,
                    const llvm::SmallPtrSetImpl<Operation *> &absorbed);

/// A reduction loop, in steps of one vector or of one element.
struct ReductionLoop {
  unsigned loop;
  int64_t extent, step = 1;
  /// The extent, if `extent` only limits it; null otherwise.
  Value open = nullptr;
  int64_t count() const { return llvm::divideCeil(extent, step); }
};

/// How a long sum is divided into short blocks. Their sums are added one after
/// the other with compensation, on every target.
struct SumBlocks {
  /// The loops around the blocks.
  SmallVector<ReductionLoop> outer;
  /// The loop inside of them of which a block has `width` iterations (or fewer,
  /// at the end), if a block is no whole number of loops.
  std::optional<ReductionLoop> split;
  int64_t width = 0;
  /// The loops inside of that.
  SmallVector<ReductionLoop> rest;

  /// Returns how many blocks there are along each of the loops around them and
  /// along the split loop.
  SmallVector<int64_t> counts() const {
    SmallVector<int64_t> counts;
    for (const ReductionLoop &loop : outer)
      counts.push_back(loop.count());
    if (split)
      counts.push_back(llvm::divideCeil(split->extent, width));
    return counts;
  }
  /// Returns the loops of a block that has `extent` iterations of the split
  /// loop, or at run time `open` if that is not null.
  SmallVector<ReductionLoop> loopsOfBlock(int64_t extent,
                                          Value open = nullptr) const {
    SmallVector<ReductionLoop> loops;
    if (split)
      loops.push_back({split->loop, extent, split->step, open});
    llvm::append_range(loops, rest);
    return loops;
  }
};

SumBlocks sumBlocksOf(ArrayRef<ReductionLoop> order);

/// Returns whether the float sums of these loops are computed in blocks.
bool isLongSum(ArrayRef<ReductionLoop> order);

/// Returns true for a float sum, whose bits depend on the order of its terms.
bool isFloatSum(Operation *combiner);

/// A loop in steps, with what is left at its end. An open loop leaves nothing.
struct LoopSteps {
  int64_t step, whole, rest;
  /// The end of an open loop, which `whole` only limits; null otherwise.
  Value open;
};

/// The loops of a nest.
struct Loops {
  SmallVector<Value> lower; // first index per loop
  SmallVector<int64_t> extent;
  SmallVector<Value> index; // current index per loop
  /// The loop whose extent is only limited by the one above.
  std::optional<OpenLoop> open;

  Value openEnd(unsigned loop) const {
    return open && open->loop == loop ? open->end : nullptr;
  }
  /// Divides a loop into steps of at most `lanes`.
  LoopSteps stepsOf(unsigned loop, int64_t lanes) const {
    Value open = openEnd(loop);
    int64_t step = std::max<int64_t>(std::min(lanes, extent[loop]), 1);
    if (open)
      step = std::gcd(step, OpenLoop::kMultiple);
    int64_t whole = llvm::alignDown(extent[loop], step);
    return {step, whole, open ? 0 : extent[loop] - whole, open};
  }
};

/// Returns the loops over which a nest sums, from outermost to innermost.
SmallVector<ReductionLoop> sumLoops(const Nest &nest,
                                    ArrayRef<int64_t> extents);
SmallVector<ReductionLoop> sumLoops(const Nest &nest, const Loops &loops);

/// Emits the loops of one task in place of the structured ops of a kernel. This
/// class contains what is the same on every target: the nests, the order of
/// their sums, and the bodies. Virtual functions contain what depends on how a
/// target runs a task.
class KernelLowering {
public:
  /// `sumTile` determines how sums are split into partial sums, `tile` what one
  /// task computes. If `block` is given, the last loop of the domain runs in
  /// order, in blocks of that size.
  KernelLowering(FunctionOpInterface kernel, ArrayRef<int64_t> domain,
                 ArrayRef<int64_t> tile, ArrayRef<int64_t> sumTile,
                 std::optional<int64_t> block = std::nullopt)
      : kernel(kernel), builder(kernel.getContext()), domain(domain),
        tile(tile), sumTile(sumTile), inOrder(block.has_value()) {
    if (block)
      this->tile.back() = *block;
  }
  virtual ~KernelLowering() = default;

  /// Lets tiles run over no more than the last of these numbers of keys, which
  /// covers the keys that their queries see; `emitPartsByKeys` says over how
  /// many of them. If the domain divides the keys, tiles only run the blocks in
  /// which some query sees some key.
  void setKeyCounts(const KeyBand &keys, ArrayRef<int64_t> counts) {
    band = keys;
    if (!keys.keyLoop)
      keyCounts.assign(counts.begin(), counts.end());
  }

  LogicalResult run();

protected:
  // Preparation.
  Block &body() { return kernel.getFunctionBody().front(); }
  /// Finds the local buffers and the parts of a tile.
  LogicalResult findParts();
  void forEachTileSize(llvm::function_ref<void(ArrayRef<int64_t>)> visit);
  void collectLocals();
  std::optional<unsigned> keyDimOf(Value buffer, const Local &local) const;
  LogicalResult verifyLocals();
  LogicalResult verifyKeyLoops();
  bool sumsBlocks(linalg::GenericOp op) const;
  void collectInits();
  void keepBooleansAsBytes();
  int64_t countTasks();
  SmallVector<Value> tileIndexOf(Value task);

  // Target hooks.
  /// Assigns memory to locals, and prepares the function for that.
  virtual LogicalResult planScratch() = 0;
  /// Adds the target's arguments; returns the number of the first task.
  virtual Value prepareArguments() = 0;
  /// Emits the code of all tasks.
  virtual LogicalResult emitTasks(Value first) { return emitTask(first); }
  /// Returns the bytes that a dot needs while it runs over a tile of these
  /// sizes.
  virtual int64_t dotScratchBytes(linalg::GenericOp op,
                                  ArrayRef<int64_t> sizes) = 0;
  virtual Value placeLocal(Value buffer, const Local &local,
                           MemRefType type) = 0;
  virtual LogicalResult emitDot(linalg::GenericOp op) = 0;
  virtual void emitFill(linalg::FillOp fill) = 0;
  /// Emits a loop nest that is the code of one task.
  virtual void emitIrregular(Operation *nest) = 0;
  /// Emits the parallel loops of a nest, in `order` from outermost to
  /// innermost.
  virtual void emitParallelLoops(const Nest &nest, Loops &loops,
                                 ArrayRef<unsigned> order) = 0;
  /// Returns the alignment of a vector access at the current indices, if it is
  /// known to be larger than that of an element.
  virtual std::optional<int64_t> alignmentOf(Value buffer, AffineMap map,
                                             const Nest &nest, int64_t lanes) {
    return std::nullopt;
  }
  /// Emits the parts for the keys that the queries of the tile see.
  virtual LogicalResult emitPartsByKeys() = 0;
  /// Calls `visit` with every setting of the current keys.
  virtual void forEachKeySetting(function_ref<void()> visit);
  /// Emits code between two parts of a tile, which may exchange data.
  virtual void emitPartEnd() {}
  /// Emits what comes before the first block of the last loop, and behind the
  /// last one, for buffers into which the blocks are summed. `largest` has the
  /// extents of a whole block.
  virtual LogicalResult beginBlocks(ArrayRef<int64_t> largest);
  virtual LogicalResult endBlocks(ArrayRef<int64_t> largest) {
    return success();
  }

  // One tile.
  LogicalResult emitTask(Value task);
  LogicalResult emitTiles(unsigned loop, SmallVectorImpl<Value> &offsets,
                          SmallVectorImpl<int64_t> &sizes,
                          ArrayRef<Value> tileIndex);
  Value seenKeys();
  Value ifEveryRowSees(Value bound, int64_t otherwise);
  Value firstBlock();
  Value seenEnd();
  LogicalResult emitBlocks(SmallVectorImpl<Value> &offsets,
                           SmallVectorImpl<int64_t> &sizes);
  LogicalResult emitEachBlock(SmallVectorImpl<Value> &offsets,
                              SmallVectorImpl<int64_t> &sizes);
  LogicalResult emitTile(ArrayRef<Value> offsets, ArrayRef<int64_t> sizes);
  virtual LogicalResult emitParts() { return emitParts(0, parts.size()); }
  LogicalResult emitParts(size_t first, size_t end);
  std::optional<unsigned> keyLoopOf(linalg::GenericOp op) const;
  std::optional<OpenLoop> openLoopOf(linalg::GenericOp op) const;
  SmallVector<int64_t> extentsOf(linalg::GenericOp op,
                                 ArrayRef<int64_t> sizes) const;
  MemRefType tileType(const Local &local, ArrayRef<int64_t> sizes) const;
  std::array<Type, 2> localInputTypes(linalg::GenericOp dot,
                                      ArrayRef<int64_t> sizes) const;
  void placeLocals();
  Loops loopsOf(linalg::GenericOp op);
  Loops loopsOver(Value buffer);
  ContractionTile contractionOf(linalg::GenericOp dot);
  Value keysOf(const Local &local, linalg::GenericOp dot, unsigned operand);
  LogicalResult emitPart(Operation *op);
  bool readsOwnTile(linalg::GenericOp op, unsigned input) const;
  void emitNest(const Nest &nest);
  /// Returns whether a target emits the nest together with the part before it.
  virtual bool isEmittedBefore(const Nest &nest) const { return false; }
  Operation *cloneIrregular(Operation *nest);

  // Loops of a nest.
  /// If the reduction `resumes`, its results so far are in memory.
  void emitReduction(const Nest &nest, Loops &loops, int64_t lanes,
                     bool resumes = false);
  void storeStart(const Nest &nest, Loops &loops, int64_t lanes);
  /// The accumulators of a nest whose lanes hold partial results.
  struct Accumulators {
    SmallVector<std::pair<linalg::GenericOp, unsigned>> outputs;
    SmallVector<Operation *> combiners;
  };
  static Accumulators accumulatorsOf(const Nest &nest);
  void storeResults(const Nest &nest, Loops &loops, int64_t lanes,
                    const Accumulators &accumulators, ValueRange results);
  void storeTotals(const Nest &nest, Loops &loops,
                   const Accumulators &accumulators, ArrayRef<Value> totals);
  SmallVector<Value> emitPartialSums(const Nest &nest, Loops &loops,
                                     ArrayRef<ReductionLoop> order,
                                     ArrayRef<Operation *> combiners,
                                     int64_t width);
  SmallVector<Value> emitPartialReduction(const Nest &nest, Loops &loops,
                                          ArrayRef<ReductionLoop> order,
                                          ArrayRef<Operation *> combiners,
                                          int64_t width);
  using ReductionBody = function_ref<SmallVector<Value>(ValueRange)>;
  using LoopBody = function_ref<SmallVector<Value>(Value, ValueRange)>;
  SmallVector<Value> emitLoop(Value begin, Value end, int64_t step,
                              ValueRange carried, LoopBody body);
  SmallVector<Value> emitLoop(int64_t begin, int64_t end, int64_t step,
                              ValueRange carried, LoopBody body) {
    return emitLoop(constantIndex(begin), constantIndex(end), step, carried,
                    body);
  }
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
  SmallVector<Value> emitSplitLoop(Loops &loops, const SumBlocks &blocks,
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
  virtual Value resolve(Value buffer, AffineMap map, ArrayRef<Value> dims,
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
  Value loadOutput(linalg::GenericOp op, unsigned result, const Nest &nest,
                   Loops &loops, int64_t lanes);
  Value initialValue(linalg::GenericOp op, unsigned result, const Nest &nest,
                     Loops &loops, int64_t lanes);
  Value constantIndex(int64_t value) {
    return arith::ConstantIndexOp::create(builder, loc, value);
  }

  FunctionOpInterface kernel;
  OpBuilder builder;
  SmallVector<int64_t> domain, tile, sumTile;
  /// Whether a task runs the whole last loop, block by block.
  bool inOrder;
  Location loc = UnknownLoc::get(kernel.getContext());
  std::optional<KeyBand> band;
  SmallVector<int64_t> keyCounts;
  llvm::MapVector<Value, Local> locals;
  /// The constant from which a reduction or dot starts, instead of a fill.
  DenseMap<std::pair<Operation *, unsigned>, Value> constantInit;
  llvm::SmallPtrSet<Operation *, 8> absorbedFills;
  /// Fills of the buffers into which the blocks of the last loop are summed.
  SmallVector<linalg::FillOp> firstFills;
  /// Arguments that hold booleans, as bytes.
  llvm::SmallDenseSet<Value> boolArguments;
  TileParts parts;
  /// The bytes of all locals, and the most scratch bytes of a dot.
  int64_t localBytes = 0, dotBytes = 0;
  // The current tile.
  SmallVector<Value> tileOffsets;
  SmallVector<int64_t> tileSizes;
  /// The keys that it runs over, if its queries do not see all keys. If they
  /// are open, that is how many they are at the most.
  std::optional<int64_t> numKeys;
  /// Set if the number of keys is only known at run time; its end is null while
  /// the kernel is planned.
  std::optional<OpenLoop> openKeys;
  /// The first of them; null if that is the first key.
  Value firstKey;
  /// If the domain divides the keys and rows have to be checked: whether every
  /// row of the task has a visible key.
  Value everyRowSees;
  /// Values in registers that earlier ops of the nest have written, per buffer,
  /// and those that are known before its first op. Empty between nests.
  DenseMap<Value, Value> forwarded;
};

/// Returns the extents of the loops of `op` in a tile of these sizes.
SmallVector<int64_t> extentsIn(ArrayRef<int64_t> tile, linalg::GenericOp op);

/// Returns the domain loop that divides each dimension of `buffer`, as its
/// writers determine; -1 if a dimension is whole.
SmallVector<int> domainLoopsOf(Value buffer);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_KERNELLOWERING_H
