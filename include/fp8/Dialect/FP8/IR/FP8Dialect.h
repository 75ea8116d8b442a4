//===- FP8Dialect.h - The fp8 dialect ---------------------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8DIALECT_H
#define FP8_DIALECT_FP8_IR_FP8DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"

#include "fp8/Dialect/FP8/IR/FP8Dialect.h.inc"

#endif // FP8_DIALECT_FP8_IR_FP8DIALECT_H
