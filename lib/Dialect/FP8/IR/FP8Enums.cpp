//===- FP8Enums.cpp - Enums of recipes and of the fp8 dialect -------------===//

#include "fp8/Dialect/FP8/IR/FP8Enums.h"

#include "fp8/Dialect/FP8/IR/FP8Enums.cpp.inc"
