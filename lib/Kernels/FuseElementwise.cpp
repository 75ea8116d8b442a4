//===- FuseElementwise.cpp - Fusion of elementwise ops --------------------===//

#include "InlineProducer.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Turns a splat constant that is written into later (the operand of a scatter
/// or of a reduction) into a fill. Elsewhere fusion turns it into a scalar.
struct SplatInitToFill
    : OpInterfaceRewritePattern<DestinationStyleOpInterface> {
  using OpInterfaceRewritePattern::OpInterfaceRewritePattern;
  LogicalResult matchAndRewrite(DestinationStyleOpInterface op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &init : op.getDpsInitsMutable())
      changed |= replaceSplat(init, op.getLoc(), rewriter);
    return success(changed);
  }

  static bool replaceSplat(OpOperand &operand, Location loc,
                           RewriterBase &rewriter) {
    auto constant = operand.get().getDefiningOp<arith::ConstantOp>();
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (!constant || !type)
      return false;
    auto elements = dyn_cast<SplatElementsAttr>(constant.getValue());
    if (!elements)
      return false;
    rewriter.setInsertionPoint(operand.getOwner());
    Value scalar = arith::ConstantOp::create(
        rewriter, loc, cast<TypedAttr>(elements.getSplatValue<Attribute>()));
    Value empty = tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                          type.getElementType());
    Value fill = linalg::FillOp::create(rewriter, loc, scalar, empty).result();
    rewriter.modifyOpInPlace(operand.getOwner(), [&] { operand.set(fill); });
    return true;
  }
};

/// Does the same for tensors that a loop carries.
struct SplatLoopInitToFill : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::ForOp op,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (OpOperand &init : op.getInitArgsMutable())
      changed |= SplatInitToFill::replaceSplat(init, op.getLoc(), rewriter);
    return success(changed);
  }
};

/// Does the same for tensors that a function returns: an optimizer's zeros are
/// then filled in, not stored as a constant.
void fillReturnedSplats(func::ReturnOp op) {
  IRRewriter rewriter(op);
  for (OpOperand &operand : op->getOpOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    if (type && type.getNumElements() > 1)
      SplatInitToFill::replaceSplat(operand, op.getLoc(), rewriter);
  }
}

/// Drops the initial value of a stack that a loop fills slot by slot.
struct DropOverwrittenInit : OpRewritePattern<scf::ForOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(scf::ForOp loop,
                                PatternRewriter &rewriter) const override {
    bool changed = false;
    for (auto [index, init] : llvm::enumerate(loop.getInitArgsMutable())) {
      if (init.get().getDefiningOp<tensor::EmptyOp>() || !isFilled(loop, index))
        continue;
      auto type = cast<RankedTensorType>(init.get().getType());
      rewriter.setInsertionPoint(loop);
      Value empty = tensor::EmptyOp::create(
          rewriter, loop.getLoc(), type.getShape(), type.getElementType());
      rewriter.modifyOpInPlace(loop,
                               [&init = init, empty] { init.set(empty); });
      changed = true;
    }
    return success(changed);
  }

  /// Returns true if the only use of carried value `index` is to write slot `c
  /// + i` or `c - i` of it in iteration `i`, and if these are all of its slots.
  static bool isFilled(scf::ForOp loop, unsigned index) {
    BlockArgument carry = loop.getRegionIterArg(index);
    auto insert =
        loop.getYieldedValues()[index].getDefiningOp<tensor::InsertSliceOp>();
    if (!insert || !carry.hasOneUse() || insert.getDest() != carry ||
        !insert->hasOneUse() || insert->getBlock() != loop.getBody())
      return false;
    RankedTensorType type = insert.getDestType();
    ArrayRef<int64_t> sizes = insert.getStaticSizes();
    if (type.getRank() == 0 || sizes[0] != 1 || !insert.hasUnitStride() ||
        sizes.drop_front() != type.getShape().drop_front() ||
        loop.getStaticTripCount() != APInt(64, type.getDimSize(0)) ||
        getConstantIntValue(loop.getStep()) != 1)
      return false;
    // The slots of all iterations differ and lie in bounds, so each slot is
    // written.
    auto slot = dyn_cast<Value>(insert.getMixedOffsets()[0]);
    for (Operation *def; slot && slot != loop.getInductionVar();) {
      def = slot.getDefiningOp();
      if (!isa_and_nonnull<arith::AddIOp, arith::SubIOp>(def))
        return false;
      bool left = matchPattern(def->getOperand(0), m_Constant());
      if (!left && !matchPattern(def->getOperand(1), m_Constant()))
        return false;
      slot = def->getOperand(left ? 1 : 0);
    }
    return slot != nullptr;
  }
};

