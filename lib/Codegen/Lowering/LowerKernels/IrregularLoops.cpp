//===- IrregularLoops.cpp - The loops of a nest without maps --------------===//

#include "IrregularLoops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<int64_t> lowering::tripCountOf(scf::ForOp loop) {
  std::optional<int64_t> upper = getConstantIntValue(loop.getUpperBound());
  if (!isZeroInteger(loop.getLowerBound()) || !isOneInteger(loop.getStep()))
    return std::nullopt;
  return upper;
}

/// Returns `index` before it was clamped to 0 or more, and less than `extent`.
static Value withoutClamps(Value index, int64_t extent) {
  while (Operation *op = index.getDefiningOp()) {
    auto bound = op->getNumOperands() == 2
                     ? getConstantIntValue(op->getOperand(1))
                     : std::nullopt;
    bool isClamp = bound && ((isa<arith::MaxSIOp>(op) && *bound <= 0) ||
                             (isa<arith::MinSIOp>(op) && *bound >= extent - 1));
    if (!isClamp)
      break;
    index = op->getOperand(0);
  }
  return index;
}

std::optional<unsigned>
lowering::dimensionOf(scf::ForOp loop, ValueRange indices, MemRefType buffer) {
  std::optional<int64_t> count = tripCountOf(loop);
  if (!count)
    return std::nullopt;
  for (auto [dim, index] : llvm::enumerate(indices))
    if (*count <= buffer.getDimSize(dim) &&
        withoutClamps(index, *count) == loop.getInductionVar())
      return dim;
  return std::nullopt;
}
