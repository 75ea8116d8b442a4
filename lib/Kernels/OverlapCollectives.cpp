//===- OverlapCollectives.cpp - Collectives beside the launches -----------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_OVERLAPCOLLECTIVES
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The memory that a collective reads and that it writes.
struct Held {
  Value input;
  SmallVector<Value, 2> written;

  explicit Held(StartAllReduceOp start) : input(memoryOf(start.getInput())) {
    written.push_back(memoryOf(start.getResult()));
    if (start.getMu())
      written.push_back(memoryOf(start.getMu()));
  }

  /// Does an op touch the memory so that it cannot run meanwhile?
  bool conflicts(Operation *op) const {
    WalkResult result = op->walk([&](Operation *inner) {
      auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
      // Views and allocations touch nothing.
      if (isa<ViewLikeOpInterface, memref::AllocOp>(inner))
        return WalkResult::advance();
      for (Value operand : inner->getOperands()) {
        if (!isa<MemRefType>(operand.getType()))
          continue;
        Value memory = memoryOf(operand);
        bool writes =
            !effects ||
            effects.getEffectOnValue<MemoryEffects::Write>(operand).has_value();
        if (llvm::is_contained(written, memory) || (memory == input && writes))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return result.wasInterrupted();
  }
};

/// Does `op` make an operand of `start`?
bool defines(Operation *op, StartAllReduceOp start) {
  return llvm::any_of(start->getOperands(), [&](Value operand) {
    return operand.getDefiningOp() == op;
  });
}

/// Does only the place of a buffer depend on `op`?
bool isPlace(Operation *op) {
  return isa<ViewLikeOpInterface, memref::AllocOp>(op) ||
         (isa<arith::ArithDialect>(op->getDialect()) && isPure(op));
}

/// Brings the places of the operands before the ops that do something.
void moveUp(StartAllReduceOp start, const Held &held) {
  while (Operation *before = start->getPrevNode()) {
    if (isa<StartAllReduceOp>(before) || held.conflicts(before))
      return;
    if (!defines(before, start)) {
      start->moveBefore(before);
      continue;
    }
    // A place that is made right here can be made earlier as well.
    Operation *earlier = before->getPrevNode();
    if (!isPlace(before) || !earlier || isa<StartAllReduceOp>(earlier) ||
        held.conflicts(earlier) ||
        llvm::any_of(before->getOperands(), [&](Value operand) {
          return operand.getDefiningOp() == earlier;
        }))
      return;
    before->moveBefore(earlier);
  }
}

void moveDown(WaitOp wait, const Held &held) {
  while (Operation *after = wait->getNextNode()) {
    if (after->hasTrait<OpTrait::IsTerminator>() || held.conflicts(after))
      return;
    wait->moveAfter(after);
  }
}

class OverlapCollectives
    : public fp8::impl::OverlapCollectivesBase<OverlapCollectives> {
public:
  void runOnOperation() override {
    SmallVector<StartAllReduceOp> starts;
    getOperation().walk(
        [&](StartAllReduceOp start) { starts.push_back(start); });
    for (StartAllReduceOp start : starts)
      moveUp(start, Held(start));
    for (StartAllReduceOp start : llvm::reverse(starts))
      moveDown(cast<WaitOp>(*start.getHandle().user_begin()), Held(start));
  }
};

} // namespace
