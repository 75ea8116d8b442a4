//===- SecondMoments.h - Second moments and their roots ---------*- C++ -*-===//
//
// Adam and similar optimizers divide a gradient by the root of an average of
// its square. Both are found by data flow, from the new value of a state
// argument of kind `moment2`: the square g * g that it averages, and the root
// of the moment, after bias correction.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_SECONDMOMENTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_SECONDMOMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

struct SecondMoment {
  std::string
      parameter;   ///< Path of the updated array; the moment's own if unknown.
  Value gradient;  ///< As the moment averages it, e.g. clipped.
  Value moment;    ///< The operand of the root.
  Operation *root; ///< The root; both values are defined before it.
};

/// Returns the second moments of a step, in the order of its arguments.
SmallVector<SecondMoment> findSecondMoments(func::FuncOp function);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_STATE_SECONDMOMENTS_H