/// Returns true if an op whose loops run over `ranges` may read `operand`
/// through `map`. A result of `map` that is a plain loop must run over the
/// whole dimension, because the dimension determines the loop's extent.
/// (Reading one row of a former single dimension at a constant index leaves a
/// loop that does not.)
bool canReadThrough(AffineMap map, Value operand, ArrayRef<int64_t> ranges) {
  auto type = dyn_cast<RankedTensorType>(operand.getType());
  if (!type)
    return true;
  return llvm::all_of(llvm::enumerate(map.getResults()), [&](auto result) {
    auto loop = dyn_cast<AffineDimExpr>(result.value());
    return !loop ||
           ranges[loop.getPosition()] == type.getDimSize(result.index());
  });
}

/// Returns the map to places of an `expanded` tensor as one to places of the
/// tensor whose dimensions are its `groups` of dimensions. Dimensions of one
/// element have no part in it: `d0 + d1`, with d1 zero, would be no loop that
/// kernels share.
static AffineMap collapseResults(AffineMap map, RankedTensorType expanded,
                                 ArrayRef<ReassociationIndices> groups) {
  SmallVector<AffineExpr> exprs;
  for (const ReassociationIndices &group : groups) {
    AffineExpr expr = getAffineConstantExpr(0, map.getContext());
    for (int64_t dim : group)
      if (int64_t size = expanded.getDimSize(dim); size != 1)
        expr = expr * size + map.getResult(dim);
    exprs.push_back(expr);
  }
  return AffineMap::get(map.getNumDims(), 0, exprs, map.getContext());
}

/// Reads an expanded tensor through a map of the tensor before expansion.
struct FoldExpandShapeIntoMap : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (!allParallel(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto expand = operand->get().getDefiningOp<tensor::ExpandShapeOp>();
      if (!expand)
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      AffineMap &map = maps[operand->getOperandNumber()];
      map = collapseResults(map, expand.getResultType(),
                            expand.getReassociationIndices());
      if (!inversePermutation(concatAffineMaps(maps, op.getContext())) ||
          !canReadThrough(map, expand.getSrc(), op.getStaticLoopRanges()))
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        operand->set(expand.getSrc());
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }
};

/// Removes roundings of what was of the same type before, as values are that
/// the backward pass reads. What is left may be no more than a copy, which the
/// patterns of linalg erase as long as it has the shape of its operand.
struct FoldRoundTrip : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    for (auto rounding : op.getBody()->getOps<arith::TruncFOp>()) {
      auto extension = rounding.getIn().getDefiningOp<arith::ExtFOp>();
      if (!extension || extension.getIn().getType() != rounding.getType())
        continue;
      rewriter.modifyOpInPlace(op, [&] {
        rewriter.replaceOp(rounding, extension.getIn());
        if (extension->use_empty())
          rewriter.eraseOp(extension);
      });
      return success();
    }
    return failure();
  }
};

