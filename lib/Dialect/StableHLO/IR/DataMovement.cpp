//===- DataMovement.cpp - Ops that move elements --------------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

static LogicalResult expectScalarIndices(Operation *op, ValueRange indices) {
  for (Value index : indices)
    if (tensorOf(index).getRank() != 0)
      return op->emitOpError("expected 0-d start indices but got ")
             << index.getType();
  for (Value index : indices.drop_front(indices.empty() ? 0 : 1))
    if (index.getType() != indices.front().getType())
      return op->emitOpError("expected start indices of one type but got ")
             << indices.front().getType() << " and " << index.getType();
  return success();
}

LogicalResult BroadcastInDimOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  // broadcast_in_dim_c1
  if (failed(expectType(*this, from.getElementType(), to.getElementType(),
                        "result elements")) ||
      // broadcast_in_dim_c2
      failed(expectSize(*this, from.getRank(), dims.size(),
                        "broadcast_dimensions")) ||
      // broadcast_in_dim_c3
      failed(
          expectInRange(*this, dims, to.getRank(), "broadcast_dimensions")) ||
      // broadcast_in_dim_c4
      failed(expectUnique(*this, dims, "broadcast_dimensions")))
    return failure();
  // broadcast_in_dim_c5
  for (auto [i, dim] : llvm::enumerate(dims)) {
    int64_t size = from.getDimSize(i);
    if (size != 1 && size != to.getDimSize(dim))
      return emitOpError("expected result dimension ")
             << dim << " of size " << size << " (operand dimension " << i
             << ") but got " << to.getDimSize(dim);
  }
  return success();
}

/// Returns the type of a concatenation; none if the inputs do not fit.
static RankedTensorType inferConcatenate(ValueRange inputs, int64_t dimension) {
  RankedTensorType first = tensorOf(inputs.front());
  SmallVector<int64_t> shape(first.getShape());
  shape[dimension] = 0;
  for (Value input : inputs)
    shape[dimension] += tensorOf(input).getDimSize(dimension);
  return RankedTensorType::get(shape, first.getElementType());
}

void ConcatenateOp::build(OpBuilder &builder, OperationState &state,
                          ValueRange inputs, int64_t dimension) {
  build(builder, state, inferConcatenate(inputs, dimension), inputs, dimension);
}

LogicalResult ConcatenateOp::verify() {
  // concatenate_c3
  if (getInputs().empty())
    return emitOpError("expected one input or more but got none");
  RankedTensorType first = tensorOf(getInputs().front());
  // concatenate_c4
  int64_t dimension = getDimension();
  if (failed(expectInRange(*this, dimension, first.getRank(), "dimension")))
    return failure();
  for (Value input : getInputs()) {
    RankedTensorType type = tensorOf(input);
    // concatenate_c1, concatenate_c2
    bool fits = type.getRank() == first.getRank() &&
                type.getElementType() == first.getElementType();
    for (int64_t i = 0; fits && i < first.getRank(); ++i)
      fits = i == dimension || type.getDimSize(i) == first.getDimSize(i);
    if (!fits)
      return emitOpError("expected inputs like ")
             << first << " but for dimension " << dimension << " but got "
             << type;
  }
  // concatenate_c5, concatenate_c6
  return expectType(*this, inferConcatenate(getInputs(), dimension), getType(),
                    "a result");
}

LogicalResult DynamicSliceOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> sizes = getSliceSizes();
  // dynamic_slice_c2
  if (failed(expectSize(*this, type.getRank(), getStartIndices().size(),
                        "start_indices")) ||
      failed(expectSize(*this, type.getRank(), sizes.size(), "slice_sizes")) ||
      // dynamic_slice_c3
      failed(expectScalarIndices(*this, getStartIndices())))
    return failure();
  // dynamic_slice_c4
  for (auto [i, size] : llvm::enumerate(sizes))
    if (size < 0 || size > type.getDimSize(i))
      return emitOpError("expected slice size ")
             << i << " in [0, " << type.getDimSize(i) << "] but got " << size;
  // dynamic_slice_c1, dynamic_slice_c5
  return expectType(*this, RankedTensorType::get(sizes, type.getElementType()),
                    getType(), "a result");
}

LogicalResult DynamicUpdateSliceOp::verify() {
  RankedTensorType type = getOperand().getType(),
                   update = getUpdate().getType();
  // dynamic_update_slice_c1
  if (failed(expectType(*this, type, getType(), "a result")) ||
      // dynamic_update_slice_c2
      failed(expectType(*this, type.getElementType(), update.getElementType(),
                        "update elements")) ||
      // dynamic_update_slice_c3
      failed(expectSize(*this, type.getRank(), update.getRank(),
                        "dimensions of the update")) ||
      // dynamic_update_slice_c4
      failed(expectSize(*this, type.getRank(), getStartIndices().size(),
                        "start_indices")) ||
      // dynamic_update_slice_c5
      failed(expectScalarIndices(*this, getStartIndices())))
    return failure();
  // dynamic_update_slice_c6
  for (int64_t i = 0; i < type.getRank(); ++i)
    if (update.getDimSize(i) > type.getDimSize(i))
      return emitOpError("expected update size ")
             << i << " in [0, " << type.getDimSize(i) << "] but got "
             << update.getDimSize(i);
  return success();
}

