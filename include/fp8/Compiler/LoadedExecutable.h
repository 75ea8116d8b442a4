//===- LoadedExecutable.h - An executable in memory -------------*- C++ -*-===//

#ifndef FP8_COMPILER_LOADEDEXECUTABLE_H
#define FP8_COMPILER_LOADEDEXECUTABLE_H

#include "fp8/Compiler/Executable.h"

#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir::fp8 {

/// The functions of an executable, linked into memory and ready to run.
class LoadedExecutable {
public:
  /// Returns an error unless `executable` is for this machine.
  static llvm::Error check(const Executable &executable);
  /// Links `executable`, which must be for this machine.
  static llvm::Expected<std::unique_ptr<LoadedExecutable>>
  load(Executable executable);
  ~LoadedExecutable();

  /// Returns the functions and texts for the runtime; valid as long as this
  /// object.
  const fp8_package *package() const { return functions; }
  /// Returns the function of this name; null if there is none.
  const fp8_executable *function(StringRef name) const {
    return fp8_package_function(functions, name.str().c_str());
  }

private:
  LoadedExecutable();

  llvm::Error link();
  llvm::Error add(const ExecutableFunction &function);

  Executable executable;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  fp8_package *functions = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_LOADEDEXECUTABLE_H
