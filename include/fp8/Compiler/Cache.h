//===- Cache.h - What was compiled before, on disk --------------*- C++ -*-===//
//
// A directory of files named by keys: hashes of everything that their contents
// depend on, so that an entry is never out of date. Any number of processes may
// read and write at once: a file appears whole, by renaming, and whoever reads
// one that is just removed has it still. The cache is bounded: what was not
// used for the longest time goes first.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_CACHE_H
#define FP8_COMPILER_CACHE_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

#include <memory>
#include <string>

namespace mlir::fp8 {

/// Hashes fields one after another; where one ends and the next begins counts.
class CacheKey {
public:
  CacheKey &add(StringRef field);
  CacheKey &add(int64_t field) { return add(std::to_string(field)); }
  /// In hexadecimal digits. Once.
  std::string digest();

private:
  llvm::SHA256 hash;
};

class Cache {
public:
  static constexpr uint64_t kDefaultBytes = uint64_t(1) << 30;

  /// `directory` is made when something is first written. With `bytes` 0
  /// nothing is.
  explicit Cache(std::string directory, uint64_t bytes = kDefaultBytes)
      : directory(std::move(directory)), limit(bytes) {}

  /// The cache that the environment asks for: FP8_CACHE_DIR, else fp8 in
  /// XDG_CACHE_HOME, else ~/.cache/fp8, of at most FP8_CACHE_SIZE bytes
  /// (`500MB`). Null where there is to be none: FP8_CACHE_DIR is empty, the
  /// size is 0, or there is no home. Fails where the size cannot be read.
  static llvm::Expected<std::unique_ptr<Cache>> fromEnvironment();

  /// The bytes of an entry; null if there is none.
  std::unique_ptr<llvm::MemoryBuffer> read(StringRef name) const;
  /// Adds an entry. A cache that cannot be written is no error: the next run
  /// compiles again.
  void write(StringRef name, StringRef bytes) const;
  /// Removes a damaged entry.
  void remove(StringRef name) const;
  /// Removes the entries not used for the longest time until the rest fits.
  void prune() const;

private:
  std::string pathOf(StringRef name) const;

  std::string directory;
  uint64_t limit;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_CACHE_H
