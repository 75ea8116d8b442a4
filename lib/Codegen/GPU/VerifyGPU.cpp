//===- VerifyGPU.cpp - Contract at the end of codegen for GPUs ------------===//

#include "fp8/Codegen/GPU/Passes.h"
#include "fp8/Support/InternalErrors.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYGPU
#include "fp8/Codegen/GPU/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Returns true for functions for which LLVM has no instructions in f64.
static bool needsLibrary(Operation *op) {
  return isa<LLVM::SinOp, LLVM::CosOp, LLVM::TanOp, LLVM::ExpOp, LLVM::Exp2Op,
             LLVM::Exp10Op, LLVM::LogOp, LLVM::Log2Op, LLVM::Log10Op,
             LLVM::PowOp, LLVM::PowIOp, LLVM::ASinOp, LLVM::ACosOp,
             LLVM::ATanOp, LLVM::ATan2Op, LLVM::SinhOp, LLVM::CoshOp,
             LLVM::TanhOp>(op);
}

/// Returns a problem with `op`, or an empty string.
static StringRef problemOf(Operation *op) {
  if (!isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
    return "was not lowered: expected only ops of the llvm and nvvm dialects "
           "in "
           "a GPU module at the end of codegen";
  if (auto func = dyn_cast<LLVM::LLVMFuncOp>(op);
      func && func.isExternal() && !func.getName().starts_with("llvm."))
    return "has no body: kernels call no library";
  for (Type type : op->getResultTypes())
    if (auto element = dyn_cast<FloatType>(getElementTypeOrSelf(type));
        element && element.getWidth() == 8)
      return "gives an f8: expected f8 only as bytes at the end of codegen";
  return "";
}

namespace {

class VerifyGPU : public fp8::impl::VerifyGPUBase<VerifyGPU> {
public:
  void runOnOperation() override {
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      WalkResult result = module.walk([&](Operation *op) {
        if (op == module)
          return WalkResult::advance();
        if (needsLibrary(op)) {
          emitRefusal(op, "has no instruction on a GPU in f64: supported are "
                          "f32, and in f64 what is made of sums, products, "
                          "quotients and roots");
          return WalkResult::interrupt();
        }
        StringRef problem = problemOf(op);
        if (problem.empty())
          return WalkResult::advance();
        op->emitOpError(problem);
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
};

} // namespace
