//===- RowOrigins.h - The operands that a row depends on --------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWORIGINS_H
#define FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWORIGINS_H

#include "../SmallTensors.h"
#include "Layout.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir::fp8 {

inline std::optional<int64_t> positionIn(ArrayRef<int64_t> dims, int64_t dim) {
  const auto *it = llvm::find(dims, dim);
  if (it == dims.end())
    return std::nullopt;
  return it - dims.begin();
}

/// Returns the dimension of the indices that dimension `dim` of a gather's
/// result, or of a scatter's updates, corresponds to, if it does not belong to
/// a window.
std::optional<int64_t> dimOfIndices(ArrayRef<int64_t> windowDims,
                                    int64_t indexVectorDim, int64_t dim);

/// Returns the dimensions of a scatter's target along which windows extend.
SmallVector<int64_t> windowDimsOf(stablehlo::ScatterOp op);

/// Returns the dimension along which an op sorts; none if it does not.
std::optional<int64_t> sortedDim(Operation *op);

/// An operand, and the dimensions along which each row of a result reads its
/// own part of it.
struct RowOrigin {
  OpOperand *operand;
  RowDims rows;
};

/// Returns the operands of which every row of `result` reads its own part,
/// leaving out operands that all rows read alike. None if rows may read parts
/// of other rows, or if this is not known for the op.
std::optional<SmallVector<RowOrigin>> findRowOrigins(OpResult result,
                                                     ArrayRef<RowDim> rows);

/// Whether `value` is the same at all indices along `rows`.
bool isSameForRows(Value value, ArrayRef<RowDim> rows);

} // namespace mlir::fp8

#endif // FP8_LIB_DIALECT_FP8_TRANSFORMS_DATAPARALLEL_ROWORIGINS_H
