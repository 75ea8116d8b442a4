//===- InternalErrors.cpp - Mistakes of the compiler ----------------------===//

#include "InternalErrors.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/STLExtras.h"

#include <thread>

using namespace mlir;
using namespace mlir::fp8;

/// The first error that the verifier has about `op`, or nothing.
static std::string getVerifierError(Operation *op) {
  std::string first;
  auto thread = std::this_thread::get_id();
  ScopedDiagnosticHandler quiet(op->getContext(), [&](Diagnostic &diagnostic) {
    // Others may have something to say meanwhile.
    if (std::this_thread::get_id() != thread)
      return failure();
    if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      first = diagnostic.str();
    return success();
  });
  (void)verify(op);
  return first;
}

/// Sees which pass fails, and what it leaves.
struct InternalErrors::Watch : PassInstrumentation {
  explicit Watch(InternalErrors &owner) : owner(owner) {}

  void runAfterPassFailed(Pass *pass, Operation *op) override {
    std::string broken = getVerifierError(op);
    std::lock_guard<std::mutex> lock(owner.mutex);
    // Those around it fail after it.
    if (!owner.pass.empty())
      return;
    owner.pass = pass->getArgument().str();
    owner.broken = std::move(broken);
    // The first one checks the user's step.
    owner.isCheck = pass->getArgument().starts_with("fp8-verify-") &&
                    pass->getArgument() != "fp8-verify-import";
  }

  InternalErrors &owner;
};

InternalErrors::InternalErrors(PassManager &pm)
    : context(pm.getContext()),
      handler(context, [this](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          std::lock_guard<std::mutex> lock(mutex);
          errors.push_back(diagnostic.str());
        }
        return failure();
      }) {
  pm.addInstrumentation(std::make_unique<Watch>(*this));
}

void InternalErrors::report(StringRef stage) {
  // What a pass leaves after an error of its own may not verify either: then
  // the verifier has not been asked.
  bool isVerifiers = !broken.empty() && llvm::is_contained(errors, broken);
  if (!isCheck && !isVerifiers)
    return;
  emitError(UnknownLoc::get(context))
      << "internal error: pass '" << pass << "' of stage '" << stage
      << "' made this; the mistake is fp8's, not the step's. Please report it "
         "with the step's file, the recipe and the command line "
         "(docs/Debugging.md)";
}
