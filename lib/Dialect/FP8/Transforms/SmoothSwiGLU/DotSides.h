//===- DotSides.h - The operands of a dot by their dimensions ---*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_DOTSIDES_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_DOTSIDES_H

#include "Views.h"

namespace mlir::fp8::smooth {

/// An operand of a dot, with its dimensions by what the dot does with them.
struct DotOperand {
  Value value;
  ArrayRef<int64_t> batching, contracting;
  Dims free;
  /// The dimension of the result that each of its dimensions becomes, or -1.
  Dims inResult;
};

DotOperand getDotOperand(stablehlo::DotGeneralOp dot, bool lhs);

/// Returns the dimension of the other operand that a dimension of an operand is
/// paired with, or -1.
int64_t getPartner(const DotOperand &side, const DotOperand &other,
                   int64_t dim);

/// Returns the dimensions of the result that `dims` of an operand become.
Dims getResultDims(const DotOperand &side, ArrayRef<int64_t> dims);

} // namespace mlir::fp8::smooth

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_SMOOTHSWIGLU_DOTSIDES_H
