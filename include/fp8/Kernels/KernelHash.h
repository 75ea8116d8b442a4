//===- KernelHash.h - Kernels told apart by what they compute ---*- C++ -*-===//

#ifndef FP8_KERNELS_KERNELHASH_H
#define FP8_KERNELS_KERNELHASH_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include <string>

namespace mlir::fp8 {

/// 32 hexadecimal digits of the SHA-256 of a kernel: of its ops, types,
/// attributes with the data of constants, and of how values flow. Its own name,
/// locations and names of values have no part in it, nor have printing flags;
/// it is the same in every process.
std::string kernelHash(KernelOp kernel);

} // namespace mlir::fp8

#endif // FP8_KERNELS_KERNELHASH_H
