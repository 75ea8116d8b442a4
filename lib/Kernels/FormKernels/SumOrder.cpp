//===- SumOrder.cpp - The order in which sums are written -----------------===//

#include "SumOrder.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

/// Erases a fill and its destination if nothing reads them.
static void eraseIfUnused(linalg::FillOp fill) {
  Operation *empty = fill.getOutputs()[0].getDefiningOp();
  for (Operation *op : {fill.getOperation(), empty})
    if (op && op->use_empty())
      op->erase();
}

bool fp8::writeInOrderOfReader(OpOperand &use) {
  auto reader = dyn_cast<linalg::GenericOp>(use.getOwner());
  auto sum = use.get().getDefiningOp<linalg::GenericOp>();
  if (!reader || !sum || reader->getNumResults() != 1 ||
      sum->getNumResults() != 1 || !reader.isDpsInput(&use))
    return false;
  AffineMap read = reader.getMatchingIndexingMap(&use),
            write = reader.getIndexingMapsArray().back();
  auto fill = sum.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (!fill || !read.isPermutation() || !write.isPermutation())
    return false;
  OpBuilder builder(sum);
  auto type =
      cast<RankedTensorType>(use.get().getType())
          .clone(
              cast<RankedTensorType>(reader.getResult(0).getType()).getShape());
  Value empty = tensor::EmptyOp::create(builder, reader.getLoc(),
                                        type.getShape(), type.getElementType());
  sum.getOutputsMutable()[0].set(
      linalg::FillOp::create(builder, reader.getLoc(), fill.getInputs()[0],
                             empty)
          .result());
  SmallVector<AffineMap> maps = sum.getIndexingMapsArray();
  maps.back() = write.compose(inversePermutation(read)).compose(maps.back());
  sum.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  use.get().setType(type);
  maps = reader.getIndexingMapsArray();
  maps[use.getOperandNumber()] = write;
  reader.setIndexingMapsAttr(builder.getAffineMapArrayAttr(maps));
  eraseIfUnused(fill);
  return true;
}
