//===- OutputFile.cpp - Files that may not fit on the disk ----------------===//

#include "fp8/Support/OutputFile.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"

using namespace mlir;
using namespace mlir::fp8;
namespace fs = llvm::sys::fs;

std::error_code fp8::finish(llvm::raw_fd_ostream &stream) {
  stream.flush();
  std::error_code error = stream.error();
  stream.clear_error();
  return error;
}

static std::error_code writeDirectly(StringRef path,
                                     function_ref<void(raw_ostream &)> print) {
  std::error_code error;
  llvm::raw_fd_ostream stream(path, error);
  if (error)
    return error;
  print(stream);
  return finish(stream);
}

llvm::ErrorOr<std::string>
fp8::createUnique(const llvm::Twine &prefix,
                  function_ref<std::error_code(StringRef)> create) {
  std::error_code error;
  for (int tries = 0; tries < 100; ++tries) {
    std::string path =
        (prefix + llvm::utohexstr(llvm::sys::Process::GetRandomNumber())).str();
    error = create(path);
    if (!error)
      return path;
    if (error != std::errc::file_exists)
      break;
  }
  return error;
}

llvm::ErrorOr<std::string>
fp8::createUniqueDirectory(const llvm::Twine &prefix) {
  return createUnique(prefix, [](StringRef path) {
    return fs::create_directory(path, /*IgnoreExisting=*/false);
  });
}

llvm::Expected<std::string>
fp8::createTemporaryDirectory(const llvm::Twine &prefix) {
  SmallString<128> parent;
  llvm::sys::path::system_temp_directory(/*erasedOnReboot=*/true, parent);
  SmallString<128> path(parent);
  llvm::sys::path::append(path, prefix);
  auto unique = createUniqueDirectory(path);
  if (unique)
    return *unique;
  return llvm::createStringError(
      "cannot make a temporary directory in '" + parent.str() +
      "' (set TMPDIR): " + unique.getError().message());
}

static std::error_code replace(StringRef path,
                               function_ref<void(raw_ostream &)> print) {
  int file = -1;
  auto temporary = createUnique(path + ".tmp-", [&](StringRef name) {
    return fs::openFileForWrite(name, file, fs::CD_CreateNew);
  });
  if (!temporary)
    return temporary.getError();
  llvm::sys::RemoveFileOnSignal(*temporary);
  std::error_code error;
  {
    llvm::raw_fd_ostream stream(file, /*shouldClose=*/false);
    print(stream);
    error = finish(stream);
  }
  std::error_code closing = llvm::sys::Process::SafelyCloseFileDescriptor(file);
  if (!error)
    error = closing;
  if (!error)
    error = fs::rename(*temporary, path);
  if (error)
    (void)fs::remove(*temporary);
  llvm::sys::DontRemoveFileOnSignal(*temporary);
  return error;
}

llvm::Error fp8::writeFile(StringRef path,
                           function_ref<void(raw_ostream &)> print) {
  if (path == "-") {
    print(llvm::outs());
    return llvm::Error::success();
  }
  // The file that a symbolic link leads to is written, and the link stays.
  fs::file_status status;
  SmallString<128> target(path);
  bool isThere = !fs::status(path, status) && fs::exists(status);
  bool isReplaced = !isThere || fs::is_regular_file(status);
  if (isReplaced && fs::is_symlink_file(path))
    isReplaced = isThere && !fs::real_path(path, target);
  if (std::error_code error =
          isReplaced ? replace(target, print) : writeDirectly(path, print))
    return llvm::createStringError(error, "cannot write '" + path +
                                              "': " + error.message());
  return llvm::Error::success();
}

llvm::Error fp8::writeFile(StringRef path, StringRef bytes) {
  return writeFile(path, [&](raw_ostream &os) { os << bytes; });
}

int fp8::finishStandardOutput(StringRef program, int status) {
  std::error_code error = finish(llvm::outs());
  if (!error)
    return status;
  llvm::errs() << program << ": error: cannot write to the standard output: "
               << error.message() << "\n";
  return 1;
}
