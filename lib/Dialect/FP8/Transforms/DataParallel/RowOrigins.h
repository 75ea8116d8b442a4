//===- RowOrigins.h - Where an op reads what a row holds --------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWORIGINS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWORIGINS_H

#include "../SmallTensors.h"
#include "Layout.h"

namespace mlir::fp8 {

inline std::optional<int64_t> positionIn(ArrayRef<int64_t> dims, int64_t dim) {
  const auto *it = llvm::find(dims, dim);
  if (it == dims.end())
    return std::nullopt;
  return it - dims.begin();
}

/// An operand of which a row of a result reads what lies along `rows`.
struct RowOrigin {
  OpOperand *operand;
  RowDims rows;
};

/// The operands of which every row of `result` reads its own part; what all
/// rows read alike is left out. None if rows may read those of others, or this
/// is not known of the op.
std::optional<SmallVector<RowOrigin>> findRowOrigins(OpResult result,
                                                     ArrayRef<RowDim> rows);

/// Does every index along a row's part of a dimension of `value` hold the same?
bool isSameForRows(Value value, ArrayRef<RowDim> rows);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWORIGINS_H
