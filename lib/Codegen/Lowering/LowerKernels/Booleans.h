//===- Booleans.h - Booleans are bytes in memory ----------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_BOOLEANS_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_BOOLEANS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8::lowering {

/// Returns the type of an element in memory: a boolean is a byte.
Type storageType(Type type);

/// Turns the booleans of the schedule into bytes, as the kernels do.
void storeBooleansAsBytes(ScheduleOp schedule);

/// Does the same for constants.
void storeBooleansAsBytes(ModuleOp module);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_BOOLEANS_H
