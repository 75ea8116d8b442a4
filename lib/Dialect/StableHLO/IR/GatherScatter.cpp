//===- GatherScatter.cpp - Verifiers of gather and scatter ----------------===//
//
// Both ops work on windows of a tensor at runtime indices: gather reads them,
// scatter writes them. The constraints on their dimension numbers are the same
// under different names. Constraint numbers in comments are those of the
// StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {
/// The dimension numbers of one op, and the op's names for them.
struct IndexedWindows {
  Operation *op;
  /// The tensor that has the windows, their indices, and all windows together.
  RankedTensorType tensor, indices, windows;
  StringRef indicesName;
  int64_t vectorDim;

  struct Dims {
    ArrayRef<int64_t> dims;
    StringRef name;
  };
  Dims window;          ///< of `windows`: where a window lies
  Dims removed;         ///< of `tensor`: the dimensions that windows lack
  Dims batching;        ///< of `tensor`: paired with indicesBatching
  Dims indicesBatching; ///< of `indices`
  Dims map;             ///< of `tensor`: indexed by an index vector

  LogicalResult expectVectorDim() const;
  LogicalResult expectMapSize() const;
  LogicalResult expectWindowDims() const;
  LogicalResult expectBatchingDims() const;
  LogicalResult expectMap() const;

  /// Returns the dimensions of `tensor` that no window has.
  SmallVector<int64_t> allRemoved() const { return withBatching(removed); }
  /// Returns the sizes of `indices` without the index vectors.
  SmallVector<int64_t> batchSizes() const;

private:
  SmallVector<int64_t> withBatching(const Dims &dims) const {
    SmallVector<int64_t> all(dims.dims);
    llvm::append_range(all, batching.dims);
    return all;
  }
};
} // namespace

/// gather_c2, scatter_c22
LogicalResult IndexedWindows::expectVectorDim() const {
  if (vectorDim >= 0 && vectorDim <= indices.getRank())
    return success();
  return op->emitOpError("expected index_vector_dim in [0, ")
         << indices.getRank() << "] but got " << vectorDim;
}

/// gather_c3, scatter_c19
LogicalResult IndexedWindows::expectMapSize() const {
  return expectSize(
      op, vectorDim < indices.getRank() ? indices.getDimSize(vectorDim) : 1,
      map.dims.size(), "entries of " + map.name);
}

LogicalResult IndexedWindows::expectWindowDims() const {
  // gather_c4, scatter_c7
  if (failed(expectUnique(op, window.dims, window.name)) ||
      failed(expectSorted(op, window.dims, window.name)) ||
      // gather_c5, scatter_c8
      failed(expectInRange(op, window.dims, windows.getRank(), window.name)) ||
      // gather_c6, scatter_c9
      failed(expectUnique(op, allRemoved(),
                          removed.name + " and " + batching.name)) ||
      // gather_c7, scatter_c10
      failed(expectSorted(op, removed.dims, removed.name)) ||
      // gather_c8, scatter_c11
      failed(expectInRange(op, removed.dims, tensor.getRank(), removed.name)))
    return failure();
  return expectBatchingDims();
}

LogicalResult IndexedWindows::expectBatchingDims() const {
  // gather_c10, scatter_c12
  if (failed(expectSorted(op, batching.dims, batching.name)) ||
      // gather_c11, scatter_c13
      failed(
          expectInRange(op, batching.dims, tensor.getRank(), batching.name)) ||
      // gather_c13, scatter_c14
      failed(expectUnique(op, indicesBatching.dims, indicesBatching.name)) ||
      // gather_c14, scatter_c15
      failed(expectInRange(op, indicesBatching.dims, indices.getRank(),
                           indicesBatching.name)))
    return failure();
  // gather_c15, scatter_c16
  if (llvm::is_contained(indicesBatching.dims, vectorDim))
    return op->emitOpError("expected ")
           << indicesBatching.name << " without index_vector_dim " << vectorDim
           << " but got " << toString(indicesBatching.dims);
  // gather_c16, scatter_c17
  if (failed(expectSize(op, batching.dims.size(), indicesBatching.dims.size(),
                        indicesBatching.name)))
    return failure();
  // gather_c17, scatter_c18
  for (auto [a, b] : llvm::zip(batching.dims, indicesBatching.dims))
    if (tensor.getDimSize(a) != indices.getDimSize(b))
      return op->emitOpError("expected ")
             << indicesName << " dimension " << b << " of size "
             << tensor.getDimSize(a) << " but got " << indices.getDimSize(b);
  return success();
}

