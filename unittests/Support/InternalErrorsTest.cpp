//===- InternalErrorsTest.cpp - Internal errors ---------------------------===//

#include "fp8/Support/InternalErrors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {

/// The mistake of a pass.
enum class Fault {
  None,
  BreaksIR,
  RefusesInput,
  RefusesInputAndBreaksIR,
  RefusesStep,
  FailsCheck
};

struct FaultyPass : PassWrapper<FaultyPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FaultyPass)
  FaultyPass(Fault fault, StringRef argument)
      : fault(fault), argument(argument) {}
  StringRef getArgument() const override { return argument; }

  void runOnOperation() override {
    if (fault == Fault::RefusesInput ||
        fault == Fault::RefusesInputAndBreaksIR) {
      getOperation().emitError("expected another step");
      signalPassFailure();
    }
    if (fault == Fault::RefusesStep) {
      fp8::emitRefusal(getOperation(), "expected another step");
      signalPassFailure();
    }
    if (fault == Fault::BreaksIR || fault == Fault::RefusesInputAndBreaksIR)
      getOperation().getBody().front().getTerminator()->erase();
  }

  Fault fault;
  StringRef argument;
};

/// The check at the end of a stage, which finds a mistake.
struct FailingCheck : PassWrapper<FailingCheck, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FailingCheck)
  void runOnOperation() override {
    getOperation().emitError("expected another result");
    signalPassFailure();
  }
};

/// Returns the errors of running such a pass on two functions, in a stage or,
/// without one, in a plain pipeline.
std::vector<std::string> run(Fault fault, StringRef argument = "faulty",
                             StringRef stage = "fp8",
                             fp8::StageInput input = fp8::StageInput::Step) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(
      "func.func @a() { return }\nfunc.func @b() { return }", &context);
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors.push_back(diagnostic.str());
    return success();
  });
  PassManager pm(&context);
  pm.addNestedPass<func::FuncOp>(std::make_unique<FaultyPass>(fault, argument));
  if (fault == Fault::FailsCheck)
    pm.addPass(std::make_unique<FailingCheck>());
  if (stage.empty())
    fp8::labelInternalErrors(pm);
  else
    fp8::labelInternalErrors(pm, stage, input);
  EXPECT_EQ(failed(pm.run(*module)), fault != Fault::None);
  return errors;
}

bool isInternal(const std::vector<std::string> &errors) {
  return !errors.empty() &&
         StringRef(errors.back()).starts_with("internal error: pass '");
}

TEST(InternalErrors, NothingIsSaidWithoutAnError) {
  EXPECT_TRUE(run(Fault::None).empty());
}

TEST(InternalErrors, TheVerifiersAreOurs) {
  std::vector<std::string> errors = run(Fault::BreaksIR);
  EXPECT_TRUE(isInternal(errors));
  EXPECT_GE(errors.size(), 2u) << "expected the verifier's error, too";
  EXPECT_NE(errors.back().find("pass 'faulty' of stage 'fp8'"),
            std::string::npos);
}

TEST(InternalErrors, ThoseOfAPassAreTheUsers) {
  EXPECT_FALSE(isInternal(run(Fault::RefusesInput)));
  EXPECT_FALSE(isInternal(run(Fault::RefusesInputAndBreaksIR)));
}

TEST(InternalErrors, ThoseOfAStagesCheckAreOurs) {
  constexpr auto imported = fp8::StageInput::ImportedStep;
  EXPECT_TRUE(isInternal(run(Fault::FailsCheck, "faulty", "fp8", imported)));
  // The check of the first stage is about the step.
  EXPECT_FALSE(isInternal(run(Fault::FailsCheck)));
}

TEST(InternalErrors, ThoseOfALaterStageAreOurs) {
  constexpr auto own = fp8::StageInput::CompilersOwn;
  std::vector<std::string> errors =
      run(Fault::RefusesInput, "fp8-form-kernels", "kernels", own);
  EXPECT_TRUE(isInternal(errors));
  EXPECT_NE(errors.back().find("pass 'fp8-form-kernels' of stage 'kernels'"),
            std::string::npos);
  EXPECT_NE(errors.back().find("Please report it"), std::string::npos);
  // It says that the step asks for what is not supported.
  errors = run(Fault::RefusesStep, "fp8-form-kernels", "kernels", own);
  EXPECT_FALSE(isInternal(errors));
  EXPECT_EQ(errors.back(), "'func.func' op expected another step");
}

TEST(InternalErrors, AloneOnlyTheVerifiersAfterOurPassesAreOurs) {
  EXPECT_FALSE(isInternal(run(Fault::BreaksIR, "fp8-faulty", "")));
  fp8::registerOwnPass(
      [] { return std::make_unique<FaultyPass>(Fault::None, "faulty"); });
  std::vector<std::string> errors = run(Fault::BreaksIR, "faulty", "");
  EXPECT_TRUE(isInternal(errors));
  EXPECT_NE(errors.back().find("pass 'faulty' made this"), std::string::npos);
  EXPECT_FALSE(isInternal(run(Fault::RefusesInput, "faulty", "")));
  EXPECT_FALSE(isInternal(run(Fault::RefusesInputAndBreaksIR, "faulty", "")));
  EXPECT_FALSE(isInternal(run(Fault::FailsCheck, "faulty", "")));
}

TEST(InternalErrors, AStageIsVerifiedAtItsEnd) {
  MLIRContext context;
  context.loadDialect<func::FuncDialect>();
  auto module =
      parseSourceString<ModuleOp>("func.func @a() { return }", &context);
  std::vector<std::string> errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors.push_back(diagnostic.str());
    return success();
  });
  EXPECT_TRUE(succeeded(fp8::verifyStage(*module, "fp8")));
  EXPECT_TRUE(errors.empty());
  module->lookupSymbol<func::FuncOp>("a").getBody().front().clear();
  EXPECT_TRUE(failed(fp8::verifyStage(*module, "fp8")));
  ASSERT_GE(errors.size(), 2u) << "expected the verifier's error, too";
  EXPECT_TRUE(StringRef(errors.back())
                  .starts_with("internal error: a pass of stage 'fp8'"));
}

TEST(InternalErrors, OneIsReportedOnce) {
  std::vector<std::string> errors = run(Fault::BreaksIR);
  EXPECT_EQ(llvm::count_if(errors,
                           [](StringRef error) {
                             return error.starts_with("internal error");
                           }),
            1);
}

} // namespace
