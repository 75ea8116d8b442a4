//===- Rescaler.cpp - Multiplying values by factors -----------------------===//

#include "Rescaler.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::fp8::smooth {

Value Rescaler::rescale(Value value, Value factor, ArrayRef<int64_t> dims) {
  Value &result = rescaled[{value, factor}];
  if (!result) {
    positions.setInsertionPointAfter(builder, value, factor);
    result = RescaleOp::create(builder, value.getLoc(), value.getType(), value,
                               factor, builder.getDenseI64ArrayAttr(dims));
  }
  return result;
}

Value Rescaler::rescaleView(const View &view, Value factor,
                            ArrayRef<int64_t> dims) {
  Value source = rescale(view.root, factor, dims);
  for (OpResult step : llvm::reverse(view.steps)) {
    // Barriers order the original values.
    if (isa<stablehlo::OptimizationBarrierOp>(step.getOwner()))
      continue;
    Value &result = rescaled[{step, source}];
    if (!result) {
      positions.setInsertionPointAfter(builder, step, source);
      IRMapping mapping;
      mapping.map(step.getOwner()->getOperand(0), source);
      result = builder.clone(*step.getOwner(), mapping)->getResult(0);
    }
    source = result;
  }
  return source;
}

Value Rescaler::rescaleOperand(const DotOperand &side, Value factor,
                               ArrayRef<int64_t> dims) {
  View view = getView(side.value, dims, Through::Layouts);
  return rescaleView(view, factor, view.dims);
}

void Rescaler::rescaleResult(stablehlo::DotGeneralOp dot, Value factor,
                             ArrayRef<int64_t> dims) {
  builder.setInsertionPointAfter(dot);
  Value result = dot->getResult(0);
  auto rescaled =
      RescaleOp::create(builder, dot.getLoc(), result.getType(), result, factor,
                        builder.getDenseI64ArrayAttr(dims));
  result.replaceAllUsesExcept(rescaled, rescaled);
}

} // namespace mlir::fp8::smooth
