//===- fp8-lsp-server.cpp - Language server for .mlir files ---------------===//
//
// Serves diagnostics, definitions, hover and completion to editors over the
// language server protocol, with every dialect that fp8-opt reads.
//
//===----------------------------------------------------------------------===//

#include "fp8/Init.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::fp8::registerAllDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