/// Writes a result through the map of its collapsed form if nothing else reads
/// it.
struct FoldCollapseShapeIntoMap : OpRewritePattern<tensor::CollapseShapeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::CollapseShapeOp collapse,
                                PatternRewriter &rewriter) const override {
    auto op = collapse.getSrc().getDefiningOp<linalg::GenericOp>();
    if (!op || op->getNumResults() != 1 || !op->hasOneUse() ||
        !allParallel(op) ||
        !op.getOutputs()[0].getDefiningOp<tensor::EmptyOp>())
      return failure();
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    AffineMap &map = maps.back();
    if (!map.isPermutation())
      return failure();
    map = collapseResults(map, collapse.getSrcType(),
                          collapse.getReassociationIndices());
    if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
      return failure();
    rewriter.setInsertionPoint(op);
    RankedTensorType type = collapse.getResultType();
    Value empty = tensor::EmptyOp::create(
        rewriter, op.getLoc(), type.getShape(), type.getElementType());
    auto generic = linalg::GenericOp::create(
        rewriter, op.getLoc(), TypeRange{type}, op.getInputs(),
        ValueRange{empty}, maps, op.getIteratorTypesArray());
    rewriter.inlineRegionBefore(op.getRegion(), generic.getRegion(),
                                generic.getRegion().begin());
    rewriter.replaceOp(collapse, generic.getResults());
    rewriter.eraseOp(op);
    return success();
  }
};

/// Splits the only loop of a long reduction into rows, so that it can have
/// partials: otherwise one task would do all of it.
struct SplitLongLoop : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Shorter reductions keep the order of their sums.
  static constexpr int64_t kMinVolume = 1 << 18;
  static constexpr int64_t kMinRow = 64, kMaxRow = 4096;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumLoops() != 1 || op.getNumReductionLoops() != 1 ||
        iterationVolume(op) < kMinVolume || op.hasIndexSemantics())
      return failure();
    int64_t extent = op.getStaticLoopRanges()[0], row = rowOf(extent);
    if (row == 0)
      return failure();
    SmallVector<AffineMap> maps;
    AffineMap rows = rewriter.getMultiDimIdentityMap(2);
    for (AffineMap map : op.getIndexingMapsArray()) {
      if (!map.isIdentity() && map.getNumResults() != 0)
        return failure();
      maps.push_back(map.isIdentity() ? rows
                                      : AffineMap::get(2, 0, getContext()));
    }
    SmallVector<Value> inputs;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      Value input = operand->get();
      if (op.getMatchingIndexingMap(operand).isIdentity()) {
        auto type = cast<RankedTensorType>(input.getType());
        input = tensor::ExpandShapeOp::create(
            rewriter, op.getLoc(), type.clone({extent / row, row}), input,
            ArrayRef<ReassociationIndices>{{0, 1}});
      }
      inputs.push_back(input);
    }
    auto split = linalg::GenericOp::create(
        rewriter, op.getLoc(), op->getResultTypes(), inputs, op.getOutputs(),
        maps,
        SmallVector<utils::IteratorType>(2, utils::IteratorType::reduction));
    rewriter.inlineRegionBefore(op.getRegion(), split.getRegion(),
                                split.getRegion().begin());
    rewriter.replaceOp(op, split.getResults());
    return success();
  }

  /// Returns the longest row that divides `extent`; 0 if there is none.
  static int64_t rowOf(int64_t extent) {
    for (int64_t row = kMaxRow; row >= kMinRow; --row)
      if (extent % row == 0)
        return row;
    return 0;
  }
};

