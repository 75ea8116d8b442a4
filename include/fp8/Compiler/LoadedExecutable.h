//===- LoadedExecutable.h - An executable in this process -------*- C++ -*-===//

#ifndef FP8_COMPILER_LOADEDEXECUTABLE_H
#define FP8_COMPILER_LOADEDEXECUTABLE_H

#include "fp8/Compiler/Executable.h"

#include <memory>

namespace llvm::orc {
class LLJIT;
} // namespace llvm::orc

namespace mlir::fp8 {

/// The functions of an executable, linked in memory and ready to run.
class LoadedExecutable {
public:
  /// Links `executable`, which must be for this machine.
  static llvm::Expected<std::unique_ptr<LoadedExecutable>>
  load(Executable executable);
  ~LoadedExecutable();

  /// The function of this name for the runtime, valid as long as this object;
  /// null if there is none.
  const fp8_executable *function(StringRef name) const;

  /// What was loaded, without its objects.
  const Executable &description() const { return executable; }

private:
  LoadedExecutable();

  llvm::Error link();
  llvm::Error create(const ExecutableFunction &function);

  Executable executable;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::map<std::string, fp8_executable *> functions;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_LOADEDEXECUTABLE_H
