//===- Layers.cpp - Layers, found by the forward dots ---------------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Accesses.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

/// Returns how often a loop runs, if that is known.
static std::optional<int64_t> tripsOf(Operation *loop) {
  auto counted = dyn_cast<scf::ForOp>(loop);
  if (!counted)
    return std::nullopt;
  auto lower = getConstantIntValue(counted.getLowerBound());
  auto upper = getConstantIntValue(counted.getUpperBound());
  auto step = getConstantIntValue(counted.getStep());
  if (!lower || !upper || !step || *step <= 0)
    return std::nullopt;
  return std::max<int64_t>(0, llvm::divideCeilSigned(*upper - *lower, *step));
}

/// Finds the longest run of forward dots in which each dot equals the one a
/// period before.
static Repetition findRepetition(ArrayRef<ForwardDot> dots) {
  Repetition best;
  int size = dots.size();
  for (int period = 1; period <= size / 2; ++period)
    for (int begin = 0; begin + 2 * period <= size;) {
      int end = begin + period;
      while (end < size &&
             dots[end].signature() == dots[end - period].signature())
        ++end;
      int count = (end - begin) / period;
      if (count >= 2 && count * period > best.size())
        best = {begin, period, count};
      begin = std::max(begin + 1, end - period + 1);
    }
  return best;
}

/// Returns the innermost loop around `op`; null if there is none or if it holds
/// `without`.
Operation *MemoryAnalyzer::loopAround(Operation *op, Operation *without) {
  for (Operation *loop = op->getParentOp(); loop && loop != schedule;
       loop = loop->getParentOp())
    if (isa<LoopLikeOpInterface>(loop))
      return without && loop->isAncestor(without) ? nullptr : loop;
  return nullptr;
}

/// Finds the number of tokens: the rows of the activation in most dots with a
/// weight. Returns the last such dot, or null.
const ForwardDot *MemoryAnalyzer::findTokens() {
  std::map<int64_t, int> votes;
  const ForwardDot *head = nullptr;
  for (const ForwardDot &dot : dots)
    if (dot.ofWeight()) {
      ++votes[dot.lhs ? dot.dot->m : dot.dot->n];
      head = &dot;
    }
  if (!head)
    return nullptr;
  auto most = llvm::max_element(
      votes, [](auto &a, auto &b) { return a.second < b.second; });
  report.tokens = {most->first, "rows of most dots with a weight"};
  return head;
}

/// Finds layers in a loop: the loop with most dots that does not hold the turn.
/// Returns false if there is none.
bool MemoryAnalyzer::findLoopOfLayers() {
  llvm::MapVector<Operation *, SmallVector<ForwardDot>> loops;
  for (const ForwardDot &dot : dots)
    if (Operation *loop = loopAround(dot.call, turn))
      loops[loop].push_back(dot);
  auto *biggest = llvm::max_element(loops, [](auto &a, auto &b) {
    return a.second.size() < b.second.size();
  });
  if (biggest == loops.end() || biggest->second.size() * 2 <= dots.size())
    return false;
  std::optional<int64_t> trips = tripsOf(biggest->first);
  if (!trips) {
    report.layers.why = "their loop runs an unknown number of times";
    return true;
  }
  layerLoop = biggest->first;
  repeated = findRepetition(biggest->second);
  // An iteration may hold several layers, or one layer whose dots are all
  // equal.
  if (repeated.size() != static_cast<int>(biggest->second.size()))
    repeated.repeats = 1;
  report.layers = {*trips * std::max(repeated.repeats, 1),
                   "iterations of the loop of the forward dots"};
  return true;
}

/// Finds layers that follow one another without a loop.
void MemoryAnalyzer::findRepeatedLayers() {
  repeated = findRepetition(dots);
  if (2 * repeated.size() <= static_cast<int>(dots.size()))
    repeated.repeats = 0;
  if (repeated.repeats < 2) {
    report.layers.why = "no sequence of forward dots repeats, and none is in a "
                        "loop";
    return;
  }
  report.layers = {repeated.repeats, "repetitions of " +
                                         std::to_string(repeated.period) +
                                         " forward dots"};
}

void MemoryAnalyzer::findLayers() {
  const ForwardDot *head = turn ? findTokens() : nullptr;
  if (!head) {
    std::string why = turn ? "no dot of the forward pass reads a weight"
                           : "the function has no backward pass";
    report.tokens.why = report.width.why = report.layers.why = why;
    return;
  }
  report.width = {head->dot->k, "what the last dot with a weight sums over"};
  if (!findLoopOfLayers())
    findRepeatedLayers();
}

bool MemoryAnalyzer::isInLayer(unsigned dot) {
  if (layerLoop)
    return layerLoop->isAncestor(dots[dot].call);
  return report.layers.value && repeated.contains(dot);
}

/// Finds the parameters that the dots of the layers read.
void MemoryAnalyzer::findLayerParameters() {
  layerParameters.resize(schedule.getNumArguments());
  for (auto [index, dot] : llvm::enumerate(dots)) {
    if (!isInLayer(index) || !dot.ofWeight())
      continue;
    for (unsigned operand : (dot.lhs ? dot.dot->rhs : dot.dot->lhs).set_bits())
      layerParameters |=
          states[memoryOf(dot.call.getOperand(operand))].parameters;
  }
}
