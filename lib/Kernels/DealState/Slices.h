//===- Slices.h - Ops that work on stacks slice by slice --------*- C++ -*-===//

#ifndef FP8_LIB_KERNELS_DEALSTATE_SLICES_H
#define FP8_LIB_KERNELS_DEALSTATE_SLICES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {

/// Returns the operands of an op and the outside values that its regions use.
SetVector<Value> valuesReadBy(Operation *op);

/// Returns the value that a chain of views and slices starts from.
Value rootOf(Value value);

/// Returns whether the leading dimension of a tensor divides into `count`
/// slices.
bool hasSlices(Value value, int64_t count);

/// Returns whether an op computes all of its results slice by slice.
bool writesSlices(Operation *op, int64_t count);

/// Returns whether an op reads an operand slice by slice, as it writes its
/// results.
bool readsSlices(OpOperand &operand);

/// Returns the number of layers of a stack: of an argument that a loop reads
/// layer by layer, itself or a value made from it slice by slice. Returns 1 if
/// the argument is no stack.
int64_t layersOf(BlockArgument arg);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_DEALSTATE_SLICES_H
