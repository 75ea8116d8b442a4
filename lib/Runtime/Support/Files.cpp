//===- Files.cpp - Reading and writing files ------------------------------===//

#include "Files.h"
#include "Error.h"

#include <algorithm>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <filesystem>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace fp8::rt {

namespace {
struct Descriptor {
  int fd = -1;
  ~Descriptor() {
    if (fd >= 0)
      close(fd);
  }
};
} // namespace

/// Opens a regular file for reading and sets `size` to its bytes.
static void openToRead(const std::string &path, Descriptor &file,
                       int64_t &size) {
  // Without O_NONBLOCK opening a pipe waits for someone who writes to it.
  file.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.fd < 0)
    throw Error(FP8_ERROR_IO,
                str("cannot open '", path, "': ", errnoText(errno)));
  struct stat status;
  if (fstat(file.fd, &status) != 0)
    throw Error(FP8_ERROR_IO,
                str("cannot read '", path, "': ", errnoText(errno)));
  if (S_ISDIR(status.st_mode))
    throw Error(FP8_ERROR_IO, str("cannot read '", path, "': is a directory"));
  if (!S_ISREG(status.st_mode))
    throw Error(FP8_ERROR_IO,
                str("cannot read '", path, "': not a regular file"));
  size = status.st_size;
}

void expectReadable(const std::string &path) {
  Descriptor file;
  int64_t size = 0;
  openToRead(path, file, size);
}

FileContents readFile(const std::string &path) {
  Descriptor file;
  int64_t size = 0;
  openToRead(path, file, size);
  FileContents contents;
  contents.data = allocateAligned(size);
  while (contents.size < size) {
    ssize_t got = read(file.fd, contents.data.get() + contents.size,
                       size - contents.size);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throw Error(FP8_ERROR_IO,
                  str("cannot read '", path, "': ", errnoText(errno)));
    if (got == 0)
      break; // The file has shrunk; the reader checks the size.
    contents.size += got;
  }
  return contents;
}

FileContents mapFile(const std::string &path) {
  Descriptor file;
  int64_t size = 0;
  openToRead(path, file, size);
  // mmap rejects a length of zero.
  if (size == 0)
    return {allocateAligned(0), 0};
  void *memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (memory == MAP_FAILED)
    throw Error(FP8_ERROR_IO,
                str("cannot read '", path, "': ", errnoText(errno)));
  FreeDeleter unmap;
  unmap.mappedBytes = size;
  return {AlignedBuffer(static_cast<char *>(memory), unmap), size};
}

std::string readTextFile(const std::string &path) {
  FileContents contents = readFile(path);
  return std::string(contents.data.get(), contents.size);
}

std::string directoryOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

static const std::string temporarySuffix = ".fp8-tmp";

void removeTemporaryFiles(const std::string &directory) {
  for (const std::string &name : listDirectory(directory))
    if (name.size() > temporarySuffix.size() &&
        name.compare(name.size() - temporarySuffix.size(),
                     temporarySuffix.size(), temporarySuffix) == 0)
      unlink((directory + "/" + name).c_str());
}

/// Writes all bytes; returns 0, or the number of the error.
static int writeAll(int fd, const std::vector<Piece> &pieces) {
  for (const Piece &piece : pieces) {
    const char *data = static_cast<const char *>(piece.data);
    int64_t left = piece.size;
    while (left > 0) {
      ssize_t wrote = write(fd, data, std::min<int64_t>(left, 1 << 30));
      if (wrote < 0 && errno == EINTR)
        continue;
      if (wrote < 0)
        return errno;
      data += wrote;
      left -= wrote;
    }
  }
  return 0;
}

/// Writes to a pipe or device, which another file must not replace; returns 0,
/// or the number of the error.
static int writeThrough(const std::string &path,
                        const std::vector<Piece> &pieces) {
  Descriptor file;
  file.fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file.fd < 0)
    return errno;
  if (int code = writeAll(file.fd, pieces))
    return code;
  return close(std::exchange(file.fd, -1)) == 0 ? 0 : errno;
}

