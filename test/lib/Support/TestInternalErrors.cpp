//===- TestInternalErrors.cpp - A pass that makes mistakes ----------------===//

#include "TestPasses.h"

#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

namespace {

/// Makes mistakes that no pass should make: erases the terminator of functions
/// with an attribute `break`, and moves the first op of those with an attribute
/// `swap` behind the second. Rejects those with `refuse`, as a pass does whose
/// input is wrong.
struct TestBreakFunction
    : PassWrapper<TestBreakFunction, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TestBreakFunction)

  StringRef getArgument() const override { return "test-fp8-break-function"; }
  StringRef getDescription() const override {
    return "Break functions that have an attribute for it";
  }

  void runOnOperation() override {
    func::FuncOp function = getOperation();
    Block &block = function.getBody().front();
    if (function->hasAttr("swap"))
      block.front().moveAfter(block.front().getNextNode());
    if (function->hasAttr("break"))
      block.getTerminator()->erase();
    if (function->hasAttr("refuse")) {
      function.emitOpError("expected another function");
      signalPassFailure();
    }
  }
};

} // namespace

void mlir::fp8::test::registerTestInternalErrorsPass() {
  fp8::registerOwnPass([] { return std::make_unique<TestBreakFunction>(); });
}
