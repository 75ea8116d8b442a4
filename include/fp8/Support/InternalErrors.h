//===- InternalErrors.h - Mistakes of the compiler --------------*- C++ -*-===//
//
// Errors of the first stages say what is wrong with the user's step. An error
// from MLIR's verifier after a pass of ours, from the check that ends a stage,
// or from a pass of a stage that only gets what the compiler has made, is a bug
// of the compiler, and its text helps no user. These functions recognize such
// errors and add how to report them.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_INTERNALERRORS_H
#define FP8_SUPPORT_INTERNALERRORS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/Support/LLVM.h"

#include <functional>
#include <memory>

namespace mlir {
class Operation;
class Pass;
class PassManager;

namespace fp8 {

/// Which passes of a stage may refuse the user's step: all of them, all but the
/// last one, which checks what the others have made of it, or none.
enum class StageInput { Step, ImportedStep, CompilersOwn };

/// Registers a pass as one of ours: its mistakes are fp8's.
void registerOwnPass(const std::function<std::unique_ptr<Pass>()> &allocate);

/// Emits an error about what the user's step asks for, which is not the
/// compiler's mistake in any stage.
InFlightDiagnostic emitRefusal(Operation *op, const Twine &message = {});

/// Makes runs of `pm`, the passes of one stage of a compile, add a note to
/// every error that is the compiler's mistake: any error of the verifier, of
/// the check at the stage's end, or, if the compiler itself has made the
/// stage's input, of any pass, unless it is a refusal (`emitRefusal`).
void labelInternalErrors(PassManager &pm, StringRef stage,
                         StageInput input = StageInput::Step);

/// Verifies the result of a stage's passes and adds the same note to an error.
/// A compile verifies once a stage: verifying after every pass took a seventh
/// of the compile time.
LogicalResult verifyStage(Operation *op, StringRef stage);

/// Does the same for a pipeline that a user has composed: only an error of the
/// verifier after a pass of ours (`registerOwnPass`) is the compiler's mistake.
/// Other passes may come from plugins, and a check may run on any IR.
void labelInternalErrors(PassManager &pm);

} // namespace fp8
} // namespace mlir

#endif // FP8_SUPPORT_INTERNALERRORS_H
