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
    if (cpu.empty() && nvptx.empty() &&
        module->hasAttr(FP8Dialect::kTargetAttrName))
      return;
    if (!cpu.empty() && !nvptx.empty()) {
      module.emitError("expected either a CPU or a GPU but got both: '")
          << cpu << "' and '" << nvptx << "'";
      return signalPassFailure();
    }
    llvm::Expected<Attribute> target = makeTarget();
    if (!target) {
      module.emitError() << llvm::toString(target.takeError());
      return signalPassFailure();
    }
    module->setAttr(FP8Dialect::kTargetAttrName, *target);
  }

private:
  llvm::Expected<Attribute> makeTarget() {
    if (nvptx.empty())
      return makeCPUTarget(&getContext(),
                           cpu.empty() ? "native" : StringRef(cpu));
    return makeGPUTarget(&getContext(), nvptx);
  }
};

} // namespace
