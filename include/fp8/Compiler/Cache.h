//===- Cache.h - An on-disk cache of compiled code --------------*- C++ -*-===//
//
// A cache is a directory of files that are named by keys: hashes of everything
// that their contents depend on, so that an entry is never out of date. Any
// number of processes may read and write at once: a file appears as a whole, by
// renaming, and a reader keeps the contents of a file that is removed
// meanwhile. The size of the cache is bounded: the least recently used entries
// are removed first.
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

/// Hashes a sequence of fields; the boundaries between them matter.
class CacheKey {
public:
  CacheKey &add(StringRef field);
  CacheKey &add(int64_t field) { return add(std::to_string(field)); }
  /// Returns the hash in hexadecimal digits. May be called once.
  std::string digest();

private:
  llvm::SHA256 hash;
};

class Cache {
public:
  static constexpr uint64_t kDefaultBytes = uint64_t(1) << 30;

  /// `directory` is created by the first write. If `bytes` is 0, nothing is
  /// written.
  explicit Cache(std::string directory, uint64_t bytes = kDefaultBytes)
      : directory(std::move(directory)), limit(bytes) {}

  /// Returns the cache that the environment selects: in FP8_CACHE_DIR, else in
  /// fp8 in XDG_CACHE_HOME, else in ~/.cache/fp8, of at most FP8_CACHE_SIZE
  /// bytes (`500MB`). Returns null if caching is off: FP8_CACHE_DIR is empty,
  /// the size is 0, or there is no home directory. Fails if the size cannot be
  /// parsed.
  static llvm::Expected<std::unique_ptr<Cache>> fromEnvironment();

  /// Returns the bytes of an entry; null if there is none.
  std::unique_ptr<llvm::MemoryBuffer> read(StringRef name) const;
  /// Adds an entry. A failure to write is not an error: the next run compiles
  /// again.
  void write(StringRef name, StringRef bytes) const;
  /// Removes a damaged entry.
  void remove(StringRef name) const;
  /// If the entries have more bytes than the limit, removes the least recently
  /// used ones until an eighth of it is free. Looks at the entries only if so
  /// much was written since the last time, or after an hour.
  void prune() const;

private:
  std::string pathOf(StringRef name) const;
  void addLine(const Twine &line) const;
  std::optional<uint64_t> knownBytes() const;
  /// Removes entries as `prune` says; returns the bytes of the rest.
  uint64_t removeOldest() const;

  std::string directory;
  uint64_t limit;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_CACHE_H
