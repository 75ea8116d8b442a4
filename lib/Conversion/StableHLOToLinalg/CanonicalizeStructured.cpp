//===- CanonicalizeStructured.cpp - Canonicalization of structured IR -----===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CANONICALIZESTRUCTURED
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {

/// Returns true for ops that become the code of a kernel, whose body sees
/// elements.
bool isKernelCode(Operation *op) {
  return isa<linalg::LinalgOp>(op) || fp8::isIrregular(op);
}

/// Folding looks through the tensors that hold counters, so that bodies read
/// scalars of the schedule. Puts such a scalar into a tensor again.
void captureTensorsOnly(Operation *op) {
  llvm::SetVector<Value> captured;
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value value : inner->getOperands())
        if (value.getType().isIntOrIndexOrFloat() &&
            value.getParentRegion()->isProperAncestor(&region) &&
            !value.getDefiningOp<arith::ConstantOp>())
          captured.insert(value);
    });
  for (Value value : captured) {
    OpBuilder b(op);
    Location loc = op->getLoc();
    // Tensor elements are integers: an index has no size in memory.
    Value element = value;
    if (value.getType().isIndex())
      element = arith::IndexCastOp::create(b, loc, b.getI64Type(), value);
    Value tensor = tensor::FromElementsOp::create(
        b, loc, RankedTensorType::get({}, element.getType()), element);
    for (Region &region : op->getRegions()) {
      b.setInsertionPointToStart(&region.front());
      Value inside = tensor::ExtractOp::create(b, loc, tensor, ValueRange());
      if (value.getType().isIndex())
        inside = arith::IndexCastOp::create(b, loc, value.getType(), inside);
      value.replaceUsesWithIf(inside, [&](OpOperand &use) {
        return region.isAncestor(use.getOwner()->getParentRegion());
      });
    }
  }
}

struct CanonicalizeStructuredPass
    : fp8::impl::CanonicalizeStructuredBase<CanonicalizeStructuredPass> {
  LogicalResult initialize(MLIRContext *context) override {
    RewritePatternSet set(context);
    for (Dialect *dialect : context->getLoadedDialects())
      dialect->getCanonicalizationPatterns(set);
    for (RegisteredOperationName op : context->getRegisteredOperations())
      // Patterns of other scf ops would introduce scalar arguments and selects
      // of whole tensors.
      if (op.getDialectNamespace() != "scf" ||
          op.getIdentifier() == scf::ForOp::getOperationName())
        op.getCanonicalizationPatterns(set, context);
    patterns = FrozenRewritePatternSet(std::move(set));
    return success();
  }

  void runOnOperation() override {
    // As upstream's canonicalizer, accept the result after a limited number of
    // rounds. Every region is one block, so there is no control flow to
    // simplify.
    (void)applyPatternsGreedily(
        getOperation(), patterns,
        GreedyRewriteConfig().setRegionSimplificationLevel(
            GreedySimplifyRegionLevel::Disabled));
    SmallVector<Operation *> kernels;
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (!isKernelCode(op))
        return WalkResult::advance();
      kernels.push_back(op);
      return WalkResult::skip();
    });
    for (Operation *op : kernels)
      captureTensorsOnly(op);
  }

  FrozenRewritePatternSet patterns;
};

} // namespace
