//===- Work.cpp - Which ops become kernels --------------------------------===//

#include "Work.h"

#include "fp8/Dialect/FP8/IR/Irregular.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::isWork(Operation *op) {
  return isa<linalg::GenericOp>(op) || isIrregular(op);
}

bool fp8::isDestination(Operation *op) {
  return isa_and_nonnull<linalg::FillOp, tensor::EmptyOp>(op);
}

MutableArrayRef<OpOperand> fp8::destinationsOf(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return loop.getInitArgsMutable();
  return cast<DestinationStyleOpInterface>(op).getDpsInitsMutable();
}

bool fp8::isDestination(OpOperand &operand) {
  return llvm::any_of(destinationsOf(operand.getOwner()),
                      [&](OpOperand &init) { return &init == &operand; });
}

bool fp8::isControlFlow(Operation *op) {
  return isa<scf::ForOp, scf::WhileOp, scf::IfOp, scf::IndexSwitchOp>(op) &&
         !isIrregular(op);
}

SmallVector<Block *> fp8::scheduleBlocks(func::FuncOp func) {
  SmallVector<Block *> blocks;
  std::function<void(Block &)> collect = [&](Block &block) {
    for (Operation &op : block)
      if (isControlFlow(&op))
        for (Region &region : op.getRegions())
          for (Block &inner : region)
            collect(inner);
    blocks.push_back(&block);
  };
  collect(func.getBody().front());
  return blocks;
}
