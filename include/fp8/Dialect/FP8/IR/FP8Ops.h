//===- FP8Ops.h - Operations of the fp8 dialect -----------------*- C++ -*-===//

#ifndef FP8_DIALECT_FP8_IR_FP8OPS_H
#define FP8_DIALECT_FP8_IR_FP8OPS_H

#include "fp8/Dialect/FP8/IR/FP8Attrs.h"
#include "fp8/Dialect/FP8/IR/FP8Dialect.h"
#include "fp8/Dialect/FP8/IR/FP8Types.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#define GET_OP_CLASSES
#include "fp8/Dialect/FP8/IR/FP8Ops.h.inc"

namespace mlir::fp8 {

/// Return the bytes of all elements on the wire, and of the scales that the
/// ranks agree on for an f8 wire.
int64_t getWireBytes(AllReduceOp op);
int64_t getWireBytes(StartAllReduceOp op);

/// Return the bytes that a rank sends to the others of its group.
int64_t getSentBytes(ExchangeOp op);
int64_t getSentBytes(StartExchangeOp op);

} // namespace mlir::fp8

#endif // FP8_DIALECT_FP8_IR_FP8OPS_H
