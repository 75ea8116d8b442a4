//===- SourceFile.cpp - A file of StableHLO -------------------------------===//

#include "SourceFile.h"
#include "fp8/Compiler/Cache.h"
#include "fp8/Compiler/Compiler.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::fp8;

FailureOr<SourceFile> SourceFile::read(StringRef file, MLIRContext &context) {
  auto buffer = llvm::MemoryBuffer::getFile(file);
  if (!buffer)
    return emitError(UnknownLoc::get(&context))
           << "cannot read '" << file << "': " << buffer.getError().message();
  return SourceFile(std::move(*buffer));
}

std::string SourceFile::digest() const {
  return CacheKey().add(text()).digest();
}

OwningOpRef<ModuleOp> SourceFile::parse(MLIRContext &context) const {
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBuffer(*buffer),
                             llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

OwningOpRef<ModuleOp> fp8::parseModule(StringRef file, MLIRContext &context) {
  FailureOr<SourceFile> source = SourceFile::read(file, context);
  if (failed(source))
    return nullptr;
  return source->parse(context);
}
