//===- ObjectCode.h - LLVM dialect to machine code --------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_OBJECTCODE_H
#define FP8_LIB_COMPILER_OBJECTCODE_H

#include "fp8/Compiler/Executable.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// What `compileObjects` makes of one function.
struct CompiledObjects {
  /// The kernels, then the schedule. Equal kernels are there once.
  std::vector<ObjectCode> objects;
  StringRef entry() const { return objects.back().symbol; }
};

/// What this machine can run.
llvm::Expected<CodeTarget> getHostTarget();

/// Compiles the schedule of `module` (LLVM dialect) and each of its kernels to
/// an object of its own, on `threads` threads (0: one a core).
FailureOr<CompiledObjects> compileObjects(ModuleOp module, unsigned threads);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_OBJECTCODE_H
