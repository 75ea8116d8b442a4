//===- DropBarriers.cpp - Removal of optimization barriers ----------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DROPBARRIERS
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// Marks the ops that read `value` or a view of it.
static void markReaders(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *op = use.getOwner();
    // Irregular loops read elements in their bodies.
    while (auto *parent = op->getParentOp()) {
      if (!fp8::isIrregular(parent) && !isa<linalg::GenericOp>(parent))
        break;
      op = parent;
    }
    if (isa<linalg::GenericOp>(op) || fp8::isIrregular(op))
      op->setAttr(fp8::FP8Dialect::kRecomputeAttrName,
                  UnitAttr::get(op->getContext()));
    else if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
      markReaders(op->getResult(0));
  }
}

/// Marks the op that computes `value`, perhaps in another shape.
static void markProducer(Value value) {
  Operation *def = value.getDefiningOp();
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(def))
    def = def->getOperand(0).getDefiningOp();
  if (isa_and_nonnull<linalg::GenericOp>(def))
    def->setAttr(fp8::FP8Dialect::kKeptAttrName,
                 UnitAttr::get(def->getContext()));
}

namespace {
struct DropBarriersPass : fp8::impl::DropBarriersBase<DropBarriersPass> {
  void runOnOperation() override {
    getOperation()->walk([](stablehlo::OptimizationBarrierOp barrier) {
      for (Value result : barrier.getResults())
        markReaders(result);
      for (Value operand : barrier.getOperands())
        markProducer(operand);
      barrier->replaceAllUsesWith(barrier.getOperands());
      barrier.erase();
    });
  }
};
} // namespace
