//===- Subtarget.cpp - LLVM's description of a CPU ------------------------===//

#include "fp8/Support/Subtarget.h"

#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"

#include <mutex>
#include <string>

using namespace mlir;

std::unique_ptr<llvm::MCSubtargetInfo>
fp8::getSubtarget(const llvm::Triple &triple, llvm::StringRef cpu,
                  llvm::StringRef features) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargetMCs();
  });
  std::string error;
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      target ? target->createMCSubtargetInfo(triple, cpu, features) : nullptr);
}
