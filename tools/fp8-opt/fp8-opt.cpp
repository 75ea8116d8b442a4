//===- fp8-opt.cpp - Any pass, any stage ----------------------------------===//
//
// The pass driver: every fp8 dialect, pass and pipeline, and all of upstream.
// Passes that only tests need are linked into it alone.
//
//===----------------------------------------------------------------------===//

#include "fp8/Init.h"
#ifdef FP8_INCLUDE_TESTS
#include "TestPasses.h"
#endif

#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/CommandLine.h"

/// An op of a step may be a megabyte of text, so errors say where it is and do
/// not print it. --mlir-print-op-on-diagnostic=true prints it nevertheless.
static void keepErrorsShort() {
  mlir::registerMLIRContextCLOptions();
  auto &options = llvm::cl::getRegisteredOptions();
  auto it = options.find("mlir-print-op-on-diagnostic");
  if (it != options.end())
    static_cast<llvm::cl::opt<bool> *>(it->second)->setInitialValue(false);
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::fp8::registerAllDialects(registry);
  mlir::fp8::registerAllPasses();
#ifdef FP8_INCLUDE_TESTS
  mlir::fp8::test::registerTestPasses();
#endif
  keepErrorsShort();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "fp8 training step compiler: pass driver\n", registry));
}
