//===- SetTarget.cpp - The target of a module -----------------------------===//

#include "fp8/Codegen/Passes.h"
#include "fp8/Codegen/Target.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SETTARGET
#include "fp8/Codegen/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

class SetTarget : public fp8::impl::SetTargetBase<SetTarget> {
public:
  using SetTargetBase::SetTargetBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (cpu.empty() && module->hasAttr(FP8Dialect::kTargetAttrName))
      return;
    llvm::Expected<CPUTargetAttr> target =
        makeCPUTarget(&getContext(), cpu.empty() ? "native" : StringRef(cpu));
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    module->setAttr(FP8Dialect::kTargetAttrName, *target);
  }
};

} // namespace
