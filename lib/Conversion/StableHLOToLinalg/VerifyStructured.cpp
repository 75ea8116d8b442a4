//===- VerifyStructured.cpp - Contract of the structured stage ------------===//

#include "fp8/Conversion/StableHLOToLinalg/StableHLOToLinalg.h"

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

    Operation *parent = op->getParentOp();
    if (isa<func::FuncOp>(parent)) {
      if (isa<tensor::EmptyOp, tensor::ExpandShapeOp, tensor::CollapseShapeOp,
              linalg::GenericOp, linalg::FillOp, scf::ForOp>(op))
        return success();
      return op->emitOpError("is not structured; expected arith.constant, "
                             "tensor.empty, tensor.expand_shape, "
                             "tensor.collapse_shape, linalg.generic, "
                             "linalg.fill or scf.for in a function");
    }
    if (isa<linalg::LinalgOp, scf::ForOp>(parent)) {
      bool inLoop = isa<scf::ForOp>(parent);
      if (isa<tensor::ExtractOp>(op) ||
          (inLoop ? isa<tensor::InsertOp, scf::ForOp, scf::YieldOp>(op)
                  : isa<linalg::IndexOp, linalg::YieldOp>(op)))
        return success();
      if (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
          llvm::all_of(op->getResultTypes(), isScalar))
        return success();
      return op->emitOpError(
                 "is not structured; expected arith and math ops on scalars, "
                 "tensor.extract")
             << (inLoop ? ", tensor.insert or scf.for in a loop"
                        : " or linalg.index in a linalg body");
    }
    return op->emitOpError("is not structured; expected it in a function, a "
                           "linalg body or a loop but got it in ")
           << parent->getName();
  }
};

} // namespace
