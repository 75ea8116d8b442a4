//===- Cache.cpp - An on-disk cache of compiled code ----------------------===//

#include "fp8/Compiler/Cache.h"
#include "fp8/Kernels/MemoryReport.h"
#include "fp8/Support/OutputFile.h"

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

/// The file of a cache that tells how many bytes its entries have, such that
/// not every process has to look at all of them. A write adds a line with its
/// bytes. A scan removes the file, adds up the entries, and then adds a line
/// with `=`, its time in seconds and the sum. What others add meanwhile stays,
/// so the lines never tell less than there is. Replaced entries count twice,
/// which only makes the next scan come earlier.
static constexpr llvm::StringLiteral kSizesFile = "sizes";

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
  if (llvm::Error error = writeFile(pathOf(name), bytes))
    llvm::consumeError(std::move(error));
  else
    addLine(std::to_string(bytes.size()));
}

/// Adds a line to the file of sizes.
void Cache::addLine(const Twine &line) const {
  std::error_code error;
  llvm::raw_fd_ostream os(pathOf(kSizesFile), error, fs::OF_Append);
  if (error)
    return;
  os.SetUnbuffered();
  os << (line + "\n").str();
  os.clear_error();
}

static int64_t secondsNow() {
  return llvm::sys::toTimeT(std::chrono::system_clock::now());
}

/// Returns at least the bytes of all entries, if a scan of the last hour tells.
std::optional<uint64_t> Cache::knownBytes() const {
  auto buffer = llvm::MemoryBuffer::getFile(pathOf(kSizesFile));
  if (!buffer)
    return std::nullopt;
  std::optional<uint64_t> scanned;
  uint64_t written = 0;
  for (StringRef rest = (*buffer)->getBuffer(); !rest.empty();) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    uint64_t bytes;
    int64_t time;
    if (!line.consume_front("=")) {
      if (line.getAsInteger(10, bytes))
        return std::nullopt;
      written += bytes;
      continue;
    }
    auto [first, second] = line.split(' ');
    if (first.getAsInteger(10, time) || second.getAsInteger(10, bytes) ||
        secondsNow() - time > std::chrono::seconds(kAbandoned).count())
      return std::nullopt;
    scanned = bytes;
  }
  if (!scanned)
    return std::nullopt;
  return *scanned + written;
}

void Cache::remove(StringRef name) const { (void)fs::remove(pathOf(name)); }

/// Whether a file has the name of an entry. The directory may have others, for
/// users choose it.
static bool isEntry(StringRef name) {
  return name.starts_with("function_") || name.starts_with("kernel_");
}

void Cache::prune() const {
  std::optional<uint64_t> known = knownBytes();
  if (known && *known <= limit)
    return;
  (void)fs::remove(pathOf(kSizesFile));
  uint64_t total = removeOldest();
  addLine("=" + Twine(secondsNow()) + " " + Twine(total));
}

uint64_t Cache::removeOldest() const {
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
    return total;
  llvm::sort(entries, [](const Entry &a, const Entry &b) {
    return std::tie(a.used, a.path) < std::tie(b.used, b.path);
  });
  // Some room is left for the next entries.
  uint64_t least = limit - limit / 8;
  for (const Entry &entry : entries) {
    if (total <= least)
      break;
    // Another process may have removed it.
    (void)fs::remove(entry.path);
    total -= entry.bytes;
  }
  return total;
}
