//===- SecondMoments.h - What an update divides by --------------*- C++ -*-===//
//
// Adam and its kin divide a gradient by the root of an average of its square.
// Both are found by data flow, from the new value of a state argument of kind
// `moment2`: the square g * g that it averages, and the root that is taken of
// it, after its bias is corrected.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SECONDMOMENTS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SECONDMOMENTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir {
namespace fp8 {

struct SecondMoment {
  std::string
      parameter;   ///< Path of what is updated; the moment's own if not known.
  Value gradient;  ///< As the moment averages it: clipped, say.
  Value moment;    ///< As the update takes the root of it.
  Operation *root; ///< Does so; both values are there before it.
};

/// Those of a step, in the order of its arguments.
SmallVector<SecondMoment> findSecondMoments(func::FuncOp function);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SECONDMOMENTS_H
