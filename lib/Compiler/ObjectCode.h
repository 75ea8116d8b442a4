//===- ObjectCode.h - LLVM dialect to machine code --------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_OBJECTCODE_H
#define FP8_LIB_COMPILER_OBJECTCODE_H

#include "fp8/Compiler/Executable.h"

#include "mlir/IR/BuiltinOps.h"

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::fp8 {

class KernelCache;

/// What `compileObjects` makes of one function.
struct CompiledObjects {
  /// The kernels, then the schedule. Equal kernels are there once.
  std::vector<ObjectCode> objects;
  /// How many kernels were in the cache.
  int64_t cachedKernels = 0;
  StringRef entry() const { return objects.back().symbol; }
};

/// Compiles the schedule of `module` (LLVM dialect) and each of its kernels,
/// for the module's target, to an object of its own, on `threads` threads (0:
/// one a core), with `optimize` for speed. Kernels that `kernels` (or null) has
/// are taken from there, the others put there.
FailureOr<CompiledObjects> compileObjects(ModuleOp module, unsigned threads,
                                          bool optimize, KernelCache *kernels);

/// The object of a module that holds little code.
llvm::Expected<std::string> emitObject(llvm::Module &module,
                                       const CodeTarget &target);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_OBJECTCODE_H
