//===- FP8Enums.h - Enums of recipes and of the fp8 dialect -----*- C++ -*-===//
//
// The C++ types and spellings of FP8Enums.td: `stringifyX`, `symbolizeX`. They
// do not need the dialect.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_DIALECT_FP8_IR_FP8ENUMS_H
#define FP8_DIALECT_FP8_IR_FP8ENUMS_H

#include "mlir/IR/OpImplementation.h"

#include "fp8/Dialect/FP8/IR/FP8Enums.h.inc"

#endif // FP8_DIALECT_FP8_IR_FP8ENUMS_H
