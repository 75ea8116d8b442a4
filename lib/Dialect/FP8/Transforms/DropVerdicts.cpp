//===- DropVerdicts.cpp - Take the verdicts off the program ---------------===//

#include "fp8/Dialect/FP8/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {
#define GEN_PASS_DEF_FP8DROPVERDICTS
#include "fp8/Dialect/FP8/Transforms/Passes.h.inc"
} // namespace fp8
} // namespace mlir

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct DropVerdicts : fp8::impl::FP8DropVerdictsBase<DropVerdicts> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      op->removeAttr(FP8Dialect::kVerdictAttrName);
      op->removeAttr(FP8Dialect::kGatedUnitsAttrName);
      auto function = dyn_cast<func::FuncOp>(op);
      if (!function)
        return;
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        function.removeArgAttr(i, FP8Dialect::kStateVerdictAttrName);
    });
  }
};
} // namespace