LogicalResult PadOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> low = getEdgePaddingLow(), high = getEdgePaddingHigh(),
                    interior = getInteriorPadding();
  // pad_c1
  if (failed(expectType(*this, getScalarType(type.getElementType()),
                        getPaddingValue().getType(), "a padding value")) ||
      // pad_c2
      failed(expectSize(*this, type.getRank(), low.size(), "low paddings")) ||
      failed(expectSize(*this, type.getRank(), high.size(), "high paddings")) ||
      failed(expectSize(*this, type.getRank(), interior.size(),
                        "interior paddings")))
    return failure();
  // pad_c3
  if (llvm::any_of(interior, [](int64_t value) { return value < 0; }))
    return emitOpError("expected interior paddings of 0 or more but got ")
           << toString(interior);
  // pad_c4
  SmallVector<int64_t> shape;
  for (int64_t i = 0; i < type.getRank(); ++i) {
    int64_t size = type.getDimSize(i);
    shape.push_back(low[i] + size +
                    std::max<int64_t>(size - 1, 0) * interior[i] + high[i]);
    if (shape.back() < 0)
      return emitOpError("expected a result size of 0 or more in dimension ")
             << i << " but got " << shape.back();
  }
  return expectType(*this, RankedTensorType::get(shape, type.getElementType()),
                    getType(), "a result");
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType from = getOperand().getType(), to = getType();
  // reshape_c1
  if (failed(expectType(*this, from.getElementType(), to.getElementType(),
                        "result elements")))
    return failure();
  // reshape_c2
  return expectSize(*this, from.getNumElements(), to.getNumElements(),
                    "elements in the result");
}

LogicalResult ReverseOp::verify() {
  // reverse_c2
  if (failed(expectUnique(*this, getDimensions(), "dimensions")))
    return failure();
  // reverse_c3
  return expectInRange(*this, getDimensions(), getType().getRank(),
                       "dimensions");
}

static RankedTensorType inferSlice(RankedTensorType type,
                                   ArrayRef<int64_t> start,
                                   ArrayRef<int64_t> limit,
                                   ArrayRef<int64_t> strides) {
  SmallVector<int64_t> shape;
  for (auto [from, to, step] : llvm::zip(start, limit, strides))
    shape.push_back((to - from + step - 1) / step);
  return RankedTensorType::get(shape, type.getElementType());
}

void SliceOp::build(OpBuilder &builder, OperationState &state, Value operand,
                    ArrayRef<int64_t> start, ArrayRef<int64_t> limit,
                    ArrayRef<int64_t> strides) {
  build(builder, state, inferSlice(tensorOf(operand), start, limit, strides),
        operand, start, limit, strides);
}

LogicalResult SliceOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> start = getStartIndices(), limit = getLimitIndices(),
                    strides = getStrides();
  // slice_c2
  if (failed(
          expectSize(*this, type.getRank(), start.size(), "start_indices")) ||
      failed(
          expectSize(*this, type.getRank(), limit.size(), "limit_indices")) ||
      failed(expectSize(*this, type.getRank(), strides.size(), "strides")))
    return failure();
  for (int64_t i = 0; i < type.getRank(); ++i) {
    // slice_c3
    if (start[i] < 0 || start[i] > limit[i] || limit[i] > type.getDimSize(i))
      return emitOpError("expected a range within [0:")
             << type.getDimSize(i) << "] for dimension " << i << " but got ["
             << start[i] << ':' << limit[i] << ']';
    // slice_c4
    if (strides[i] <= 0)
      return emitOpError("expected positive strides but got ")
             << toString(strides);
  }
  // slice_c1, slice_c5
  return expectType(*this, inferSlice(type, start, limit, strides), getType(),
                    "a result");
}

LogicalResult SortOp::verify() {
  // sort_c1
  if (getInputs().empty())
    return emitOpError("expected one input or more but got none");
  if (failed(expectSize(*this, getInputs().size(), getNumResults(), "results")))
    return failure();
  RankedTensorType first = tensorOf(getInputs().front());
  for (auto [in, out] : llvm::zip(getInputs(), getResults())) {
    // sort_c3
    if (tensorOf(in).getShape() != first.getShape())
      return emitOpError("expected inputs of one shape but got ")
             << first << " and " << in.getType();
    // sort_c2
    if (failed(expectType(*this, in.getType(), out.getType(), "a result")))
      return failure();
  }
  // sort_c4
  int64_t dimension = getDimension(), rank = first.getRank();
  if (dimension < -rank || dimension >= rank)
    return emitOpError("expected dimension in [")
           << -rank << ", " << rank << ") but got " << dimension;
  return success();
}

LogicalResult SortOp::verifyRegions() {
  // sort_c5: each input's two elements are adjacent.
  SmallVector<Type> arguments;
  for (Value input : getInputs())
    arguments.append(2, tensorOf(input).getElementType());
  return expectScalarRegion(*this, getComparator(), arguments,
                            {IntegerType::get(getContext(), 1)},
                            "the comparator");
}

static RankedTensorType inferTranspose(RankedTensorType type,
                                       ArrayRef<int64_t> permutation) {
  SmallVector<int64_t> shape;
  for (int64_t dim : permutation)
    shape.push_back(type.getDimSize(dim));
  return RankedTensorType::get(shape, type.getElementType());
}

void TransposeOp::build(OpBuilder &builder, OperationState &state,
                        Value operand, ArrayRef<int64_t> permutation) {
  build(builder, state, inferTranspose(tensorOf(operand), permutation), operand,
        permutation);
}

LogicalResult TransposeOp::verify() {
  RankedTensorType type = getOperand().getType();
  ArrayRef<int64_t> permutation = getPermutation();
  // transpose_c2
  if (failed(expectSize(*this, type.getRank(), permutation.size(),
                        "entries of the permutation")) ||
      failed(expectInRange(*this, permutation, type.getRank(),
                           "the permutation")) ||
      failed(expectUnique(*this, permutation, "entries of the permutation")))
    return failure();
  // transpose_c1, transpose_c3
  return expectType(*this, inferTranspose(type, permutation), getType(),
                    "a result");
}
