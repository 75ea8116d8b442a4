//===- Messages.cpp - What fp8-run says of a mistake ----------------------===//

#include "Messages.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

int fp8::usageError(const llvm::Twine &message) {
  llvm::errs() << "fp8-run: error: " << message << "\n";
  return 2;
}

int fp8::fail(llvm::Error error) {
  llvm::errs() << "fp8-run: error: " << llvm::toString(std::move(error))
               << "\n";
  return 1;
}
