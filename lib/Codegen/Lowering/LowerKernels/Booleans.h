//===- Booleans.h - Booleans are bytes in memory ----------------*- C++ -*-===//

#ifndef FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_BOOLEANS_H
#define FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_BOOLEANS_H

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8::lowering {

/// What an element is in memory: booleans are bytes.
Type storageType(Type type);

/// Booleans of the schedule become bytes as those of the kernels are.
void storeBooleansAsBytes(ScheduleOp schedule);

/// The same for constants.
void storeBooleansAsBytes(ModuleOp module);

} // namespace mlir::fp8::lowering

#endif // FP8_LIB_CODEGEN_LOWERING_LOWERKERNELS_BOOLEANS_H
