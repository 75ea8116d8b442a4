//===- CHLO.h - CHLO subset dialect -----------------------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_CHLO_H
#define FP8_DIALECT_STABLEHLO_IR_CHLO_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "fp8/Dialect/StableHLO/IR/CHLODialect.h.inc"

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/CHLOOps.h.inc"

#endif // FP8_DIALECT_STABLEHLO_IR_CHLO_H
