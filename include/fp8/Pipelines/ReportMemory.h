//===- ReportMemory.h - How much memory a step would take -------*- C++ -*-===//

#ifndef FP8_PIPELINES_REPORTMEMORY_H
#define FP8_PIPELINES_REPORTMEMORY_H

namespace mlir::fp8 {

/// Registers `report-memory`, which runs all stages up to the plan of the arena
/// and reports what the arena holds.
void registerReportMemoryPipeline();

} // namespace mlir::fp8

#endif // FP8_PIPELINES_REPORTMEMORY_H
