//===- Subtarget.h - LLVM's description of a CPU ----------------*- C++ -*-===//

#ifndef FP8_SUPPORT_SUBTARGET_H
#define FP8_SUPPORT_SUBTARGET_H

#include "llvm/ADT/StringRef.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/TargetParser/Triple.h"

#include <memory>

namespace mlir::fp8 {

/// Returns LLVM's description of a CPU; null if LLVM was built without its
/// target. Initializes the descriptions of all targets, but no code generation.
std::unique_ptr<llvm::MCSubtargetInfo> getSubtarget(const llvm::Triple &triple,
                                                    llvm::StringRef cpu,
                                                    llvm::StringRef features);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_SUBTARGET_H
