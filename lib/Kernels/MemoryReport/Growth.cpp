//===- Growth.cpp - Growth with tokens and layers -------------------------===//

#include "MemoryAnalyzer.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

static bool isActivation(const PlannedBuffer &buffer) {
  return buffer.category == MemoryCategory::SavedActivation ||
         buffer.category == MemoryCategory::Attention;
}

static int64_t numElements(const PlannedBuffer &buffer) {
  return cast<MemRefType>(buffer.alloc.getType()).getNumElements();
}

double MemoryAnalyzer::tokenShareOf(const PlannedBuffer &buffer) {
  if (isActivation(buffer))
    return 1;
  int64_t tokens = report.tokens.value.value_or(0);
  if (buffer.category != MemoryCategory::Temporary || tokens <= 0)
    return 0;
  const BufferState &state = states[buffer.alloc];
  return state.hasData() && !(state.parts & BufferState::Update) &&
         numElements(buffer) % tokens == 0;
}

/// Returns the layer that saves an activation; -1 for none. In a loop over
/// layers it is always 0.
int MemoryAnalyzer::layerOf(const PlannedBuffer &buffer) {
  if (layerLoop)
    return llvm::any_of(writesOf[buffer.alloc],
                        [&](const Write &write) {
                          return layerLoop->isAncestor(write.op);
                        })
               ? 0
               : -1;
  int lastDot = states[buffer.alloc].lastDot;
  if (!repeated.contains(lastDot))
    return -1;
  return (lastDot - repeated.first) / repeated.period;
}

/// Computes the bytes that one layer saves, from the activations whose layer is
/// known.
void MemoryAnalyzer::fillSavedPerLayer() {
  double saved = 0, attention = 0, wgradCopies = 0;
  int64_t layers = *report.layers.value;
  for (PlannedBuffer &buffer : report.buffers) {
    int layer = isActivation(buffer) ? layerOf(buffer) : -1;
    if (layer < 0)
      continue;
    buffer.layerShare = 1;
    // The last layer is followed by other ops than the layers before it.
    if (!layerLoop && layer == repeated.repeats - 1)
      continue;
    double perLayer = static_cast<double>(buffer.bytes) /
                      (layerLoop ? layers : repeated.repeats - 1);
    (buffer.category == MemoryCategory::Attention ? attention : saved) +=
        perLayer;
    if (buffer.isWgradCopy)
      wgradCopies += perLayer;
  }
  report.savedPerLayer = saved;
  report.wgradCopiesPerLayer = wgradCopies;
  report.attentionPerLayer = attention;
}

/// Finds how buffers grow with tokens and layers, and what one layer saves.
void MemoryAnalyzer::fillGrowth() {
  for (PlannedBuffer &buffer : report.buffers)
    buffer.tokenShare = tokenShareOf(buffer);
  if (report.layers.value.value_or(0) == 0)
    return;
  for (PlannedBuffer &buffer : report.buffers)
    if (!isActivation(buffer) && buffer.category != MemoryCategory::Temporary &&
        buffer.category != MemoryCategory::Table)
      buffer.layerShare = shareOfParameters(numElements(buffer));
  fillSavedPerLayer();
}
