//===- FuseElementwise.cpp - Fusion of elementwise ops --------------------===//

#include "Patterns.h"

#include "fp8/Kernels/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSEELEMENTWISE
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

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
    populateSplitReductionPatterns(patterns);
    populateInitialValuePatterns(patterns);
    populateOverwrittenInitPatterns(patterns);
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
    populateFuseProducerPatterns(patterns);
    populateFoldUniformInputPatterns(patterns);
    populateFoldExpandedPatterns(patterns);
    populateInitialValuePatterns(patterns);
    tensor::populateFoldTensorEmptyPatterns(patterns);
    tensor::ExpandShapeOp::getCanonicalizationPatterns(patterns, &getContext());
    tensor::CollapseShapeOp::getCanonicalizationPatterns(patterns,
                                                         &getContext());
    return apply(func, std::move(patterns));
  }

  LogicalResult foldViews(func::FuncOp func) {
    RewritePatternSet patterns(&getContext());
    populateFoldCollapsedPatterns(patterns);
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
