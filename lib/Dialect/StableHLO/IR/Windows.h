//===- Windows.h - Windows of convolutions and reductions -------*- C++ -*-===//

#ifndef FP8_LIB_DIALECT_STABLEHLO_IR_WINDOWS_H
#define FP8_LIB_DIALECT_STABLEHLO_IR_WINDOWS_H

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

namespace mlir {
namespace stablehlo {

/// Sizes, strides, dilations and paddings of a window, with defaults filled in.
struct WindowSpec {
  SmallVector<int64_t> sizes, strides, baseDilations, windowDilations, low,
      high;
};

/// Fills in the defaults of a window and checks ranks and signs.
FailureOr<WindowSpec>
getWindowSpec(Operation *op, ArrayRef<int64_t> sizes,
              std::optional<ArrayRef<int64_t>> strides,
              std::optional<ArrayRef<int64_t>> baseDilations,
              std::optional<ArrayRef<int64_t>> windowDilations,
              std::optional<DenseIntElementsAttr> padding);

/// Returns the number of window positions along each dimension.
SmallVector<int64_t> getWindowedShape(ArrayRef<int64_t> shape,
                                      const WindowSpec &spec);

} // namespace stablehlo
} // namespace mlir

#endif // FP8_LIB_DIALECT_STABLEHLO_IR_WINDOWS_H