/// Splits a reduction into partials, for which the reduction loops in `outer`
/// are parallel, too, and a reduction of the partials.
void splitReduction(PatternRewriter &rewriter, linalg::GenericOp op,
                    const llvm::SmallBitVector &outer, Operation *combiner) {
  Location loc = op.getLoc();
  MLIRContext *ctx = op.getContext();
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray(), last;
  // The loops of the partials, and the place of each among them.
  SmallVector<AffineExpr> loops, places(extents.size());
  auto addLoop = [&](unsigned loop) {
    places[loop] = getAffineDimExpr(loops.size(), ctx);
    loops.push_back(getAffineDimExpr(loop, ctx));
    shape.push_back(extents[loop]);
    last.push_back(iterators[loop]);
  };
  for (unsigned loop : outer.set_bits())
    addLoop(loop);
  for (unsigned loop = 0; loop < extents.size(); ++loop)
    if (linalg::isParallelIterator(iterators[loop]))
      addLoop(loop);
  for (unsigned loop : outer.set_bits())
    iterators[loop] = utils::IteratorType::parallel;

  Value identity = arith::ConstantOp::create(
      rewriter, loc, *arith::getNeutralElement(combiner));
  Value empty = tensor::EmptyOp::create(
      rewriter, loc, shape, getElementTypeOrSelf(op.getResult(0).getType()));
  Value init = linalg::FillOp::create(rewriter, loc, identity, empty).result();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap result = maps.back();
  maps.back() = AffineMap::get(extents.size(), 0, loops, ctx);
  auto partial = linalg::GenericOp::create(
      rewriter, loc, TypeRange{init.getType()}, op.getInputs(),
      ValueRange{init}, maps, iterators);
  rewriter.cloneRegionBefore(op.getRegion(), partial.getRegion(),
                             partial.getRegion().begin());

  auto whole = linalg::GenericOp::create(
      rewriter, loc, op->getResultTypes(), ValueRange{partial.getResult(0)},
      op.getOutputs(),
      ArrayRef<AffineMap>{
          AffineMap::getMultiDimIdentityMap(loops.size(), ctx),
          result.replaceDimsAndSymbols(places, {}, loops.size(), 0)},
      last, [&](OpBuilder &b, Location l, ValueRange args) {
        IRMapping mapping;
        for (Value operand : combiner->getOperands())
          mapping.map(operand, operand == op.getRegionOutputArgs()[0]
                                   ? args[1]
                                   : args[0]);
        Operation *combined = b.clone(*combiner, mapping);
        linalg::YieldOp::create(b, l, combined->getResults());
      });
  for (NamedAttribute attr : op->getDiscardableAttrs()) {
    partial->setDiscardableAttr(attr.getName(), attr.getValue());
    whole->setDiscardableAttr(attr.getName(), attr.getValue());
  }
  rewriter.replaceOp(op, whole.getResults());
}

/// Splits a reduction without a parallel loop into partials over its leading
/// loops and a reduction of the partials.
struct SplitWholeReduction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  /// With fewer elements, one task computes the whole reduction.
  static constexpr int64_t kMinVolume = 8192;
  /// Rows shorter than this are not worth a partial of their own.
  static constexpr int64_t kMinInner = 64;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (op.getNumParallelLoops() != 0 || op->getNumResults() != 1 ||
        iterationVolume(op) < kMinVolume)
      return failure();
    // A single element of a larger result (the amax of a partial tile) is not
    // split.
    if (cast<RankedTensorType>(op->getResult(0).getType()).getRank() != 0)
      return failure();
    Operation *combiner = reductionCombiner(op, 0);
    if (!combiner)
      return failure();
    // Leading loops become parallel as long as rows stay long enough.
    SmallVector<int64_t> extents = op.getStaticLoopRanges();
    int64_t inner = iterationVolume(op);
    llvm::SmallBitVector outer(extents.size());
    for (unsigned loop = 0;
         loop + 1 < extents.size() && inner / extents[loop] >= kMinInner;
         ++loop) {
      outer.set(loop);
      inner /= extents[loop];
    }
    if (outer.none())
      return failure();
    splitReduction(rewriter, op, outer, combiner);
    return success();
  }
};

