//===- Views.cpp - Views that preserve some dimensions --------------------===//

#include "Views.h"

#include "fp8/Analysis/LinearLayers/LinearLayers.h"
#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Support/Shapes.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace mlir::fp8::smooth {

/// Returns the dimensions of the source of a reshape that equal `dims` of its
/// result; none if there are no such dimensions.
static std::optional<Dims> mapReshape(ArrayRef<int64_t> source,
                                      ArrayRef<int64_t> result,
                                      ArrayRef<int64_t> dims) {
  auto inner = [](ArrayRef<int64_t> shape, int64_t dim) {
    return llvm::product_of(shape.drop_front(dim + 1));
  };
  Dims mapped;
  for (int64_t dim : dims) {
    auto same =
        llvm::find_if(llvm::seq<int64_t>(source.size()), [&](int64_t d) {
          return source[d] == result[dim] &&
                 inner(source, d) == inner(result, dim);
        });
    if (same == llvm::seq<int64_t>(source.size()).end())
      return std::nullopt;
    mapped.push_back(*same);
  }
  return mapped;
}

/// Returns the dimensions of the operand of a view that are `dims` of its
/// result; none if it is not a view that `through` allows.
static std::optional<Dims> mapStep(OpResult result, ArrayRef<int64_t> dims,
                                   Through through) {
  Operation *op = result.getOwner();
  if (isa<stablehlo::OptimizationBarrierOp>(op))
    return Dims(dims);
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op))
    return llvm::map_to_vector(
        dims, [&](int64_t dim) { return transpose.getPermutation()[dim]; });
  if (isa<stablehlo::ReshapeOp>(op))
    return mapReshape(shapeOf(op->getOperand(0)), shapeOf(result), dims);
  if (through == Through::Layouts)
    return std::nullopt;
  if (isa<stablehlo::ConvertOp>(op) &&
      isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType())))
    return Dims(dims);
  auto slice = dyn_cast<stablehlo::DynamicSliceOp>(op);
  if (slice && slice.getSliceSizes().front() == 1 &&
      slice.getSliceSizes().drop_front() ==
          shapeOf(slice.getOperand()).drop_front())
    return Dims(dims);
  return std::nullopt;
}

View getView(Value value, ArrayRef<int64_t> dims, Through through) {
  View view{value, Dims(dims), {}, {}};
  while (auto result = dyn_cast<OpResult>(view.root)) {
    Dims tracked(view.dims);
    llvm::append_range(tracked, view.layers);
    std::optional<Dims> mapped = mapStep(result, tracked, through);
    if (!mapped)
      break;
    view.dims.assign(mapped->begin(), mapped->begin() + view.dims.size());
    view.layers.assign(mapped->begin() + view.dims.size(), mapped->end());
    if (isa<stablehlo::DynamicSliceOp>(result.getOwner()))
      view.layers.insert(view.layers.begin(), 0);
    view.steps.push_back(result);
    Operation *op = result.getOwner();
    view.root = op->getOperand(isa<stablehlo::OptimizationBarrierOp>(op)
                                   ? result.getResultNumber()
                                   : 0);
  }
  return view;
}

std::optional<SmallVector<Operation *>> getLayoutsFrom(ArrayRef<int64_t> shape,
                                                       Value value) {
  SmallVector<Operation *> layouts;
  while (shapeOf(value) != shape) {
    Value source = getLayoutSource(value);
    if (!source || value.getDefiningOp<WindowsOp>())
      return std::nullopt;
    if (!isa<stablehlo::OptimizationBarrierOp>(value.getDefiningOp()))
      layouts.push_back(value.getDefiningOp());
    value = source;
  }
  return layouts;
}

Dims sizesOf(Value value, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims,
                             [&](int64_t dim) { return shapeOf(value)[dim]; });
}

Dims sortBy(ArrayRef<int64_t> dims, ArrayRef<int64_t> places) {
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [dim, place] : llvm::zip_equal(dims, places))
    pairs.push_back({place, dim});
  llvm::sort(pairs);
  return llvm::map_to_vector(pairs, [](auto pair) { return pair.second; });
}

Dims unite(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  Dims dims(a);
  llvm::append_range(dims, b);
  return dims;
}

} // namespace mlir::fp8::smooth
