//===- StructuralHash.h - A hash of what an op computes ---------*- C++ -*-===//

#ifndef FP8_SUPPORT_STRUCTURALHASH_H
#define FP8_SUPPORT_STRUCTURALHASH_H

#include "mlir/IR/Operation.h"

#include <string>

namespace mlir::fp8 {

/// Returns 32 hexadecimal digits of the SHA-256 of `root`, which must be
/// isolated from above. The hash covers ops, types, attributes (with the data
/// of constants), data flow and control flow. The symbol of `root`, locations,
/// value names and printing flags do not affect it; it is the same in every
/// process.
std::string structuralHash(Operation *root);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_STRUCTURALHASH_H
