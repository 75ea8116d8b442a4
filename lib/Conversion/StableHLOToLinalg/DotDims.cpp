//===- DotDims.cpp - The dimensions of either kind of dot -----------------===//

#include "DotDims.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<DotDims> DotDims::of(Operation *op) {
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
    auto numbers = dot.getDotDimensionNumbers();
    return DotDims{{Dims(numbers.getLhsBatchingDimensions()),
                    Dims(numbers.getRhsBatchingDimensions())},
                   {Dims(numbers.getLhsContractingDimensions()),
                    Dims(numbers.getRhsContractingDimensions())}};
  }
  if (auto dot = dyn_cast<fp8::DotGeneralOp>(op))
    return DotDims{
        {Dims(dot.getLhsBatchingDims()), Dims(dot.getRhsBatchingDims())},
        {Dims(dot.getLhsContractingDims()), Dims(dot.getRhsContractingDims())}};
  return std::nullopt;
}
