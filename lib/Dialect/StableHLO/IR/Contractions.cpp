//===- Contractions.cpp - Dots and convolutions ---------------------------===//
//
// Constraint numbers in comments are those of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Constraints.h"
#include "Windows.h"

using namespace mlir;
using namespace mlir::stablehlo;

LogicalResult DotGeneralOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType();
  DotDimensionNumbersAttr dims = getDotDimensionNumbers();
  ArrayRef<int64_t> lhsBatching = dims.getLhsBatchingDimensions(),
                    rhsBatching = dims.getRhsBatchingDimensions(),
                    lhsContracting = dims.getLhsContractingDimensions(),
                    rhsContracting = dims.getRhsContractingDimensions();
  SmallVector<int64_t> lhsUsed(lhsBatching), rhsUsed(rhsBatching);
  llvm::append_range(lhsUsed, lhsContracting);
  llvm::append_range(rhsUsed, rhsContracting);
  // dot_general_c1
  if (failed(expectSize(*this, lhsBatching.size(), rhsBatching.size(),
                        "rhs batching dimensions")) ||
      // dot_general_c2
      failed(expectSize(*this, lhsContracting.size(), rhsContracting.size(),
                        "rhs contracting dimensions")) ||
      // dot_general_c3
      failed(expectUnique(*this, lhsUsed,
                          "lhs batching and contracting dimensions")) ||
      // dot_general_c4
      failed(expectUnique(*this, rhsUsed,
                          "rhs batching and contracting dimensions")) ||
      // dot_general_c5, dot_general_c6
      failed(expectInRange(*this, lhsUsed, lhs.getRank(),
                           "lhs batching and contracting dimensions")) ||
      // dot_general_c7, dot_general_c8
      failed(expectInRange(*this, rhsUsed, rhs.getRank(),
                           "rhs batching and contracting dimensions")))
    return failure();
  // dot_general_c9, dot_general_c10
  for (auto [i, pair] : llvm::enumerate(llvm::zip(lhsUsed, rhsUsed))) {
    auto [a, b] = pair;
    if (lhs.getDimSize(a) != rhs.getDimSize(b))
      return emitOpError("expected ")
             << (i < lhsBatching.size() ? "batching" : "contracting")
             << " dimensions of one size but got " << lhs.getDimSize(a)
             << " (lhs dimension " << a << ") and " << rhs.getDimSize(b)
             << " (rhs dimension " << b << ")";
  }
  // dot_general_c11
  if (std::optional<ArrayAttr> precision = getPrecisionConfig())
    if (!precision->empty() &&
        failed(expectSize(*this, 2, precision->size(),
                          "entries of the precision config")))
      return failure();
  // dot_general_c12: batching, then lhs, then rhs dimensions.
  SmallVector<int64_t> shape;
  for (int64_t dim : lhsBatching)
    shape.push_back(lhs.getDimSize(dim));
  for (int64_t i = 0; i < lhs.getRank(); ++i)
    if (!llvm::is_contained(lhsUsed, i))
      shape.push_back(lhs.getDimSize(i));
  for (int64_t i = 0; i < rhs.getRank(); ++i)
    if (!llvm::is_contained(rhsUsed, i))
      shape.push_back(rhs.getDimSize(i));
  return expectType(*this,
                    RankedTensorType::get(shape, getType().getElementType()),
                    getType(), "a result");
}

/// Checks that the dimension numbers of a convolution are permutations
/// (convolution_c13, convolution_c18, convolution_c20).
static LogicalResult verifyDimensionNumbers(ConvolutionOp op, int64_t rank) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  auto checkDims = [&](int64_t a, int64_t b, ArrayRef<int64_t> spatial,
                       StringRef what) -> LogicalResult {
    SmallVector<int64_t> all(spatial);
    all.append({a, b});
    if (failed(expectSize(op, rank, all.size(), what)) ||
        failed(expectInRange(op, all, rank, what)))
      return failure();
    return expectUnique(op, all, what);
  };
  if (failed(checkDims(dims.getInputBatchDimension(),
                       dims.getInputFeatureDimension(),
                       dims.getInputSpatialDimensions(), "input dimensions")) ||
      failed(checkDims(dims.getKernelInputFeatureDimension(),
                       dims.getKernelOutputFeatureDimension(),
                       dims.getKernelSpatialDimensions(),
                       "kernel dimensions")) ||
      failed(checkDims(dims.getOutputBatchDimension(),
                       dims.getOutputFeatureDimension(),
                       dims.getOutputSpatialDimensions(), "output dimensions")))
    return failure();
  return success();
}

