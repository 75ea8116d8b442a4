//===- LoopRewriting.cpp - Building blocks of loop rewriting --------------===//

#include "LoopRewriting.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace mlir::stablehlo;

bool stablehlo::isOutside(Value value, Operation *op) {
  return !op->isAncestor(value.getParentBlock()->getParentOp());
}

SmallVector<Value> stablehlo::cloneBefore(Operation *op, Block &block,
                                          ValueRange arguments) {
  OpBuilder b(op);
  IRMapping mapping;
  mapping.map(block.getArguments(), arguments);
  for (Operation &inner : block.without_terminator())
    b.clone(inner, mapping);
  SmallVector<Value> results;
  for (Value value : block.getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(value));
  return results;
}

SmallVector<Value> stablehlo::moveBefore(Operation *op, Block &block,
                                         ValueRange arguments) {
  for (auto [argument, value] : llvm::zip(block.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  Operation *terminator = block.getTerminator();
  SmallVector<Value> results(terminator->getOperands());
  terminator->erase();
  op->getBlock()->getOperations().splice(op->getIterator(),
                                         block.getOperations());
  return results;
}

bool stablehlo::eraseDeadOps(Block &block) {
  bool changed = false;
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op)) {
      op.erase();
      changed = true;
    }
  return changed;
}
