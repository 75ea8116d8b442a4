//===- Recomputation.cpp - What is cheap to compute again -----------------===//

#include "Recomputation.h"

#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

int64_t fp8::numElements(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getNumElements() : 0;
}

bool fp8::keepsElements(Operation *op) {
  return isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
             stablehlo::TransposeOp>(op);
}

bool fp8::comparesEqual(Operation *op) {
  auto compare = dyn_cast<stablehlo::CompareOp>(op);
  return compare &&
         isa<FloatType>(getElementTypeOrSelf(compare.getLhs().getType())) &&
         llvm::is_contained({stablehlo::ComparisonDirection::EQ,
                             stablehlo::ComparisonDirection::NE},
                            compare.getComparisonDirection());
}

/// Whether a comparison of rounded operands may come out in another way than
/// that of the values. Only a constant bound keeps (nearly) all of them on its
/// sides.
static bool dependsOnRounding(Operation *op) {
  auto compare = dyn_cast<stablehlo::CompareOp>(op);
  if (!compare ||
      !isa<FloatType>(getElementTypeOrSelf(compare.getLhs().getType())))
    return false;
  return comparesEqual(op) || llvm::none_of(op->getOperands(), [](Value value) {
           while (auto spread =
                      value.getDefiningOp<stablehlo::BroadcastInDimOp>())
             value = spread.getOperand();
           return matchPattern(value, m_Constant());
         });
}

bool fp8::isRecomputable(Operation *op) {
  return op->getNumResults() == 1 && isMemoryEffectFree(op) &&
         !dependsOnRounding(op) &&
         (stablehlo::worksByElement(op) || keepsElements(op));
}

unsigned fp8::countRecomputedOps(Value value, DenseMap<Value, unsigned> &counts,
                                 function_ref<unsigned(Value)> limitOf,
                                 function_ref<bool(Value)> isRead) {
  auto [it, isNew] = counts.try_emplace(value, 0);
  if (!isNew)
    return it->second;
  Operation *op = value.getDefiningOp();
  unsigned limit = op ? limitOf(value) : 0;
  if (limit == 0)
    return 0;
  unsigned count = 1;
  for (Value operand : op->getOperands()) {
    if (isRead(operand))
      continue;
    unsigned more = countRecomputedOps(operand, counts, limitOf, isRead);
    if (more == 0)
      return 0;
    count += more;
  }
  return counts[value] = count <= limit ? count : 0;
}
