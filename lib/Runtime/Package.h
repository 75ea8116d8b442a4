//===- Package.h - Compiled functions by name -------------------*- C++ -*-===//

#ifndef FP8_LIB_RUNTIME_PACKAGE_H
#define FP8_LIB_RUNTIME_PACKAGE_H

#include "Step/Step.h"

#include <map>

namespace fp8::rt {

/// A loaded shared library.
class Library {
public:
  Library() = default;
  /// Loads the file and its dependencies.
  explicit Library(const std::string &file);
  ~Library();
  Library(Library &&other) noexcept { *this = std::move(other); }
  Library &operator=(Library &&other) noexcept {
    std::swap(handle, other.handle);
    std::swap(file, other.file);
    std::swap(path, other.path);
    return *this;
  }
  /// Returns the address of a symbol; throws if there is none.
  void *find(const std::string &symbol) const;

private:
  void *handle = nullptr;
  std::string file, path; // of the caller, and by which it is loaded
};

} // namespace fp8::rt

struct fp8_package {
  fp8_package() = default;
  /// Opens the package in a directory.
  explicit fp8_package(const std::string &directory);

  void add(const fp8_executable_desc &desc);
  const fp8_executable *function(const std::string &name) const;
  const char *text(const std::string &name) const;
  void fill(fp8_train_options &options, fp8_export *exported) const;

  std::map<std::string, std::string> texts;

private:
  fp8::rt::Library library; // outlives the functions
  std::map<std::string, std::unique_ptr<fp8_executable>> functions;
};

#endif // FP8_LIB_RUNTIME_PACKAGE_H
