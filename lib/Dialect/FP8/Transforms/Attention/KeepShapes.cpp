//===- KeepShapes.cpp - Scores that are reshaped and back -----------------===//

#include "KeepShapes.h"

#include "Scores.h"

#include "../SmallTensors.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Moves ops in front of a reshape that undoes an earlier one.
class ShapeKeeper {
public:
  explicit ShapeKeeper(stablehlo::ReshapeOp back)
      : back(back), builder(back), shape(shapeOf(back)) {}

  bool run();

private:
  bool isOfScores(Value value, unsigned steps = 8) const;
  bool isReshaped(Value value, unsigned steps = 8) const;
  Value moved(Value value);
  Value reshaped(Value value);

  stablehlo::ReshapeOp back;
  OpBuilder builder;
  ArrayRef<int64_t> shape;
};

} // namespace

/// Whether `value` follows from scores elementwise.
bool ShapeKeeper::isOfScores(Value value, unsigned steps) const {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return false;
  return isAttentionDot(op) ||
         (stablehlo::worksByElement(op) &&
          llvm::any_of(op->getOperands(), [&](Value operand) {
            return isOfScores(operand, steps - 1);
          }));
}

/// Whether `value` follows elementwise, and for one reader, from scores that
/// have been reshaped.
bool ShapeKeeper::isReshaped(Value value, unsigned steps) const {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0 || !value.hasOneUse())
    return false;
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op))
    return shapeOf(reshape.getOperand()) == shape &&
           isOfScores(reshape.getOperand());
  return stablehlo::worksByElement(op) && op->getNumResults() == 1 &&
         llvm::any_of(op->getOperands(), [&](Value operand) {
           return isReshaped(operand, steps - 1);
         });
}

/// Returns another operand of an op, reshaped.
Value ShapeKeeper::reshaped(Value value) {
  if (shapeOf(value).empty())
    return value;
  auto broadcast = value.getDefiningOp<stablehlo::BroadcastInDimOp>();
  if (!broadcast || !shapeOf(broadcast.getOperand()).empty())
    return makeReshape(builder, value.getLoc(), value, shape);
  return stablehlo::BroadcastInDimOp::create(
      builder, value.getLoc(), tensorOf(value).clone(shape),
      broadcast.getOperand(), builder.getDenseI64ArrayAttr({}));
}

/// Returns `value`, for which `isReshaped` holds, in the shape of the scores.
Value ShapeKeeper::moved(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto reshape = dyn_cast<stablehlo::ReshapeOp>(op))
    return reshape.getOperand();
  auto operands = llvm::map_to_vector(op->getOperands(), [&](Value operand) {
    return isReshaped(operand) ? moved(operand) : reshaped(operand);
  });
  return builder
      .create(op->getLoc(), op->getName().getIdentifier(), operands,
              TypeRange{tensorOf(value).clone(shape)}, op->getAttrs())
      ->getResult(0);
}

bool ShapeKeeper::run() {
  Value value = back.getOperand();
  if (!isReshaped(value))
    return false;
  back.replaceAllUsesWith(moved(value));
  SmallVector<Value> unused{value};
  back.erase();
  while (!unused.empty()) {
    Operation *op = unused.pop_back_val().getDefiningOp();
    if (!op || !op->use_empty() ||
        !(stablehlo::worksByElement(op) || isa<stablehlo::ReshapeOp>(op)))
      continue;
    llvm::append_range(unused, op->getOperands());
    op->erase();
  }
  return true;
}

unsigned fp8::keepShapes(Block &block) {
  SmallVector<stablehlo::ReshapeOp> reshapes(
      block.getOps<stablehlo::ReshapeOp>());
  // Only earlier reshapes are removed with one.
  return llvm::count_if(reshapes, [](stablehlo::ReshapeOp back) {
    return ShapeKeeper(back).run();
  });
}
