//===- DotSides.cpp - The operands of a dot by their dimensions -----------===//

#include "DotSides.h"

#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "llvm/ADT/STLExtras.h"

namespace mlir::fp8::smooth {

DotOperand getDotOperand(stablehlo::DotGeneralOp dot, bool lhs) {
  stablehlo::OperandDims dims = stablehlo::getOperandDims(dot, lhs ? 0 : 1);
  DotOperand side;
  side.value = lhs ? dot.getLhs() : dot.getRhs();
  side.batching = dims.batching;
  side.contracting = dims.contracting;
  side.free = dims.free;
  side.inResult = stablehlo::getResultDims(dot, lhs ? 0 : 1);
  return side;
}

int64_t getPartner(const DotOperand &side, const DotOperand &other,
                   int64_t dim) {
  for (auto [own, partner] : llvm::zip_equal(side.batching, other.batching))
    if (own == dim)
      return partner;
  for (auto [own, partner] :
       llvm::zip_equal(side.contracting, other.contracting))
    if (own == dim)
      return partner;
  return -1;
}

Dims getResultDims(const DotOperand &side, ArrayRef<int64_t> dims) {
  return llvm::map_to_vector(dims,
                             [&](int64_t dim) { return side.inResult[dim]; });
}

} // namespace mlir::fp8::smooth
