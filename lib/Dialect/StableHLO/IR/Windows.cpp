//===- Windows.cpp - Windows of convolutions and reductions ---------------===//

#include "Windows.h"

#include "Constraints.h"

using namespace mlir;
using namespace mlir::stablehlo;

static LogicalResult expectPositive(Operation *op, ArrayRef<int64_t> values,
                                    const Twine &what) {
  if (llvm::all_of(values, [](int64_t value) { return value > 0; }))
    return success();
  return op->emitOpError("expected positive ")
         << what << " but got " << toString(values);
}

FailureOr<WindowSpec>
stablehlo::getWindowSpec(Operation *op, ArrayRef<int64_t> sizes,
                         std::optional<ArrayRef<int64_t>> strides,
                         std::optional<ArrayRef<int64_t>> baseDilations,
                         std::optional<ArrayRef<int64_t>> windowDilations,
                         std::optional<DenseIntElementsAttr> padding) {
  int64_t rank = sizes.size();
  WindowSpec spec;
  spec.sizes.assign(sizes.begin(), sizes.end());
  auto fill = [&](SmallVector<int64_t> &to,
                  std::optional<ArrayRef<int64_t>> from,
                  StringRef what) -> LogicalResult {
    to = orOnes(from, rank);
    if (failed(expectSize(op, rank, to.size(), what)))
      return failure();
    return expectPositive(op, to, what);
  };
  if (failed(expectPositive(op, spec.sizes, "window dimensions")) ||
      failed(fill(spec.strides, strides, "window strides")) ||
      failed(fill(spec.baseDilations, baseDilations, "base dilations")) ||
      failed(fill(spec.windowDilations, windowDilations, "window dilations")))
    return failure();
  if (padding) {
    auto type = RankedTensorType::get({rank, 2},
                                      IntegerType::get(op->getContext(), 64));
    if (failed(expectType(op, type, padding->getType(), "paddings")))
      return failure();
  }
  for (auto [low, high] : paddings(padding, rank)) {
    spec.low.push_back(low);
    spec.high.push_back(high);
  }
  return spec;
}

SmallVector<int64_t> stablehlo::getWindowedShape(ArrayRef<int64_t> shape,
                                                 const WindowSpec &spec) {
  SmallVector<int64_t> result;
  auto dilate = [](int64_t size, int64_t by) {
    return size == 0 ? 0 : (size - 1) * by + 1;
  };
  for (auto [i, size] : llvm::enumerate(shape)) {
    int64_t padded =
        spec.low[i] + dilate(size, spec.baseDilations[i]) + spec.high[i];
    int64_t window = dilate(spec.sizes[i], spec.windowDilations[i]);
    bool empty = padded <= 0 || window > padded;
    result.push_back(empty ? 0 : (padded - window) / spec.strides[i] + 1);
  }
  return result;
}
