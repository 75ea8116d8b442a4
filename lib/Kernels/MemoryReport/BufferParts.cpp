//===- BufferParts.cpp - Contributions to a schedule's buffers ------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Accesses.h"
#include "fp8/Kernels/Structure.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

void BufferState::add(const BufferState &other) {
  parts |= other.parts;
  scores |= other.scores;
  parameters |= other.parameters;
  ofDot |= other.ofDot;
  lastDot = std::max(lastDot, other.lastDot);
}

BufferState MemoryAnalyzer::emptyState() {
  BufferState state;
  state.scores.resize(dots.size());
  state.parameters.resize(schedule.getNumArguments());
  return state;
}

/// Returns the parts of an argument before the step.
BufferState MemoryAnalyzer::startOf(BlockArgument arg) {
  BufferState state = emptyState();
  std::optional<ArgRole> role = argRoleOf(arg);
  std::optional<StateKind> kind = stateKindOf(arg);
  // Integers in the state are keys of a random number generator, unless they
  // are step counters.
  bool isKey =
      role == ArgRole::State && kind == StateKind::Other &&
      isa<IntegerType>(cast<MemRefType>(arg.getType()).getElementType());
  if (role == ArgRole::Key || isKey)
    state.parts = BufferState::Random;
  else if (role == ArgRole::Batch)
    state.parts = BufferState::Data;
  else if ((role && kind == StateKind::Parameter) || role == ArgRole::Frozen)
    state.parts = BufferState::Parameter;
  if (state.parts == BufferState::Parameter)
    state.parameters.set(arg.getArgNumber());
  if (kind == StateKind::Moment1 || kind == StateKind::Moment2)
    state.parts = BufferState::Update;
  return state;
}

/// Returns the merged state of everything that contributes to an output of a
/// launch.
BufferState MemoryAnalyzer::readByLaunch(const Write &write) {
  auto call = cast<LaunchOp>(write.op);
  const KernelFlow::Output &output = *outputOf(call, write.operand);
  BufferState state = emptyState();
  for (unsigned index : output.any.set_bits()) {
    Value operand = write.operandAt(index);
    auto it = states.find(memoryOf(operand));
    if (it == states.end())
      continue;
    BufferState part = it->second;
    // A score ends at the next dot; sums and maxima over scores are no scores.
    int64_t elements = cast<MemRefType>(operand.getType()).getNumElements();
    for (unsigned score : it->second.scores.set_bits())
      if (!output.withoutDot.test(index) ||
          elements < dots[score].numElements())
        part.scores.reset(score);
    state.add(part);
  }
  state.ofDot |= output.fromDot;
  auto dot = dotOf.find(call);
  if (output.fromDot && dot != dotOf.end()) {
    state.lastDot = std::max(state.lastDot, dot->second);
    if (dots[dot->second].ofActivations())
      state.scores.set(dot->second);
  }
  return state;
}

/// Returns the merged state of everything that contributes to `write`.
BufferState MemoryAnalyzer::readBy(const Write &write) {
  if (isa<LaunchOp>(write.op))
    return readByLaunch(write);
  BufferState state = emptyState();
  for (Value root : readBuffersOf(write)) {
    auto it = states.find(root);
    if (it == states.end())
      continue;
    BufferState part = it->second;
    part.scores.reset(); // A scalar is no score.
    state.add(part);
  }
  return state;
}

/// Finds the parts of all buffers; those of arguments are fixed.
void MemoryAnalyzer::propagate() {
  states.clear();
  DenseSet<Value> fixed;
  for (BlockArgument arg : schedule.getArguments())
    if (!schedule.getArgAttr(arg.getArgNumber(), FP8Dialect::kOutputAttrName)) {
      states[arg] = startOf(arg);
      fixed.insert(arg);
    }
  for (Value gradient : gradients)
    states[gradient].parts |= BufferState::Update;
  for (bool changed = true; changed;) {
    changed = false;
    for (auto &[root, writes] : writesOf) {
      if (fixed.contains(root))
        continue;
      BufferState merged = emptyState();
      merged.add(states[root]);
      for (const Write &write : writes)
        merged.add(readBy(write));
      BufferState &old = states[root];
      if (!(old == merged)) {
        old = merged;
        changed = true;
      }
    }
  }
}