/// Splits a long reduction of columns into partials over blocks of rows, which
/// the outermost dimension of its input separates, and a reduction of the
/// partials: a task that computes what is reduced then has few rows, and not
/// all rows of a few columns, which do not fit into a cache.
struct SplitColumnReduction : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Shorter reductions keep the order of their sums.
  static constexpr int64_t kMinRows = 1024;
  /// The fewest rows of a partial.
  static constexpr int64_t kMinInner = 64;
  /// Fewer columns, with all rows, fit into a cache.
  static constexpr int64_t kMinColumns = 64;

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    // An attention sums its scores block by block.
    if (op.getNumParallelLoops() == 0 || op->getNumResults() != 1 ||
        op->getParentOfType<AttentionOp>() ||
        op->getParentOfType<AttentionBackwardOp>())
      return failure();
    // Partial sums would be rounded to a narrow type.
    auto element =
        dyn_cast<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
    if (element && element.getWidth() < 32)
      return failure();
    std::optional<unsigned> loop = rowsOf(op);
    Operation *combiner = loop ? reductionCombiner(op, 0) : nullptr;
    if (!combiner)
      return failure();
    int64_t rows = 1, extent = op.getStaticLoopRanges()[*loop];
    for (auto [size, kind] :
         llvm::zip_equal(op.getStaticLoopRanges(), op.getIteratorTypesArray()))
      if (linalg::isReductionIterator(kind))
        rows *= size;
    if (extent == 1 || rows < kMinRows || rows / extent < kMinInner ||
        iterationVolume(op) / rows < kMinColumns)
      return failure();
    llvm::SmallBitVector outer(op.getNumLoops());
    outer.set(*loop);
    splitReduction(rewriter, op, outer, combiner);
    return success();
  }

  /// Returns the loop over the outermost dimension of the input, if that has
  /// all loops, the outermost being a reduction and the innermost parallel.
  static std::optional<unsigned> rowsOf(linalg::GenericOp op) {
    auto iterators = op.getIteratorTypesArray();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      if (!map.isPermutation())
        continue;
      unsigned first = map.getDimPosition(0);
      unsigned last = map.getDimPosition(map.getNumResults() - 1);
      if (linalg::isReductionIterator(iterators[first]) &&
          linalg::isParallelIterator(iterators[last]))
        return first;
    }
    return std::nullopt;
  }
};

/// Returns true if `op` dequantizes: its result takes more bytes than the only
/// tensor that it reads besides scalars. A payload of 8 bits may have scales,
/// which are few.
bool widens(linalg::GenericOp op) {
  constexpr int64_t kElementsOfScale = 16;
  if (op->getNumResults() != 1 || !allParallel(op))
    return false;
  auto bits = [](Value value) {
    Type type = getElementTypeOrSelf(value.getType());
    return type.isIntOrFloat() ? type.getIntOrFloatBitWidth() : 64;
  };
  Value tensor;
  bool hasScales = false;
  for (Value input : op.getInputs()) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (!type || type.getRank() == 0)
      continue;
    if (type.getNumElements() * kElementsOfScale <= iterationVolume(op)) {
      hasScales = true;
      continue;
    }
    if (tensor)
      return false;
    tensor = input;
  }
  return tensor && bits(tensor) < bits(op->getResult(0)) &&
         (!hasScales || bits(tensor) <= 8);
}

/// Returns true if `op` is cheap enough to be computed again: math functions
/// and divisions are worth storing, a few additions are not.
bool isCheap(linalg::GenericOp op) {
  unsigned arithmetic = 0;
  for (Operation &inner : *op.getBody()) {
    if (isa<math::MathDialect>(inner.getDialect()) ||
        isa<arith::DivFOp, arith::RemFOp, arith::TruncFOp, tensor::ExtractOp>(
            inner))
      return false;
    // (Fused bodies are long: stop early.)
    if (!isa<linalg::IndexOp, linalg::YieldOp, arith::ConstantOp>(inner) &&
        ++arithmetic > 2)
      return false;
  }
  return arithmetic == 0 || op.getNumDpsInputs() <= 1 || widens(op);
}

/// Returns true if a consumer runs at most as often as the producer: it is in
/// the producer's block, or in a branch there.
bool runsNoMoreOften(Operation *producer, Operation *consumer) {
  Block *block = consumer->getBlock();
  while (block != producer->getBlock()) {
    Operation *parent = block->getParentOp();
    if (!isa_and_nonnull<scf::IfOp, scf::IndexSwitchOp>(parent))
      return false;
    block = parent->getBlock();
  }
  return true;
}

/// Returns true if fusing `producer` pays, which computes the current input.
bool shouldFuse(linalg::GenericOp producer, const ProducerInliner &inputs) {
  linalg::GenericOp consumer = inputs.getConsumer();
  // In a loop, the fused producer would run in every iteration. In a branch,
  // fusion pays if the operands take fewer bytes.
  if (producer->getBlock() != consumer->getBlock() &&
      !(widens(producer) && isCheap(producer) &&
        runsNoMoreOften(producer, consumer)))
    return false;
  if (isCheap(producer))
    return true;
  // A kept value is smaller than its operands.
  if (producer->hasAttr(FP8Dialect::kKeptAttrName))
    return false;
  // A costly producer is computed once per element of its own result.
  return inputs.isOnlyUse(producer) &&
         inputs.getVolume() <= iterationVolume(producer);
}

