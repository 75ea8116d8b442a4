//===- FP8Attrs.h - Attributes of the fp8 dialect ---------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8ATTRS_H
#define FP8_DIALECT_FP8_IR_FP8ATTRS_H

#include "fp8/Dialect/FP8/IR/FP8Enums.h"
#include "fp8/Support/Recipe.h"

#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpImplementation.h"

#define GET_ATTRDEF_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Attrs.h.inc"

#endif // FP8_DIALECT_FP8_IR_FP8ATTRS_H