LogicalResult IndexedWindows::expectMap() const {
  // gather_c18, scatter_c20
  if (failed(expectUnique(op, withBatching(map),
                          map.name + " and " + batching.name)))
    return failure();
  // gather_c19, scatter_c21
  return expectInRange(op, map.dims, tensor.getRank(), map.name);
}

SmallVector<int64_t> IndexedWindows::batchSizes() const {
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < indices.getRank(); ++i)
    if (i != vectorDim)
      sizes.push_back(indices.getDimSize(i));
  return sizes;
}

//===----------------------------------------------------------------------===//
// Gather
//===----------------------------------------------------------------------===//

static IndexedWindows windowsOf(GatherOp op) {
  GatherDimensionNumbersAttr dims = op.getDimensionNumbers();
  return {op,
          op.getOperand().getType(),
          op.getStartIndices().getType(),
          op.getType(),
          "start_indices",
          dims.getIndexVectorDim(),
          {dims.getOffsetDims(), "offset_dims"},
          {dims.getCollapsedSliceDims(), "collapsed_slice_dims"},
          {dims.getOperandBatchingDims(), "operand_batching_dims"},
          {dims.getStartIndicesBatchingDims(), "start_indices_batching_dims"},
          {dims.getStartIndexMap(), "start_index_map"}};
}

static LogicalResult expectSliceSizes(GatherOp op,
                                      const IndexedWindows &gather) {
  RankedTensorType operand = gather.tensor;
  ArrayRef<int64_t> sizes = op.getSliceSizes();
  // gather_c20
  if (failed(expectSize(op, operand.getRank(), sizes.size(), "slice_sizes")))
    return failure();
  // gather_c21
  for (auto [i, size] : llvm::enumerate(sizes))
    if (size < 0 || size > operand.getDimSize(i))
      return op.emitOpError("expected slice size ")
             << i << " in [0, " << operand.getDimSize(i) << "] but got "
             << size;
  // gather_c9, gather_c12
  for (int64_t dim : gather.allRemoved())
    if (sizes[dim] > 1)
      return op.emitOpError("expected slice size ")
             << dim << " of a collapsed or batching dimension in [0, 1] but "
             << "got " << sizes[dim];
  return success();
}

/// gather_c22: offset dimensions hold the slice, the others the indices.
static FailureOr<SmallVector<int64_t>>
inferGatherShape(GatherOp op, const IndexedWindows &gather) {
  SmallVector<int64_t> removed = gather.allRemoved(),
                       batchSizes = gather.batchSizes(), offsetSizes, shape;
  ArrayRef<int64_t> offset = gather.window.dims;
  for (auto [i, size] : llvm::enumerate(op.getSliceSizes()))
    if (!llvm::is_contained(removed, static_cast<int64_t>(i)))
      offsetSizes.push_back(size);
  size_t nextBatch = 0, nextOffset = 0;
  auto rank = static_cast<int64_t>(batchSizes.size() + offsetSizes.size());
  for (int64_t i = 0; i < rank; ++i) {
    bool isOffset = llvm::is_contained(offset, i);
    if (isOffset ? nextOffset == offsetSizes.size()
                 : nextBatch == batchSizes.size())
      return op.emitOpError("expected offset_dims in [0, ")
             << rank << ") but got " << toString(offset);
    shape.push_back(isOffset ? offsetSizes[nextOffset++]
                             : batchSizes[nextBatch++]);
  }
  return shape;
}

LogicalResult GatherOp::verify() {
  IndexedWindows gather = windowsOf(*this);
  // gather_c1
  if (failed(expectSize(*this, gather.tensor.getRank(),
                        gather.window.dims.size() + gather.removed.dims.size() +
                            gather.batching.dims.size(),
                        "offset, collapsed and batching dimensions of the "
                        "operand")) ||
      failed(gather.expectVectorDim()) || failed(gather.expectMapSize()) ||
      failed(gather.expectWindowDims()) || failed(gather.expectMap()) ||
      failed(expectSliceSizes(*this, gather)))
    return failure();
  FailureOr<SmallVector<int64_t>> shape = inferGatherShape(*this, gather);
  if (failed(shape))
    return failure();
  // gather_c23
  return expectType(
      *this, RankedTensorType::get(*shape, gather.tensor.getElementType()),
      getType(), "a result");
}

//===----------------------------------------------------------------------===//
// Scatter
//===----------------------------------------------------------------------===//

