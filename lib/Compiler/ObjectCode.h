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

/// The result of `compileObjects` for one function.
struct CompiledObjects {
  /// The kernels, each once, then the schedule.
  std::vector<ObjectCode> objects;
  /// The number of kernels that were in the cache.
  int64_t cachedKernels = 0;
  StringRef entry() const { return objects.back().symbol; }
};

/// Compiles the schedule and each kernel of `module` (LLVM dialect) for the
/// module's target, to an object each, on `threads` threads (0: one per core),
/// optimized if `optimize`. Takes kernels from `kernels`, unless it is null,
/// and adds the others to it.
FailureOr<CompiledObjects> compileObjects(ModuleOp module, unsigned threads,
                                          bool optimize, KernelCache *kernels);

/// Returns the object of a module with little code, without optimization
/// passes.
llvm::Expected<std::string> emitObject(llvm::Module &module,
                                       const CodeTarget &target);

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_OBJECTCODE_H
