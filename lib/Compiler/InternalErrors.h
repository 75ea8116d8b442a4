//===- InternalErrors.h - Mistakes of the compiler --------------*- C++ -*-===//
//
// Most errors say what is wrong with the user's step. One from MLIR's verifier
// after a pass of ours, or from the check that ends a stage, says that the
// compiler is wrong, in words that help nobody else. These are told apart, and
// it is said how to report them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_COMPILER_INTERNALERRORS_H
#define FP8_LIB_COMPILER_INTERNALERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"

#include <mutex>
#include <string>
#include <vector>

namespace mlir {
namespace fp8 {

/// Watches one pass manager as long as it lives.
class InternalErrors {
public:
  explicit InternalErrors(PassManager &pm);

  /// After a run that failed: says so if that was the compiler's mistake.
  void report(StringRef stage);

private:
  struct Watch;

  MLIRContext *context;
  std::mutex mutex;
  std::vector<std::string> errors; ///< All that were emitted.
  /// What failed first, and the verifier's first error in what it left.
  std::string pass, broken;
  bool isCheck = false;
  ScopedDiagnosticHandler handler;
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_COMPILER_INTERNALERRORS_H
