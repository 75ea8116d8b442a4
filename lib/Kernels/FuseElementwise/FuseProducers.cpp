//===- FuseProducers.cpp - Producers in their consumers -------------------===//

#include "InlineProducer.h"
#include "Patterns.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

/// Returns true if `op` dequantizes: its result takes more bytes than the only
/// tensor that it reads besides scalars. A payload of 8 bits may have scales,
/// which are few.
static bool widens(linalg::GenericOp op) {
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
static bool isCheap(linalg::GenericOp op) {
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
static bool runsNoMoreOften(Operation *producer, Operation *consumer) {
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
static bool shouldFuse(linalg::GenericOp producer,
                       const ProducerInliner &inputs) {
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
static bool canReadOperands(linalg::GenericOp producer,
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

bool fp8::shouldMoveReshape(OpOperand *fused) {
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
static Attribute sweepOf(Operation *consumer, Operation *producer) {
  Attribute sweep = consumer->getAttr(FP8Dialect::kSweepAttrName);
  return sweep ? sweep : producer->getAttr(FP8Dialect::kSweepAttrName);
}

namespace {

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

} // namespace

void fp8::populateFuseProducerPatterns(RewritePatternSet &patterns) {
  patterns.add<FuseProducers>(patterns.getContext());
}
