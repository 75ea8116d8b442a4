//===- RepeatedValues.h - Values that broadcasts make -----------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_REPEATEDVALUES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_REPEATEDVALUES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

/// Returns what `value` repeats, as keys are repeated for a group of queries:
/// a computed value of at most half as many elements, of which broadcasts and
/// changes of layout make `value`. Null if there is none.
Value getRepeated(Value value);

/// Makes loops stack what they repeat, instead of the results. The loops that
/// read the stacks repeat it. Stacks whose values `isPayload` stay.
void stackUnrepeated(func::FuncOp function,
                     llvm::function_ref<bool(Value)> isPayload);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SAVEDACTIVATIONS_REPEATEDVALUES_H