/// Checks the group counts of a convolution and the sizes that they divide
/// (convolution_c10, convolution_c11, convolution_c14 to convolution_c16,
/// convolution_c21 to convolution_c23).
static LogicalResult verifyGroups(ConvolutionOp op) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  RankedTensorType lhs = op.getLhs().getType(), rhs = op.getRhs().getType();
  int64_t features = op.getFeatureGroupCount(),
          batches = op.getBatchGroupCount();
  if (features <= 0 || batches <= 0 || (features > 1 && batches > 1))
    return op.emitOpError("expected positive group counts, one of them 1, but "
                          "got feature_group_count = ")
           << features << " and batch_group_count = " << batches;
  int64_t inputBatch = lhs.getDimSize(dims.getInputBatchDimension()),
          inputFeature = lhs.getDimSize(dims.getInputFeatureDimension()),
          kernelInput = rhs.getDimSize(dims.getKernelInputFeatureDimension()),
          kernelOutput = rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  if (inputBatch % batches != 0 || kernelOutput % batches != 0)
    return op.emitOpError("expected batch_group_count to divide ")
           << inputBatch << " and " << kernelOutput << " but got " << batches;
  if (inputFeature % features != 0 || kernelOutput % features != 0)
    return op.emitOpError("expected feature_group_count to divide ")
           << inputFeature << " and " << kernelOutput << " but got "
           << features;
  return expectSize(op, inputFeature / features, kernelInput,
                    "kernel input features");
}

LogicalResult ConvolutionOp::verify() {
  RankedTensorType lhs = getLhs().getType(), rhs = getRhs().getType(),
                   result = getType();
  ConvDimensionNumbersAttr dims = getDimensionNumbers();
  int64_t rank = lhs.getRank();
  // convolution_c1
  if (failed(expectSize(*this, rank, rhs.getRank(), "dimensions of rhs")) ||
      failed(expectSize(*this, rank, result.getRank(),
                        "dimensions of the result")) ||
      failed(verifyDimensionNumbers(*this, rank)))
    return failure();
  SmallVector<int64_t> sizes, spatial;
  for (int64_t dim : dims.getKernelSpatialDimensions())
    sizes.push_back(rhs.getDimSize(dim));
  for (int64_t dim : dims.getInputSpatialDimensions())
    spatial.push_back(lhs.getDimSize(dim));
  // An empty kernel is legal: its window has no element to multiply.
  SmallVector<int64_t> checked = llvm::map_to_vector(
      sizes, [](int64_t size) { return std::max<int64_t>(size, 1); });
  // convolution_c2 to convolution_c9
  FailureOr<WindowSpec> spec =
      getWindowSpec(*this, checked, getWindowStrides(), getLhsDilation(),
                    getRhsDilation(), getPadding());
  if (failed(spec))
    return failure();
  spec->sizes = sizes;
  if (std::optional<ArrayRef<bool>> reversal = getWindowReversal())
    if (failed(expectSize(*this, rank - 2, reversal->size(),
                          "entries of window_reversal")))
      return failure();
  if (failed(verifyGroups(*this)))
    return failure();
  // convolution_c24
  if (std::optional<ArrayAttr> precision = getPrecisionConfig())
    if (!precision->empty() &&
        failed(expectSize(*this, 2, precision->size(),
                          "entries of the precision config")))
      return failure();
  // convolution_c25
  SmallVector<int64_t> shape(rank);
  shape[dims.getOutputBatchDimension()] =
      lhs.getDimSize(dims.getInputBatchDimension()) /
      static_cast<int64_t>(getBatchGroupCount());
  shape[dims.getOutputFeatureDimension()] =
      rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  for (auto [dim, size] : llvm::zip(dims.getOutputSpatialDimensions(),
                                    getWindowedShape(spatial, *spec)))
    shape[dim] = size;
  return expectType(*this,
                    RankedTensorType::get(shape, result.getElementType()),
                    result, "a result");
}
