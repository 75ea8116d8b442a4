//===- FormKernels.cpp - Group ops into kernels and outline them ----------===//

#include "AttentionKernel.h"
#include "Groups.h"
#include "Outline.h"
#include "Preparation.h"
#include "Work.h"

#include "fp8/Analysis/Signature.h"
#include "fp8/Kernels/ContractionDims.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FORMKERNELS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Moves the nodes of `block` into the order of their groups, and each view
/// behind the op that it reads.
static void reorder(Block &block, const KernelGroups &groups,
                    ArrayRef<unsigned> order) {
  Operation *terminator = block.getTerminator();
  SmallVector<Operation *> views;
  for (Operation &op : block)
    if (isTensorView(&op))
      views.push_back(&op);
  for (unsigned group : order)
    for (unsigned node : groups.membersOf(group)) {
      for (Operation *attached : llvm::reverse(groups.node(node).attached))
        attached->moveBefore(terminator);
      groups.node(node).op->moveBefore(terminator);
    }
  for (Operation *view : views) {
    Operation *def = view->getOperand(0).getDefiningOp();
    if (def && def->getBlock() == &block)
      view->moveAfter(def);
    else
      view->moveBefore(&block, block.begin());
  }
}

/// Returns whether an attention has no dots: those of heads of one feature are
/// products and sums.
static bool hasNoDot(Operation *attention) {
  return llvm::none_of(
      attention->getRegion(0).front().getOps<linalg::GenericOp>(),
      [](linalg::GenericOp op) { return isDot(op); });
}

/// Moves the ops of an attention's body in front of it, in its place.
static void inlineBody(Operation *attention) {
  Block &body = attention->getRegion(0).front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), attention->getOperands()))
    argument.replaceAllUsesWith(operand);
  Operation *end = body.getTerminator();
  attention->replaceAllUsesWith(end->getOperands());
  end->erase();
  attention->getBlock()->getOperations().splice(attention->getIterator(),
                                                body.getOperations());
  attention->erase();
}

namespace {

class FormKernels : public fp8::impl::FormKernelsBase<FormKernels> {
public:
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    numKernels = 0;
    for (auto func :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>()))
      if (!func.isDeclaration() && failed(form(func)))
        return signalPassFailure();
  }

private:
  static LogicalResult verifyTensors(func::FuncOp func) {
    WalkResult result = func.walk([](Operation *op) {
      for (Type type : llvm::concat<const Type>(op->getOperandTypes(),
                                                op->getResultTypes()))
        if (auto shaped = dyn_cast<ShapedType>(type);
            shaped && (isa<BaseMemRefType>(type) || !shaped.hasStaticShape())) {
          op->emitOpError("expected a tensor of a static shape but got ")
              << type;
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult form(func::FuncOp func) {
    if (failed(verifyTensors(func)))
      return failure();
    SmallVector<Block *> blocks = scheduleBlocks(func);
    for (Block *block : blocks)
      if (failed(outlineAttentions(*block)))
        return failure();
    prepareForGrouping(blocks);
    llvm::StringMap<BlockArgument> arguments = argumentsByPath(func);
    for (Block *block : blocks)
      if (failed(form(func, arguments, *block)))
        return failure();
    return success();
  }

  LogicalResult outlineAttentions(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isAttention(&op))
        continue;
      // The blocks of a GPU divide an attention by its dots.
      if (forBlocks && hasNoDot(&op))
        inlineBody(&op);
      else if (failed(outlineAttention(&op, nextName())))
        return failure();
    }
    return success();
  }

  std::string nextName() { return "kernel_" + std::to_string(numKernels++); }

  /// Forms the kernels of one block.
  LogicalResult form(func::FuncOp func,
                     const llvm::StringMap<BlockArgument> &arguments,
                     Block &block) {
    KernelGroups groups(block, forBlocks);
    if (failed(groups.form()))
      return failure();
    SmallVector<unsigned> order = groups.order();
    reorder(block, groups, order);
    for (unsigned group : order)
      if (!groups.group(group).schedule)
        outlineKernel(func, arguments, block, groups, group, nextName());
    return success();
  }

  unsigned numKernels = 0;
};

} // namespace
