//===- DotOperands.cpp - The operands of dots -----------------------------===//

#include "fp8/Dialect/StableHLO/IR/DotOperands.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

SmallVector<int64_t> stablehlo::getFreeDims(int64_t rank,
                                            ArrayRef<int64_t> batching,
                                            ArrayRef<int64_t> contracting) {
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(batching, dim) &&
        !llvm::is_contained(contracting, dim))
      dims.push_back(dim);
  return dims;
}

stablehlo::OperandDims stablehlo::getOperandDims(DotGeneralOp dot,
                                                 unsigned number) {
  auto numbers = dot.getDotDimensionNumbers();
  OperandDims dims;
  dims.batching = number == 0 ? numbers.getLhsBatchingDimensions()
                              : numbers.getRhsBatchingDimensions();
  dims.contracting = number == 0 ? numbers.getLhsContractingDimensions()
                                 : numbers.getRhsContractingDimensions();
  auto type = cast<RankedTensorType>(dot->getOperand(number).getType());
  dims.free = getFreeDims(type.getRank(), dims.batching, dims.contracting);
  return dims;
}

SmallVector<int64_t> stablehlo::getResultDims(DotGeneralOp dot,
                                              unsigned number) {
  OperandDims own = getOperandDims(dot, number);
  auto type = cast<RankedTensorType>(dot->getOperand(number).getType());
  int64_t next = own.batching.size();
  if (number == 1)
    next += getOperandDims(dot, 0).free.size();
  SmallVector<int64_t> dims(type.getRank(), -1);
  for (auto [index, dim] : llvm::enumerate(own.batching))
    dims[dim] = index;
  for (int64_t dim : own.free)
    dims[dim] = next++;
  return dims;
}

bool stablehlo::readBeforeTranspose(TransposeOp transpose,
                                    MutableArrayRef<int64_t> batching,
                                    MutableArrayRef<int64_t> contracting) {
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  auto before = [&](int64_t dim) { return permutation[dim]; };
  SmallVector<int64_t> free =
      getFreeDims(permutation.size(), batching, contracting);
  if (!llvm::is_sorted(llvm::map_range(free, before)))
    return false;
  llvm::transform(batching, batching.begin(), before);
  llvm::transform(contracting, contracting.begin(), before);
  return true;
}