/// Returns whether a path leads to an open file.
static bool isOpenAt(const Descriptor &file, const std::string &path) {
  struct stat mine, there;
  return fstat(file.fd, &mine) == 0 && stat(path.c_str(), &there) == 0 &&
         mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

/// Opens an empty temporary file. Another thread or process that has it, for it
/// writes the same file, renames or removes it first. Returns 0, or the number
/// of the error.
static int openTemporary(const std::string &path, Descriptor &file) {
  // (Not for ever: a file system may number a file anew.)
  for (int tries = 1000; tries > 0; --tries) {
    Descriptor opened;
    opened.fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (opened.fd < 0)
      return errno;
    // (A file system without locks is used without.)
    while (flock(opened.fd, LOCK_EX) != 0 && errno == EINTR)
      ;
    // The other may have made it the file itself, or removed it.
    if (tries > 1 && !isOpenAt(opened, path))
      continue;
    std::swap(file.fd, opened.fd);
    break;
  }
  return ftruncate(file.fd, 0) == 0 ? 0 : errno;
}

/// Replaces a regular file, or creates it; returns 0, or the number of the
/// error.
static int replaceFile(const std::string &path,
                       const std::vector<Piece> &pieces) {
  std::string temporary = path + temporarySuffix;
  Descriptor file;
  if (int code = openTemporary(temporary, file))
    return code;
  int code = writeAll(file.fd, pieces);
  if (!code &&
      (fsync(file.fd) != 0 || rename(temporary.c_str(), path.c_str()) != 0))
    code = errno;
  if (code) {
    unlink(temporary.c_str());
    return code;
  }
  // Without this a power failure may undo the rename. Some file systems refuse
  // to sync a directory; the file itself is safe then.
  Descriptor directory;
  directory.fd =
      open(directoryOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory.fd >= 0)
    fsync(directory.fd);
  return 0;
}

/// Returns where a symbolic link leads, even if nothing is there yet; any other
/// path as it is.
static std::string followLinks(std::string path) {
  std::error_code isNone;
  for (int links = 0; links < 40; ++links) {
    std::filesystem::path target = std::filesystem::read_symlink(path, isNone);
    if (isNone)
      break;
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

void writeFileAtomically(const std::string &path,
                         const std::vector<Piece> &pieces) {
  struct stat status;
  bool isThere = stat(path.c_str(), &status) == 0;
  int code = 0;
  if (!isThere && errno == ELOOP)
    code = ELOOP;
  else if (isThere && !S_ISREG(status.st_mode))
    code = writeThrough(path, pieces);
  else
    code = replaceFile(followLinks(path), pieces);
  if (code)
    throw Error(FP8_ERROR_IO,
                str("cannot write '", path, "': ", errnoText(code)));
}

void writeFileAtomically(const std::string &path, const std::string &text) {
  writeFileAtomically(path, {{text.data(), static_cast<int64_t>(text.size())}});
}

bool fileExists(const std::string &path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0;
}

std::vector<std::string> listDirectory(const std::string &path) {
  DIR *directory = opendir(path.c_str());
  if (!directory)
    throw Error(FP8_ERROR_IO,
                str("cannot list '", path, "': ", errnoText(errno)));
  std::vector<std::string> names;
  while (const dirent *entry = readdir(directory)) {
    std::string name = entry->d_name;
    if (name != "." && name != "..")
      names.push_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

void createDirectories(const std::string &path) {
  for (size_t end = 1; end <= path.size(); ++end) {
    if (end != path.size() && path[end] != '/')
      continue;
    std::string part = path.substr(0, end);
    if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
      int code = errno;
      if (fileExists(part))
        continue;
      throw Error(FP8_ERROR_IO, str("cannot create directory '", path,
                                    "': ", errnoText(code)));
    }
  }
  struct stat status;
  bool isThere = stat(path.c_str(), &status) == 0;
  if (!isThere || !S_ISDIR(status.st_mode))
    throw Error(FP8_ERROR_IO, str("cannot create directory '", path, "': ",
                                  isThere ? "a file of this name is there"
                                          : "it is a link to nothing"));
}

void expectNoPackage(const std::string &directory, const char *what) {
  if (fileExists(directory + "/manifest.json") &&
      fileExists(directory + "/package.so"))
    throw Error(FP8_ERROR_IO,
                str("expected another directory for ", what, " than '",
                    directory, "', which holds a package ('package.so')"));
}

DirectoryLock::~DirectoryLock() {
  if (file >= 0)
    close(file);
}

void DirectoryLock::take(const std::string &path) {
  file = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return;
  throw Error(FP8_ERROR_IO,
              str("another run writes to '", path,
                  "': wait for its end, or choose another directory "
                  "(processes that mpirun starts train together with "
                  "--data-parallel)"));
}

} // namespace fp8::rt