static IndexedWindows windowsOf(ScatterOp op) {
  ScatterDimensionNumbersAttr dims = op.getScatterDimensionNumbers();
  return {
      op,
      cast<RankedTensorType>(op.getInputs().front().getType()),
      op.getScatterIndices().getType(),
      cast<RankedTensorType>(op.getUpdates().front().getType()),
      "scatter_indices",
      dims.getIndexVectorDim(),
      {dims.getUpdateWindowDims(), "update_window_dims"},
      {dims.getInsertedWindowDims(), "inserted_window_dims"},
      {dims.getInputBatchingDims(), "input_batching_dims"},
      {dims.getScatterIndicesBatchingDims(), "scatter_indices_batching_dims"},
      {dims.getScatterDimsToOperandDims(), "scatter_dims_to_operand_dims"}};
}

/// Checks that all inputs have one shape and all updates have one shape, and
/// that each input has a result of its type.
static LogicalResult expectScatterOperands(ScatterOp op) {
  // scatter_c5
  if (op.getInputs().empty())
    return op.emitOpError("expected one input or more but got none");
  if (op.getNumOperands() != 2 * op.getInputs().size() + 1)
    return op.emitOpError("expected updates for each input but got ")
           << op.getNumOperands() << " operands";
  if (failed(
          expectSize(op, op.getInputs().size(), op.getNumResults(), "results")))
    return failure();
  auto input = cast<RankedTensorType>(op.getInputs().front().getType());
  auto update = cast<RankedTensorType>(op.getUpdates().front().getType());
  for (auto [in, up, out] :
       llvm::zip(op.getInputs(), op.getUpdates(), op.getResults())) {
    auto inType = cast<RankedTensorType>(in.getType());
    auto upType = cast<RankedTensorType>(up.getType());
    // scatter_c1
    if (inType.getShape() != input.getShape())
      return op.emitOpError("expected inputs of one shape but got ")
             << input << " and " << inType;
    // scatter_c3
    if (upType.getShape() != update.getShape())
      return op.emitOpError("expected updates of one shape but got ")
             << update << " and " << upType;
    // scatter_c6
    if (failed(expectType(op, inType.getElementType(), upType.getElementType(),
                          "update elements")) ||
        // scatter_c24, scatter_c25
        failed(expectType(op, inType, out.getType(), "a result")))
      return failure();
  }
  return success();
}

/// scatter_c4: window dimensions fit the input, the others are the indices'.
static LogicalResult expectUpdateSizes(ScatterOp op,
                                       const IndexedWindows &scatter) {
  SmallVector<int64_t> removed = scatter.allRemoved(),
                       scatterSizes = scatter.batchSizes(), bounds;
  ArrayRef<int64_t> window = scatter.window.dims;
  RankedTensorType update = scatter.windows;
  for (auto [i, size] : llvm::enumerate(scatter.tensor.getShape()))
    if (!llvm::is_contained(removed, static_cast<int64_t>(i)))
      bounds.push_back(size);
  if (failed(expectSize(op, scatterSizes.size() + window.size(),
                        update.getRank(), "dimensions of the updates")))
    return failure();
  size_t nextWindow = 0, nextScatter = 0;
  for (auto [i, size] : llvm::enumerate(update.getShape())) {
    if (llvm::is_contained(window, static_cast<int64_t>(i))) {
      int64_t bound = bounds[nextWindow++];
      if (size > bound)
        return op.emitOpError("expected update dimension ")
               << i << " in [0, " << bound << "] but got " << size;
    } else {
      int64_t expected = scatterSizes[nextScatter++];
      if (size != expected)
        return op.emitOpError("expected update dimension ")
               << i << " of size " << expected << " but got " << size;
    }
  }
  return success();
}

LogicalResult ScatterOp::verify() {
  if (failed(expectScatterOperands(*this)))
    return failure();
  IndexedWindows scatter = windowsOf(*this);
  // scatter_c2
  if (failed(expectSize(*this, scatter.tensor.getRank(),
                        scatter.window.dims.size() +
                            scatter.removed.dims.size() +
                            scatter.batching.dims.size(),
                        "window, inserted and batching dimensions of the "
                        "input")) ||
      failed(scatter.expectVectorDim()) || failed(scatter.expectWindowDims()) ||
      failed(scatter.expectMapSize()) || failed(scatter.expectMap()))
    return failure();
  return expectUpdateSizes(*this, scatter);
}

LogicalResult ScatterOp::verifyRegions() {
  // scatter_c23
  return expectReducer(*this, getUpdateComputation(), getInputs(),
                       "the update computation");
}
