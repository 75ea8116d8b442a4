//===- InternalErrors.h - Mistakes of the compiler --------------*- C++ -*-===//
//
// Most errors say what is wrong with the user's step. One from MLIR's verifier
// after a pass of ours, or from the check that ends a stage, says that the
// compiler is wrong, in words that help nobody else. These are told apart, and
// it is said how to report them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_INTERNALERRORS_H
#define FP8_SUPPORT_INTERNALERRORS_H

#include "mlir/Support/LLVM.h"

namespace mlir {
class Operation;
class PassManager;

namespace fp8 {

/// Has the runs of `pm`, the passes of one stage of a compile, say so behind an
/// error that is the compiler's mistake. All that these passes leave is ours,
/// and so is what the check at their end refuses.
void labelInternalErrors(PassManager &pm, StringRef stage);

/// Verifies what the passes of a stage have left, and says the same behind an
/// error. A compile asks the verifier once a stage: after every pass, it took a
/// seventh of the whole.
LogicalResult verifyStage(Operation *op, StringRef stage);

/// The same for passes that somebody has put together: only what the verifier
/// refuses after a pass of ours is our mistake. Other passes may be a plugin's,
/// and a check may be asked about anything.
void labelInternalErrors(PassManager &pm);

} // namespace fp8
} // namespace mlir

#endif // FP8_SUPPORT_INTERNALERRORS_H
