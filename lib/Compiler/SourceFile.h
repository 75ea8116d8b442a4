//===- SourceFile.h - A file of StableHLO -----------------------*- C++ -*-===//

#ifndef FP8_LIB_COMPILER_SOURCEFILE_H
#define FP8_LIB_COMPILER_SOURCEFILE_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::fp8 {

/// A file that is read once, so that its hash matches the compiled bytes.
class SourceFile {
public:
  static FailureOr<SourceFile> read(StringRef file, MLIRContext &context);

  std::string digest() const;
  StringRef text() const { return buffer->getBuffer(); }

  OwningOpRef<ModuleOp> parse(MLIRContext &context) const;

private:
  explicit SourceFile(std::unique_ptr<llvm::MemoryBuffer> buffer)
      : buffer(std::move(buffer)) {}

  std::unique_ptr<llvm::MemoryBuffer> buffer;
};

} // namespace mlir::fp8

#endif // FP8_LIB_COMPILER_SOURCEFILE_H
