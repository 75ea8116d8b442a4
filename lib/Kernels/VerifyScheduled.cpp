//===- VerifyScheduled.cpp - Contract of the kernels stage ----------------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYSCHEDULED
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

LogicalResult verifySchedule(func::FuncOp func) {
  WalkResult result = func.walk([](Operation *op) -> WalkResult {
    bool scalar =
        isa<arith::ArithDialect>(op->getDialect()) &&
        llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
    if (scalar ||
        isa<func::FuncOp, func::CallOp, func::ReturnOp, memref::ViewOp,
            memref::GetGlobalOp, memref::ExpandShapeOp, memref::CollapseShapeOp,
            SubbufferOp, scf::ForOp, scf::WhileOp, scf::IfOp,
            scf::IndexSwitchOp, scf::YieldOp, scf::ConditionOp>(op))
      return success();
    // A condition or a counter.
    if (isa<memref::LoadOp, memref::StoreOp>(op) &&
        cast<MemRefType>(op->getOperand(isa<memref::StoreOp>(op)).getType())
                .getNumElements() == 1)
      return success();
    return op->emitOpError("is not part of a planned schedule: expected calls "
                           "of kernels, control flow, scalars and views of the "
                           "arena");
  });
  return failure(result.wasInterrupted());
}

LogicalResult verifyKernel(func::FuncOp kernel) {
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    if (!memref || !memref.hasStaticShape() || !memref.getLayout().isIdentity())
      return kernel.emitOpError("expected argument ")
             << index
             << " of a kernel to be a static memref with identity layout but "
                "got "
             << type;
  }
  for (Operation &op : kernel.getBody().front()) {
    if (!isa<linalg::GenericOp, linalg::FillOp, scf::ForOp, memref::AllocOp,
             func::ReturnOp>(op) &&
        !isa<arith::ArithDialect>(op.getDialect()))
      return op.emitOpError(
          "is not part of a kernel: expected linalg.generic, linalg.fill, "
          "scf.for, memref.alloc or arith ops");
    if (isa<linalg::GenericOp, scf::ForOp>(op) && !op.hasAttr(kTaskDimsAttr))
      return op.emitOpError("expected attribute '") << kTaskDimsAttr << "'";
  }
  return success();
}

class VerifyScheduled : public fp8::impl::VerifyScheduledBase<VerifyScheduled> {
public:
  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isDeclaration())
        continue;
      LogicalResult result = func->hasAttr(kDomainAttr) ? verifyKernel(func)
                                                        : verifySchedule(func);
      if (failed(result))
        return signalPassFailure();
    }
  }
};

} // namespace
