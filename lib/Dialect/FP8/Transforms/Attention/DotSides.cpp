//===- DotSides.cpp - The dimensions of each operand of a dot -------------===//

#include "DotSides.h"

#include "fp8/Support/Shapes.h"

using namespace mlir;
using namespace mlir::fp8;
using Dot = stablehlo::DotGeneralOp;

SideDims fp8::sideDims(Dot dot, unsigned side) {
  stablehlo::OperandDims dims = stablehlo::getOperandDims(dot, side);
  return {SmallVector<int64_t>(dims.batching),
          SmallVector<int64_t>(dims.contracting)};
}

Value fp8::makeDot(OpBuilder &builder, Dot like, Value lhs, Value rhs,
                   const SideDims &left, const SideDims &right) {
  SmallVector<int64_t> shape;
  for (int64_t dim : left.batch)
    shape.push_back(tensorOf(lhs).getDimSize(dim));
  for (auto [value, side] : {std::pair(lhs, &left), std::pair(rhs, &right)})
    for (int64_t dim : side->getFree(tensorOf(value).getRank()))
      shape.push_back(tensorOf(value).getDimSize(dim));
  auto numbers = stablehlo::DotDimensionNumbersAttr::get(
      builder.getContext(), left.batch, right.batch, left.contract,
      right.contract);
  return Dot::create(builder, like.getLoc(),
                     tensorOf(like.getResult()).clone(shape), lhs, rhs, numbers,
                     like.getPrecisionConfigAttr(), like.getAlgorithmAttr());
}
