//===- Categories.cpp - Categories of buffers -----------------------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

/// Finds attention scores: dots of two activations whose result reaches another
/// such dot.
llvm::BitVector MemoryAnalyzer::findScores() {
  llvm::BitVector scores(dots.size());
  for (ForwardDot &dot : dots)
    if (dot.ofActivations())
      for (const llvm::BitVector *side : {&dot.dot->lhs, &dot.dot->rhs})
        for (unsigned index : side->set_bits())
          scores |= states[memoryOf(dot.call.getOperand(index))].scores;
  return scores;
}

DotReads MemoryAnalyzer::findDotReads() {
  DotReads reads;
  schedule.walk([&](LaunchOp call) {
    const std::optional<KernelFlow::Dot> &dot = flowOf(call).dot;
    if (!dot)
      return;
    reads.last = std::max(reads.last, positionOf(call));
    bool isLater = turn && positionOf(call) >= *report.turn;
    for (const llvm::BitVector *side : {&dot->lhs, &dot->rhs})
      for (unsigned operand : side->set_bits())
        (isLater ? reads.later : reads.forward)
            .insert(memoryOf(call.getOperand(operand)));
  });
  return reads;
}

/// Returns true if the loop over micro-batches carries the buffer: it is then
/// not saved for an iteration.
bool MemoryAnalyzer::isCarried(const PlannedBuffer &buffer) {
  return stepLoop && !stepLoop->isAncestor(buffer.alloc.getDefiningOp()) &&
         llvm::any_of(writesOf[buffer.alloc], [&](const Write &write) {
           return stepLoop->isAncestor(write.op);
         });
}

/// Returns true if the buffer is written in the forward pass and read in the
/// backward pass.
bool MemoryAnalyzer::isSaved(const PlannedBuffer &buffer) {
  if (!turn || buffer.end < *report.turn || buffer.begin >= *report.turn)
    return false;
  bool isForward =
      llvm::any_of(writesOf[buffer.alloc], [&](const Write &write) {
        return forward.contains({write.op, write.operand});
      });
  return !isCarried(buffer) && (buffer.begin <= lastForwardDot || isForward);
}

bool MemoryAnalyzer::isScore(const PlannedBuffer &buffer,
                             const llvm::BitVector &scores) {
  const BufferState &state = states[buffer.alloc];
  int64_t elements = cast<MemRefType>(buffer.alloc.getType()).getNumElements();
  return llvm::any_of(scores.set_bits(), [&](unsigned index) {
    return !state.scores.empty() && state.scores.test(index) &&
           elements >= dots[index].numElements();
  });
}

MemoryCategory MemoryAnalyzer::categoryOf(const PlannedBuffer &buffer,
                                          unsigned lastDot,
                                          const llvm::BitVector &scores) {
  const BufferState &state = states[buffer.alloc];
  if (gradients.contains(buffer.alloc))
    return MemoryCategory::Gradient;
  if (state.hasData() || (state.parts & BufferState::Update)) {
    if (!isSaved(buffer))
      return MemoryCategory::Temporary;
    return isScore(buffer, scores) ? MemoryCategory::Attention
                                   : MemoryCategory::SavedActivation;
  }
  if (!state.parts)
    return MemoryCategory::Table;
  if (buffer.begin > lastDot)
    return MemoryCategory::Temporary;
  return isFP8Buffer(cast<MemRefType>(buffer.alloc.getType()))
             ? MemoryCategory::FP8Weight
             : MemoryCategory::OtherWeight;
}

void MemoryAnalyzer::categorize() {
  llvm::BitVector scores = findScores();
  DotReads reads = findDotReads();
  for (PlannedBuffer &buffer : report.buffers) {
    buffer.category = categoryOf(buffer, reads.last, scores);
    buffer.isWgradCopy =
        buffer.category == MemoryCategory::SavedActivation &&
        isFP8Buffer(cast<MemRefType>(buffer.alloc.getType())) &&
        reads.later.contains(buffer.alloc) &&
        !reads.forward.contains(buffer.alloc);
  }
}
