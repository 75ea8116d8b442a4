//===- InternalErrors.cpp - Mistakes of the compiler ----------------------===//

#include "fp8/Support/InternalErrors.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace mlir;
using fp8::StageInput;

/// Returns the first error of the verifier about `op`, or "".
static std::string getVerifierError(Operation *op) {
  std::string first;
  auto thread = std::this_thread::get_id();
  ScopedDiagnosticHandler quiet(op->getContext(), [&](Diagnostic &diagnostic) {
    // Other threads may emit diagnostics meanwhile.
    if (std::this_thread::get_id() != thread)
      return failure();
    if (first.empty() && diagnostic.getSeverity() == DiagnosticSeverity::Error)
      first = diagnostic.str();
    return success();
  });
  (void)verify(op);
  return first;
}

namespace {
/// The types of the passes that are registered as ours.
struct OwnPasses {
  std::mutex mutex;
  DenseSet<TypeID> types;
};
} // namespace

static OwnPasses &ownPasses() {
  static OwnPasses passes;
  return passes;
}

void fp8::registerOwnPass(
    const std::function<std::unique_ptr<Pass>()> &allocate) {
  registerPass(allocate);
  OwnPasses &own = ownPasses();
  std::lock_guard<std::mutex> lock(own.mutex);
  own.types.insert(allocate()->getTypeID());
}

static bool isOurs(const Pass &pass) {
  OwnPasses &own = ownPasses();
  std::lock_guard<std::mutex> lock(own.mutex);
  return own.types.contains(pass.getTypeID());
}

/// The mark of a refusal, in the metadata of its diagnostic.
static constexpr StringLiteral kRefusal = "fp8.refusal";

static bool isRefusal(Diagnostic &diagnostic) {
  return llvm::any_of(diagnostic.getMetadata(), [](DiagnosticArgument &mark) {
    return mark.getKind() ==
               DiagnosticArgument::DiagnosticArgumentKind::String &&
           mark.getAsString() == kRefusal;
  });
}

InFlightDiagnostic fp8::emitRefusal(Operation *op, const Twine &message) {
  InFlightDiagnostic error = op->emitOpError(message);
  error.getUnderlyingDiagnostic()->getMetadata().emplace_back(kRefusal);
  return error;
}

static void emitStageError(MLIRContext *context, const Twine &culprit) {
  emitError(UnknownLoc::get(context))
      << "internal error: " << culprit
      << " made this; the mistake is fp8's, not the step's. Please report it "
         "with the step's file, the recipe and the command line "
         "(docs/Debugging.md)";
}

namespace {
/// Records all errors, the first pass that fails, and the verifier's error
/// about its result. Lives as long as the pass manager.
class InternalErrors : public PassInstrumentation {
public:
  /// An empty stage stands for a pipeline that a user has composed.
  /// The check ends a stage whose other passes may refuse the step.
  InternalErrors(MLIRContext *context, StringRef stage, StageInput input,
                 const Pass *check)
      : stage(stage), input(input), check(check),
        handler(context, [this](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
            std::lock_guard<std::mutex> lock(mutex);
            errors.push_back(diagnostic.str());
            isRefused |= isRefusal(diagnostic);
          }
          return failure();
        }) {}

  void runAfterPassFailed(Pass *pass, Operation *op) override {
    note(pass, op);
    // Diagnostics for nested ops are held back until the pass on the outermost
    // op has ended, to keep them in order.
    if (!op->getParentOp())
      report(op->getContext());
  }

private:
  void note(Pass *failed, Operation *op) {
    std::string error = getVerifierError(op);
    std::lock_guard<std::mutex> lock(mutex);
    // The passes on enclosing ops fail after it.
    if (hasFailed)
      return;
    hasFailed = true;
    pass = failed->getArgument().str();
    isOwn = isOurs(*failed);
    isCheck = failed == check;
    broken = std::move(error);
  }

  void report(MLIRContext *context) {
    // The result of a pass that emits an error of its own may not verify
    // either; in that case the verifier has not run.
    bool isVerifiers = !broken.empty() && llvm::is_contained(errors, broken);
    if (isReported || isRefused)
      return;
    if (stage.empty()
            ? !(isVerifiers && isOwn)
            : !(isVerifiers || isCheck || input == StageInput::CompilersOwn))
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
  StageInput input;
  const Pass *check;
  std::mutex mutex;
  std::vector<std::string> errors; ///< All emitted errors.
  /// The first pass that failed, and the verifier's first error about its
  /// result.
  std::string pass, broken;
  bool isOwn = false, isCheck = false;
  bool hasFailed = false, isReported = false;
  bool isRefused = false; ///< An error is a refusal.
  ScopedDiagnosticHandler handler;
};
} // namespace

LogicalResult fp8::verifyStage(Operation *op, StringRef stage) {
  if (succeeded(verify(op)))
    return success();
  emitStageError(op->getContext(), "a pass of stage '" + stage + "'");
  return failure();
}

void fp8::labelInternalErrors(PassManager &pm, StringRef stage,
                              StageInput input) {
  bool endsWithCheck = input == StageInput::ImportedStep && !pm.empty();
  const Pass *check = endsWithCheck ? &*std::prev(pm.end()) : nullptr;
  pm.addInstrumentation(
      std::make_unique<InternalErrors>(pm.getContext(), stage, input, check));
}

void fp8::labelInternalErrors(PassManager &pm) {
  labelInternalErrors(pm, /*stage=*/"");
}
