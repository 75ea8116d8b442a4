//===- MemoryAnalyzer.cpp - Analysis of a schedule's buffers --------------===//

#include "MemoryAnalyzer.h"

#include "fp8/Kernels/Structure.h"
#include "fp8/Support/Locations.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::memory;

bool memory::isFP8Buffer(MemRefType type) {
  return type.getElementTypeBitWidth() == 8 &&
         isa<FloatType>(type.getElementType());
}

void MemoryAnalyzer::run() {
  collectWrites();
  propagate();
  findForwardPass();
  findForwardDots();
  findTurn();
  findGradients();
  // Propagate again, now that dots and gradients are known.
  propagate();
  findLayers();
  findLayerParameters();
  categorize();
  fillState();
  fillGrowth();
}

/// Finds the position at which most bytes of the arena are live.
static void findPeak(MemoryReport &report) {
  std::map<unsigned, int64_t> live = report.liveBytes();
  for (const PlannedBuffer &buffer : report.buffers) {
    int64_t alive = live.at(buffer.begin);
    if (alive > report.peakBytes) {
      report.peakBytes = alive;
      report.peak = buffer.begin;
    }
  }
}

MemoryReport
fp8::makeMemoryReport(ScheduleOp schedule, std::vector<PlannedBuffer> buffers,
                      int64_t arenaBytes,
                      llvm::function_ref<unsigned(Operation *)> positionOf) {
  MemoryReport report;
  report.function = schedule.getName().str();
  report.arenaBytes = arenaBytes;
  report.buffers = std::move(buffers);
  for (PlannedBuffer &buffer : report.buffers) {
    buffer.type = printShape(cast<MemRefType>(buffer.alloc.getType()));
    buffer.location = describeLocation(buffer.alloc.getLoc());
  }
  findPeak(report);
  MemoryAnalyzer(schedule, report, positionOf).run();
  // The plan replaces the allocations.
  for (PlannedBuffer &buffer : report.buffers)
    buffer.alloc = nullptr;
  return report;
}
