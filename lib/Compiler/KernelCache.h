//===- KernelCache.h - Cached kernels of a module ---------------*- C++ -*-===//
//
// A kernel is looked up before codegen, by a hash of its ops on buffers. A
// cached kernel skips all later stages: it becomes a declaration with the
// properties that the schedule's lowering needs.
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

/// The kernels of one module, and their entries in a `Cache`.
class KernelCache {
public:
  /// Prepares the lookup of the kernels of `module`, which has been through the
  /// kernels stage and has a target.
  KernelCache(const Cache &cache, ModuleOp module, CPUTargetAttr target,
              bool optimize);

  /// Replaces kernels in the cache by declarations.
  void declareKnown(ModuleOp module);
  /// Records the launch parameters of the kernels that codegen has lowered.
  void describe(ModuleOp module);

  /// Returns the object of a kernel if the cache has one that defines `symbol`.
  std::optional<ObjectCode> read(StringRef kernel, StringRef symbol);
  /// Adds a kernel that `describe` has recorded.
  void write(StringRef kernel, const ObjectCode &object) const;

  /// Returns the objects of declared kernels, by the kernel's name.
  const llvm::StringMap<ObjectCode> &getKnown() const { return known; }
  /// Returns the number of kernels that were found.
  int64_t numFound() const { return found; }

private:
  /// The launch parameters that are stored with an object.
  struct Launch {
    int64_t tasks = 0, scratchBytes = 0;
  };
  struct Entry {
    ObjectCode object;
    Launch launch;
  };
  std::optional<Entry> readEntry(StringRef kernel) const;
  static std::optional<Entry> parse(StringRef name, StringRef bytes);

  const Cache &cache;
  /// All maps are keyed by the kernel's name.
  llvm::StringMap<std::string> files;
  llvm::StringMap<Launch> launches;
  llvm::StringMap<ObjectCode> known;
  std::atomic<int64_t> found{0};
};

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_KERNELCACHE_H
