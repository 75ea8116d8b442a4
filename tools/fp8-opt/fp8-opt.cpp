//===- fp8-opt.cpp - Any pass, any stage ----------------------------------===//
//
// The pass driver: every fp8 dialect, pass and pipeline, and all of upstream.
//
//===----------------------------------------------------------------------===//

#include "fp8/Init.h"

#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::fp8::registerAllDialects(registry);
  mlir::fp8::registerAllPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "fp8 training step compiler: pass driver\n", registry));
}
