//===- InlineCalls.cpp - Inlining of everything into the entry ------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"
#include "fp8/Dialect/StableHLO/Transforms/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/SetVector.h"

namespace mlir {
namespace stablehlo {
#define GEN_PASS_DEF_INLINECALLS
#include "fp8/Dialect/StableHLO/Transforms/Passes.h.inc"
} // namespace stablehlo
} // namespace mlir

using namespace mlir;

/// Returns the function that `op` calls, if it is a call.
static FlatSymbolRefAttr getCallee(Operation *op) {
  if (auto call = dyn_cast<func::CallOp>(op))
    return call.getCalleeAttr();
  if (auto composite = dyn_cast<stablehlo::CompositeOp>(op))
    return composite.getDecompositionAttr();
  return {};
}

namespace {
struct InlineCalls : public stablehlo::impl::InlineCallsBase<InlineCalls> {
  using InlineCallsBase::InlineCallsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> main = findEntry();
    if (failed(main) || failed(inlineInto(*main)))
      return signalPassFailure();
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (func != *main)
        func.erase();
    main->setName("main");
    // JAX prints `public`. Set it only where it is missing, because setting it
    // drops it from the printed form.
    if (!main->isPublic())
      main->setPublic();
  }

private:
  FailureOr<func::FuncOp> findEntry() {
    SmallVector<func::FuncOp> visible;
    SmallVector<StringRef> names;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (!entry.empty() && func.getName() == entry)
        return func;
      if (func.isPublic()) {
        visible.push_back(func);
        names.push_back(func.getName());
      }
    }
    if (!entry.empty()) {
      InFlightDiagnostic diag = emitError(getOperation().getLoc())
                                << "expected the name of a function but got '"
                                << entry << "'; public functions are: ";
      llvm::interleaveComma(names, diag);
      return diag;
    }
    // If there are several, the usual name decides.
    for (func::FuncOp func : visible)
      if (func.getName() == "main")
        return func;
    if (visible.size() == 1)
      return visible.front();
    InFlightDiagnostic diag =
        emitError(getOperation().getLoc())
        << "expected one public function or one named 'main' but got "
        << visible.size();
    if (!names.empty()) {
      diag << ": ";
      llvm::interleaveComma(names, diag);
    }
    return diag;
  }

  /// Inlines below `func`, callees first: each body is copied in its final
  /// form.
  LogicalResult inlineInto(func::FuncOp func) {
    if (done.contains(func))
      return success();
    if (!active.insert(func))
      return emitError(func.getLoc())
             << "expected no recursion but '" << func.getName()
             << "' calls itself, which StableHLO does not allow";
    SmallVector<Operation *> calls;
    func.walk([&](Operation *op) {
      if (getCallee(op))
        calls.push_back(op);
    });
    for (Operation *call : calls) {
      FlatSymbolRefAttr symbol = getCallee(call);
      auto callee = getOperation().lookupSymbol<func::FuncOp>(symbol);
      if (!callee)
        return call->emitOpError()
               << "expected a function but got the unknown name '"
               << symbol.getValue() << "'";
      if (callee.isExternal() || !callee.getBody().hasOneBlock())
        return call->emitOpError() << "expected '" << callee.getName()
                                   << "' to have a body of one block";
      if (TypeRange(callee.getFunctionType().getInputs()) !=
              TypeRange(call->getOperandTypes()) ||
          TypeRange(callee.getFunctionType().getResults()) !=
              TypeRange(call->getResultTypes()))
        return call->emitOpError() << "expected operand and result types "
                                   << callee.getFunctionType() << " of '"
                                   << callee.getName() << "'";
      if (failed(inlineInto(callee)))
        return failure();
      inlineCall(call, callee);
    }
    active.remove(func);
    done.insert(func);
    return success();
  }

  void inlineCall(Operation *call, func::FuncOp callee) {
    OpBuilder builder(call);
    IRMapping mapping;
    Block &body = callee.getBody().front();
    mapping.map(body.getArguments(), call->getOperands());
    for (Operation &op : body.without_terminator()) {
      Operation *copy = builder.clone(op, mapping);
      copy->walk([&](Operation *inner) {
        inner->setLoc(CallSiteLoc::get(inner->getLoc(), call->getLoc()));
      });
    }
    SmallVector<Value> results;
    for (Value value : body.getTerminator()->getOperands())
      results.push_back(mapping.lookupOrDefault(value));
    call->replaceAllUsesWith(results);
    call->erase();
  }

  llvm::SetVector<func::FuncOp> active;
  DenseSet<func::FuncOp> done;
};
} // namespace
