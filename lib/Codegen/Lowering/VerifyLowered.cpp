//===- VerifyLowered.cpp - Contract at the end of codegen -----------------===//

#include "fp8/Codegen/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYLOWERED
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {

class VerifyLowered : public fp8::impl::VerifyLoweredBase<VerifyLowered> {
public:
  void runOnOperation() override {
    WalkResult result = getOperation().walk([](Operation *op) {
      if (isa<ModuleOp>(op) || isa<LLVM::LLVMDialect>(op->getDialect()))
        return WalkResult::advance();
      op->emitOpError("was not lowered: expected only ops of the llvm dialect "
                      "at the end of codegen");
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace
