//===- Slices.cpp - Ops that work on stacks slice by slice ----------------===//

#include "Slices.h"

#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;

SetVector<Value> fp8::valuesReadBy(Operation *op) {
  SetVector<Value> values;
  values.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

Value fp8::rootOf(Value value) {
  while (Operation *def = value.getDefiningOp()) {
    if (!isTensorView(def) && !isa<tensor::ExtractSliceOp>(def))
      break;
    value = def->getOperand(0);
  }
  return value;
}

/// Returns whether the first result of a map is the first loop, which no other
/// result uses. Slices of an operand with such a map are slices of the loop.
static bool isLeading(AffineMap map) {
  return map.getNumResults() > 0 && plainPosition(map, 0) == 0u;
}

bool fp8::hasSlices(Value value, int64_t count) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() > 0 && type.getDimSize(0) > 0 &&
         type.getDimSize(0) % count == 0;
}

bool fp8::writesSlices(Operation *op, int64_t count) {
  if (isTensorView(op))
    return hasSlices(op->getResult(0), count);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic || generic.getNumLoops() == 0 ||
      generic.getIteratorTypesArray()[0] != utils::IteratorType::parallel)
    return false;
  return llvm::all_of(generic.getDpsInitsMutable(), [&](OpOperand &init) {
    return hasSlices(init.get(), count) &&
           isLeading(generic.getMatchingIndexingMap(&init));
  });
}

bool fp8::readsSlices(OpOperand &operand) {
  if (isTensorView(operand.getOwner()))
    return true;
  auto generic = dyn_cast<linalg::GenericOp>(operand.getOwner());
  return generic && isLeading(generic.getMatchingIndexingMap(&operand));
}

int64_t fp8::layersOf(BlockArgument arg) {
  auto type = dyn_cast<RankedTensorType>(arg.getType());
  if (!type || type.getRank() == 0 || type.getDimSize(0) < 2)
    return 1;
  int64_t layers = type.getDimSize(0);
  SetVector<Value> values;
  values.insert(arg);
  for (size_t i = 0; i < values.size(); ++i)
    for (OpOperand &use : values[i].getUses()) {
      Operation *user = use.getOwner();
      if (auto slice = dyn_cast<tensor::ExtractSliceOp>(user)) {
        int64_t rows = slice.getSourceType().getDimSize(0);
        if (slice.isDynamicOffset(0) && slice.getStaticSize(0) > 0 &&
            slice.getStaticSize(0) * layers == rows)
          return layers;
      } else if (readsSlices(use) && writesSlices(user, layers)) {
        values.insert(user->result_begin(), user->result_end());
      }
    }
  return 1;
}
