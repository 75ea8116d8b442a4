//===- Sdy.h - Shardy subset dialect ----------------------------*- C++ -*-===//

#ifndef FP8_DIALECT_STABLEHLO_IR_SDY_H
#define FP8_DIALECT_STABLEHLO_IR_SDY_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "fp8/Dialect/StableHLO/IR/SdyDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/StableHLO/IR/SdyAttrs.h.inc"

#define GET_OP_CLASSES
#include "fp8/Dialect/StableHLO/IR/SdyOps.h.inc"

#endif // FP8_DIALECT_STABLEHLO_IR_SDY_H
