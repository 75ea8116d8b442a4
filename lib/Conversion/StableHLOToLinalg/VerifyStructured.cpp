//===- VerifyStructured.cpp - Contract of the structured stage ------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/FP8/IR/Irregular.h"
#include "fp8/Dialect/StableHLO/Transforms/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYSTRUCTURED
#include "fp8/Conversion/StableHLOToLinalg/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {

bool isScalar(Type type) { return type.isIntOrIndexOrFloat(); }

bool isSigned(Type type) {
  Type element = getElementTypeOrSelf(type);
  return element.isSignedInteger() || element.isUnsignedInteger();
}

bool isAttention(Operation *op) {
  return isa<fp8::AttentionOp, fp8::AttentionBackwardOp>(op);
}

/// Returns true for an op whose blocks belong to the schedule: a function, or
/// control flow in it. The body of an attention, which becomes a kernel, has
/// the same ops.
bool isSchedule(Operation *parent) {
  return isa<func::FuncOp>(parent) || isAttention(parent) ||
         (isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp>(
              parent) &&
          !fp8::isIrregular(parent) && isSchedule(parent->getParentOp()));
}

/// Returns true for arithmetic of the schedule, which is on indices and
/// integers.
bool isIndexArithmetic(Operation *op) {
  return isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::IndexCastOp>(
             op) &&
         isScalar(op->getResult(0).getType());
}

/// Checks for a contiguous part of a stack: leading dimensions are cut,
/// trailing ones are whole, and strides are 1.
LogicalResult checkPart(Operation *op, RankedTensorType stack,
                        ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides) {
  if (llvm::all_of(strides, [](int64_t stride) { return stride == 1; }) &&
      stablehlo::countCutDims(stack.getShape(), sizes))
    return success();
  return op->emitOpError("expected a contiguous part of the stack but got "
                         "sizes [")
         << sizes << "] of " << stack;
}

struct VerifyStructuredPass
    : fp8::impl::VerifyStructuredBase<VerifyStructuredPass> {
  void runOnOperation() override {
    WalkResult result = getOperation()->walk([](Operation *op) {
      return failed(check(op)) ? WalkResult::interrupt()
                               : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }

  static LogicalResult check(Operation *op) {
    for (Value value : op->getResults())
      if (isSigned(value.getType()))
        return op->emitOpError("expected signless integers but got ")
               << value.getType();
    if (isa<ModuleOp, func::FuncOp, func::ReturnOp, arith::ConstantOp>(op))
      return success();
    if (isSchedule(op->getParentOp()))
      return checkScheduled(op);
    return checkInKernel(op);
  }

  /// Checks an op of a function, or of the control flow in it.
  static LogicalResult checkScheduled(Operation *op) {
    if (isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
            linalg::FillOp, fp8::YieldOp, fp8::AllReduceOp, fp8::ExchangeOp,
            fp8::RankOp>(op) ||
        isAttention(op))
      return success();
    if (isa<linalg::GenericOp>(op) || fp8::isIrregular(op))
      return checkCaptures(op);
    if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op))
      return checkPart(op, slice.getSourceType(), slice.getStaticSizes(),
                       slice.getStaticStrides());
    if (auto slice = dyn_cast<tensor::InsertSliceOp>(op))
      return checkPart(op, slice.getDestType(), slice.getStaticSizes(),
                       slice.getStaticStrides());
    if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      if (loop.getConditionOp().getArgs() == loop.getBeforeArguments())
        return success();
      return op->emitOpError("expected the condition to pass all carried "
                             "values on, in order");
    }
    if (auto extract = dyn_cast<tensor::ExtractOp>(op);
        extract && extract.getIndices().empty())
      return success();
    if (auto elements = dyn_cast<tensor::FromElementsOp>(op);
        elements && elements.getType().getRank() == 0)
      return success();
    if (isa<scf::ForOp, scf::IfOp, scf::IndexSwitchOp, scf::YieldOp,
            scf::ConditionOp>(op) ||
        isIndexArithmetic(op))
      return success();
    return op->emitOpError(
        "is not structured: expected arith.constant, tensor.empty, "
        "tensor.expand_shape, tensor.collapse_shape, tensor.extract_slice, "
        "tensor.insert_slice, linalg.generic, linalg.fill, fp8.all_reduce, "
        "fp8.exchange, fp8.rank, scf control flow or the index arithmetic of "
        "loops in a "
        "function");
  }

  /// Checks that the body of a kernel reads tensors, not scalars of the
  /// schedule.
  static LogicalResult checkCaptures(Operation *op) {
    WalkResult result = op->walk([&](Operation *inner) {
      if (inner == op)
        return WalkResult::advance();
      for (Value value : inner->getOperands())
        if (isScalar(value.getType()) &&
            value.getParentRegion()->isProperAncestor(&op->getRegion(0)) &&
            !value.getDefiningOp<arith::ConstantOp>())
          return WalkResult(
              inner->emitOpError("expected scalars from outside to be "
                                 "constants but got ")
              << value);
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  static LogicalResult checkInKernel(Operation *op) {
    Operation *parent = op->getParentOp();
    bool inBody = isa<linalg::LinalgOp>(parent);
    bool inLoop = isa<scf::ForOp, scf::WhileOp, scf::IfOp>(parent) && !inBody;
    if (!inBody && !inLoop)
      return op->emitOpError("is not structured: expected it in a function, a "
                             "linalg body or a loop but got it in ")
             << parent->getName();
    if (isa<tensor::ExtractOp>(op) ||
        (inLoop ? isa<tensor::InsertOp, scf::ForOp, scf::WhileOp, scf::IfOp,
                      scf::ConditionOp, scf::YieldOp>(op)
                : isa<linalg::IndexOp, linalg::YieldOp>(op)))
      return success();
    if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
        llvm::all_of(op->getResultTypes(), isScalar))
      return success();
    return op->emitOpError(
               "is not structured: expected arith and math ops on scalars, "
               "tensor.extract")
           << (inLoop ? ", tensor.insert or scf loops in a loop of a kernel"
                      : " or linalg.index in a linalg body");
  }
};

} // namespace