/// Returns true if the consumer could read the operands of `producer`, which
/// computes the current input.
bool canReadOperands(linalg::GenericOp producer,
                     const ProducerInliner &inputs) {
  AffineMap inverse = inversePermutation(
      producer.getIndexingMapMatchingResult(cast<OpResult>(inputs.getValue())));
  if (!inverse)
    return false;
  AffineMap loops = inverse.compose(inputs.getMap());
  return llvm::all_of(producer.getDpsInputOperands(), [&](OpOperand *operand) {
    return canReadThrough(
        producer.getMatchingIndexingMap(operand).compose(loops), operand->get(),
        inputs.getLoopRanges());
  });
}

/// Reshapes only move across elementwise ops.
bool shouldMoveReshape(OpOperand *fused) {
  auto producer = fused->get().getDefiningOp();
  auto elementwise = [](Operation *op) {
    auto generic = dyn_cast_or_null<linalg::GenericOp>(op);
    return generic && allParallel(generic) && generic->getNumResults() == 1 &&
           generic.getNumDpsInputs() > 0;
  };
  if (producer && producer->getBlock() != fused->getOwner()->getBlock())
    return false;
  if (isa_and_nonnull<tensor::CollapseShapeOp>(producer))
    return elementwise(fused->getOwner()) && producer->hasOneUse();
  if (isa<tensor::ExpandShapeOp>(fused->getOwner()))
    return elementwise(producer) && producer->hasOneUse();
  return false;
}

/// Returns the sweep that a consumer or its producer belongs to.
Attribute sweepOf(Operation *consumer, Operation *producer) {
  Attribute sweep = consumer->getAttr(FP8Dialect::kSweepAttrName);
  return sweep ? sweep : producer->getAttr(FP8Dialect::kSweepAttrName);
}

/// Inlines producers into their consumer. (Upstream's pattern set around
/// `fuseElementwiseOps` also drops destinations that a payload does not read.
/// That is wrong for ops that write only a part, such as those of a
/// concatenation.)
struct FuseProducers : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    auto isElementwise = [](Value input) {
      auto producer = input.getDefiningOp<linalg::GenericOp>();
      return producer && allParallel(producer);
    };
    if (llvm::none_of(op.getInputs(), isElementwise) || isDot(op) ||
        !op.hasPureTensorSemantics())
      return failure();
    bool changed = false;
    std::optional<ProducerInliner> inputs(std::in_place, op, 0, rewriter);
    while (!inputs->atEnd()) {
      auto producer = inputs->getValue().getDefiningOp<linalg::GenericOp>();
      if (!isElementwise(inputs->getValue()) ||
          !shouldFuse(producer, *inputs) ||
          !canReadOperands(producer, *inputs)) {
        inputs->next();
        continue;
      }
      bool recompute = op->hasAttr(FP8Dialect::kRecomputeAttrName) ||
                       producer->hasAttr(FP8Dialect::kRecomputeAttrName);
      Attribute sweep = sweepOf(op, producer);
      if (failed(inputs->inlineProducer())) {
        unsigned index = inputs->getIndex();
        changed |= inputs->applyInputs();
        linalg::GenericOp fused = fuseClone(op, index, rewriter);
        inputs.emplace(fused ? fused : op, fused ? index : index + 1, rewriter);
        if (!fused)
          continue;
        changed = true;
        op = fused;
      }
      // Recomputed values must not be merged with the original ones.
      if (recompute)
        op->setAttr(FP8Dialect::kRecomputeAttrName, rewriter.getUnitAttr());
      if (sweep)
        op->setAttr(FP8Dialect::kSweepAttrName, sweep);
    }
    changed |= inputs->applyInputs();
    return success(changed);
  }

