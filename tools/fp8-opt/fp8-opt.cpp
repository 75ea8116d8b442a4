//===- fp8-opt.cpp - Any pass, any stage ----------------------------------===//
//
// The pass driver: every fp8 dialect, pass and pipeline, and all of upstream.
// Passes that only tests need are linked into it alone.
//
//===----------------------------------------------------------------------===//

#include "fp8/Init.h"
#include "fp8/Support/InternalErrors.h"
#ifdef FP8_INCLUDE_TESTS
#include "TestPasses.h"
#endif

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

/// An op of a step may be a megabyte of text, so errors say where it is and do
/// not print it. --mlir-print-op-on-diagnostic=true prints it nevertheless.
static void keepErrorsShort() {
  mlir::registerMLIRContextCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  auto it = options.find("mlir-print-op-on-diagnostic");
  if (it != options.end())
    static_cast<llvm::cl::opt<bool> *>(it->second)->setInitialValue(false);
}

/// Runs what the options say, as MlirOptMain(argc, argv, ...) does, but that an
/// error of the compiler is called one.
static mlir::LogicalResult run(mlir::StringRef input, mlir::StringRef output,
                               mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  // Lists are printed without an input.
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(llvm::outs(), llvm::MemoryBuffer::getMemBuffer(""),
                             registry, config);
  mlir::MlirOptMainConfig labelled = config;
  labelled.setPassPipelineSetupFn([&](mlir::PassManager &pm) {
    // What was wrong before the passes is not theirs.
    if (config.shouldVerifyOnParsing())
      mlir::fp8::labelInternalErrors(pm);
    return config.setupPassPipeline(pm);
  });
  std::string error;
  auto from = mlir::openInputFile(input, &error);
  auto to = from ? mlir::openOutputFile(output, &error) : nullptr;
  if (!to) {
    llvm::errs() << error << "\n";
    return mlir::failure();
  }
  if (mlir::failed(
          mlir::MlirOptMain(to->os(), std::move(from), registry, labelled)))
    return mlir::failure();
  to->keep();
  return mlir::success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  mlir::fp8::registerAllDialects(registry);
  mlir::fp8::registerAllPasses();
#ifdef FP8_INCLUDE_TESTS
  mlir::fp8::test::registerTestPasses();
#endif
  keepErrorsShort();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "fp8 training step compiler: pass driver\n", registry);
  return mlir::asMainReturnCode(run(input, output, registry));
}
