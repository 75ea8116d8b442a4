//===- StructuralHash.h - Ops told apart by what they compute ---*- C++ -*-===//

#ifndef FP8_SUPPORT_STRUCTURALHASH_H
#define FP8_SUPPORT_STRUCTURALHASH_H

#include "mlir/IR/Operation.h"

#include <string>

namespace mlir::fp8 {

/// 32 hexadecimal digits of the SHA-256 of `root`, which uses nothing from
/// above: of its ops, types, attributes with the data of constants, and of how
/// values and control flow. Its own symbol, locations and names of values have
/// no part in it, nor have printing flags; it is the same in every process.
std::string structuralHash(Operation *root);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_STRUCTURALHASH_H
