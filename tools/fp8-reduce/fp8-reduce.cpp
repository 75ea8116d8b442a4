//===- fp8-reduce.cpp - The smallest module that still fails --------------===//
//
// mlir-reduce with every fp8 dialect, pass and pipeline: deletes ops of a
// module while a script says that it is still interesting, exit status 1
// (docs/Debugging.md has scripts for wrong numbers and for crashes).
//
//===----------------------------------------------------------------------===//

#include "fp8/Init.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Tools/mlir-reduce/MlirReduceMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::fp8::registerAllDialects(registry);
  mlir::fp8::registerAllPasses();
  mlir::MLIRContext context(registry);
  return mlir::failed(mlir::mlirReduceMain(argc, argv, context));
}
