//===- fp8-opt.cpp - The pass driver --------------------------------------===//
//
// The pass driver: has every fp8 dialect, pass and pipeline, and all of
// upstream. It is the only program with the passes that only tests need.
//
//===----------------------------------------------------------------------===//

#include "SourceLines.h"
#include "fp8/Init.h"
#include "fp8/Support/InternalErrors.h"
#include "fp8/Support/OutputFile.h"
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

/// Stops errors from printing the op, which may be a megabyte of text; they
/// name its location. --mlir-print-op-on-diagnostic=true prints it
/// nevertheless.
static void keepErrorsShort() {
  mlir::registerMLIRContextCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  auto it = options.find("mlir-print-op-on-diagnostic");
  if (it != options.end())
    static_cast<llvm::cl::opt<bool> *>(it->second)->setInitialValue(false);
}

/// Runs the options as MlirOptMain(argc, argv, ...) does, but labels internal
/// errors of the compiler as such.
static mlir::LogicalResult run(mlir::StringRef input, mlir::StringRef output,
                               mlir::DialectRegistry &registry) {
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  // Dialects and passes are listed without an input.
  if (config.shouldShowDialects() || config.shouldListPasses())
    return mlir::MlirOptMain(llvm::outs(), llvm::MemoryBuffer::getMemBuffer(""),
                             registry, config);
  mlir::MlirOptMainConfig labelled = config;
  labelled.setPassPipelineSetupFn([&](mlir::PassManager &pm) {
    // Errors in the input are not internal errors.
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
  // The verifier of diagnostics prints none, parts of a split input have
  // buffers of their own, and a verbosity asks for upstream's own handler.
  if (!config.shouldVerifyDiagnostics() && config.inputSplitMarker().empty() &&
      config.getDiagnosticVerbosityLevel() ==
          mlir::VerbosityLevel::ErrorsWarningsAndRemarks)
    shortenSourceLines(registry, from->getMemBufferRef());
  mlir::LogicalResult result =
      mlir::MlirOptMain(to->os(), std::move(from), registry, labelled);
  if (std::error_code code = mlir::fp8::finish(to->os())) {
    llvm::errs() << "error: cannot write '" << output << "': " << code.message()
                 << "\n";
    return mlir::failure();
  }
  if (mlir::succeeded(result))
    to->keep();
  return result;
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
