//===- OverlapCollectives.cpp - Overlap of collectives and launches -------===//

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

/// The memory that a collective reads, and the memory that it writes.
struct CollectiveMemory {
  Value input;
  SmallVector<Value, 2> written;

  /// Operand 0 of a start op is read, the others are written.
  explicit CollectiveMemory(Operation *start)
      : input(memoryOf(start->getOperand(0))) {
    for (Value operand : start->getOperands().drop_front())
      written.push_back(memoryOf(operand));
  }

  /// Returns true if `op` cannot run while the collective does.
  bool conflicts(Operation *op) const {
    WalkResult result = op->walk([&](Operation *inner) {
      auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
      // Views and allocations access no memory.
      if (isa<ViewLikeOpInterface, memref::AllocOp>(inner))
        return WalkResult::advance();
      for (Value operand : inner->getOperands()) {
        if (!isa<MemRefType>(operand.getType()))
          continue;
        Value memory = memoryOf(operand);
        auto writes = [&] {
          return !effects ||
                 effects.getEffectOnValue<MemoryEffects::Write>(operand);
        };
        if (llvm::is_contained(written, memory) ||
            (memory == input && writes()))
          return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return result.wasInterrupted();
  }
};

bool isStart(Operation *op) {
  return isa<StartAllReduceOp, StartExchangeOp>(op);
}

/// Returns true if `op` only computes the location of a buffer.
bool isAddressComputation(Operation *op) {
  return isa<ViewLikeOpInterface, memref::AllocOp>(op) ||
         (isa<arith::ArithDialect>(op->getDialect()) && isPure(op));
}

/// Moves `start` up, with the ops that compute the locations of its operands.
void moveUp(Operation *start, const CollectiveMemory &memory) {
  llvm::SmallPtrSet<Operation *, 8> moved{start};
  Operation *first = start;
  while (Operation *before = first->getPrevNode()) {
    bool isUsed = llvm::any_of(before->getUsers(), [&](Operation *user) {
      return moved.contains(user);
    });
    if (isUsed) {
      if (!isAddressComputation(before))
        return;
      moved.insert(before);
      first = before;
      continue;
    }
    if (isStart(before) || memory.conflicts(before))
      return;
    before->moveAfter(start);
  }
}

void moveDown(WaitOp wait, const CollectiveMemory &memory) {
  while (Operation *after = wait->getNextNode()) {
    if (after->hasTrait<OpTrait::IsTerminator>() || memory.conflicts(after))
      return;
    wait->moveAfter(after);
  }
}

class OverlapCollectives
    : public fp8::impl::OverlapCollectivesBase<OverlapCollectives> {
public:
  void runOnOperation() override {
    SmallVector<Operation *> starts;
    getOperation().walk([&](Operation *op) {
      if (isStart(op))
        starts.push_back(op);
    });
    for (Operation *start : starts)
      moveUp(start, CollectiveMemory(start));
    for (Operation *start : llvm::reverse(starts))
      moveDown(cast<WaitOp>(*start->user_begin()), CollectiveMemory(start));
  }
};

} // namespace
