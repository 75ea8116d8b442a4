//===- SourceLines.cpp - Short source lines in diagnostics ----------------===//

#include "SourceLines.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

/// The most columns of a source line that a diagnostic shows.
static constexpr int kColumns = 200;

static void printShort(const llvm::SMDiagnostic &whole, void *) {
  StringRef line = whole.getLineContents();
  int column = whole.getColumnNo();
  if (line.size() <= kColumns || column < 0) {
    whole.print(/*ProgName=*/nullptr, llvm::errs());
    return;
  }
  int begin = std::max(column - kColumns / 2, 0);
  std::string part = line.substr(begin, kColumns).str();
  int caret = column - begin;
  if (begin > 0) {
    part = "..." + part;
    caret += 3;
  }
  if (begin + kColumns < static_cast<int>(line.size()))
    part += "...";
  llvm::SMDiagnostic cut(*whole.getSourceMgr(), whole.getLoc(),
                         whole.getFilename(), whole.getLineNo(), caret,
                         whole.getKind(), whole.getMessage(), part,
                         /*Ranges=*/{});
  // The location is that of the whole line.
  llvm::errs() << whole.getFilename() << ":" << whole.getLineNo() << ":"
               << column + 1 << ": ";
  cut.print(/*ProgName=*/nullptr, llvm::errs(), /*ShowColors=*/true,
            /*ShowKindLabel=*/true, /*ShowLocation=*/false);
}

namespace {
/// Prints as MlirOptMain's handler does.
class ShortHandler {
public:
  ShortHandler(MLIRContext *context, llvm::MemoryBufferRef input)
      : handler(sources, context) {
    sources.setDiagHandler(printShort);
    sources.AddNewSourceBuffer(
        llvm::MemoryBuffer::getMemBuffer(input,
                                         /*RequiresNullTerminator=*/false),
        llvm::SMLoc());
  }

private:
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler handler;
};

/// Runs for every dialect that is loaded. The first is loaded before
/// MlirOptMain installs its handler, which would come before an older one.
class InstallShortHandler : public DialectExtensionBase {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InstallShortHandler)

  explicit InstallShortHandler(llvm::MemoryBufferRef input)
      : DialectExtensionBase(/*dialectNames=*/{}), input(input) {}

  void apply(MLIRContext *context, MutableArrayRef<Dialect *>) const override {
    static int loaded = 0;
    // It lives as long as the program: nothing tells that the context ends.
    static ShortHandler *handler = nullptr;
    if (++loaded > 1 && !handler)
      handler = new ShortHandler(context, input);
  }

  std::unique_ptr<DialectExtensionBase> clone() const override {
    return std::make_unique<InstallShortHandler>(*this);
  }

private:
  llvm::MemoryBufferRef input;
};
} // namespace

void shortenSourceLines(DialectRegistry &registry,
                        llvm::MemoryBufferRef input) {
  registry.addExtension(TypeID::get<InstallShortHandler>(),
                        std::make_unique<InstallShortHandler>(input));
}
