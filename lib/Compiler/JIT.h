//===- JIT.h - LLVM dialect to code in this process -------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_JIT_H
#define FP8_LIB_COMPILER_JIT_H

#include "fp8-c/Runtime.h"

#include "mlir/IR/BuiltinOps.h"
#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir::fp8 {

/// Machine code of one compiled function.
class JITCode {
public:
  ~JITCode();

  /// Translates each kernel of `module` (LLVM dialect) on its own, optimizes
  /// and compiles them on `threads` threads, and links them in memory.
  static FailureOr<std::unique_ptr<JITCode>> create(ModuleOp module,
                                                    unsigned threads);

  fp8_entry_fn entry() const { return entryPoint; }

private:
  JITCode();

  std::unique_ptr<llvm::orc::LLJIT> jit;
  fp8_entry_fn entryPoint = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_JIT_H