private:
  /// Returns the consumer with a clone of the payload of input `index`'s
  /// producer fused into it; null if upstream declines.
  static linalg::GenericOp fuseClone(linalg::GenericOp consumer, unsigned index,
                                     PatternRewriter &rewriter) {
    OpOperand *operand = consumer.getDpsInputOperand(index);
    if (!linalg::areElementwiseOpsFusable(operand))
      return {};
    FailureOr<linalg::ElementwiseOpFusionResult> result =
        linalg::fuseElementwiseOps(rewriter, operand);
    if (failed(result))
      return {};
    // The producer keeps its own results: earlier ops read them.
    for (Value old : consumer.getResults())
      rewriter.replaceAllUsesWith(old, result->replacements.lookup(old));
    linalg::GenericOp fused =
        dropFirstResults(cast<linalg::GenericOp>(result->fusedOp),
                         consumer.getNumResults(), rewriter);
    if (consumer->hasAttr(FP8Dialect::kKeptAttrName))
      fused->setAttr(FP8Dialect::kKeptAttrName, rewriter.getUnitAttr());
    rewriter.eraseOp(consumer);
    return fused;
  }

  /// Returns `op` with only its last `count` results, if its payload does not
  /// read the destinations of the others, which have no users. (If they stayed,
  /// their maps would determine loop ranges, and fusion could remove the
  /// operands that do.)
  static linalg::GenericOp dropFirstResults(linalg::GenericOp op,
                                            unsigned count,
                                            PatternRewriter &rewriter) {
    unsigned drop = op.getNumResults() - count, inputs = op.getNumDpsInputs();
    Block *body = op.getBody();
    auto isRead = [](BlockArgument arg) { return !arg.use_empty(); };
    if (drop == 0 ||
        llvm::any_of(body->getArguments().slice(inputs, drop), isRead))
      return op;
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    maps.erase(maps.begin() + inputs, maps.begin() + inputs + drop);
    if (!inversePermutation(concatAffineMaps(maps, op.getContext())))
      return op;
    rewriter.setInsertionPoint(op);
    auto smaller = linalg::GenericOp::create(
        rewriter, op.getLoc(), TypeRange(op.getResults().drop_front(drop)),
        op.getInputs(), op.getOutputs().drop_front(drop), maps,
        op.getIteratorTypesArray());
    smaller->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    rewriter.inlineRegionBefore(op.getRegion(), smaller.getRegion(),
                                smaller.getRegion().begin());
    body->eraseArguments(inputs, drop);
    rewriter.modifyOpInPlace(body->getTerminator(), [&] {
      body->getTerminator()->eraseOperands(0, drop);
    });
    rewriter.replaceAllUsesWith(op.getResults().drop_front(drop),
                                smaller.getResults());
    rewriter.eraseOp(op);
    return smaller;
  }
};

