//===- KernelCache.h - Kernels that were compiled before --------*- C++ -*-===//
//
// A kernel is asked for before codegen, by a hash of its ops on buffers. One
// that is found goes through none of the stages after that: a declaration is
// left of it, which has what the schedule's lowering wants to know.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_COMPILER_KERNELCACHE_H
#define FP8_LIB_COMPILER_KERNELCACHE_H

#include "fp8/Compiler/Executable.h"
#include "fp8/Dialect/FP8/IR/FP8Attrs.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <atomic>

namespace mlir::fp8 {

class Cache;

/// The kernels of one module, and what `Cache` has of them.
class KernelCache {
public:
  /// Of the kernels of `module`, which has been through the kernels stage and
  /// has a target.
  KernelCache(const Cache &cache, ModuleOp module, CPUTargetAttr target,
              bool optimize);

  /// Replaces the kernels that the cache has by declarations.
  void declareKnown(ModuleOp module);
  /// Notes how the kernels that codegen lowered are launched.
  void describe(ModuleOp module);

  /// The object of a kernel, if it is there and defines `symbol`.
  std::optional<ObjectCode> read(StringRef kernel, StringRef symbol);
  /// Adds a kernel that `describe` has seen.
  void write(StringRef kernel, const ObjectCode &object) const;

  /// The objects of declared kernels, by the kernel's name.
  const llvm::StringMap<ObjectCode> &getKnown() const { return known; }
  /// How many kernels were found.
  int64_t numFound() const { return found; }

private:
  /// What is stored of a kernel beside its object.
  struct Launch {
    int64_t tasks = 0, scratchBytes = 0;
  };
  struct Entry {
    ObjectCode object;
    Launch launch;
  };
  std::optional<Entry> readEntry(StringRef kernel) const;
  static std::optional<Entry> parse(StringRef bytes);

  const Cache &cache;
  /// By the kernel's name, as are the others.
  llvm::StringMap<std::string> files;
  llvm::StringMap<Launch> launches;
  llvm::StringMap<ObjectCode> known;
  std::atomic<int64_t> found{0};
};

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_KERNELCACHE_H
