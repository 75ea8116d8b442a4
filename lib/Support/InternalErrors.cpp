//===- InternalErrors.cpp - Mistakes of the compiler ----------------------===//

#include "fp8/Support/InternalErrors.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace mlir;

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

/// Whether a pass is one of fp8's, by its name.
static bool isOurs(StringRef pass) {
  for (StringRef prefix : {"fp8-", "stablehlo-", "convert-fp8-",
                           "convert-stablehlo-", "test-fp8-"})
    if (pass.starts_with(prefix))
      return true;
  return false;
}

/// Whether a pass checks what the passes before it have made. The first check
/// is of the user's step.
static bool isCheck(StringRef pass) {
  return pass.starts_with("fp8-verify-") && pass != "fp8-verify-import";
}

static void emitStageError(MLIRContext *context, const Twine &culprit) {
  emitError(UnknownLoc::get(context))
      << "internal error: " << culprit
      << " made this; the mistake is fp8's, not the step's. Please report it "
         "with the step's file, the recipe and the command line "
         "(docs/Debugging.md)";
}

namespace {
/// Sees all errors, which pass fails first, and what it leaves. Lives as long
/// as the pass manager.
class InternalErrors : public PassInstrumentation {
public:
  /// Without a stage: of passes that somebody has put together.
  InternalErrors(MLIRContext *context, StringRef stage)
      : stage(stage), handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
            std::lock_guard<std::mutex> lock(mutex);
            errors.push_back(diagnostic.str());
          }
          return failure();
        }) {}

  void runAfterPassFailed(Pass *pass, Operation *op) override {
    note(pass, op);
    // Before the outermost op's pass has ended, what is emitted for nested ops
    // is held back, to be in order.
    if (!op->getParentOp())
      report(op->getContext());
  }

private:
  void note(Pass *failed, Operation *op) {
    std::string error = getVerifierError(op);
    std::lock_guard<std::mutex> lock(mutex);
    // Those around it fail after it.
    if (hasFailed)
      return;
    hasFailed = true;
    pass = failed->getArgument().str();
    broken = std::move(error);
  }

  void report(MLIRContext *context) {
    // What a pass leaves after an error of its own may not verify either: then
    // the verifier has not been asked.
    bool isVerifiers = !broken.empty() && llvm::is_contained(errors, broken);
    if (isReported)
      return;
    if (stage.empty() ? !(isVerifiers && isOurs(pass))
                      : !(isVerifiers || isCheck(pass)))
      return;
    isReported = true;
    if (!stage.empty()) {
      emitStageError(context, "pass '" + pass + "' of stage '" + stage + "'");
      return;
    }
    emitError(UnknownLoc::get(context))
        << "internal error: pass '" << pass
        << "' made this; the mistake is fp8's, not the input's. Please report "
           "it with the input and the command line (docs/Debugging.md)";
  }

  std::string stage;
  std::mutex mutex;
  std::vector<std::string> errors; ///< All that were emitted.
  /// What failed first, and the verifier's first error in what it left.
  std::string pass, broken;
  bool hasFailed = false, isReported = false;
  ScopedDiagnosticHandler handler;
};
} // namespace

LogicalResult fp8::verifyStage(Operation *op, StringRef stage) {
  if (succeeded(verify(op)))
    return success();
  emitStageError(op->getContext(), "a pass of stage '" + stage + "'");
  return failure();
}

void fp8::labelInternalErrors(PassManager &pm, StringRef stage) {
  pm.addInstrumentation(
      std::make_unique<InternalErrors>(pm.getContext(), stage));
}

void fp8::labelInternalErrors(PassManager &pm) {
  labelInternalErrors(pm, /*stage=*/"");
}
