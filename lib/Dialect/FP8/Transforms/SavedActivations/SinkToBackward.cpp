//===- SinkToBackward.cpp - Moving ops out of the forward pass ------------===//

#include "SinkToBackward.h"

#include "Recomputation.h"

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Dialect/StableHLO/IR/CHLO.h"
#include "fp8/Dialect/StableHLO/IR/StableHLO.h"

#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// The order of the ops of a block while some of them move. (The block itself
/// numbers all of its ops again at the first comparison after each move.)
class OpOrder {
public:
  explicit OpOrder(Block &block) : block(block) { number(); }

  bool isBefore(Operation *a, Operation *b) const {
    return numbers.lookup(a) < numbers.lookup(b);
  }

  void moveBefore(Operation *op, Operation *next) {
    op->moveBefore(next);
    Operation *previous = op->getPrevNode();
    uint64_t low = previous ? numbers.lookup(previous) : 0;
    uint64_t middle = low + (numbers.lookup(next) - low) / 2;
    if (middle == low)
      number();
    else
      numbers[op] = middle;
  }

private:
  /// Numbers all ops with room for others between them.
  void number() {
    uint64_t last = 0;
    for (Operation &op : block)
      numbers[&op] = last += kStride;
  }

  static constexpr uint64_t kStride = uint64_t(1) << 32;
  Block &block;
  DenseMap<Operation *, uint64_t> numbers;
};
} // namespace

/// Whether an op rounds its operand to fewer bits: its result is then the value
/// to save.
static bool isNarrowing(Operation *op) {
  return isa<stablehlo::ConvertOp>(op) &&
         getElementTypeOrSelf(op->getResult(0).getType())
                 .getIntOrFloatBitWidth() <
             getElementTypeOrSelf(op->getOperand(0).getType())
                 .getIntOrFloatBitWidth();
}

/// Whether an op may move to where the backward pass reads its result.
static bool isMovable(Operation *op) {
  return !op->use_empty() && isMemoryEffectFree(op) && !isNarrowing(op) &&
         !comparesEqual(op) &&
         (stablehlo::worksByElement(op) || keepsElements(op) ||
          isa<DequantizeOp>(op));
}

/// Returns the first op of the block that reads a result of `op`, itself or in
/// a region.
static Operation *findFirstReader(Operation *op, const OpOrder &order) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *reader = op->getBlock()->findAncestorOpInBlock(*user);
    if (!first || order.isBefore(reader, first))
      first = reader;
  }
  return first;
}

void fp8::sinkToBackward(func::FuncOp function, const LinearLayers &layers) {
  function.walk([&](Block *block) {
    Operation *last = nullptr;
    for (Operation &op : *block)
      if (layers.isForward(&op))
        last = &op;
    if (!last)
      return;
    SmallVector<Operation *> ops;
    for (Operation &op : llvm::make_range(block->begin(), last->getIterator()))
      if (!layers.isForward(&op) && isMovable(&op))
        ops.push_back(&op);
    if (ops.empty())
      return;
    OpOrder order(*block);
    for (Operation *op : llvm::reverse(ops))
      order.moveBefore(op, findFirstReader(op, order));
  });
}
