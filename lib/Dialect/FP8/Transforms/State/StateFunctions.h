//===- StateFunctions.h - Functions that store and load state ---*- C++ -*-===//
//
// If a step stores its state in another form than the user has it, two
// functions beside the step convert it: `fp8_store` makes the step's arguments
// from the user's tensors, `fp8_load` makes the user's tensors from the step's
// arguments. Both have tree paths, and only the arrays that they convert (and
// those that `fp8_store` reads for it).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_STATEFUNCTIONS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_STATEFUNCTIONS_H

#include "../SignatureExtension.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace mlir {
namespace fp8 {

/// Whether the function replaces any of its arguments.
bool replacesState(func::FuncOp function);

/// Returns the type that functions beside the step use for an argument: its
/// own, or that of the whole array if each rank has a part of it.
Type getWholeType(func::FuncOp step, unsigned argument);

/// Returns the function beside `step` for the entry "store" or "load"; creates
/// it if there is none.
func::FuncOp getStateFunction(func::FuncOp step, StringRef entry);

/// Extends a function beside the step; call `applySignature` in the end.
class StateFunction {
public:
  /// Finds or creates the function beside `step` for this entry.
  StateFunction(func::FuncOp step, StringRef entry);

  /// Returns the argument with this path; adds it if there is none.
  BlockArgument getArgument(StringRef path, Type type, Location loc);
  void addResult(StringRef path, Value value);
  Operation *getTerminator();
  void applySignature() { signature.apply(); }

private:
  func::FuncOp function;
  SignatureExtension signature;
  llvm::StringMap<BlockArgument> arguments; ///< By path.
};

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_STATEFUNCTIONS_H
