//===- ScheduleAccesses.cpp - Accesses of a schedule's ops ----------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Accesses.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

const KernelFlow &MemoryAnalyzer::flowOf(LaunchOp call) {
  auto kernel = symbols.lookup<KernelOp>(call.getKernel());
  auto it = flows.find(kernel);
  if (it == flows.end())
    it = flows.try_emplace(kernel, kernel).first;
  return it->second;
}

/// Returns the buffers that are read for `write`.
SmallVector<Value> MemoryAnalyzer::readBuffersOf(const Write &write) {
  Operation *op = write.op;
  SmallVector<Value> buffers;
  if (auto call = dyn_cast<LaunchOp>(op)) {
    for (unsigned index : outputOf(call, write.operand)->any.set_bits())
      buffers.push_back(memoryOf(write.operandAt(index)));
    return buffers;
  }
  if (isa<StartAllReduceOp, StartExchangeOp>(op)) {
    buffers.push_back(memoryOf(op->getOperand(0)));
    return buffers;
  }
  // For a stored scalar, return the buffers that its computation loads from.
  SmallVector<Value> worklist(op->getOperands().take_front(1));
  while (!worklist.empty()) {
    Operation *def = worklist.pop_back_val().getDefiningOp();
    if (!def)
      continue;
    if (auto load = dyn_cast<memref::LoadOp>(def))
      buffers.push_back(memoryOf(load.getMemRef()));
    else
      llvm::append_range(worklist, def->getOperands());
  }
  return buffers;
}

/// Returns true if `read` may read from `root` what `write` has written.
bool MemoryAnalyzer::mayPrecede(Operation *write, Operation *read, Value root) {
  if (positionOf(write) < positionOf(read))
    return true;
  // A buffer that a loop's body allocates does not outlive the iteration.
  for (Operation *loop = read->getParentOp(); loop && loop != schedule;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(write) &&
        !loop->isAncestor(root.getParentBlock()->getParentOp()))
      return true;
  return false;
}

void MemoryAnalyzer::collectWrites() {
  schedule.walk([&](Operation *op) {
    auto call = dyn_cast<LaunchOp>(op);
    for (OpOperand &operand : op->getOpOperands()) {
      unsigned index = operand.getOperandNumber();
      bool isWritten =
          isa<MemRefType>(operand.get().getType()) &&
          !isa<ViewLikeOpInterface>(op) &&
          (call ? outputOf(call, index).has_value() : mayWrite(operand));
      if (isWritten)
        writesOf[memoryOf(operand.get())].push_back({op, index});
    }
  });
}
