//===- OverlapCollectives.cpp - Overlap of collectives and launches -------===//

#include "fp8/Dialect/FP8/IR/FP8Ops.h"
#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Passes.h"

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

/// The memory that a collective only reads, and the memory that it writes.
struct CollectiveMemory {
  SmallVector<Value, 2> read, written;

  /// Takes the start or the wait of a collective.
  explicit CollectiveMemory(Operation *op) {
    std::optional<SmallVector<MemoryAccess>> accesses = accessesOf(op);
    for (const MemoryAccess &access : *accesses)
      (access.writes ? written : read).push_back(access.memory);
  }

  /// Returns true if `op` cannot run while the collective does.
  bool conflicts(Operation *op) const {
    std::optional<SmallVector<MemoryAccess>> accesses = accessesOf(op);
    return !accesses ||
           llvm::any_of(*accesses, [&](const MemoryAccess &access) {
             return llvm::is_contained(written, access.memory) ||
                    (access.writes && llvm::is_contained(read, access.memory));
           });
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
    SmallVector<WaitOp> waits;
    getOperation().walk([&](Operation *op) {
      if (isStart(op))
        starts.push_back(op);
      else if (auto wait = dyn_cast<WaitOp>(op))
        waits.push_back(wait);
    });
    for (Operation *start : starts)
      moveUp(start, CollectiveMemory(start));
    for (WaitOp wait : llvm::reverse(waits))
      moveDown(wait, CollectiveMemory(wait));
  }
};

} // namespace
