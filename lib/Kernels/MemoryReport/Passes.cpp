//===- Passes.cpp - Forward and backward pass of a schedule ---------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

/// Returns the buffers of the losses, which the end of the schedule reads.
SmallVector<std::pair<Value, Operation *>> MemoryAnalyzer::findLosses() {
  SmallVector<std::pair<Value, Operation *>> losses;
  Operation *terminator = schedule.getBody().front().getTerminator();
  for (BlockArgument arg : schedule.getArguments()) {
    auto kind = schedule.getArgAttrOfType<StringAttr>(
        arg.getArgNumber(), FP8Dialect::kKindAttrName);
    if (kind && symbolizeResultKind(kind.getValue()) == ResultKind::Loss &&
        schedule.getArgAttr(arg.getArgNumber(), FP8Dialect::kOutputAttrName))
      losses.push_back({arg, terminator});
  }
  return losses;
}

/// Finds the writes that the loss depends on.
void MemoryAnalyzer::findForwardPass() {
  SmallVector<std::pair<Value, Operation *>> worklist = findLosses();
  while (!worklist.empty()) {
    auto [root, reader] = worklist.pop_back_val();
    // The history of a parameter belongs to earlier steps.
    if (stateKindOf(root) == StateKind::Parameter)
      continue;
    auto it = writesOf.find(root);
    if (it == writesOf.end())
      continue;
    for (const Write &write : it->second) {
      if (!mayPrecede(write.op, reader, root) ||
          !forward.insert({write.op, write.operand}).second)
        continue;
      for (Value read : readBuffersOf(write))
        worklist.push_back({read, write.op});
    }
  }
}

/// Returns true for a weight with noise, as noisy layers have it: random
/// numbers and parameters alone contribute to it, no dot does, and it has as
/// many elements as one of these.
bool MemoryAnalyzer::isNoisyWeight(Value root) {
  const BufferState &state = states[root];
  int64_t elements = cast<MemRefType>(root.getType()).getNumElements();
  return !(state.parts & BufferState::Data) && !state.ofDot &&
         llvm::any_of(state.parameters.set_bits(), [&](unsigned index) {
           Value parameter = schedule.getArgument(index);
           return cast<MemRefType>(parameter.getType()).getNumElements() ==
                  elements;
         });
}

/// Finds the dots of the forward pass, in program order.
void MemoryAnalyzer::findForwardDots() {
  auto dependsOnData = [&](LaunchOp call, const llvm::BitVector &side) {
    auto reads = [&](auto predicate) {
      return llvm::any_of(side.set_bits(), [&](unsigned index) {
        return predicate(memoryOf(call.getOperand(index)));
      });
    };
    // What is beside a noisy weight are its scales.
    return reads([&](Value root) { return states[root].hasData(); }) &&
           !reads([&](Value root) { return isNoisyWeight(root); });
  };
  schedule.walk([&](LaunchOp call) {
    const KernelFlow &flow = flowOf(call);
    bool isForward =
        llvm::any_of(llvm::seq(call.getNumOperands()), [&](unsigned index) {
          const std::optional<KernelFlow::Output> &output =
              outputOf(call, index);
          return output && output->fromDot &&
                 forward.contains({call.getOperation(), index});
        });
    if (!flow.dot || !isForward)
      return;
    dotOf[call] = dots.size();
    dots.push_back({call, &*flow.dot, dependsOnData(call, flow.dot->lhs),
                    dependsOnData(call, flow.dot->rhs)});
  });
}

/// Finds the first dot of the backward pass.
void MemoryAnalyzer::findTurn() {
  if (dots.empty())
    return;
  lastForwardDot = positionOf(dots.back().call);
  schedule.walk([&](LaunchOp call) {
    if (!turn && flowOf(call).dot && !dotOf.contains(call) &&
        positionOf(call) > lastForwardDot)
      turn = call;
  });
  if (!turn)
    return;
  report.turn = positionOf(turn);
  for (Operation *loop = turn->getParentOp(); loop && loop != schedule;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop) && loop->isAncestor(dots.back().call)) {
      stepLoop = loop;
      return;
    }
}

/// Finds the buffers of the arena from which `write` is computed elementwise.
void MemoryAnalyzer::followElementwise(const Write &write,
                                       SetVector<Value> &found) {
  if (isa<StartAllReduceOp, StartExchangeOp>(write.op)) {
    Value root = memoryOf(write.op->getOperand(0));
    if (root.getDefiningOp<memref::AllocOp>() && states[root].hasData())
      found.insert(root);
    return;
  }
  auto call = dyn_cast<LaunchOp>(write.op);
  if (!call)
    return;
  for (unsigned index : outputOf(call, write.operand)->elementwise.set_bits()) {
    Value root = memoryOf(write.operandAt(index));
    if (root.getDefiningOp<memref::AllocOp>() && states[root].hasData() &&
        cast<MemRefType>(root.getType()).getNumElements() > 1)
      found.insert(root);
  }
}

/// Follows the values written to parameters and moments back along elementwise
/// steps. Those to which no moment contributes are gradients.
void MemoryAnalyzer::findGradients() {
  if (!turn)
    return;
  SetVector<Value> found;
  for (auto &[root, writes] : writesOf) {
    std::optional<StateKind> kind = stateKindOf(root);
    if (kind == StateKind::Parameter || kind == StateKind::Moment1 ||
        kind == StateKind::Moment2)
      for (const Write &write : writes)
        followElementwise(write, found);
  }
  for (unsigned i = 0; i < found.size(); ++i) {
    Value root = found[i];
    if (!(states[root].parts & BufferState::Update))
      gradients.insert(root);
    for (const Write &write : writesOf[root])
      followElementwise(write, found);
  }
}
