//===- ElementTypes.h - Element types of the runtime ------------*- C++ -*-===//

#ifndef FP8_SUPPORT_ELEMENTTYPES_H
#define FP8_SUPPORT_ELEMENTTYPES_H

#include "fp8-c/Runtime.h"

#include "mlir/IR/Types.h"

namespace mlir::fp8 {

/// Returns the runtime's name of an element type; FP8_NUM_DTYPES if it has
/// none.
fp8_dtype dtypeOf(Type type);

/// Returns the element type that the runtime calls `dtype`.
Type elementTypeOf(fp8_dtype dtype, MLIRContext &context);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_ELEMENTTYPES_H