/// Turns a uniform input (a splat constant or a fill) into a scalar of the
/// payload. If no other operand determines the extent of some loops, the input
/// stays, but shrinks to these loops.
struct FoldUniformInput : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    if (isDot(op))
      return failure();
    for (OpOperand *operand : op.getDpsInputOperands()) {
      TypedAttr scalar = uniformValue(operand->get());
      if (!scalar)
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      unsigned number = operand->getOperandNumber();
      maps.erase(maps.begin() + number);
      if (!inversePermutation(concatAffineMaps(maps, op.getContext()))) {
        if (shrink(op, *operand, scalar, maps, rewriter))
          return success();
        continue;
      }
      rewriter.modifyOpInPlace(op, [&] {
        BlockArgument arg = op.getBody()->getArgument(number);
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPointToStart(op.getBody());
        arg.replaceAllUsesWith(
            arith::ConstantOp::create(rewriter, op.getLoc(), scalar));
        op.getBody()->eraseArgument(number);
        op.getInputsMutable().erase(number);
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
      });
      return success();
    }
    return failure();
  }

  /// Shrinks `operand` to the loops whose extent none of the `others`
  /// determines, if these are fewer.
  static bool shrink(linalg::GenericOp op, OpOperand &operand, TypedAttr scalar,
                     ArrayRef<AffineMap> others, PatternRewriter &rewriter) {
    llvm::SmallBitVector known(op.getNumLoops());
    for (AffineMap map : others)
      for (AffineExpr expr : map.getResults())
        if (auto loop = dyn_cast<AffineDimExpr>(expr))
          known.set(loop.getPosition());
    SmallVector<int64_t> ranges = op.getStaticLoopRanges(), shape;
    SmallVector<AffineExpr> exprs;
    for (unsigned loop : llvm::seq(op.getNumLoops()))
      if (!known[loop]) {
        shape.push_back(ranges[loop]);
        exprs.push_back(rewriter.getAffineDimExpr(loop));
      }
    auto type = cast<RankedTensorType>(operand.get().getType());
    auto smaller = type.clone(shape);
    if (smaller.getNumElements() >= type.getNumElements())
      return false;
    rewriter.setInsertionPoint(op);
    Value constant = arith::ConstantOp::create(
        rewriter, op.getLoc(), SplatElementsAttr::get(smaller, scalar));
    rewriter.modifyOpInPlace(op, [&] {
      operand.set(constant);
      setIndexingMap(
          operand, AffineMap::get(op.getNumLoops(), 0, exprs, op.getContext()));
    });
    return true;
  }

  static TypedAttr uniformValue(Value value) {
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    // A scalar i64 constant is the number of a stochastically rounded tensor.
    // Inlined, it would give every layer kernels of its own.
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (constant && type && type.getRank() == 0 &&
        type.getElementType().isInteger(64))
      return {};
    if (auto fill = value.getDefiningOp<linalg::FillOp>())
      constant = fill.getInputs()[0].getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return {};
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return cast<TypedAttr>(splat.getSplatValue<Attribute>());
    return isa<TensorType>(constant.getType()) ? TypedAttr()
                                               : constant.getValue();
  }
};

class FuseElementwise : public fp8::impl::FuseElementwiseBase<FuseElementwise> {
public:
  using FuseElementwiseBase::FuseElementwiseBase;

  void runOnOperation() override {
    func::FuncOp func = getOperation();
    if (func.isExternal())
      return;
    if (failed(split(func)) || failed(fuse(func)) || failed(foldViews(func)))
      signalPassFailure();
  }

private:
  LogicalResult split(func::FuncOp func) {
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitLongLoop, SplitWholeReduction, SplitColumnReduction,
                 SplatInitToFill, SplatLoopInitToFill, DropOverwrittenInit>(
        &getContext());
    fillReturnedSplats(
        cast<func::ReturnOp>(func.getBody().front().getTerminator()));
    return apply(func, std::move(patterns));
  }

  LogicalResult fuse(func::FuncOp func) {
    RewritePatternSet patterns(&getContext());
    linalg::populateFoldReshapeOpsByExpansionPatterns(patterns,
                                                      shouldMoveReshape);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    patterns.add<FuseProducers, FoldUniformInput, FoldRoundTrip,
                 FoldExpandShapeIntoMap, SplatInitToFill, SplatLoopInitToFill>(
        &getContext());
    tensor::populateFoldTensorEmptyPatterns(patterns);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    return apply(func, std::move(patterns));
  }

  LogicalResult foldViews(func::FuncOp func) {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldCollapseShapeIntoMap>(&getContext());
    return apply(func, std::move(patterns));
  }

  /// Applies patterns to the ops outside of the bodies of structured ops: most
  /// ops are in those bodies, and no pattern matches there. Returns are
  /// skipped, too: no pattern matches them, and each has thousands of operands
  /// and would be revisited whenever one of them changes.
  static LogicalResult apply(func::FuncOp func, RewritePatternSet patterns) {
    FrozenRewritePatternSet frozen(std::move(patterns));
    bool changed = true;
    while (changed) {
      SmallVector<Operation *> ops;
      func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (!isa<func::ReturnOp>(op))
          ops.push_back(op);
        return isa<linalg::LinalgOp>(op) ? WalkResult::skip()
                                         : WalkResult::advance();
      });
      if (failed(applyOpPatternsGreedily(
              ops, frozen,
              GreedyRewriteConfig().setStrictness(
                  GreedyRewriteStrictness::ExistingAndNewOps),
              &changed)))
        return failure();
    }
    return success();
  }
};

} // namespace
