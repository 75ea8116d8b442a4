//===- ReportMemory.h - What a step would take in memory --------*- C++ -*-===//

#ifndef FP8_PIPELINES_REPORTMEMORY_H
#define FP8_PIPELINES_REPORTMEMORY_H

namespace mlir::fp8 {

/// Registers `report-memory`: all stages up to the plan of the arena, and the
/// report of what it holds.
void registerReportMemoryPipeline();

} // namespace mlir::fp8

#endif // FP8_PIPELINES_REPORTMEMORY_H
