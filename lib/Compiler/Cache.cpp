//===- Cache.cpp - An on-disk cache of compiled code ----------------------===//

#include "fp8/Compiler/Cache.h"
#include "fp8/Kernels/MemoryReport.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;
namespace fs = llvm::sys::fs;

/// A temporary file of this age was left by a process that was killed.
static constexpr std::chrono::hours kAbandoned(1);

CacheKey &CacheKey::add(StringRef field) {
  hash.update(std::to_string(field.size()));
  hash.update(":");
  hash.update(field);
  return *this;
}

std::string CacheKey::digest() {
  std::array<uint8_t, 32> bytes = hash.final();
  return llvm::toHex(ArrayRef<uint8_t>(bytes).take_front(20),
                     /*LowerCase=*/true);
}

/// Returns the directory that the environment selects; "" for none.
static std::string directoryFromEnvironment() {
  if (auto given = llvm::sys::Process::GetEnv("FP8_CACHE_DIR"))
    return *given;
  SmallString<128> path;
  auto base = llvm::sys::Process::GetEnv("XDG_CACHE_HOME");
  // The specification of XDG_CACHE_HOME says that a relative path must be
  // ignored.
  if (base && llvm::sys::path::is_absolute(*base)) {
    path = *base;
  } else if (auto home = llvm::sys::Process::GetEnv("HOME");
             home && !home->empty()) {
    path = *home;
    llvm::sys::path::append(path, ".cache");
  } else {
    return "";
  }
  llvm::sys::path::append(path, "fp8");
  return path.str().str();
}

llvm::Expected<std::unique_ptr<Cache>> Cache::fromEnvironment() {
  uint64_t bytes = kDefaultBytes;
  if (auto size = llvm::sys::Process::GetEnv("FP8_CACHE_SIZE")) {
    std::optional<double> parsed = *size == "0" ? 0 : parseBytes(*size);
    if (!parsed)
      return llvm::createStringError(
          "expected FP8_CACHE_SIZE to be a size like 500MB but got '" + *size +
          "'");
    bytes = static_cast<uint64_t>(*parsed);
  }
  std::string directory = directoryFromEnvironment();
  if (directory.empty() || bytes == 0)
    return nullptr;
  return std::make_unique<Cache>(std::move(directory), bytes);
}

std::string Cache::pathOf(StringRef name) const {
  SmallString<128> path(directory);
  llvm::sys::path::append(path, name);
  return path.str().str();
}

std::unique_ptr<llvm::MemoryBuffer> Cache::read(StringRef name) const {
  int file;
  if (fs::openFileForRead(pathOf(name), file))
    return nullptr;
  auto close = llvm::scope_exit(
      [&] { llvm::sys::Process::SafelyCloseFileDescriptor(file); });
  // Read instead of map: another process could truncate a mapped file.
  auto buffer = llvm::MemoryBuffer::getOpenFile(
      file, name, /*FileSize=*/-1, /*RequiresNullTerminator=*/false,
      /*IsVolatile=*/true);
  if (!buffer)
    return nullptr;
  // Mark it as recently used.
  (void)fs::setLastAccessAndModificationTime(file,
                                             std::chrono::system_clock::now());
  return std::move(*buffer);
}

void Cache::write(StringRef name, StringRef bytes) const {
  // The directory is private to its owner.
  if (fs::create_directories(directory, /*IgnoreExisting=*/true, fs::owner_all))
    return;
  int file;
  SmallString<128> temporary;
  if (fs::createUniqueFile(pathOf(name) + ".tmp-%%%%%%%%", file, temporary))
    return;
  {
    llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
    os << bytes;
    os.flush();
    if (os.has_error()) {
      os.clear_error();
      (void)fs::remove(temporary);
      return;
    }
  }
  if (fs::rename(temporary, pathOf(name)))
    (void)fs::remove(temporary);
}

void Cache::remove(StringRef name) const { (void)fs::remove(pathOf(name)); }

/// Whether a file has the name of an entry. The directory may have others, for
/// users choose it.
static bool isEntry(StringRef name) {
  return name.starts_with("function_") || name.starts_with("kernel_");
}

void Cache::prune() const {
  struct Entry {
    std::string path;
    uint64_t bytes;
    llvm::sys::TimePoint<> used;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  llvm::sys::TimePoint<> now = std::chrono::system_clock::now();
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; it != end && !error;
       it.increment(error)) {
    fs::file_status status;
    StringRef name = llvm::sys::path::filename(it->path());
    if (!isEntry(name) || fs::status(it->path(), status) ||
        status.type() != fs::file_type::regular_file)
      continue;
    Entry entry = {it->path(), status.getSize(),
                   status.getLastModificationTime()};
    if (name.contains(".tmp-")) {
      if (now - entry.used > kAbandoned)
        (void)fs::remove(entry.path);
      continue;
    }
    total += entry.bytes;
    entries.push_back(std::move(entry));
  }
  if (total <= limit)
    return;
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  for (const Entry &entry : entries) {
    if (total <= limit)
      break;
    // Another process may have removed it.
    (void)fs::remove(entry.path);
    total -= entry.bytes;
  }
}
