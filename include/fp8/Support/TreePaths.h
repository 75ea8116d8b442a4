//===- TreePaths.h - Options about tree paths -------------------*- C++ -*-===//

#ifndef FP8_SUPPORT_TREEPATHS_H
#define FP8_SUPPORT_TREEPATHS_H

#include "llvm/ADT/StringRef.h"

#include <utility>

namespace mlir::fp8 {

/// Splits `PATH=VALUE` at the last `=` that is in no quoted key of a path, as
/// in `state['a=b']=result[0]['a=b']`. Without one, the value is empty.
std::pair<llvm::StringRef, llvm::StringRef>
splitAssignment(llvm::StringRef text);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_TREEPATHS_H
