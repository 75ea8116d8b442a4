//===- Files.h - Reading and writing files ----------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_SUPPORT_FILES_H
#define FP8_LIB_RUNTIME_SUPPORT_FILES_H

#include "Memory.h"

#include <string>
#include <vector>

namespace fp8::rt {

struct FileContents {
  AlignedBuffer data;
  int64_t size = 0;
};
FileContents readFile(const std::string &path);
/// Does the same for a file that is never changed in place: its pages take
/// memory only where they are read.
FileContents mapFile(const std::string &path);
/// Throws if a file cannot be read, without reading it.
void expectReadable(const std::string &path);
std::string readTextFile(const std::string &path);

/// Writes the pieces one after another. The file has either its old or its new
/// contents, whatever happens: temporary file, fsync, rename, fsync of the
/// directory. Those who write it at the same time do so one after another. A
/// symbolic link stays: the file that it leads to is written. So do pipes and
/// devices, which are written directly.
struct Piece {
  const void *data;
  int64_t size;
};
void writeFileAtomically(const std::string &path,
                         const std::vector<Piece> &pieces);
void writeFileAtomically(const std::string &path, const std::string &text);

/// Removes temporary files that killed processes left behind.
void removeTemporaryFiles(const std::string &directory);

bool fileExists(const std::string &path);
/// Returns the directory of a file; "." if its path has none.
std::string directoryOf(const std::string &path);
/// Returns the names in a directory, sorted.
std::vector<std::string> listDirectory(const std::string &path);
/// Creates a directory and its missing parents.
void createDirectories(const std::string &path);
/// Throws if a directory is that of a package, whose files have the names of
/// those that a run writes or removes; `what` is what would be written.
void expectNoPackage(const std::string &directory, const char *what);

/// Keeps other runs from writing to a directory. The lock ends with the
/// process, however that ends, and leaves no file.
class DirectoryLock {
public:
  DirectoryLock() = default;
  DirectoryLock(const DirectoryLock &) = delete;
  DirectoryLock &operator=(const DirectoryLock &) = delete;
  ~DirectoryLock();
  /// Throws if another process or object has the lock. File systems without
  /// locks lock nothing.
  void take(const std::string &path);

private:
  int file = -1;
};

} // namespace fp8::rt

#endif // FP8_LIB_RUNTIME_SUPPORT_FILES_H
